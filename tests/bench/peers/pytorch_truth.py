#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans under PyTorch's rules beside what a card counted: tests/bench/results/pytorch_truth.json, without a card.

  tests/bench/peers/pytorch_truth.py [PRESET]

The judge is tests/bench/results/cuda_truth.h100.json (`tests/cuda/run truth`: PyTorch 2.11 on an H100, the modules of models.py
beside the presets of the same names; the largest sum allocated, and reserved, over four steps). What is planned is the same as
there, on the card of that name: fused optimizers, autocast for bfloat16.

Wants a release build.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "../../cuda")]

import measure
import truth

FACTS = os.path.join(measure.TOP, "tests/bench/results/cuda_truth.h100.json")
RESULT = os.path.join(measure.TOP, "tests/bench/results/pytorch_truth.json")
CARD = "h100-80g"
OPTIMIZERS = {preset: optimizer for preset, _, optimizer in truth.MODELS}


def planned(fact):
    """The report; None where the rules have no row for a layer."""
    policy = "float32" if fact["precision"] == "float32" else "mixed_bfloat16"
    knobs = truth.AS_PYTORCH + ["device.kind=plan", "device.card=" + CARD, "batch.size=%d" % fact["batch"],
                                "precision.policy=" + policy, "optimizer.kind=" + OPTIMIZERS[fact["preset"]]]
    run = subprocess.run([measure.headroom_program(), "plan", fact["preset"], "--steps", str(truth.STEPS),
                          *measure.knob_words(knobs), "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    report = json.loads(run.stdout)
    return report["memory"] if report["schema"].startswith("headroom.report/") else None


def row_of(fact):
    memory, counted = planned(fact), fact["pytorch"]
    row = {"preset": fact["preset"], "setting": fact["setting"], "batch": fact["batch"],
           "allocated": counted["peak_allocated_bytes"], "reserved": counted["peak_reserved_bytes"]}
    if memory is not None:
        row.update(planned=memory["peak_in_use_bytes"], planned_pool=memory["peak_pool_bytes"])
        row["percent"] = round(100 * (row["planned"] / row["allocated"] - 1), 2)
        row["pool_percent"] = round(100 * (row["planned_pool"] / row["reserved"] - 1), 2)
    return row


def summary_of(rows):
    of = [row for row in rows if "percent" in row]
    return {"rows": len(rows), "planned": len(of), "median_error_percent": round(measure.median(abs(row["percent"]) for row in of), 2),
            "within_one_percent": sum(abs(row["percent"]) <= 1 for row in of),
            "median_error_of_reserved_percent": round(measure.median(abs(row["pool_percent"]) for row in of), 2)}


def compare(wanted):
    with open(FACTS, encoding="utf-8") as file:
        facts = json.load(file)
    rows = []
    for fact in facts["models"]:
        if wanted in (None, fact["preset"]):
            rows.append(row_of(fact))
            print(rows[-1], flush=True)
    judge = {"card": facts["machine"]["card"], "PyTorch": facts["models"][0]["pytorch"]["peer"], "date": facts["date"]}
    return {"judge": judge, "summary": summary_of(rows), "rows": rows}


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    wanted = sys.argv[1] if len(sys.argv) == 2 else None
    result = measure.result_of("pytorch_truth", lambda _options: compare(wanted), None)
    if wanted is None:
        with open(RESULT + ".part", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        os.replace(RESULT + ".part", RESULT)
    print(json.dumps(result["summary"], indent=1))


if __name__ == "__main__":
    main()
