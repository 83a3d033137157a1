#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes every model of keras.applications through scripts/export/keras_to_headroom.py, and says of each whether it came
through: parameters and output here beside Keras' own.

  tests/bench/peers/keras_models.py [NAME…]        a Python with Keras; without names all of them, and
                                                   tests/bench/results/exported_keras.json is written
"""
import argparse
import math
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras

import measure
from keras_to_headroom import CannotExport, model_file

RESULT = os.path.join(measure.TOP, "tests/bench/results/exported_keras.json")


def all_names():
    return sorted(name for name, make in vars(keras.applications).items() if name[0].isupper() and callable(make))


def row_of(name, folder):
    words = {"input_shape": (224, 224, 3)} if name.startswith("MobileNetV3") else {}  # no size of its own
    model = getattr(keras.applications, name)(weights=None, **words)
    row = {"name": name, "keras_parameters": sum(math.prod(w.shape) for w in model.trainable_weights),
           "keras_output": list(model.output_shape[1:])}
    try:
        text, _, notes = model_file(model, name)
    except CannotExport as error:
        return {**row, "exported": False, "why": error.problems}
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    report = measure.json_of([measure.headroom_program(), "plan", path, "-s", "device.kind=plan", "-s", "batch.size=2", "--json"])[0]
    return {**row, "exported": True, "notes": notes, "parameters": report["model"]["trainable_parameters"],
            "output": report["model"]["layers"][-1]["output_shape"], "step_flops": report["step"]["flops"],
            "peak_in_use_bytes": report["memory"]["peak_in_use_bytes"]}


def good(row):
    return row["exported"] and row["parameters"] == row["keras_parameters"] and \
        row["output"] == "x".join(str(size) for size in row["keras_output"])


def line_of(row):
    if not row["exported"]:
        return "%-22s not exported: %s" % (row["name"], "; ".join(row["why"]))
    return "%-22s parameters %11d %s  output %s" % (
        row["name"], row["parameters"], "equal" if good(row) else "NOT %d" % row["keras_parameters"], row["output"])


def measure_models(options):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or all_names():
            rows.append(row_of(name, folder))
            keras.utils.clear_session()
            print(line_of(rows[-1]), flush=True)
    return {"versions": {"keras": keras.__version__}, "models": len(rows), "exported": sum(row["exported"] for row in rows),
            "equal": sum(bool(good(row)) for row in rows), "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    result = measure.result_of("exported_keras", measure_models, options)
    print("%d of %d exported, %d of them with Keras' parameters and outputs" % (result["exported"], result["models"], result["equal"]))
    if not options.names:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
