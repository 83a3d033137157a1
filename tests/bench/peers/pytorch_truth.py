#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans under PyTorch's rules beside what a card counted: tests/bench/results/pytorch_truth.json, without a card.

  tests/bench/peers/pytorch_truth.py [PRESET]

The judge is tests/bench/results/cuda_truth.h100.json (`tests/cuda/run truth`: PyTorch 2.11 on an H100, the modules of models.py
beside the presets of the same names; the largest sum allocated, and reserved, over four steps). What is planned is the same as
there, on the card of that name: fused optimizers, autocast for bfloat16, a loop that has no name for the model's answer, and
attention whose queries, keys and values are one product's, as those modules have it whatever the preset says.

"planned" is of device.kind=plan, which knows nothing of cuDNN. "asked" is of device.kind=cuda where cuDNN is found: it is asked for the
workspaces of PyTorch's convolutions by the card's properties. Images are channels_last and TF32 is off, as they were there.

Wants a release build.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "../../cuda")]

import measure
import truth

FACTS = os.path.join(measure.TOP, "tests/bench/results/cuda_truth.h100.json")
RESULT = os.path.join(measure.TOP, "tests/bench/results/pytorch_truth.json")
CARD = "h100-80g"
OPTIMIZERS = {preset: optimizer for preset, _, optimizer in truth.MODELS}


def module_of(preset, folder):
    """The preset, or a file of it with the attention of models.py."""
    with open(os.path.join(measure.TOP, "presets/models", preset + ".yaml"), encoding="utf-8") as file:
        text = file.read()
    changed = re.sub(r"kind: attention(, packed: true)?(?=[,}])", "kind: attention, packed: views", text)
    if changed == text:
        return preset
    path = os.path.join(folder, preset + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(changed)
    return path


def planned(program, fact, device):
    """What the report says of memory; None where the rules have no row for a layer, or there is no cuDNN to ask."""
    policy = "float32" if fact["precision"] == "float32" else "mixed_bfloat16"
    knobs = truth.AS_PYTORCH + device + ["device.card=" + CARD, "batch.size=%d" % fact["batch"], "precision.policy=" + policy,
                                         "optimizer.kind=" + OPTIMIZERS[fact["preset"]]]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([program, "plan", module_of(fact["preset"], folder), "--steps", str(truth.STEPS), *measure.knob_words(knobs),
                              "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    report = json.loads(run.stdout)
    known = report["schema"].startswith("headroom.report/") and "no cuDNN" not in (report["device"]["isa"] or "")
    return report["memory"] if known else None


def row_of(program, fact, names=("planned", "asked")):
    counted = fact["pytorch"]
    row = {"preset": fact["preset"], "setting": fact["setting"], "batch": fact["batch"],
           "allocated": counted["peak_allocated_bytes"], "reserved": counted["peak_reserved_bytes"]}
    devices = {"planned": ["device.kind=plan"], "asked": truth.as_cudnn_is_asked(fact["preset"])}
    for name in names:
        memory = planned(program, fact, devices[name])
        if memory is not None:
            row[name] = {"in_use": memory["peak_in_use_bytes"], "pool": memory["peak_pool_bytes"],
                         "percent": round(100 * (memory["peak_in_use_bytes"] / row["allocated"] - 1), 2),
                         "pool_percent": round(100 * (memory["peak_pool_bytes"] / row["reserved"] - 1), 2)}
    return row


def summary_of(rows, name):
    of = [row[name] for row in rows if name in row]
    return {"rows": len(rows), "planned": len(of)} if not of else {
        "rows": len(rows), "planned": len(of), "median_error_percent": round(measure.median(abs(row["percent"]) for row in of), 2),
        "within_one_percent": sum(abs(row["percent"]) <= 1 for row in of),
        "median_error_of_reserved_percent": round(measure.median(abs(row["pool_percent"]) for row in of), 2)}


def facts_of():
    with open(FACTS, encoding="utf-8") as file:
        return json.load(file)


def compare(wanted):
    facts, rows = facts_of(), []
    for fact in facts["models"]:
        if wanted in (None, fact["preset"]):
            rows.append(row_of(measure.headroom_program(), fact))
            print(rows[-1], flush=True)
    judge = {"card": facts["machine"]["card"], "PyTorch": facts["models"][0]["pytorch"]["peer"], "date": facts["date"]}
    return {"judge": judge, "summary": {name: summary_of(rows, name) for name in ("planned", "asked")}, "rows": rows}


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    wanted = sys.argv[1] if len(sys.argv) == 2 else None
    result = measure.result_of("pytorch_truth", lambda _options: compare(wanted), None)
    if wanted is None:
        measure.keep(RESULT, result)
    print(json.dumps(result["summary"], indent=1))


if __name__ == "__main__":
    main()
