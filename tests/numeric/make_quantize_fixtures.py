#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/quantize.json with Keras 3 and TensorFlow's converter; run by hand with KERAS_BACKEND=tensorflow.

Among the weights are columns of zeros, of ties and of tiny values. All is stored as the hexadecimal bytes of int8 and float32.
"""
import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf
from keras.src.quantizers import quantizers

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = [(7, 5), (128, 6), (130, 4), (257, 3), (64, 10), (300, 7)]


def weights(index, shape):
    w = np.random.default_rng(index).uniform(-1, 1, shape).astype(np.float32)
    w[:, 0] *= np.float32(1e-6)                                  # where epsilon weighs
    if shape[1] > 3:
        w[:, 1] = 0                                              # nothing to measure
        w[:, 2] = np.abs(w[:, 2])                                # no zero between the least and the most
        w[:, 3] = np.round(w[:, 3] * np.float32(32)) / np.float32(32)
        w[0, 3] = np.float32(127 / 16)                           # ties
    return w


def hexadecimal(values):
    return np.ascontiguousarray(values).view(np.uint8).tobytes().hex()


def dense(w, mode):
    layer = keras.layers.Dense(w.shape[1], use_bias=False)
    layer.build((None, w.shape[0]))
    layer.kernel.assign(w)
    config = None
    if mode == "int4":
        config = keras.quantizers.Int4QuantizationConfig(block_size=128)
    layer.quantize(mode, config=config)
    return layer


def int4_weights(layer, shape):
    """What the layer multiplies with."""
    q = keras.quantizers.unpack_int4(layer._kernel, shape[1], axis=-1)
    return np.asarray(quantizers.dequantize_with_sz_map(
        keras.ops.cast(q, "float32"), layer.kernel_scale, layer.kernel_zero, layer.g_idx, group_axis=0))


def tflite(w):
    """Its converter's own int8 weights of a dense layer, one scale for each unit; only of 1024 weights and more."""
    model = keras.Sequential([keras.Input((w.shape[0],)), keras.layers.Dense(w.shape[1], use_bias=False)])
    model.layers[0].set_weights([w])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    found = next(d for d in interpreter.get_tensor_details() if d["dtype"] == np.int8)
    return {"tflite": hexadecimal(interpreter.get_tensor(found["index"]).T),
            "tflite_scale": hexadecimal(found["quantization_parameters"]["scales"])}


def case(index, shape):
    w = weights(index, shape)
    int8, int4 = dense(w, "int8"), dense(w, "int4")
    x = np.random.default_rng(index + 100).uniform(-2, 2, (3, shape[0])).astype(np.float32)
    x[1] = 0
    rows, row_scale = keras.quantizers.abs_max_quantize(x, axis=-1)
    y8, y4 = np.asarray(int8(x)), np.asarray(int4(x))
    return {"shape": list(shape), **(tflite(w) if w.size >= 1024 else {}), "weights": hexadecimal(w), "input": hexadecimal(x),
            "int8": hexadecimal(np.asarray(int8._kernel)), "int8_scale": hexadecimal(np.asarray(int8.kernel_scale)),
            "int4": hexadecimal(np.asarray(int4._kernel)), "int4_scale": hexadecimal(np.asarray(int4.kernel_scale)),
            "int4_zero": hexadecimal(np.asarray(int4.kernel_zero).astype(np.int8)),
            "int4_weights": hexadecimal(int4_weights(int4, shape)),
            "rows": hexadecimal(np.asarray(rows)), "rows_scale": hexadecimal(np.asarray(row_scale).reshape(-1)),
            "int8_product": hexadecimal(y8), "int4_product": hexadecimal(y4)}


def main():
    made = {"keras": keras.__version__, "tensorflow": tf.__version__,
            "cases": [case(k, shape) for k, shape in enumerate(SHAPES)]}
    path = HERE / "fixtures" / "quantize.json"
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
