#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/ops_attention.json with PyTorch: matmul, softmax and attention in float64.

Run by hand, from anywhere: python3 tests/numeric/make_attention_fixtures.py. What a fixture holds: make_fixtures.py.
"""
import math

import torch
import torch.nn.functional as F

from make_fixtures import op_fixture, write

CAUSAL, TRANSPOSE = 1, 2


def split(x, heads):
    """[N,L,D] as [N,heads,L,D/heads]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def unseen(rows, columns):
    return torch.ones(rows, columns, dtype=torch.bool).triu(1)


def matmul_case(name, a, b, flags=0, scale=0.0):
    def forward(left, right):
        return [(scale or 1.0) * left @ (right.mT if flags & TRANSPOSE else right)]

    return op_fixture(name, "matmul", {"flags": flags, "scale": scale}, [a, b], forward)


def softmax_case(name, shape, flags=0):
    def forward(x):
        hidden = x.masked_fill(unseen(*shape[-2:]), -math.inf) if flags & CAUSAL else x
        return [F.softmax(hidden, dim=-1)]

    return op_fixture(name, "softmax", {"flags": flags}, [shape], forward)


def scores_case(name, q, k, heads):
    def forward(queries, keys):
        return [split(queries, heads) @ split(keys, heads).mT / math.sqrt(q[2] / heads)]

    return op_fixture(name, "attention_scores", {"heads": heads}, [q, k], forward)


def values_case(name, p, v, heads):
    def forward(weights, values):
        return [joined(weights @ split(values, heads))]

    return op_fixture(name, "attention_values", {"heads": heads}, [p, v], forward)


def attention_case(name, q, k, heads, flags=0):
    def forward(queries, keys, values):
        heads_of = [split(x, heads) for x in (queries, keys, values)]
        y = F.scaled_dot_product_attention(*heads_of, is_causal=bool(flags & CAUSAL))
        scores = heads_of[0] @ heads_of[1].mT / math.sqrt(q[2] / heads)
        if flags & CAUSAL:
            scores = scores.masked_fill(unseen(q[1], k[1]), -math.inf)
        return [joined(y), scores.logsumexp(dim=-1)]

    return op_fixture(name, "attention", {"heads": heads, "flags": flags}, [q, k, k], forward)


def main():
    torch.set_num_threads(1)
    cases = [
        matmul_case("matmul", (5, 7), (7, 3)),
        matmul_case("matmul_turned", (2, 3, 4, 6), (2, 3, 5, 6), TRANSPOSE, 0.3),
        matmul_case("matmul_three", (3, 4, 2), (3, 2, 6), 0, 1.5),
        softmax_case("softmax", (3, 4, 7)),
        softmax_case("softmax_causal", (2, 3, 6, 6), CAUSAL),
        softmax_case("softmax_causal_wide", (2, 4, 7), CAUSAL),
        softmax_case("softmax_causal_tall", (2, 7, 4), CAUSAL),
        scores_case("scores", (2, 5, 12), (2, 7, 12), 3),
        values_case("values", (2, 3, 5, 7), (2, 7, 12), 3),
        attention_case("attention", (2, 5, 12), (2, 7, 12), 3),
        attention_case("attention_causal", (2, 9, 10), (2, 9, 10), 2, CAUSAL),
        attention_case("attention_causal_wide", (1, 4, 6), (1, 7, 6), 1, CAUSAL),
        attention_case("attention_causal_tall", (1, 8, 6), (1, 5, 6), 2, CAUSAL),
    ]
    fixture = {
        "schema": "headroom.op_fixtures/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "cases": cases,
    }
    write("ops_attention.json", fixture)


if __name__ == "__main__":
    main()
