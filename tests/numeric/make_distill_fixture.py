#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/distill.json with keras.distillation's own Distiller. Run by hand, from anywhere:
python3 tests/numeric/make_distill_fixture.py

Student and teacher are two halves of the input, so that their logits are what the file says; loss and gradient are in
float64. No probability is near 1e-7, where Keras' KL clips. The loss is given as an object: from its default, the word
"kl_divergence", Keras 3.12 makes a function, and takes that of logits over the temperature as they are, without a softmax.

Needs keras 3.12 and jax.
"""
import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
import jax  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CASES = [(4, 10, 3.0, 0.5), (6, 10, 1.0, 0.1), (5, 3, 20.0, 0.9), (3, 17, 4.0, 0.0), (1, 2, 0.7, 0.25)]


def half(classes, first, name):
    x = keras.Input((2 * classes,))
    return keras.Model(x, x[:, first * classes:(first + 1) * classes], name=name)


def case(rng, rows, classes, temperature, alpha):
    student, teacher = half(classes, 0, "student"), half(classes, 1, "teacher")
    logits = np.round(rng.uniform(-3, 3, (rows, 2 * classes)), 4)
    labels = rng.integers(0, classes, rows)
    distance = keras.distillation.LogitsDistillation(temperature=temperature, loss=keras.losses.KLDivergence())
    distiller = keras.distillation.Distiller(teacher, student, distance, student_loss_weight=alpha)
    distiller.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def loss(z):
        x = jax.numpy.concatenate([z, logits[:, classes:]], axis=1)
        return distiller.compute_loss(x=x, y=labels, y_pred=student(x))

    value, gradient = jax.value_and_grad(loss)(jax.numpy.asarray(logits[:, :classes]))
    return {"temperature": temperature, "alpha": alpha, "classes": classes, "student": logits[:, :classes].ravel().tolist(),
            "teacher": logits[:, classes:].ravel().tolist(), "labels": labels.tolist(), "loss": float(value),
            "gradient": np.asarray(gradient).ravel().tolist()}


def main():
    jax.config.update("jax_enable_x64", True)
    keras.config.set_floatx("float64")
    rng = np.random.default_rng(18)
    out = {"keras": keras.__version__, "cases": [case(rng, *c) for c in CASES]}
    (HERE / "fixtures" / "distill.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
