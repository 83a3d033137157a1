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


def buckets_of(distance, rows, most, causal):
    """The rows of T5's table, in its words: distance is key less query."""
    row = torch.zeros_like(distance)
    if not causal:
        rows //= 2
        row += (distance > 0) * rows
        distance = distance.abs()
    else:
        distance = -distance.clamp(max=0)
    exact = rows // 2
    large = exact + ((distance.float() / exact).log() / math.log(most / exact) * (rows - exact)).long()
    return row + torch.where(distance < exact, distance, large.clamp(max=rows - 1))


def buckets_case(name, queries, keys, rows, most, heads, flags=0):
    def forward(table):
        distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
        return [table[buckets_of(distance, rows, most, flags & CAUSAL)].permute(2, 0, 1)]

    attr = {"rule": 0, "kernel_h": queries, "kernel_w": keys, "flags": flags, "base": most}
    return op_fixture(name, "relative_bias", attr, [(rows, heads)], forward)


def window_case(name, size, windows, shift, heads):
    """Where pixels stood is told by rolling an image of their places."""
    h, w = size

    def forward(table):
        y, x = (t.flatten() for t in torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"))
        row = (y[:, None] - y + h - 1) * (2 * w - 1) + x[:, None] - x + w - 1
        bias = table[row].permute(2, 0, 1)
        if not any(shift):
            return [bias]
        tall, wide = h * windows[0], w * windows[1]
        ys, xs = (t.roll((-shift[0], -shift[1]), (0, 1)).reshape(windows[0], h, windows[1], w).permute(0, 2, 1, 3)
                  .reshape(-1, h * w) for t in torch.meshgrid(torch.arange(tall), torch.arange(wide), indexing="ij"))
        far = ((ys[:, :, None] - ys[:, None, :]).abs() >= h) | ((xs[:, :, None] - xs[:, None, :]).abs() >= w)
        return [(bias - 100.0 * far[:, None]).reshape(-1, h * w, h * w)]

    attr = {"rule": 1, "kernel_h": h, "kernel_w": w, "stride_h": windows[0], "stride_w": windows[1],
            "pad_top": shift[0], "pad_left": shift[1]}
    return op_fixture(name, "relative_bias", attr, [((2 * h - 1) * (2 * w - 1), heads)], forward)


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
        buckets_case("buckets", 150, 140, 32, 128, 2),
        buckets_case("buckets_causal", 140, 140, 32, 128, 1, CAUSAL),
        buckets_case("buckets_few", 9, 20, 10, 13, 3),
        window_case("window", (3, 4), (1, 1), (0, 0), 2),
        window_case("window_shifted", (4, 3), (2, 3), (2, 1), 2),
        window_case("window_shifted_across", (3, 4), (2, 2), (0, 2), 1),
    ]
    fixture = {
        "schema": "headroom.op_fixtures/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "cases": cases,
    }
    write("ops_attention.json", fixture)


if __name__ == "__main__":
    main()
