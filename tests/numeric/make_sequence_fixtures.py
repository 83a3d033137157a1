#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/ops_sequence.json with PyTorch: normalisation of rows, smooth activations, tables and
dense layers over more dimensions, in float64.

Run by hand, from anywhere: python3 tests/numeric/make_sequence_fixtures.py. What a fixture holds: make_fixtures.py.
"""
import torch
import torch.nn.functional as F

from make_fixtures import op_fixture, write

TRANSPOSE, TANH = 2, 4


def layer_norm_case(name, x, epsilon):
    def forward(rows, gamma, beta):
        return torch.native_layer_norm(rows, [x[-1]], gamma, beta, epsilon)

    return op_fixture(name, "layer_norm", {"epsilon": epsilon}, [x, (x[-1],), (x[-1],)], forward)


def rms_norm_case(name, x, epsilon):
    def forward(rows, gamma):
        rstd = (rows.square().mean(dim=-1) + epsilon).rsqrt()
        return [F.rms_norm(rows, [x[-1]], gamma, epsilon), rstd]

    return op_fixture(name, "rms_norm", {"epsilon": epsilon}, [x, (x[-1],)], forward)


def activation_case(name, op, forward, flags=0):
    return op_fixture(name, op, {"flags": flags}, [(3, 5, 4, 7)], lambda x: [forward(x)])


def embedding_case(name, ids, entries, features):
    """The numbers are the shares of [0, 1) that operand() draws, in units of the table's length."""

    def forward(shares, table):
        numbers = ((shares.detach() + 1) / 2 * entries).floor().long()
        return [F.embedding(numbers, table)]

    fixture = op_fixture(name, "embedding", {}, [ids, (entries, features)], forward)
    return fixture | {"numbers": [entries, 0]}


def dense_case(name, x, units, flags=0, bias=True):
    def forward(rows, w, *b):
        y = rows @ (w.mT if flags & TRANSPOSE else w)
        return [y + b[0] if b else y]

    weights = (units, x[-1]) if flags & TRANSPOSE else (x[-1], units)
    return op_fixture(name, "dense", {"flags": flags}, [x, weights] + ([(units,)] if bias else []), forward)


def main():
    torch.set_num_threads(1)
    cases = [
        layer_norm_case("layer_norm", (3, 4, 7), 1e-5),
        layer_norm_case("layer_norm_rows", (5, 20), 1e-3),
        layer_norm_case("layer_norm_image", (2, 3, 4, 6), 1e-6),
        rms_norm_case("rms_norm", (3, 4, 7), 1e-5),
        rms_norm_case("rms_norm_rows", (5, 33), 1e-6),
        activation_case("gelu", "gelu", F.gelu),
        activation_case("gelu_tanh", "gelu", lambda x: F.gelu(x, approximate="tanh"), TANH),
        activation_case("silu", "silu", F.silu),
        activation_case("tanh", "tanh", torch.tanh),
        activation_case("sigmoid", "sigmoid", torch.sigmoid),
        # F.hardsigmoid multiplies its gradient with a sixth of float32 in any type.
        activation_case("hard_sigmoid", "hard_sigmoid", lambda x: (x / 6 + 0.5).clamp(0, 1)),
        activation_case("hard_swish", "hard_swish", F.hardswish),
        activation_case("softplus", "softplus", F.softplus),
        activation_case("mish", "mish", F.mish),
        op_fixture("leaky_relu", "leaky_relu", {"rate": 0.2}, [(3, 4, 2, 5)], lambda x: [F.leaky_relu(x, 0.2)]),
        embedding_case("embedding", (4, 9), 11, 6),
        embedding_case("embedding_flat", (13,), 3, 5),
        op_fixture("positions", "add_broadcast", {}, [(3, 4, 5), (4, 5)], lambda a, b: [a + b]),
        op_fixture("shift", "add_broadcast", {}, [(2, 3, 4, 5), (5,)], lambda a, b: [a + b]),
        dense_case("dense_sequence", (3, 4, 5), 6),
        dense_case("dense_image", (2, 3, 2, 5), 4, bias=False),
        dense_case("dense_tied", (3, 4, 5), 7, TRANSPOSE, bias=False),
        dense_case("dense_tied_bias", (6, 5), 7, TRANSPOSE),
    ]
    fixture = {
        "schema": "headroom.op_fixtures/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "cases": cases,
    }
    write("ops_sequence.json", fixture)


if __name__ == "__main__":
    main()
