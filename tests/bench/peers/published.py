#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans under PyTorch's rules beside what others measured on their cards: tests/bench/results/published_xmem.json.

  tests/bench/peers/published.py            plans every run; tests/bench/results/published.json is written
  tests/bench/peers/published.py numbers    of some of them, what PyTorch asks for over a card of numbers (scripts/record); added to
                                            that file
  tests/bench/peers/published.py step NETWORK OPTIMIZER BATCH
                                            the training script that is recorded

What was run (exp/run.py, exp/trainer of the repository that the file names): torchvision's networks on images of 86x86 pixels,
float32, four steps of a plain loop (zero_grad, forward, cross entropy, backward, step; PyTorch 2.6.0, CUDA 12.4, cuDNN 9 by its
README), optimizers by their defaults, so foreach, and SGD without momentum. What was measured: NVML's used bytes of the card, the
largest of a sample every millisecond, less the first. The first sample comes after set_per_process_memory_fraction(), which has made
the context; so that what is compared is the allocator's pool, and nothing is added to it. Kernels that are loaded on the way are in
what was measured and not in the plan.

"planned" is of device.kind=plan, "asked" of device.kind=cuda, where cuDNN is asked for the workspaces of PyTorch's convolutions by the
properties of the card, which are there of one of the two. It is another cuDNN than the one that ran: those before 9.8 take no properties.

One thing is not as it was run. There is no Adagrad here: its rows are planned with RMSprop, which holds as many numbers for each
weight.

Wants a Python with PyTorch and torchvision, and a release build; `numbers` PyTorch's CUDA build (CUDA 13) and headroom_numbers.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]

import measure

FACTS = os.path.join(measure.TOP, "tests/bench/results/published_xmem.json")
RESULT = os.path.join(measure.TOP, "tests/bench/results/published.json")
RECORD = os.path.join(measure.TOP, "scripts/record/torch_record.py")
FILES = os.path.join(measure.TOP, "build/published")  # model files, written once
PIXELS = 86
STEPS = 4
BOUND = 0.03  # what a plan may lack
OPTIMIZERS = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw", "RMSprop": "rmsprop", "Adagrad": "rmsprop"}
ESTIMATES = ("planned", "asked", "xMem", "DNNMem", "SchedTune")
JUDGED = ("ConvNeXtTiny_Adam_420", "MnasNet_AdamW_482", "MnasNet_SGD_323", "MobeNetV3Small_SGD_258", "MobileNetV2_Adagrad_317",
          "MobileNetV2_AdamW_251", "MobileNetV2_SGD_712", "RegNetX400MF_Adam_382", "RegNetX400MF_RMSprop_616",
          "RegNetY400MF_RMSprop_312", "ResNet101_SGD_351", "VGG16_Adam_543", "VGG19_Adam_339", "VGG19_AdamW_377")
JUDGED_CARD = "rtx3060-12g"
ASKED = ["device.kind=cuda", "pipeline.device_prefetch=0"]


# ---- networks, with the names that the runs have --------------------------------------------------------------------

def mobilenet_v3(models, size, last_channel):
    from torchvision.models.mobilenetv3 import _mobilenet_v3_conf
    return models.MobileNetV3(_mobilenet_v3_conf("mobilenet_v3_" + size)[0], last_channel=last_channel, num_classes=10)


def network(name):
    from torchvision import models
    return {"ConvNeXtBase": models.convnext_base, "ConvNeXtTiny": models.convnext_tiny,
            "MnasNet": lambda: models.MNASNet(alpha=1.0, num_classes=10),
            "MobeNetV3Large": lambda: mobilenet_v3(models, "large", 1280),
            "MobeNetV3Small": lambda: mobilenet_v3(models, "small", 1024), "MobileNetV2": models.mobilenet_v2,
            "RegNetX400MF": models.regnet_x_400mf, "RegNetY400MF": models.regnet_y_400mf, "ResNet101": models.resnet101,
            "ResNet152": models.resnet152, "VGG16": models.vgg16, "VGG19": models.vgg19}[name]()


def model_file_of(name):
    path = os.path.join(FILES, name + ".yaml")
    if not os.path.exists(path):
        import torch
        from torch_to_headroom import model_file, without_initial_values
        with without_initial_values():
            module = network(name)
        text = model_file(module, (torch.zeros(2, 3, PIXELS, PIXELS),), name=name)[0]
        os.makedirs(FILES, exist_ok=True)
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".part", path)
    return path


# ---- plans ----------------------------------------------------------------------------------------------------------

def planned(row, device):
    """The report, also of a plan that runs out of memory."""
    knobs = device + ["device.card=" + row["card"], "batch.size=%d" % row["batch"], "precision.policy=float32",
             "optimizer.kind=" + OPTIMIZERS[row["optimizer"]], "optimizer.implementation=foreach"]
    run = subprocess.run([measure.headroom_program(), "plan", model_file_of(row["network"]), "--as", "pytorch", "--steps", str(STEPS),
                          *measure.knob_words(knobs), "--json"], stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(run.stdout)


def row_of(fact):
    report = planned(fact, ["device.kind=plan"])
    row = {key: fact[key] for key in ("run", "network", "optimizer", "batch", "card", "out_of_memory", "measured")}
    row["fits"] = report.get("oom") is None
    if row["fits"]:
        row["planned"] = report["memory"]["peak_pool_bytes"]
        row["in_use"] = report["memory"]["peak_in_use_bytes"]
    if os.path.exists(os.path.join(measure.TOP, "presets/cards/%s.json" % row["card"])):
        asked = planned(fact, ASKED)
        row["asked_fits"] = asked.get("oom") is None
        if row["asked_fits"]:
            row["asked"] = asked["memory"]["peak_pool_bytes"]
    row.update({key: fact[key] for key in ESTIMATES[2:]})
    if not row["out_of_memory"]:
        row["percent"] = {key: round(100 * (row[key] / row["measured"] - 1), 2) for key in ESTIMATES if key in row}
    return row


def summary_of(rows):
    """Of the runs that finished; those that the plan refuses count as nothing else."""
    errors = {key: [row["percent"][key] for row in rows if key in row["percent"]] for key in ESTIMATES}
    return {key: {"runs": len(of), "median_error_percent": round(measure.median(abs(e) for e in of), 2),
                  "median_percent": round(measure.median(of), 2), "within_three_percent": sum(abs(e) <= 100 * BOUND for e in of),
                  "under_by_more_than_three_percent": sum(e < -100 * BOUND for e in of)} for key, of in errors.items() if of}


def result_of(rows):
    finished = [row for row in rows if not row["out_of_memory"]]
    groups = {key: {name: summary_of([row for row in finished if row[key] == name]) for name in sorted({row[key] for row in finished})}
              for key in ("network", "optimizer", "card")}
    return {"finished": {"runs": len(finished), "refused_by_the_plan": sum(not row["fits"] for row in finished), **summary_of(finished)},
            "ran_out": {"runs": len(rows) - len(finished),
                        "refused_by_the_plan": sum(row["out_of_memory"] and not row["fits"] for row in rows)},
            "groups": {key: {name: of.get("planned") for name, of in group.items()} for key, group in groups.items()}, "rows": rows}


def line_of(row):
    said = "%10d" % row["planned"] if row["fits"] else "not to fit"
    if row["out_of_memory"]:
        return "%-40s ran out of memory                 planned %s" % (row["run"], said)
    return "%-40s measured %11d planned %s %s" % (row["run"], row["measured"], said, row["percent"])


def plan_all(_options):
    with open(FACTS, encoding="utf-8") as file:
        facts = json.load(file)["rows"]
    rows = []
    for fact in facts:
        rows.append(row_of(fact))
        print(line_of(rows[-1]), flush=True)
    return result_of(rows)


# ---- PyTorch over a card of numbers ---------------------------------------------------------------------------------

def step(name, optimizer, batch):
    import torch
    model = network(name).cuda()
    update = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    x, y = torch.zeros(batch, 3, PIXELS, PIXELS), torch.zeros(batch, dtype=torch.long)
    for _ in range(STEPS):
        update.zero_grad()
        images, labels = x.cuda(), y.cuda()
        answer = model(images)
        loss = torch.nn.functional.cross_entropy(answer, labels)
        loss.backward()
        update.step()
        images = labels = None  # the loader's next batch takes their names
    stats = torch.cuda.memory_stats()
    print(json.dumps({"reserved": stats["reserved_bytes.all.peak"], "in_use": stats["allocated_bytes.all.peak"]}))


def over_numbers(row):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, RECORD, "--card", JUDGED_CARD, "--output", os.path.join(folder, "step.pickle"), __file__,
                              "step", row["network"], row["optimizer"], str(row["batch"])], stdout=subprocess.PIPE, check=True, text=True)
    counted = json.loads(run.stdout.splitlines()[-1])
    return {"run": row["run"], "measured": row["measured"], "planned": row["planned"], "planned_in_use": row["in_use"], **counted,
            "percent": {"reserved_beside_measured": round(100 * (counted["reserved"] / row["measured"] - 1), 2),
                        "planned_beside_reserved": round(100 * (row["planned"] / counted["reserved"] - 1), 2),
                        "planned_in_use_beside_in_use": round(100 * (row["in_use"] / counted["in_use"] - 1), 2)}}


def numbers():
    import torch
    with open(RESULT, encoding="utf-8") as file:
        result = json.load(file)
    rows = []
    for row in result["rows"]:
        if row["run"].rsplit("_", 2)[0] in JUDGED and row["card"] == JUDGED_CARD:
            rows.append(over_numbers(row))
            print(rows[-1], flush=True)
    result["numbers"] = {"card": JUDGED_CARD, "PyTorch": torch.__version__, "cuDNN": torch.backends.cudnn.version(), "rows": rows}
    return result


def main():
    words = sys.argv[1:]
    if len(words) == 4 and words[0] == "step":
        step(*words[1:3], int(words[3]))
    elif words == ["numbers"]:
        measure.keep(RESULT, numbers())
    elif not words:
        result = measure.result_of("published", plan_all, None)
        measure.keep(RESULT, result)
        print(json.dumps({key: result[key] for key in ("finished", "ran_out", "groups")}, indent=1))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
