#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/prune.json with the TensorFlow Model Optimization Toolkit itself; run by hand.

Made with tensorflow-cpu 2.15.1, tf_keras 2.15 and tensorflow-model-optimization 0.8.0. Weights are whole numbers of 64ths, so that
many of them are equal in size and every sum of them is exact.
"""
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow_model_optimization.python.core.sparsity.keras import pruning_impl, pruning_schedule

HERE = Path(__file__).parent
UNIT = 64.0
random = np.random.RandomState(18)


def schedule_of(words):
    kind, *numbers = words.split(":")
    shares = 1 if kind == "constant" else 2
    values = [float(n) for n in numbers[:shares]] + [int(n) for n in numbers[shares:shares + 3]]
    if kind == "constant":
        return pruning_schedule.ConstantSparsity(values[0], *(values[1:] or [0]))  # as prune_low_magnitude's default has it
    more = {k: v for k, v in zip(("frequency", "power"), [int(n) for n in numbers[4:5]] + [float(n) for n in numbers[5:6]])}
    return pruning_schedule.PolynomialDecay(values[0], values[1], int(numbers[2]), int(numbers[3]), **more)


class Pruned:
    """A kernel, its mask and tfmot's own step over them."""

    def __init__(self, weights, prune, structure):
        self.w = tf.Variable(weights, dtype=tf.float32)
        self.mask = tf.Variable(tf.ones_like(self.w))
        self.step = tf.Variable(0, dtype=tf.int64)
        block, groups = (1, 1), None
        if structure.startswith("block:"):
            block = tuple(int(n) for n in structure[6:].split("x"))
        elif structure != "element":
            groups = tuple(int(n) for n in structure.split(":"))
        self.pruning = pruning_impl.Pruning(
            training_step_fn=lambda: self.step, pruning_vars=[(self.w, self.mask, tf.Variable(0.0))],
            pruning_schedule=schedule_of(prune), block_size=block, block_pooling_type="AVG", sparsity_m_by_n=groups)

    def begin_step(self):
        self.step.assign_add(1)
        self.pruning.conditional_mask_update()
        self.pruning.weight_mask_op()

    def masked(self):
        return "".join(str(int(m)) for m in self.mask.numpy().reshape(-1))


def numbers(shape, most):
    return random.randint(-most, most + 1, size=shape)


def mask_case(shape, prune, structure, step, most=12):
    units = numbers(shape, most)
    kernel = Pruned(units / UNIT, prune, structure)
    kernel.step.assign(step - 1)
    kernel.begin_step()
    return {"shape": list(shape), "prune": prune, "structure": structure, "step": step,
            "weights": units.reshape(-1).tolist(), "mask": kernel.masked()}


def run_case(shape, prune, structure, steps):
    """Steps of plain gradient descent, rate 1, gradients of whole units; after each begin of a step the weights and the mask."""
    units = numbers(shape, 40)
    kernel = Pruned(units / UNIT, prune, structure)
    out = {"shape": list(shape), "prune": prune, "structure": structure, "weights": units.reshape(-1).tolist(), "steps": []}
    for _ in range(steps):
        gradient = numbers(shape, 9)
        kernel.begin_step()
        seen = np.rint(kernel.w.numpy() * UNIT).astype(int)
        kernel.w.assign_sub(gradient / UNIT)
        out["steps"].append({"seen": seen.reshape(-1).tolist(), "mask": kernel.masked(),
                             "gradient": gradient.reshape(-1).tolist()})
    return out


def sparsity_case(words, steps):
    schedule = schedule_of(words)
    answers = [schedule(tf.constant(t, tf.int64)) for t in steps]
    return {"prune": words, "steps": steps, "turns": [bool(a[0]) for a in answers], "sparsity": [float(a[1]) for a in answers]}


def main():
    masks = [mask_case((7, 9), "constant:0.5", "element", 100),
             mask_case((3, 3, 4, 5), "constant:0.9:0:-1:10", "element", 30),
             mask_case((15,), "constant:0.9", "element", 100, most=1000),
             mask_case((25,), "constant:0.98", "element", 100, most=1000),
             mask_case((6, 11), "polynomial:0.2:0.7:2:12:5", "element", 7),
             mask_case((6, 11), "polynomial:0.2:0.7:2:12:5:1.5", "element", 12),
             mask_case((8, 8), "constant:0.5:0:-1:1", "block:2x4", 1),
             mask_case((7, 9), "constant:0.4:0:-1:1", "block:4x2", 1),
             mask_case((5, 10), "constant:0.6:0:-1:1", "block:3x4", 1),
             mask_case((8, 6), "constant:0.5", "2:4", 1),
             mask_case((7, 5), "constant:0.5", "1:3", 1),
             mask_case((3, 2, 6, 4), "constant:0.5", "2:4", 1, most=4),
             mask_case((2, 2, 3, 4), "constant:0.5", "3:4", 1)]
    runs = [run_case((6, 5), "polynomial:0.2:0.8:1:9:2", "element", 14),
            run_case((6, 5), "constant:0.5:3:8:2", "element", 12),
            run_case((6, 4), "constant:0.5:0:-1:3", "block:2x2", 8),
            run_case((8, 3), "constant:0.5", "2:4", 5)]
    sparsity = [sparsity_case("polynomial:0.5:0.8:0:1000", [0, 1, 99, 100, 250, 500, 750, 1000, 1001, 1100]),
                sparsity_case("polynomial:0:0.9:20:220:50:1", [0, 20, 70, 71, 220, 270]),
                sparsity_case("constant:0.5", [0, 1, 100, 150, 100000]),
                sparsity_case("constant:0.25:5:25:10", [0, 4, 5, 10, 15, 25, 35])]
    with open(HERE / "fixtures" / "prune.json", "w", encoding="utf-8") as file:
        json.dump({"unit": UNIT, "masks": masks, "runs": runs, "sparsity": sparsity}, file, separators=(",", ":"))
        file.write("\n")


main()
