#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes every classifier of torchvision through scripts/export/torch_to_headroom.py, and says of each whether it came
through: parameters, output and products of a forward pass here beside PyTorch's own.

  tests/bench/peers/exported_models.py [NAME…]     a PyTorch with torchvision; without names all of them, and
                                                   tests/bench/results/exported.json is written

Nothing is computed: modules are traced and counted without numbers (torch.utils.flop_counter on the meta device), and
`headroom plan` plans. `flops` are those of convolutions and matrix products, on both sides; `why` is the exporter's sentence.
"""
import argparse
import collections
import math
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]

import torch
import torchvision
from torch.utils.flop_counter import FlopCounterMode

import measure
from floor import read_listing
from torch_to_headroom import CannotExport, model_file, without_initial_values

RESULT = os.path.join(measure.TOP, "tests/bench/results/exported.json")
BATCH = 2
SIZES = {"inception_v3": 299, "googlenet": 256}  # pixels; 224 otherwise: googlenet pools 14 pixels to 4 unevenly


def made(name):
    words = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with without_initial_values():
        return torchvision.models.get_model(name, weights=None, **words)


def torch_flops(module, example):
    """Of one forward pass."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        module.to("meta")(example.to("meta"))
    return counter.get_total_flops()


def product_flops(instruction):
    op, read = instruction.op.split("+")[0], instruction.read
    if op == "attention":
        batch, places, width = read[0].shape
        return 4 * batch * places * read[1].shape[1] * width
    if op == "attention_scores":
        return 2 * math.prod(instruction.made[0].shape) * read[0].shape[-1] // instruction.made[0].shape[1]
    if op == "attention_values":
        return 2 * math.prod(instruction.made[0].shape) * read[0].shape[-1]
    if op not in ("conv2d", "conv2d_transpose", "dense"):
        return 0
    seen = read[0] if op == "conv2d_transpose" else instruction.made[0]
    return 2 * math.prod(seen.shape[:-1]) * math.prod(read[1].shape)


def planned(path):
    words = [measure.headroom_program(), "plan", path, "-s", "device.kind=plan", "-s", "batch.size=%d" % BATCH]
    report = measure.json_of([*words, "--json"])[0]
    forward = [i for i in read_listing(measure.output_of([*words, "--listing"])[0]) if i.phase == "forward"]
    return report, sum(product_flops(i) for i in forward)


def row_of(name, folder):
    size = SIZES.get(name, 224)
    example = torch.zeros(BATCH, 3, size, size)
    module = made(name)
    row = {"name": name, "pixels": size, "torch_parameters": sum(p.numel() for p in module.parameters())}
    try:
        text, _, walk = model_file(module, (example,), name=name)
    except CannotExport as error:
        reasons = collections.Counter(re.sub(r" in `.*?\)(?: and in .*?)?: ", ": ", problem, count=1).split("; try")[0]
                                      for problem in error.problems)
        return {**row, "exported": False, "why": sorted(reasons)}
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    report, flops = planned(path)
    peer = torch_flops(module, example)
    return {**row, "exported": True, "notes": walk.notes, "parameters": report["model"]["trainable_parameters"],
            "output": report["model"]["layers"][-1]["output_shape"], "flops": flops, "torch_flops": peer,
            "step_flops": report["step"]["flops"],
            "peak_in_use_bytes": report["memory"]["peak_in_use_bytes"]}


def line_of(row):
    if not row["exported"]:
        return "%-20s not exported: %s" % (row["name"], "; ".join(row["why"]))
    return "%-20s parameters %11d %s  output %s  GFLOPs %8.3f, PyTorch %8.3f (%+.2f %%)" % (
        row["name"], row["parameters"], "equal" if row["parameters"] == row["torch_parameters"] else
        "NOT %d" % row["torch_parameters"], row["output"], row["flops"] / 1e9, row["torch_flops"] / 1e9,
        100 * (row["flops"] / row["torch_flops"] - 1))


def good(row):
    return row["exported"] and row["parameters"] == row["torch_parameters"] and row["output"].endswith("1000") and \
        abs(row["flops"] / row["torch_flops"] - 1) <= 0.01


def measure_models(options):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or torchvision.models.list_models(module=torchvision.models):
            rows.append(row_of(name, folder))
            print(line_of(rows[-1]), flush=True)
    return {"versions": {"torch": torch.__version__, "torchvision": torchvision.__version__}, "batch": BATCH,
            "models": len(rows), "exported": sum(row["exported"] for row in rows),
            "equal": sum(bool(good(row)) for row in rows), "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    result = measure.result_of("exported", measure_models, options)
    print("%d of %d exported, %d of them with PyTorch's parameters, 1000 outputs and FLOPs within 1 %%"
          % (result["exported"], result["models"], result["equal"]))
    if not options.names:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
