# SPDX-License-Identifier: Apache-2.0
"""Writes the files beside it.   make.py keras   those of Keras 3;   make.py tf_keras   those of Keras 2 (the package tf_keras)."""
import importlib
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
keras = importlib.import_module(sys.argv[1])
L = keras.layers


def separable():
    return keras.Sequential([
        keras.Input((32, 32, 3)), L.Rescaling(1 / 255), L.SeparableConv2D(16, 3, padding="same", activation="relu"),
        L.BatchNormalization(momentum=0.9), L.MaxPooling2D(), L.Conv2DTranspose(8, 3, strides=2), L.UpSampling2D(),
        L.ZeroPadding2D(((0, 1), (2, 3))), L.AveragePooling2D(3, strides=2, padding="same"), L.Flatten(), L.Dropout(0.2),
        L.Dense(10, activation="softmax")], name="separable")


def segment():
    """Smaller, and larger again between its pixels; probabilities that no loss takes for logits of the smaller image."""
    x = keras.Input((8, 12, 3))
    y = L.UpSampling2D((2, 1), interpolation="bilinear")(L.Conv2D(4, 3, strides=2, padding="same", activation="sigmoid")(x))
    model = keras.Model(x, L.UpSampling2D((1, 2))(y), name="segment")
    model.compile(loss="binary_crossentropy")
    return model


def gates():
    """Squeeze and excite, a hard sigmoid in steps, concatenation and a leaky ReLU."""
    x = keras.Input((16, 16, 8))
    y = L.Conv2D(16, 3, padding="same", use_bias=False)(x)
    y = L.ReLU(6.0)(L.BatchNormalization()(y))
    gate = L.Dense(16, activation="hard_sigmoid")(L.GlobalAveragePooling2D(keepdims=True)(y))
    y = L.Multiply()([y, gate])
    y = L.Concatenate()([y, L.LeakyReLU()(x), L.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x)])
    return keras.Model(x, L.Dense(5)(L.GlobalAveragePooling2D()(y)), name="gates")


def shared():
    """One layer called three times, and a model within the model called twice."""
    x = keras.Input((8, 8, 4))
    once = L.Conv2D(4, 3, padding="same", name="once")
    inner_in = keras.Input((8, 8, 4))
    inner = keras.Model(inner_in, L.Add()([L.Conv2D(4, 1)(inner_in), inner_in]), name="inner")
    tail = keras.Sequential([keras.Input((8, 8, 4)), L.Conv2D(4, 3, padding="same"), L.ReLU()], name="tail")
    y = once(once(once(x)))
    y = tail(inner(inner(y)))
    return keras.Model(x, L.Dense(3, activation="softmax")(L.Flatten()(y)), name="shared")


def words():
    ids = keras.Input((12,), dtype="int32")
    x = L.Embedding(50, 16)(ids)
    y = L.MultiHeadAttention(2, 8)(x, x)
    x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, y]))
    x = L.LSTM(8, return_sequences=True)(x)
    return keras.Model(ids, L.Dense(50)(L.LSTM(8)(x)), name="words")


def compiled():
    model = keras.Sequential([keras.Input((20,), batch_size=16), L.Dense(32, activation="gelu"), L.Dense(1)], name="compiled")
    model.compile(optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0), loss="mse")
    return model


def tagged():
    model = keras.Sequential([keras.Input((20,)), L.Dense(32, activation="relu"), L.Dense(6, activation="sigmoid")], name="tagged")
    model.compile(optimizer="adam", loss="binary_crossentropy")
    return model


def focal():
    model = keras.Sequential([keras.Input((9, 9, 3)), L.Conv2D(6, 3, activation="relu"), L.Conv2D(1, 1)], name="focal")
    loss = keras.losses.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.3, gamma=1.5, from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    return model


def waves():
    x = keras.Input((24, 5))
    y = L.Conv1D(8, 3, padding="causal", dilation_rate=2, activation="relu")(x)
    y = L.Conv1D(8, 4, 2, padding="same", groups=2, use_bias=False)(y)
    y = L.AveragePooling1D(3, 2, padding="same")(L.MaxPooling1D(2)(y))
    return keras.Model(x, L.Dense(4)(L.GlobalAveragePooling1D()(y)), name="waves")


def gated():
    ids = keras.Input((12,), dtype="int32")
    y = L.GRU(8, return_sequences=True)(L.Embedding(50, 16)(ids))
    return keras.Model(ids, L.Dense(5)(L.GRU(6)(y)), name="gated")


def cropped():
    return keras.Sequential([keras.Input((16, 16, 3)), L.Cropping2D(1), L.Conv2D(4, 3, dilation_rate=2), L.Cropping2D(1), L.Flatten(),
                             L.Dense(2)], name="cropped")


def write(name, model):
    print(name, sum(math.prod(w.shape) for w in model.trainable_weights))
    if name.endswith(".keras"):
        model.save(os.path.join(HERE, name))
    else:
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.write(model.to_json() + "\n")


if sys.argv[1] == "keras":
    write("separable.json", separable())
    write("gates.json", gates())
    write("shared.json", shared())
    write("words.json", words())
    write("compiled.keras", compiled())
    write("waves.json", waves())
    write("gated.json", gated())
    write("tagged.keras", tagged())
    write("focal.keras", focal())
    write("cropped.json", cropped())
    write("segment.keras", segment())
else:
    write("separable_2.json", separable())
    write("shared_2.json", shared())
    write("words_2.json", words())
