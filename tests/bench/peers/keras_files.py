#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes every model of keras.applications as Keras' own files (to_json, and a .keras archive with its weights where those are
small), and says of each file what headroom reads in it: parameters beside Keras' own, and the plan beside that of the preset
which scripts/export/keras_to_headroom.py writes of the live model.

  tests/bench/peers/keras_files.py [NAME…]        a Python with Keras; without names all of them, and
                                                  tests/bench/results/keras_files.json is written
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras

import measure
from keras_to_headroom import CannotExport, model_file

RESULT = os.path.join(measure.TOP, "tests/bench/results/keras_files.json")
MODES = ("eager", "graph")
ARCHIVE_PARAMETERS = 12_000_000  # more are written as to_json alone


def all_names():
    return sorted(name for name, make in vars(keras.applications).items() if name[0].isupper() and callable(make))


def plans_of(path):
    """The report of each mode; a sentence where the file is refused."""
    command = [measure.headroom_program(), "plan", path, "-s", "device.kind=plan", "-s", "batch.size=2", "--json"]
    out = []
    for mode in MODES:
        done = subprocess.run(command + ["-s", "execution.mode=" + mode], capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[0]
        out.append(json.loads(done.stdout))
    return out


def layers_of(plans):
    return [(layer["name"], layer["kind"], layer["output_shape"], layer["parameters"]) for layer in plans[0]["model"]["layers"]]


def files_of(model, name, folder):
    paths = [os.path.join(folder, name + ".json")]
    with open(paths[0], "w", encoding="utf-8") as file:
        file.write(model.to_json())
    if model.count_params() <= ARCHIVE_PARAMETERS:
        paths.append(os.path.join(folder, name + ".keras"))
        model.save(paths[1])
    return paths


def row_of(name, folder):
    words = {"input_shape": (224, 224, 3)} if name.startswith("MobileNetV3") else {}  # no size of its own
    model = getattr(keras.applications, name)(weights=None, **words)
    row = {"name": name, "keras_parameters": sum(math.prod(w.shape) for w in model.trainable_weights)}
    try:
        text, _, _ = model_file(model, name)
    except CannotExport as error:
        row["exporter_refuses"] = error.problems
        exported = None
    else:
        path = os.path.join(folder, name + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        exported = plans_of(path)
    row["files"] = []
    for path in files_of(model, name, folder):
        plans = plans_of(path)
        file = {"file": os.path.splitext(path)[1], "bytes": os.path.getsize(path)}
        if isinstance(plans, str):
            file["refused"] = plans.replace(folder + "/", "")
        else:
            file.update(parameters=plans[0]["model"]["trainable_parameters"],
                        peak_in_use_bytes=[plan["memory"]["peak_in_use_bytes"] for plan in plans],
                        plan_equal=exported is not None and all(a["memory"] == b["memory"] for a, b in zip(plans, exported)),
                        layers_equal=exported is not None and layers_of(plans) == layers_of(exported))
        row["files"].append(file)
        os.unlink(path)
    return row


def good(row):
    return all("refused" not in file and file["parameters"] == row["keras_parameters"] and file["plan_equal"] and
               file["layers_equal"] for file in row["files"])


def line_of(row):
    refused = [file["refused"] for file in row["files"] if "refused" in file]
    if refused:
        return "%-22s %s" % (row["name"], refused[0])
    return "%-22s %d files, parameters %11d, plan %s" % (
        row["name"], len(row["files"]), row["keras_parameters"], "equal" if good(row) else "NOT EQUAL %s" % row["files"])


def measure_models(options):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or all_names():
            rows.append(row_of(name, folder))
            keras.utils.clear_session()
            print(line_of(rows[-1]), flush=True)
    refused = [row["name"] for row in rows if any("refused" in file for file in row["files"])]
    return {"versions": {"keras": keras.__version__}, "models": len(rows), "modes": MODES, "batch": 2,
            "refused_by_both": sum("exporter_refuses" in row for row in rows if row["name"] in refused),
            "refused": len(refused), "equal": sum(good(row) for row in rows), "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    result = measure.result_of("keras_files", measure_models, options)
    print("%d models: %d equal to the exporter's plans, %d refused" % (result["models"], result["equal"], result["refused"]))
    if not options.names:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
