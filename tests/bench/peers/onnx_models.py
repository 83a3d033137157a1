#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes networks of torchvision, timm and transformers through ONNX files, and says of each whether it came in: parameters
beside the module's, products of a forward pass beside PyTorch's own counter, and the plan beside that of the same module
through scripts/export/torch_to_headroom.py.

  tests/bench/peers/onnx_models.py [NAME…]     a Python with torch, torchvision, timm, transformers, onnx and onnxscript;
                                               without names all, and tests/bench/results/onnx.json is written

Exporting takes most of the time, so files are kept (--keep, build/onnx_files), and a run goes on where another stopped: what
is kept is only read again. After --minutes no further network is exported, and rows of the result before stay, with their
commit. A network is exported in a process of its own and given up after --seconds. In files that are kept, holes stand for
weights of 1 MiB and more, which no reader of shapes looks at: 63 networks lie in about 1 GB.

Each network is exported for inference, as people do it, by both exporters of torch.onnx (`dynamo`, from torch.export, and
`script`, from TorchScript), its batch left open. Its weights are random, so that no two are equal: exporters write equal
ones once. Dropout and stochastic depth are 0 on both sides: an export for inference has none. `same_plan` is true where every
number of `memory` but the names of tensors is equal; `why` is the sentence of a refusal. `large` is a file with 2 GB of
external data: seconds (median of 5) and the most memory of a process that reads it.
"""
import argparse
import copy
import ctypes
import json
import logging
import mmap
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export"), HERE]

import torch
import torchvision
from torch.utils.flop_counter import FlopCounterMode

import measure
from exported_models import BATCH, planned
from torch_to_headroom import CannotExport, model_file, without_initial_values

RESULT = os.path.join(measure.TOP, "tests/bench/results/onnx.json")
TORCHVISION = """resnet18 mobilenet_v2 squeezenet1_0 squeezenet1_1 mobilenet_v3_small mobilenet_v3_large mnasnet0_5 mnasnet1_0
    efficientnet_b0 efficientnet_b1 regnet_x_400mf regnet_y_400mf regnet_y_1_6gf densenet121 resnet34 resnet50 resnext50_32x4d
    convnext_tiny vit_b_32 vit_b_16 inception_v3 shufflenet_v2_x1_0 swin_t alexnet vgg11 vgg16 efficientnet_v2_s efficientnet_b3
    densenet169 resnet101 wide_resnet50_2 vgg13_bn convnext_small""".split()
TIMM = """resnet26 seresnet50 resnet50d mobilenetv3_small_100 efficientnet_lite0 tf_efficientnet_b0 vit_tiny_patch16_224
    deit_small_patch16_224 convnext_atto convnext_nano regnety_002 repvgg_a0 darknet53 hrnet_w18_small ese_vovnet19b_dw
    mixer_s32_224 resnetv2_50 xception41""".split()
# As small as they may be: what is looked at is the architecture.
TRANSFORMERS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(n_layer=2, n_embd=64, n_head=4, vocab_size=500, n_positions=32)),
    "bert": ("BertForSequenceClassification", "BertConfig", dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4,
             intermediate_size=128, vocab_size=500, max_position_embeddings=32, num_labels=3)),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", dict(n_layers=2, dim=64, n_heads=4, hidden_dim=128, vocab_size=500,
                   max_position_embeddings=32)),
    "llama": ("LlamaForCausalLM", "LlamaConfig", dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4,
              num_key_value_heads=2, intermediate_size=128, vocab_size=500, max_position_embeddings=32)),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4,
                num_key_value_heads=2, intermediate_size=128, vocab_size=500, max_position_embeddings=32, sliding_window=None)),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4,
              num_key_value_heads=2, intermediate_size=128, vocab_size=500, max_position_embeddings=32)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, head_dim=16,
              num_key_value_heads=2, intermediate_size=128, vocab_size=500, max_position_embeddings=32)),
    "vit": ("ViTForImageClassification", "ViTConfig", dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=4,
            intermediate_size=128, num_labels=10)),
    "resnet": ("ResNetForImageClassification", "ResNetConfig", dict(num_labels=10)),
}
PLACES = 32
EXPORTERS = ("dynamo", "script")


class Masked(torch.nn.Module):
    """As a model of transformers is exported to be served: with a padding mask and segments."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.inner(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits


class Logits(torch.nn.Module):
    """What a model of transformers is for: its logits alone."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).logits


def made(name):
    family, _, word = name.partition("/")
    with without_initial_values():
        if family == "torchvision":
            words = {"init_weights": False, "aux_logits": False} if word == "inception_v3" else {}
            module = torchvision.models.get_model(word, weights=None, **words)
            return module, (torch.zeros(BATCH, 3, *[299 if word == "inception_v3" else 224] * 2),)
        if family == "timm":
            import timm
            return timm.create_model(word, pretrained=False), (torch.zeros(BATCH, 3, 224, 224),)
        import transformers
        transformers.logging.set_verbosity_error()
        model, config, words = TRANSFORMERS[word]
        config = getattr(transformers, config)(**words)
        config.use_cache = False
        if word != "resnet":
            config._attn_implementation = "sdpa"
        module = getattr(transformers, model)(config)
        ids = torch.zeros(BATCH, PLACES, dtype=torch.long)
        if word == "bert":
            return Masked(module), (ids, ids + 1, ids.clone())
        return Logits(module), (torch.zeros(BATCH, 3, 224, 224) if word in ("vit", "resnet") else ids,)


def without_dropout(module):
    for one in module.modules():
        for key in ("p", "drop_prob", "dropout", "dropout_p", "attn_pdrop", "attention_dropout", "drop_path_rate"):
            if isinstance(getattr(one, key, None), float):
                setattr(one, key, 0.0)
    return module


def random_weights(module):
    """All parameters, and the statistics of batch norms; other buffers are tables, as rotary positions have them."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if isinstance(tensor, torch.nn.Parameter) or name.endswith(("running_mean", "running_var")):
                tensor.uniform_(0.5, 1.0, generator=generator)


def export(module, examples, path, exporter, external=False):
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nowhere:
        warnings.simplefilter("ignore")
        sys.stdout.flush()
        before = [os.dup(1), os.dup(2)]  # what the exporters print of a failure comes from C++
        try:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            if exporter == "dynamo":
                torch.onnx.export(module, examples, path, dynamo=True, verbose=False, external_data=external,
                                  dynamic_shapes=[{0: torch.export.Dim("batch")}] * len(examples))
            else:
                names = ["x"] if len(examples) == 1 else ["input_ids", "attention_mask", "token_type_ids"]
                torch.onnx.export(module, examples, path, dynamo=False, input_names=names,
                                  dynamic_axes={name: {0: "batch"} for name in names})
        finally:
            sys.stdout.flush()
            for fd, kept in zip((1, 2), before):
                os.dup2(kept, fd)
                os.close(kept)


def torch_flops(module, examples):
    """Of one forward pass. Images without numbers; masks of transformers need them."""
    device = "meta" if examples[0].is_floating_point() else "cpu"
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        module.to(device)(*[example.to(device) for example in examples])
    return counter.get_total_flops()


def comparable(report):
    memory = copy.deepcopy(report["memory"])
    at_peak = memory.pop("at_peak") or {}
    return {"memory": memory, "by_category": at_peak.get("by_category"), "flops": report["step"]["flops"],
            "instructions": report["step"]["instructions"], "parameters": report["model"]["parameters"]}


def refusal_of(path):
    found = subprocess.run([measure.headroom_program(), "plan", path], capture_output=True, text=True)
    return "" if found.returncode in (0, 1) else found.stderr.splitlines()[0].replace(path, "FILE") if found.stderr else "?"


# ---- exporting, in a process of its own -------------------------------------------------------------------------------


def punch_holes(path):
    """Frees the blocks of the large weights; length and structure of the file stay."""
    import onnx
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        for weight in onnx.load(path, load_external_data=False).graph.initializer:
            if len(weight.raw_data) >= 1 << 20:
                at = view.find(weight.raw_data[:256])
                if at < 0 or libc.fallocate(file.fileno(), 3, ctypes.c_long(at), ctypes.c_long(len(weight.raw_data))) != 0:
                    raise OSError("no hole in %s for %s" % (path, weight.name))


def write_whole(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def write_reference(name, folder):
    module, examples = made(name)
    try:
        text, _, _ = model_file(without_dropout(module), examples, name="reference")
    except CannotExport:
        return False
    write_whole(os.path.join(folder, "reference.yaml"), text)
    return True


def export_network(name, folder):
    """Writes reference.yaml, dynamo.onnx and script.onnx as far as they can be made, and facts.json after each of them."""
    module, examples = made(name)
    random_weights(module)
    module.eval()
    facts = {"torch_parameters": sum(p.numel() for p in module.parameters()), "no_export": {}}
    facts["through_torch_to_headroom"] = write_reference(name, folder)
    for exporter in EXPORTERS:
        path = os.path.join(folder, exporter + ".onnx")
        try:
            export(module, examples, path, exporter)
            punch_holes(path)
        except Exception as error:  # whatever an exporter raises
            why = re.sub(r"\s+", " ", str(error))[:160]
            facts["no_export"][exporter] = "%s: %s" % (type(error).__name__, why)
    facts["torch_flops"] = torch_flops(module, examples)
    write_whole(os.path.join(folder, "facts.json"), json.dumps(facts))


def kept_of(name, options):
    return os.path.join(options.keep, name.replace("/", "."), "facts.json")


def facts_of(name, options):
    """What is kept of a network, made first where nothing is; None: it took too long."""
    kept = kept_of(name, options)
    folder = os.path.dirname(kept)
    if not os.path.exists(kept):
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run([sys.executable, __file__, "--export", name, "--keep", options.keep], check=True,
                           timeout=options.seconds)
        except subprocess.TimeoutExpired:
            return folder, None
    with open(kept, encoding="utf-8") as file:
        return folder, json.load(file)


# ---- reading ----------------------------------------------------------------------------------------------------------


def onnx_row(path, exporter, facts, reference):
    row = {"exporter": exporter}
    if exporter in facts["no_export"]:
        return {**row, "exported": False, "why": facts["no_export"][exporter]}
    why = refusal_of(path)
    if why:
        return {**row, "exported": True, "read": False, "why": why}
    report, flops = planned(path)
    same = reference is not None and comparable(report) == comparable(reference)
    row.update(exported=True, read=True, parameters=report["model"]["trainable_parameters"], flops=flops,
               peak_in_use_bytes=report["memory"]["peak_in_use_bytes"], same_plan=same if reference else None)
    if reference and not same:
        row["differs"] = [key for key, mine in comparable(report).items() if mine != comparable(reference)[key]]
    return row


def row_of(name, folder, facts):
    row = {"name": name, "torch_parameters": facts["torch_parameters"], "torch_flops": facts["torch_flops"],
           "through_torch_to_headroom": facts["through_torch_to_headroom"]}
    reference = planned(os.path.join(folder, "reference.yaml"))[0] if row["through_torch_to_headroom"] else None
    row["files"] = [onnx_row(os.path.join(folder, exporter + ".onnx"), exporter, facts, reference)
                    for exporter in EXPORTERS]
    return row


def file_is_good(row, file):
    return file.get("read") and file["parameters"] == row["torch_parameters"] and \
        abs(file["flops"] / row["torch_flops"] - 1) <= 0.01


def line_of(row):
    words = []
    for file in row["files"]:
        if not file.get("read"):
            words.append("%s: %s %s" % (file["exporter"], "REFUSED" if file["exported"] else "NO EXPORT", file["why"]))
            continue
        words.append("%s: parameters %s, FLOPs %+.2f %%, plan %s" % (
            file["exporter"], "equal" if file["parameters"] == row["torch_parameters"] else
            "%d for %d" % (file["parameters"], row["torch_parameters"]), 100 * (file["flops"] / row["torch_flops"] - 1),
            {True: "equal", False: "DIFFERS in %s" % file.get("differs"), None: "not compared"}[file["same_plan"]]))
    return "%-32s %s" % (row["name"], ("\n" + " " * 33).join(words))


def large_file(folder):
    """A file whose external data are 2 GB (a hole): what reading it takes."""
    module = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(8)])
    path = os.path.join(folder, "large.onnx")
    export(module.eval(), (torch.zeros(BATCH, 8192),), path, "dynamo", external=True)
    seconds, data = [], os.path.getsize(path + ".data")
    for _ in range(5):
        began = time.monotonic()
        subprocess.run([measure.headroom_program(), "config", "show", path], stdout=subprocess.DEVNULL, check=True,
                       stderr=subprocess.DEVNULL)
        seconds.append(time.monotonic() - began)
    found = subprocess.run(["/usr/bin/env", "python3", "-c",
                            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, "
                            "stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
                            measure.headroom_program(), "config", "show", path], capture_output=True, text=True, check=True)
    return {"external_bytes": data, "seconds": round(sorted(seconds)[2], 4), "process_kib": int(found.stdout)}


def rows_before():
    """Of the result that there is, each with the commit that it was measured at, and its large file."""
    if not os.path.exists(RESULT):
        return {}, None
    with open(RESULT, encoding="utf-8") as file:
        result = json.load(file)
    large = result["large"]
    return {row["name"]: {"commit": result["commit"], **row} for row in result["rows"]}, \
        None if large is None else {"commit": result["commit"], **large}


def measure_models(options):
    rows = []
    names = options.names or ["transformers/" + n for n in TRANSFORMERS] + ["torchvision/" + n for n in TORCHVISION] + \
        ["timm/" + n for n in TIMM]
    began, left, too_long = time.monotonic(), [], []
    before, large = rows_before()
    for name in names:
        if time.monotonic() - began > 60 * options.minutes and not os.path.exists(kept_of(name, options)):
            if name in before:
                rows.append(before[name])
            else:
                left.append(name)
            continue
        folder, facts = facts_of(name, options)
        if facts is None:
            too_long.append(name)
            continue
        rows.append(row_of(name, folder, facts))
        print(line_of(rows[-1]), flush=True)
    if not options.names and (large is None or time.monotonic() - began <= 60 * options.minutes):
        with tempfile.TemporaryDirectory() as folder:
            large = large_file(folder)
    files = [(row, file) for row in rows for file in row["files"] if file["exported"]]
    return {"versions": {"torch": torch.__version__, "torchvision": torchvision.__version__}, "batch": BATCH,
            "networks": len(rows), "not_reached": left, "took_too_long": too_long, "files": len(files), "read": sum(bool(file["read"]) for _, file in files),
            "equal": sum(bool(file_is_good(*pair)) for pair in files),
            "networks_read": sum(any(file.get("read") for file in row["files"]) for row in rows),
            "networks_equal": sum(any(file_is_good(row, file) for file in row["files"]) for row in rows),
            "same_plan": sum(any(file.get("same_plan") for file in row["files"]) for row in rows),
            "large": large, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="torchvision/resnet18, timm/resnet26, transformers/gpt2 …")
    parser.add_argument("--minutes", type=float, default=120, help="export no further network after so many (default 120)")
    parser.add_argument("--seconds", type=float, default=600, help="that exporting one network may take (default 600)")
    parser.add_argument("--keep", default=os.path.join(measure.TOP, "build/onnx_files"), metavar="FOLDER",
                        help="where exported files are kept (default build/onnx_files)")
    parser.add_argument("--export", metavar="NAME", help="only export this network into that folder")
    options = parser.parse_args()
    if options.export:
        export_network(options.export, os.path.join(options.keep, options.export.replace("/", ".")))
        return
    result = measure.result_of("onnx", measure_models, options)
    print("%(networks)d networks, %(files)d files: %(read)d read, %(equal)d of them with PyTorch's parameters and FLOPs within 1 %%; "
          "of the networks %(networks_equal)d so, %(same_plan)d with the plan of torch_to_headroom.py" % result)
    if not options.names:
        write_whole(RESULT, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
