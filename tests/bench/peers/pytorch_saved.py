#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps of a step, beside what `headroom plan -s execution.as=pytorch` says it does.

  tests/bench/peers/pytorch_saved.py [NAME…]        the classifiers of torchvision through scripts/export/torch_to_headroom.py, and
                                                    presets of the same networks; without names all of them, and
                                                    tests/bench/results/pytorch_saved.json is written
  tests/bench/peers/pytorch_saved.py kept float32|autocast NAME…
                                                    what is counted of them, as JSON (run over a card of numbers, scripts/record)

torch.autograd.graph.saved_tensors_hooks count each storage once, without parameters and buffers, in PyTorch's CUDA build over a card
of numbers: dropout masks are bytes there, and attention is one kernel. Presets are looked at under autocast to bfloat16, too. `bytes_a_sample` and `fixed_bytes` are the line through
batches of 2 and 3; a batch of 4 says whether it is one. Wants a Python with PyTorch (CUDA 13) and torchvision, and a release build
with headroom_numbers.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]

import torch
import torchvision

import exported_models
import measure
from torch_to_headroom import CannotExport, model_file

RECORD = os.path.join(measure.TOP, "scripts/record/torch_record.py")
RESULT = os.path.join(measure.TOP, "tests/bench/results/pytorch_saved.json")
BATCHES = (2, 3, 4)
CARD = "h200-141g"
PRESETS = {"resnet18": "resnet18", "resnet50": "resnet50", "resnext50_32x4d": "resnext50", "mobilenet_v2": "mobilenet_v2",
           "mobilenet_v3_large": "mobilenet_v3_large", "vgg16": "vgg16", "densenet121": "densenet121",
           "efficientnet_b0": "efficientnet_b0", "regnet_y_1_6gf": "regnet_y_1_6gf",
           "convnext_tiny": "convnext_t", "vit_b_16": "vit_b16"}


# ---- what PyTorch keeps ---------------------------------------------------------------------------------------------

def kept(name, model, batch, precision):
    own = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.nbytes() > 0 and storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # a result would keep what made it, and that the result

    size = exported_models.SIZES.get(name, 224)
    x, y = torch.randn(batch, 3, size, size, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), \
            torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "autocast"):
        answer = model(x)
        answer = answer if torch.is_tensor(answer) else answer[0]  # what a network returns beside its logits is not trained
        loss = torch.nn.functional.cross_entropy(answer, y)
    total = sum(storages.values())
    del loss
    return total


def count(precision, names):
    totals = {}
    for name in names:
        totals[name] = [kept(name, exported_models.made(name).cuda(), batch, precision) for batch in BATCHES]
    print(json.dumps(totals))


def counted(names, precision="float32"):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, RECORD, "--card", CARD, "--output", os.path.join(folder, "step.pickle"), __file__,
                              "kept", precision, *names], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


# ---- what is planned ------------------------------------------------------------------------------------------------

def planned(path, policy="float32"):
    report = [measure.json_of([measure.headroom_program(), "plan", path, "-s", "execution.as=pytorch", "-s", "execution.mode=eager",
                               "-s", "device.kind=plan", "-s", "precision.policy=" + policy, "-s", "device.card=unlimited", "-s",
                               "batch.size=%d" % batch, "--json"])[0] for batch in BATCHES]
    return [r["memory"]["saved_for_backward_bytes"] for r in report]


def line_through(totals):
    return {"bytes_a_sample": totals[1] - totals[0], "fixed_bytes": 3 * totals[0] - 2 * totals[1],
            "linear": totals[2] == 2 * totals[1] - totals[0]}


def exported(name, folder):
    size = exported_models.SIZES.get(name, 224)
    text, _, _ = model_file(exported_models.made(name), (torch.zeros(2, 3, size, size),), name=name)
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def row_of(name, totals, autocast, folder):
    row = {"name": name, "pytorch": line_through(totals)}
    try:
        row["exported"] = line_through(planned(exported(name, folder)))
    except CannotExport as error:
        row["not_exported"] = error.problems[0].split("; try")[0]
    except subprocess.CalledProcessError as error:
        row["not_planned"] = (error.stderr or str(error)).splitlines()[0]
    if name in PRESETS:
        row["preset"] = {"name": PRESETS[name], **line_through(planned(PRESETS[name]))}
        row["autocast"] = {"pytorch": line_through(autocast), "preset": line_through(planned(PRESETS[name], "mixed_bfloat16"))}
    return row


def difference(row, side):
    """In parts of what PyTorch keeps for a batch of 100; None: there is no such side."""
    if side not in row:
        return None
    total = [100 * row[part]["bytes_a_sample"] + row[part]["fixed_bytes"] for part in ("pytorch", side)]
    return total[1] / total[0] - 1


def line_of(row):
    words = ["%-20s %11d a sample + %8d" % (row["name"], row["pytorch"]["bytes_a_sample"], row["pytorch"]["fixed_bytes"])]
    for side in ("exported", "preset"):
        off = difference(row, side)
        if off is not None:
            words.append("%s %s" % (side, "equal" if off == 0 else "%+.4f %%" % (100 * off)))
    if "autocast" in row:
        off = difference(row["autocast"], "preset")
        words.append("autocast %s" % ("equal" if off == 0 else "%+.4f %%" % (100 * off)))
    return "  ".join(words + [row.get("not_exported", ""), row.get("not_planned", "")])


def measure_models(names):
    rows = []
    names = names or torchvision.models.list_models(module=torchvision.models)
    totals, autocast = counted(names), counted([name for name in names if name in PRESETS] or ["resnet18"], "autocast")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            rows.append(row_of(name, totals[name], autocast.get(name), folder))
            print(line_of(rows[-1]), flush=True)
    off = [difference(row, "exported") for row in rows if "exported" in row]
    half = [difference(row["autocast"], "preset") for row in rows if "autocast" in row]
    return {"versions": {"torch": torch.__version__, "torchvision": torchvision.__version__}, "models": len(rows),
            "compared": len(off), "equal": off.count(0), "within_one_percent": sum(abs(o) <= 0.01 for o in off),
            "autocast": {"compared": len(half), "equal": half.count(0), "within_one_percent": sum(abs(o) <= 0.01 for o in half)},
            "rows": rows}


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "kept":
        count(sys.argv[2], sys.argv[3:])
        return
    names = sys.argv[1:]
    result = measure.result_of("pytorch_saved", measure_models, names)
    print("%d models, %d compared, %d equal to the byte, %d within 1 %%; autocast: %s"
          % (result["models"], result["compared"], result["equal"], result["within_one_percent"], result["autocast"]))
    if not names:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
