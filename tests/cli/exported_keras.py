#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small Keras models and their model files as scripts/export/keras_to_headroom.py writes them: exported_keras.py FOLDER.
tests/data/exported has what it wrote."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/export"))

import keras
from keras import layers

from keras_to_headroom import to_headroom


def separable():
    """Separable, grouped and transposed convolutions, a shared layer, and a softmax that is the loss's."""
    image = keras.Input((16, 16, 3))
    x = layers.Rescaling(1 / 255, name="rescaling")(image)
    x = layers.ZeroPadding2D(((0, 1), (0, 1)), name="pad")(x)
    x = layers.SeparableConv2D(8, 3, strides=2, use_bias=False, name="separable")(x)
    x = layers.ReLU(6.0, name="relu6")(layers.BatchNormalization(momentum=0.9, name="norm")(x))
    both = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=1, activation="swish", name="both")
    x = layers.Add(name="add")([both(x), both(both(x))])
    x = layers.Conv2D(8, 3, padding="same", groups=2, name="grouped")(x)
    x = layers.Conv2DTranspose(4, 2, 2, padding="same", activation="tanh", name="up")(x)
    x = layers.Concatenate(name="concat")([x, layers.UpSampling2D(2, name="larger")(layers.MaxPooling2D(2, name="pool")(x))])
    x = layers.AveragePooling2D(3, 2, "same", name="average")(x)
    x = layers.Dropout(0.1, name="dropout")(layers.GlobalAveragePooling2D(name="global")(x))
    return keras.Model(image, layers.Dense(10, activation="softmax", name="classes")(x), name="separable")


def words():
    """Attention and an LSTM over ids, with a model inside the model."""
    ids = keras.Input((12,), dtype="int32")
    x = layers.Embedding(24, 16, name="table")(ids)
    inner = keras.Input((12, 16))
    y = layers.LayerNormalization(epsilon=1e-5, name="before")(inner)
    y = layers.Add(name="residual")([inner, layers.MultiHeadAttention(2, 8, dropout=0.1, name="attention")(y, y, use_causal_mask=True)])
    x = keras.Model(inner, layers.Dense(16, activation="gelu", name="dense")(y), name="block")(x)
    x = layers.LSTM(16, return_sequences=True, name="lstm")(x)
    return keras.Model(ids, layers.Dense(24, name="next")(x), name="words")


def main():
    for build in (separable, words):
        to_headroom(build(), os.path.join(sys.argv[1], "keras_%s.yaml" % build.__name__))


if __name__ == "__main__":
    main()
