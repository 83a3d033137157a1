#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/ops_recurrent.json and optimizers.json with PyTorch in float64; run by hand.

Updates are PyTorch's own: adam_torch and adamw_torch with an epsilon that weighs; where its formula is Keras': SGD, momentum,
and with an epsilon of zero RMSprop and AdamW, whose epsilons stand elsewhere; Adafactor, whose epsilon only guards zeros. Lion is written out here.
"""
import json
import math

import numpy as np
import torch

from make_fixtures import HERE, entries, op_fixture, philox_uniform

STEPS = 3


def packed(values):
    values = values.detach().numpy().reshape(-1)
    return {"norm": float(np.linalg.norm(values)), "entries": [float(v) for v in entries(values)]}


def lstm_case(name, samples, steps, units):
    """nn.LSTM whose input weights are the identity: its input are the gates. PyTorch's order is i, f, g, o too."""

    def forward(gates, recurrent):
        zero = torch.zeros(1, samples, units, dtype=gates.dtype)
        weights = [torch.eye(4 * units, dtype=gates.dtype), recurrent.T.contiguous()]
        y, _, _ = torch._VF.lstm(gates, (zero, zero), weights, False, 1, 0.0, True, False, True)
        return [y]

    return op_fixture(name, "lstm", {}, [(samples, steps, 4 * units), (units, 4 * units)], forward)


def gru_case(name, samples, steps, units):
    """nn.GRU whose input weights are the identity, in PyTorch's order r, z, n; ours is z, r, n."""

    def forward(gates, recurrent, bias):
        order = [*range(units, 2 * units), *range(units), *range(2 * units, 3 * units)]
        weights = [torch.eye(3 * units, dtype=gates.dtype), recurrent[:, order].T.contiguous(),
                   torch.zeros(3 * units, dtype=gates.dtype), bias[order]]
        zero = torch.zeros(1, samples, units, dtype=gates.dtype)
        y, _ = torch._VF.gru(gates[..., order], zero, weights, True, 1, 0.0, True, False, True)
        return [y]

    return op_fixture(name, "gru", {}, [(samples, steps, 3 * units), (units, 3 * units), (3 * units,)], forward)


def numbers(name, index, shape):
    uniform = philox_uniform(index, "test/ops/" + name, math.prod(shape)).astype(np.float64)
    return torch.tensor((2.0 * uniform - 1.0).reshape(shape))


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                w *= 1 - group["lr"] * group["weight_decay"]
                w -= group["lr"] * torch.sign(0.9 * m + 0.1 * w.grad)
                m.mul_(0.99).add_(0.01 * w.grad)


def update_case(name, op, shape, attr, make, rate=0.01):
    w = numbers(name, 0, shape).requires_grad_(True)
    optimizer = make([w], rate)
    for step in range(STEPS):
        w.grad = numbers(name, step + 1, shape)
        optimizer.step()
    return {"name": name, "op": op, "shape": list(shape), "rate": rate, "attr": attr, "w": packed(w)}


def update_cases():
    adam = {"beta1": 0.9, "beta2": 0.999}
    factor = {"beta1": 1e-3, "beta2": -0.8, "epsilon": 1e-30}
    optim = torch.optim

    def adafactor(p, lr):  # without decay, which PyTorch applies behind the size of the weights, Keras before
        return optim.Adafactor(p, lr=lr, eps=(1e-15, 1e-3), d=1.0, weight_decay=0.0, foreach=False)

    return [
        update_case("sgd", "sgd", (5, 7), {}, lambda p, lr: optim.SGD(p, lr)),
        update_case("momentum", "momentum", (5, 7), {"momentum": 0.9}, lambda p, lr: optim.SGD(p, lr, 0.9)),
        update_case("rmsprop", "rmsprop", (5, 7), {"beta1": 0.9}, lambda p, lr: optim.RMSprop(p, lr, 0.9, eps=0)),
        update_case("adam", "adam", (5, 7), adam, lambda p, lr: optim.Adam(p, lr, eps=0)),
        update_case("adamw", "adam", (5, 7), {**adam, "rate": 0.04},
                    lambda p, lr: optim.AdamW(p, lr, eps=0, weight_decay=0.04)),
        update_case("adam_torch", "adam", (5, 7), {**adam, "epsilon": 1e-2, "torch": 1},
                    lambda p, lr: optim.Adam(p, lr, eps=1e-2)),
        update_case("adamw_torch", "adam", (5, 7), {**adam, "epsilon": 1e-2, "rate": 0.04, "torch": 1},
                    lambda p, lr: optim.AdamW(p, lr, eps=1e-2, weight_decay=0.04)),
        update_case("lion", "lion", (5, 7), {"beta1": 0.9, "beta2": 0.99, "rate": 0.04}, lambda p, lr: Lion(p, lr, 0.04)),
        update_case("adafactor", "adafactor", (9, 14), factor, adafactor),
        update_case("adafactor_filter", "adafactor", (3, 2, 5, 4), factor, adafactor),
        update_case("adafactor_vector", "adafactor", (40,), factor, adafactor),
        update_case("adafactor_keras", "adafactor_keras", (9, 14), factor, adafactor, 1.0),
    ]  # fmt: skip


def write(name, content):
    (HERE / "fixtures" / name).write_text(json.dumps(content, indent=1) + "\n")


def main():
    made_by = f"PyTorch {torch.__version__.split('+')[0]}"
    lstm = [lstm_case("lstm", 3, 5, 4), lstm_case("lstm_one", 1, 1, 3), lstm_case("lstm_wide", 2, 4, 19),
            gru_case("gru", 3, 5, 4), gru_case("gru_one", 1, 1, 3), gru_case("gru_wide", 2, 4, 19)]
    write("ops_recurrent.json", {"schema": "headroom.op_fixtures/1", "made_by": made_by, "cases": lstm})
    write("optimizers.json", {"schema": "headroom.update_fixtures/1", "made_by": made_by, "steps": STEPS,
                              "cases": update_cases()})  # fmt: skip


if __name__ == "__main__":
    main()
