#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's tape keeps between forward and gradients, beside a plan of the same model (saved_for_backward_bytes under
execution.as=tensorflow): layers one by one, shipped presets that Keras has as well, and keras.applications through
scripts/export/keras_to_headroom.py.

Every tensor that an operation makes is followed by a weak reference: what is alive when nobody but the tape is left is what the
tape keeps, of every storage the bytes that were asked for, once. Variables are left out, and so are vectors of sizes, which
lie on the host. Batches of 2, 3 and 4 give a line: bytes a sample, and fixed ones.

  tests/bench/peers/tensorflow_saved.py [NAME…]   a Python with TensorFlow and Keras; without names all of them, and
                                                  tests/bench/results/tensorflow_saved.json is written
"""
import collections
import gc
import os
import sys
import tempfile
import weakref

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export")]
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")

import keras
import numpy
import tensorflow as tf
from keras import layers
from tensorflow.python.framework import op_callbacks

import measure
from keras_to_headroom import CannotExport, model_file

RESULT = os.path.join(measure.TOP, "tests/bench/results/tensorflow_saved.json")
BATCHES = (2, 3, 4)
SAME_SCALAR = {"Cast", "Identity", "Reshape"}  # a scalar has no address here; of these it is its operand's
SIZES = {"Pack", "Shape"}

# ---- models ---------------------------------------------------------------------------------------------------------


def image(*parts, shape=(8, 8, 4)):
    """One layer between two convolutions of known needs."""
    x = first = layers.Input(shape)
    x = layers.Conv2D(shape[-1], 1)(x)
    for part in parts:
        x = part(x)
    if len(x.shape) == 4:
        x = layers.Flatten()(layers.Conv2D(6, 1)(x))
    return keras.Model(first, layers.Dense(5)(x))


def joined(join):
    first = layers.Input((8, 8, 4))
    x, y = layers.Conv2D(4, 1)(first), layers.Conv2D(4, 1)(first)
    return keras.Model(first, layers.Dense(5)(layers.Flatten()(join(x, y))))


def sequence(*parts):
    return keras.Sequential([layers.Input((7,), dtype="int32"), layers.Embedding(11, 8), *parts, layers.Dense(11)])


def gate(x, y):
    return layers.Multiply()([x, layers.GlobalAveragePooling2D(keepdims=True)(y)])


ACTIVATIONS = ("relu", "relu6", "gelu", "silu", "tanh", "sigmoid", "hard_sigmoid", "hard_silu", "softplus", "mish")
LAYERS = {
    **{name: lambda name=name: image(layers.Activation(name)) for name in ACTIVATIONS},
    "add": lambda: joined(lambda x, y: layers.Add()([x, y])),
    "average_pool": lambda: image(layers.AveragePooling2D(2)),
    "batch_norm": lambda: image(layers.BatchNormalization()),
    "concat": lambda: joined(lambda x, y: layers.Concatenate()([x, y])),
    "conv": lambda: image(layers.Conv2D(5, 3, activation="relu")),
    "conv_transpose": lambda: image(layers.Conv2DTranspose(5, 3, 2)),
    "dense": lambda: image(layers.Flatten(), layers.Dense(9, activation="relu"), layers.Dense(9, use_bias=False)),
    "depthwise_conv": lambda: image(layers.DepthwiseConv2D(3)),
    "dropout": lambda: image(layers.Dropout(0.5)),
    "embedding": sequence,
    "gate": lambda: joined(gate),
    "global_average_pool": lambda: image(layers.GlobalAveragePooling2D()),
    "group_norm": lambda: image(layers.GroupNormalization(2)),
    "layer_norm": lambda: sequence(layers.LayerNormalization()),
    "leaky_relu": lambda: image(layers.LeakyReLU(0.1)),
    "max_pool": lambda: image(layers.MaxPooling2D()),
    "multiply": lambda: joined(lambda x, y: layers.Multiply()([x, y])),
    "rms_norm": lambda: sequence(layers.RMSNormalization()),
    "separable_conv": lambda: image(layers.SeparableConv2D(5, 3)),
    "sequence_dense": lambda: sequence(layers.Dense(9)),
    "sequence_product": lambda: sequence(layers.Dense(9, use_bias=False), layers.Activation("relu")),
    "softmax": lambda: image(layers.Softmax()),
    "upsample": lambda: image(layers.UpSampling2D(2)),
    "upsample_bilinear": lambda: image(layers.UpSampling2D(2, interpolation="bilinear")),
    "zero_pad": lambda: image(layers.ZeroPadding2D(1)),
}


def perceptron():
    return keras.Sequential([layers.Input((32, 32, 3)), layers.Flatten(), layers.Dense(2048, activation="relu"),
                             layers.Dense(2048, activation="relu"), layers.Dense(10)])


def separable_cnn():
    return keras.Sequential([
        layers.Input((32, 32, 3)), layers.SeparableConv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
        layers.SeparableConv2D(64, 3, activation="relu"), layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])


def application(name):
    words = {"input_shape": (224, 224, 3)} if name.startswith("MobileNetV3") else {}  # no size of its own
    return getattr(keras.applications, name)(weights=None, classifier_activation=None, **words)


PRESETS = {"mlp": perceptron, "cifar10_separable_cnn": separable_cnn, "resnet50_keras": lambda: application("ResNet50"),
           "mobilenet_v2_keras": lambda: application("MobileNetV2")}
APPLICATIONS = ("DenseNet121", "EfficientNetB0", "InceptionV3", "MobileNet", "MobileNetV2", "MobileNetV3Large", "MobileNetV3Small",
                "ResNet50", "ResNet50V2", "VGG16", "Xception")


def made(name):
    keras.utils.clear_session()
    return LAYERS[name]() if name in LAYERS else PRESETS[name]() if name in PRESETS else application(name)


# ---- what is kept ---------------------------------------------------------------------------------------------------

def address_of(tensor, held):
    held.append(tensor._numpy_internal())  # no copy, unlike numpy(); it stays, so that nothing else gets these bytes meanwhile
    return held[-1].__array_interface__["data"][0] if tensor.shape.rank else None


def kept(model, batch):
    """[(operation, type, shape, bytes)] of each storage that the tape has when nobody else has anything."""
    x = tf.zeros((batch,) + model.input_shape[1:], model.inputs[0].dtype)
    y = tf.zeros((batch,) + model.output_shape[1:-1], tf.int32)
    seen = []

    def see(kind, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None:
            kind = kind.decode() if isinstance(kind, bytes) else kind
            seen.extend((kind, weakref.ref(t)) for t in outputs)

    seen.append(("Input", weakref.ref(x)))
    op_callbacks.add_op_callback(see)
    with tf.GradientTape() as tape:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, model(x, training=True))
    op_callbacks.remove_op_callback(see)
    del x, y, loss
    gc.collect()
    held = []
    storages = {address_of(tf.convert_to_tensor(v.value), held) for v in model.variables if v.shape}
    rows = []
    for kind, reference in seen:
        tensor = reference()
        if tensor is None or tensor.dtype in (tf.resource, tf.variant) or kind in SIZES:
            continue
        address = address_of(tensor, held)
        if address in storages or (address is None and kind in SAME_SCALAR):
            continue
        storages |= {address} - {None}
        rows.append((kind, tensor.dtype.name, list(tensor.shape), tensor.dtype.size * int(numpy.prod(tensor.shape))))
    assert tape.watched_variables()
    return rows


# ---- what is planned ------------------------------------------------------------------------------------------------

def planned(preset):
    reports = [measure.json_of([measure.headroom_program(), "plan", preset, "--as", "tensorflow", "-s", "device.kind=plan", "-s",
                                "device.card=unlimited", "-s", "batch.size=%d" % batch, "--json"])[0] for batch in BATCHES]
    return [report["memory"]["saved_for_backward_bytes"] for report in reports]


def exported(model, name, folder):
    text, _, _ = model_file(model, name)
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def line_through(totals):
    return {"bytes_a_sample": totals[1] - totals[0], "fixed_bytes": 3 * totals[0] - 2 * totals[1],
            "linear": totals[2] == 2 * totals[1] - totals[0]}


def row_of(name, folder):
    model = made(name)
    tensors = [kept(model, batch) for batch in BATCHES]
    row = {"name": name, "preset": name in PRESETS, "tensorflow": line_through([sum(t[-1] for t in rows) for rows in tensors])}
    if name in LAYERS:
        counts = collections.Counter((kind, kept_as, "x".join(map(str, shape))) for kind, kept_as, shape, _ in tensors[0])
        row["batch_of_2"] = [[*key, count] for key, count in counts.items()]
    try:
        row["planned"] = line_through(planned(name if name in PRESETS else exported(model, name, folder)))
        row["equal"] = row["planned"] == row["tensorflow"]
    except CannotExport as error:
        row["not_exported"] = error.problems[0].split("; try")[0]
    except Exception as error:
        row["not_planned"] = (getattr(error, "stderr", "") or str(error)).splitlines()[0]
    return row


def line_of(row):
    theirs = row["tensorflow"]
    words = "%-22s %11d a sample + %8d" % (row["name"], theirs["bytes_a_sample"], theirs["fixed_bytes"])
    if "planned" in row:
        return words + ("  equal" if row["equal"] else "  planned %d + %d" % (
            row["planned"]["bytes_a_sample"], row["planned"]["fixed_bytes"]))
    return "%s  %s" % (words, row.get("not_exported") or row["not_planned"])


def measure_models(names):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [*LAYERS, *PRESETS, *APPLICATIONS]:
            rows.append(row_of(name, folder))
            print(line_of(rows[-1]), flush=True)
    return {"versions": {"tensorflow": tf.__version__, "keras": keras.__version__}, "batches": BATCHES, "models": len(rows),
            "compared": sum("equal" in row for row in rows), "equal": sum(row.get("equal", False) for row in rows), "rows": rows}


def main():
    names = sys.argv[1:]
    result = measure.result_of("tensorflow_saved", measure_models, names)
    print("%d models, %d compared, %d equal to the byte" % (result["models"], result["compared"], result["equal"]))
    if not names:
        measure.keep(RESULT, result)


if __name__ == "__main__":
    main()
