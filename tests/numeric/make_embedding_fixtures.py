#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/quantize_tables.json with Keras 3; run by hand with KERAS_BACKEND=numpy.

Tables of embeddings as whole numbers, rows that are looked up in them, and products with the turned table (tied weights). Among the
rows are one of zeros, one of ties, one of tiny values and one above zero. All is stored as the hexadecimal bytes of int8 and float32.
"""
import json
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "numpy")

import keras
import numpy as np
from keras.src.layers.core.reversible_embedding import ReversibleEmbedding

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = [(9, 5), (6, 128), (5, 130), (4, 257), (12, 64), (7, 1)]


def table(index, shape):
    t = np.random.default_rng(index).uniform(-1, 1, shape).astype(np.float32)
    t[0] *= np.float32(1e-6)                                     # where epsilon weighs
    t[1] = 0                                                     # nothing to measure
    t[2] = np.abs(t[2])                                          # no zero between the least and the most
    t[3] = np.round(t[3] * np.float32(32)) / np.float32(32)
    t[3, 0] = np.float32(127 / 16)                               # ties
    return t


def hexadecimal(values):
    return np.ascontiguousarray(values).view(np.uint8).tobytes().hex()


def quantised(layer, t, mode):
    layer.build()
    layer._embeddings.assign(t)
    config = keras.quantizers.Int4QuantizationConfig(block_size=128) if mode == "int4" else None
    layer.quantize(mode, config=config)
    return layer


def case(index, shape):
    t = table(index, shape)
    draw = np.random.default_rng(index + 100)
    ids = draw.integers(0, shape[0], (2, 4)).astype(np.int32)
    x = draw.uniform(-2, 2, (3, shape[1])).astype(np.float32)
    made = {"shape": list(shape), "table": hexadecimal(t), "ids": hexadecimal(ids), "input": hexadecimal(x)}
    for mode in ("int8", "int4"):
        layer = quantised(keras.layers.Embedding(*shape), t, mode)
        tied = quantised(ReversibleEmbedding(*shape, tie_weights=True), t, mode)
        made[mode] = hexadecimal(np.asarray(layer._embeddings))
        made[mode + "_scale"] = hexadecimal(np.asarray(layer.embeddings_scale))
        made[mode + "_rows"] = hexadecimal(np.asarray(layer(ids), np.float32))
        made[mode + "_product"] = hexadecimal(np.asarray(tied(x, reverse=True), np.float32))
        if mode == "int4":
            made["int4_zero"] = hexadecimal(np.asarray(layer.embeddings_zero).astype(np.int8))
    return made


def main():
    made = {"keras": keras.__version__, "cases": [case(k, shape) for k, shape in enumerate(SHAPES)]}
    path = HERE / "fixtures" / "quantize_tables.json"
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
