#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""execution.as=tensorflow beside what TensorFlow's tape kept of the same models (tests/bench/results/tensorflow_saved.json;
tests/bench/peers/tensorflow_saved.py wrote it there): presets that Keras has as well, and its layers one by one, keep as many
bytes, for every batch. The layers are written down here as that file builds them in Keras.

usage: tensorflow_rules.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

RESULT = "tests/bench/results/tensorflow_saved.json"
LEAST = 4  # presets

HEAD = """device: {vram: 1GiB}
model:
  name: layer
  input: %s
  classes: %d
  loss: softmax_cross_entropy
  layers:
"""


def model_of(of, classes, *lines):
    return HEAD % (of, classes) + "".join("    - {%s}\n" % line for line in lines)


def image(*lines, flat=False):
    """Between two convolutions, or where the layer's result is flat, behind one."""
    behind = [] if flat else ["name: behind, kind: conv2d, filters: 6, kernel: 1", "name: flat, kind: flatten"]
    return model_of("{shape: [8, 8, 4]}", 5, "name: front, kind: conv2d, filters: 4, kernel: 1", *lines, *behind,
                    "name: head, kind: dense, units: 5")


def joined(*lines):
    """What reads x and y, two convolutions of the input."""
    return model_of("{shape: [8, 8, 4]}", 5, "name: x, kind: conv2d, filters: 4, kernel: 1",
                    "name: y, kind: conv2d, filters: 4, kernel: 1, input: input", *lines, "name: flat, kind: flatten",
                    "name: head, kind: dense, units: 5")


def sequence(*lines):
    return model_of("{type: int32, classes: 11, shape: [7]}", 11, "name: table, kind: embedding, units: 8", *lines,
                    "name: head, kind: dense, units: 11")


OURS = {"hard_silu": "hard_swish"}
ACTIVATIONS = ("relu", "relu6", "gelu", "silu", "tanh", "sigmoid", "hard_sigmoid", "hard_silu", "softplus", "mish", "softmax")
LAYERS = {
    **{name: image("name: l, kind: " + OURS.get(name, name)) for name in ACTIVATIONS},
    "add": joined("name: l, kind: add, inputs: [x, y]"),
    "average_pool": image("name: l, kind: avg_pool, size: 2"),
    "batch_norm": image("name: l, kind: batch_norm"),
    "concat": joined("name: l, kind: concat, inputs: [x, y]"),
    "conv": image("name: l, kind: conv2d, filters: 5, kernel: 3, activation: relu"),
    "conv_transpose": image("name: l, kind: conv2d_transpose, filters: 5, kernel: 3, stride: 2"),
    "dense": image("name: flat, kind: flatten", "name: l, kind: dense, units: 9, activation: relu",
                   "name: m, kind: dense, units: 9, bias: false", flat=True),
    "depthwise_conv": image("name: l, kind: depthwise_conv2d, kernel: 3"),
    "dropout": image("name: l, kind: dropout, rate: 0.5"),
    "embedding": sequence(),
    "gate": joined("name: mean, kind: global_avg_pool", "name: l, kind: multiply, inputs: [x, mean]"),
    "global_average_pool": image("name: l, kind: global_avg_pool", flat=True),
    "group_norm": image("name: l, kind: group_norm, groups: 2"),
    "layer_norm": sequence("name: l, kind: layer_norm"),
    "leaky_relu": image("name: l, kind: leaky_relu, slope: 0.1"),
    "max_pool": image("name: l, kind: max_pool, size: 2"),
    "multiply": joined("name: l, kind: multiply, inputs: [x, y]"),
    "rms_norm": sequence("name: l, kind: rms_norm"),
    "separable_conv": image("name: l, kind: depthwise_conv2d, kernel: 3, bias: false", "name: m, kind: conv2d, filters: 5, kernel: 1"),
    "sequence_dense": sequence("name: l, kind: dense, units: 9"),
    "sequence_product": sequence("name: l, kind: dense, units: 9, bias: false, activation: relu"),
    "upsample": image("name: l, kind: upsample, size: 2"),
    "upsample_bilinear": image("name: l, kind: upsample, size: 2, mode: bilinear"),
    "zero_pad": image("name: l, kind: zero_pad, padding: 1"),
}


def saved(program, preset, batch):
    command = [program, "plan", preset, "--as", "tensorflow", "-s", "device.kind=plan", "-s", "device.card=unlimited", "-s",
               "batch.size=%d" % batch, "--json"]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    return report["memory"]["saved_for_backward_bytes"]


def check(program, name, preset, theirs):
    for batch in (1, 7):
        expected = batch * theirs["bytes_a_sample"] + theirs["fixed_bytes"]
        planned = saved(program, preset, batch)
        if planned != expected:
            sys.exit("%s, batch %d: %d B kept, TensorFlow keeps %d" % (name, batch, planned, expected))


def check_layers(program, rows):
    kept = {row["name"]: row["tensorflow"] for row in rows if "batch_of_2" in row}
    if kept.keys() != LAYERS.keys():
        sys.exit("layers of one of %s and tensorflow_rules.py alone: %s" % (RESULT, ", ".join(kept.keys() ^ LAYERS.keys())))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in LAYERS.items():
            path = os.path.join(folder, name + ".yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            check(program, name, path, kept[name])


def main():
    program = sys.argv[1]
    with open(RESULT, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    presets = [row for row in rows if row.get("preset")]
    if len(presets) < LEAST:
        sys.exit("%d presets in %s, expected at least %d" % (len(presets), RESULT, LEAST))
    for row in presets:
        check(program, row["name"], row["name"], row["tensorflow"])
    check_layers(program, rows)
    print("%d presets and %d layers keep what TensorFlow's tape keeps" % (len(presets), len(LAYERS)))


if __name__ == "__main__":
    main()
