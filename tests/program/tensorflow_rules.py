#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""execution.as=tensorflow beside what TensorFlow's tape kept of the same models (tests/bench/results/tensorflow_saved.json;
tests/bench/peers/tensorflow_saved.py wrote it there): presets that Keras has as well keep as many bytes, for every batch.

usage: tensorflow_rules.py PROGRAM
"""
import json
import subprocess
import sys

RESULT = "tests/bench/results/tensorflow_saved.json"
LEAST = 4  # presets


def saved(program, preset, batch):
    command = [program, "plan", preset, "--as", "tensorflow", "-s", "device.kind=plan", "-s", "device.card=unlimited", "-s",
               "batch.size=%d" % batch, "--json"]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    return report["memory"]["saved_for_backward_bytes"]


def main():
    with open(RESULT, encoding="utf-8") as file:
        rows = [row for row in json.load(file)["rows"] if row.get("preset")]
    for row in rows:
        theirs = row["tensorflow"]
        for batch in (1, 7):
            expected = batch * theirs["bytes_a_sample"] + theirs["fixed_bytes"]
            planned = saved(sys.argv[1], row["name"], batch)
            if planned != expected:
                sys.exit("%s, batch %d: %d B kept, TensorFlow keeps %d" % (row["name"], batch, planned, expected))
    if len(rows) < LEAST:
        sys.exit("%d presets in %s, expected at least %d" % (len(rows), RESULT, LEAST))
    print("%d presets keep what TensorFlow's tape keeps" % len(rows))


if __name__ == "__main__":
    main()
