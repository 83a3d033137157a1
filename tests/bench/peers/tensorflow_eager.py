#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's eager mode holds, as its own BFC allocator counts it on the processor (TF_CPU_ALLOCATOR_USE_BFC), beside
the plan of execution.mode=eager of the same model: bytes a sample, inputs and labels among them, that are held between forward
and gradients. Keras' layers as Keras calls them, no function traced. Each figure is of a process of its own and of its first
step: later the allocator hands out chunks that are larger than what was asked for.

  tests/bench/peers/tensorflow_eager.py [NAME…]   a Python with TensorFlow and Keras; without names all of them, and
                                                  tests/bench/results/tensorflow_eager.json is written
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "..")]
os.environ.update(TF_CPU_ALLOCATOR_USE_BFC="true", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="",
                  TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")

import keras
import tensorflow as tf
from keras import layers

import measure

RESULT = os.path.join(measure.TOP, "tests/bench/results/tensorflow_eager.json")
DEVICE = "CPU:0"
BATCHES = (2048, 4096)  # tensors of a power of two, larger than what was given back before: BFC hands out no more than asked for


def chain(shape, *parts):
    x = first = layers.Input(shape)
    for part in parts:
        x = part(x)
    if len(x.shape) > 2:
        x = layers.Flatten()(x)
    return keras.Model(first, layers.Dense(8)(x))


def residual():
    first = layers.Input((16, 16, 16))
    x = layers.Conv2D(16, 3, padding="same")(first)
    y = layers.Conv2D(16, 3, padding="same")(x)
    return keras.Model(first, layers.Dense(8)(layers.Flatten()(layers.Add()([x, y]))))


def conv():
    return layers.Conv2D(16, 3, padding="same", use_bias=False)


# One layer between two of known needs: what it adds is its own.
MODELS = {
    "dense": lambda: chain((256,), layers.Dense(256), layers.Dense(256)),
    "dense_relu": lambda: chain((256,), layers.Dense(256, activation="relu"), layers.Dense(256, activation="relu")),
    "relu": lambda: chain((16, 16, 16), conv(), layers.ReLU(), conv()),
    "conv": lambda: chain((16, 16, 16), conv(), conv()),
    "conv_bias": lambda: chain((16, 16, 16), layers.Conv2D(16, 3, padding="same"), layers.Conv2D(16, 3, padding="same")),
    "batch_norm": lambda: chain((16, 16, 16), conv(), layers.BatchNormalization(), conv()),
    "layer_norm": lambda: chain((256,), layers.Dense(256), layers.LayerNormalization(), layers.Dense(256)),
    "dropout": lambda: chain((256,), layers.Dense(256), layers.Dropout(0.5), layers.Dense(256)),
    "max_pool": lambda: chain((16, 16, 16), conv(), layers.MaxPooling2D(), conv()),
    "add": residual,
    "gelu": lambda: chain((256,), layers.Dense(256), layers.Activation("gelu"), layers.Dense(256)),
}


def in_use():
    return tf.config.experimental.get_memory_info(DEVICE)["current"]


def held(name, batch):
    """Bytes in use behind the forward pass; the model as JSON."""
    model = MODELS[name]()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    base = in_use()
    x, y = tf.zeros((batch,) + model.input_shape[1:]), tf.zeros((batch,), tf.int32)
    with tf.GradientTape() as tape:
        outputs = model(x, training=True)
        value = loss(y, outputs)
    kept = in_use() - base
    assert tape.gradient(value, model.trainable_variables)[0] is not None
    return {"bytes": kept, "model": model.to_json()}


def measured(name, batch):
    command = [sys.executable, os.path.abspath(__file__), "--one", name, str(batch)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def planned(text, batch):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        command = [measure.headroom_program(), "plan", path, "--json", "-s", "batch.size=%d" % batch]
        command += measure.knob_words(["device.kind=plan", "execution.mode=eager", "optimizer.kind=adam"])
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["memory"]["saved_for_backward_bytes"]


def row_of(name):
    small, large = (measured(name, batch) for batch in BATCHES)
    more = BATCHES[1] - BATCHES[0]
    theirs = (large["bytes"] - small["bytes"]) / more
    ours = (planned(large["model"], BATCHES[1]) - planned(large["model"], BATCHES[0])) / more
    return {"name": name, "held_bytes_a_sample": theirs, "planned_bytes_a_sample": ours, "equal": abs(theirs - ours) <= ours / 500}


def measure_models(options):
    rows = []
    for name in options.names or sorted(MODELS):
        rows.append(row_of(name))
        print("%-12s held a sample %9.0f, planned %9.0f, %s" % (
            name, rows[-1]["held_bytes_a_sample"], rows[-1]["planned_bytes_a_sample"],
            "equal" if rows[-1]["equal"] else "not equal"), flush=True)
    return {"versions": {"tensorflow": tf.__version__, "keras": keras.__version__}, "batches": BATCHES,
            "equal": sum(row["equal"] for row in rows), "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(held(options.one[0], int(options.one[1]))))
        return
    result = measure.result_of("tensorflow_eager", measure_models, options)
    if not options.names:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
