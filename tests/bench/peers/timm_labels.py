#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans under PyTorch's rules beside what timm's benchmark of training found to fit: tests/bench/results/published_timm.json.

  tests/bench/peers/timm_labels.py [MODEL…]     writes tests/bench/results/timm_labels.json; with MODELs it only prints

A label is a batch that ran, and the next larger rung, that ran out of memory: a plan is right that serves the first and refuses the
second. Not as it was run: bfloat16 for float16 (as many bytes), timm 1 for 0.6, without its fused attention, which that had not; the
gradients of the step before are gone where PyTorch 1.12 zeroed them, and cuDNN's workspaces are what a plan has.

Wants a Python with PyTorch and timm, and a release build.
"""
import json
import os
import subprocess
import sys

os.environ["TIMM_FUSED_ATTN"] = "0"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]

import measure

FACTS = os.path.join(measure.TOP, "tests/bench/results/published_timm.json")
RESULT = os.path.join(measure.TOP, "tests/bench/results/timm_labels.json")
FILES = os.path.join(measure.TOP, "build/timm")  # model files, written once
CARD = "rtx3090-24g"
STEPS = 3
RUNGS = (512, 384, 256, 192, 128, 96, 64, 48, 32)
VRAM_MIB = 24576 - 1343  # less a context of 2022, whose kernels were not loaded lazily (Hugging Face, performance guide: of a V100)
KNOBS = ["device.kind=plan", "device.card=" + CARD, "device.vram=%dMiB" % VRAM_MIB, "precision.policy=mixed_bfloat16", "optimizer.kind=momentum",
         "optimizer.implementation=loop"]


def model_file_of(row):
    """Its path; ValueError: the exporter's sentence."""
    path = os.path.join(FILES, row["model"] + ".yaml")
    if not os.path.exists(path):
        import timm
        import torch
        from torch_to_headroom import model_file, without_initial_values
        with without_initial_values():
            module = timm.create_model(row["model"], pretrained=False)
        text = model_file(module, (torch.zeros(2, 3, row["pixels"], row["pixels"]),), name=row["model"])[0]
        os.makedirs(FILES, exist_ok=True)
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".part", path)
    return path


def plan_of(path, batch):
    run = subprocess.run([measure.headroom_program(), "plan", path, "--as", "pytorch", "--steps", str(STEPS),
                          *measure.knob_words(KNOBS + ["batch.size=%d" % batch]), "--json"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if not run.stdout:
        raise ValueError(run.stderr.splitlines()[0])
    report = json.loads(run.stdout)
    return {"fits": report["oom"] is None, "pool_bytes": report["memory"]["peak_pool_bytes"]}


def row_of(fact):
    above = RUNGS[RUNGS.index(fact["batch"]) - 1]
    row = {**fact, "above": above}
    try:
        path = model_file_of(fact)
        row["planned"] = plan_of(path, fact["batch"])
        row["planned_above"] = plan_of(path, above)
        row["right"] = row["planned"]["fits"] and not row["planned_above"]["fits"]
    except Exception as error:  # of any class: what a model's own code raises, too
        row["refused"] = "%s: %s" % (type(error).__name__, str(error).splitlines()[0][:200])
    return row


def line_of(row):
    if "refused" in row:
        return "%-32s %s" % (row["model"], row["refused"])
    peak = "%6.2f GiB" % (row["planned"]["pool_bytes"] / 2**30) if row["planned"]["pool_bytes"] else ""
    said = "right" if row["right"] else "does not fit" if not row["planned"]["fits"] else "fits at %d too" % row["above"]
    return "%-32s %4d  %10s  %s" % (row["model"], row["batch"], peak, said)


def plan_all(words):
    with open(FACTS, encoding="utf-8") as file:
        facts = [fact for fact in json.load(file)["rows"] if not words or fact["model"] in words]
    rows = []
    for fact in facts:
        rows.append(row_of(fact))
        print(line_of(rows[-1]), flush=True)
    judged = [row for row in rows if "right" in row]
    return {"labels": len(rows), "planned": len(judged), "right": sum(row["right"] for row in judged), "rows": rows}


def main():
    words = sys.argv[1:]
    if any(word.startswith("-") for word in words):
        sys.exit(__doc__)
    result = measure.result_of("timm_labels", plan_all, words)
    print("%d labels, %d planned, %d right" % (result["labels"], result["planned"], result["right"]))
    if not words:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
