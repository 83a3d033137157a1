#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/ops_image.json with PyTorch: what encoders, decoders and separable networks are made of
beside plain convolutions, and losses over any rank, in float64.

Run by hand, from anywhere: python3 tests/numeric/make_image_fixtures.py. What a fixture holds: make_fixtures.py.
"""
import numpy as np
import torch
import torch.nn.functional as F

from make_fixtures import conv_case, entries, op_fixture, operand, window, write

MEAN, PADDING = 8, 16


def channels_first(image):
    return image.movedim(-1, 1)


def channels_last(image):
    return image.movedim(1, -1)


def crop(image, attr):
    """Takes the padding off all four sides; a negative pad adds zeros."""
    sides = [-attr[side] for side in ("pad_left", "pad_right", "pad_top", "pad_bottom")]
    return F.pad(image, sides)


def transposed_case(name, x, filters, bias, attr):
    def forward(image, w, *b):
        stride = (attr["stride_h"], attr["stride_w"])
        y = channels_last(crop(F.conv_transpose2d(channels_first(image), w.permute(3, 2, 0, 1), None, stride), attr))
        return [y + b[0] if b else y]

    weights = (attr["kernel_h"], attr["kernel_w"], filters, x[-1])
    return op_fixture(name, "conv2d_transpose", attr, [x, weights] + ([(filters,)] if bias else []), forward)


def relu6_case(name, x, spread):
    """Of operand()'s numbers times `spread`, so that some lie beyond 6."""
    fixture = op_fixture(name, "relu6", {}, [x], lambda values: [F.relu6(spread * values)])
    (grad,) = fixture["grad"]
    grad["norm"] /= spread
    grad["entries"] = [value / spread for value in grad["entries"]]
    return fixture | {"spread": spread}


def upsample_case(name, x, rows, columns):
    def forward(image):
        return [image.repeat_interleave(rows, 1).repeat_interleave(columns, 2)]

    return op_fixture(name, "upsample", {"kernel_h": rows, "kernel_w": columns}, [x], forward)


CORNERS = 4096


def resize_case(name, x, rows, columns, corners):
    def forward(image):
        return [channels_last(F.interpolate(channels_first(image), (rows, columns), mode="bilinear", align_corners=corners))]

    attr = {"kernel_h": rows, "kernel_w": columns, "flags": CORNERS if corners else 0}
    return op_fixture(name, "resize", attr, [x], forward)


def adaptive_case(name, x, rows, columns):
    def forward(image):
        return [channels_last(F.adaptive_avg_pool2d(channels_first(image), (rows, columns)))]

    return op_fixture(name, "adaptive_avg_pool", {"kernel_h": rows, "kernel_w": columns}, [x], forward)


def avg_pool_case(name, x, attr, flags=0):
    """Sums of windows over the places inside the image, or over all."""

    def forward(image):
        sides = [attr[side] for side in ("pad_left", "pad_right", "pad_top", "pad_bottom")]
        kernel, stride = (attr["kernel_h"], attr["kernel_w"]), (attr["stride_h"], attr["stride_w"])
        padded = F.pad(channels_first(image), sides)
        inside = F.pad(torch.ones_like(channels_first(image)), sides)
        count = F.avg_pool2d(inside, kernel, stride) if flags == 0 else 1
        return [channels_last(F.avg_pool2d(padded, kernel, stride) / count)]

    return op_fixture(name, "avg_pool", attr | {"flags": flags}, [x], forward)


def zero_pad_case(name, x, top, left, bottom, right):
    attr = {"pad_top": top, "pad_left": left, "pad_bottom": bottom, "pad_right": right}
    return op_fixture(name, "zero_pad", attr, [x], lambda image: [F.pad(image, (0, 0, left, right, top, bottom))])


def concat_case(name, shapes, axis):
    return op_fixture(name, "concat", {"axis": axis}, shapes, lambda *parts: [torch.cat(parts, axis)])


def slice_case(name, x, axis, offset, count):
    def forward(value):
        return [value.narrow(axis, offset, count or x[axis] - offset)]

    return op_fixture(name, "slice", {"axis": axis, "offset": offset, "count": count}, [x], forward)


def permute_case(name, x, axes):
    rule = sum(axis << (4 * k) for k, axis in enumerate(axes))
    return op_fixture(name, "permute", {"rule": rule}, [x], lambda value: [value.permute(axes)])


def roll_case(name, x, down, right):
    """torch.roll's shifts."""
    attr = {"pad_top": -down % x[1], "pad_left": -right % x[2]}
    return op_fixture(name, "roll", attr, [x], lambda image: [image.roll((down, right), (1, 2))])


def reduce_case(name, x, axis, count, flags):
    def forward(value):
        axes = tuple(range(axis, axis + count))
        return [value.mean(axes) if flags else value.sum(axes)]

    return op_fixture(name, "reduce", {"axis": axis, "count": count, "flags": flags}, [x], forward)


def loss_case(name, op, attr, shapes, forward, weight, trained):
    """`forward` gives the outputs, the loss last; gradients are those of weight * loss for the first `trained` inputs."""
    inputs = [operand(name, k, shape) for k, shape in enumerate(shapes)]
    outputs = forward(*inputs)
    grads = torch.autograd.grad(weight * outputs[-1], inputs[:trained])

    def packed(t):
        values = t.detach().numpy().reshape(-1)
        return {"norm": float(np.linalg.norm(values)), "entries": [float(v) for v in entries(values)]}

    return {
        "name": name,
        "op": op,
        "attr": attr | {"scale": weight},
        "in": [list(shape) for shape in shapes],
        "out": [packed(t) for t in outputs],
        "grad": [packed(g) for g in grads] + [None] * (len(shapes) - trained),
    }


def mse_case(name, shape, weight):
    return loss_case(name, "mse", {}, [shape, shape], lambda a, b: [F.mse_loss(a, b.detach())], weight, 1)


def shares(values, parts):
    """Of the shares of [0, 1) that operand() draws: 0, 1 and what lies between them in `parts` steps from 0 on."""
    return ((values.detach() + 1) / 2 * parts).floor() / (parts - 1)


def binary_case(name, shape, parts, weight):
    def forward(z, t):
        return [F.binary_cross_entropy_with_logits(z, shares(t, parts))]

    return loss_case(name, "binary_cross_entropy", {}, [shape, shape], forward, weight, 1) | {"shares": [0, parts]}


def focal_case(name, shape, parts, gamma, alpha, weight):
    """The formula of torchvision.ops.sigmoid_focal_loss, whose alpha below 0 is our 0."""

    def forward(z, targets):
        t, p = shares(targets, parts), z.sigmoid()
        entropy = F.binary_cross_entropy_with_logits(z, t, reduction="none")
        loss = entropy * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
        return [((alpha * t + (1 - alpha) * (1 - t)) * loss if alpha > 0 else loss).mean()]

    attr = {"rate": gamma, "momentum": alpha}
    return loss_case(name, "focal", attr, [shape, shape], forward, weight, 1) | {"shares": [0, parts]}


def cross_entropy_case(name, logits, weight):
    """Labels are the shares of [0, 1) that operand() draws, in units of the number of classes."""
    classes = logits[-1]

    def forward(rows, shares):
        labels = ((shares.detach() + 1) / 2 * classes).floor().long()
        return [rows.softmax(-1), F.cross_entropy(rows.reshape(-1, classes), labels.reshape(-1))]

    case = loss_case(name, "softmax_cross_entropy", {}, [logits, logits[:-1]], forward, weight, 1)
    return case | {"numbers": [0, classes]}


def kl_case(name, shape, temperature, weight):
    def forward(student, teacher):
        log_probs = (student / temperature).log_softmax(-1).reshape(-1, shape[-1])
        target = (teacher.detach() / temperature).softmax(-1).reshape(-1, shape[-1])
        loss = temperature**2 * F.kl_div(log_probs, target, reduction="batchmean")
        return [log_probs.exp().reshape(shape), loss]

    return loss_case(name, "kl_divergence", {"epsilon": temperature}, [shape, shape], forward, weight, 1)


def convolutions():
    same = (1, 1, 1, 1)
    return [
        conv_case("groups_of_four", (2, 5, 6, 8), 12, True, window((3, 3), (1, 1), *same, groups=4)),
        conv_case("groups_strided", (1, 7, 8, 6), 9, False, window((3, 3), (2, 2), 0, 0, 1, 1, groups=3)),
        conv_case("groups_pointwise", (2, 4, 3, 10), 10, True, window((1, 1), (1, 1), 0, 0, 0, 0, groups=5)),
        conv_case("depthwise_same", (2, 6, 5, 16), 16, False, window((3, 3), (2, 1), *same, groups=16)),
        transposed_case("doubled", (2, 3, 4, 5), 3, True, window((2, 2), (2, 2), 0, 0, 0, 0)),
        transposed_case("overlapping", (2, 4, 3, 3), 4, True, window((3, 3), (2, 2), *same)),
        transposed_case("extended", (1, 3, 4, 2), 3, False, window((3, 3), (2, 2), 1, 1, 0, 0)),
        transposed_case("beyond", (1, 3, 2, 4), 2, False, window((2, 3), (3, 2), 0, 0, -1, 1)),
        transposed_case("unstrided", (2, 4, 5, 3), 6, True, window((4, 3), (1, 1), 2, 1, 1, 1)),
    ]


def group_norm_case(name, x, groups, epsilon):
    def forward(image, gamma, beta):
        y = F.group_norm(image.movedim(-1, 1), groups, gamma, beta, epsilon).movedim(1, -1)
        rows = image.reshape(x[0], -1, groups, x[-1] // groups)
        variance, mean = torch.var_mean(rows, dim=(1, 3), correction=0)
        return [y, mean, (variance + epsilon).rsqrt()]

    attr = {"groups": groups, "epsilon": epsilon}
    return op_fixture(name, "group_norm", attr, [x, (x[-1],), (x[-1],)], forward)


def main():
    torch.set_num_threads(1)
    cases = convolutions() + [
        upsample_case("upsample", (2, 3, 4, 5), 2, 2),
        upsample_case("upsample_uneven", (1, 4, 2, 3), 3, 1),
        resize_case("resize", (2, 3, 4, 5), 6, 8, False),
        resize_case("resize_corners", (2, 3, 4, 5), 6, 8, True),
        resize_case("resize_uneven", (1, 5, 3, 2), 7, 11, False),
        resize_case("resize_uneven_corners", (1, 5, 3, 2), 7, 11, True),
        resize_case("resize_smaller", (2, 7, 9, 3), 3, 4, False),
        resize_case("resize_smaller_corners", (2, 7, 9, 3), 3, 4, True),
        resize_case("resize_of_one", (2, 1, 4, 3), 3, 1, True),
        adaptive_case("adaptive", (2, 7, 10, 3), 3, 4),
        adaptive_case("adaptive_larger", (1, 3, 5, 2), 7, 6),
        adaptive_case("adaptive_rows", (2, 9, 4, 3), 2, 4),
        avg_pool_case("avg_pool", (2, 6, 7, 3), window((2, 2), (2, 2), 0, 0, 0, 0)),
        avg_pool_case("avg_pool_padded", (2, 7, 6, 4), window((3, 3), (2, 2), 1, 1, 1, 1)),
        avg_pool_case("avg_pool_counts_padding", (2, 7, 6, 4), window((3, 3), (2, 2), 1, 1, 1, 1), PADDING),
        avg_pool_case("avg_pool_one_sided", (1, 5, 8, 2), window((3, 2), (1, 2), 0, 1, 1, 0)),
        group_norm_case("group_norm", (2, 3, 4, 12), 4, 1e-5),
        group_norm_case("group_norm_of_one", (2, 5, 6), 1, 1e-6),
        group_norm_case("instance_norm", (3, 4, 3, 5), 5, 1e-3),
        relu6_case("relu6", (3, 4, 2, 5), 12.0),
        conv_case("dilated", (2, 9, 8, 3), 4, True, window((3, 3), (1, 1), 2, 2, 2, 2) | {"gap_h": 1, "gap_w": 1}),
        conv_case("dilated_strided", (1, 12, 11, 4), 6, False,
                  window((3, 2), (2, 3), 1, 0, 2, 1, groups=2) | {"gap_h": 3, "gap_w": 2}),
        op_fixture("multiply", "multiply", {}, [(2, 3, 4, 5), (2, 3, 4, 5)], lambda a, b: [a * b]),
        op_fixture("gate", "multiply_broadcast", {}, [(2, 3, 4, 5), (2, 1, 1, 5)], lambda a, b: [a * b]),
        op_fixture("gain", "multiply_broadcast", {}, [(2, 3, 4, 5), (5,)], lambda a, b: [a * b]),
        op_fixture("scale", "scale", {"scale": 0.375}, [(2, 3, 4)], lambda x: [0.375 * x]),
        concat_case("concat_channels", [(2, 3, 4, 5), (2, 3, 4, 2), (2, 3, 4, 1)], 3),
        concat_case("concat_rows", [(2, 3, 4), (2, 5, 4)], 1),
        slice_case("slice_channels", (2, 3, 4, 7), 3, 2, 3),
        slice_case("slice_rest", (3, 6, 5), 1, 4, 0),
        zero_pad_case("zero_pad", (2, 3, 4, 5), 1, 2, 0, 3),
        permute_case("permute_windows", (4, 3, 2, 3, 5), (0, 2, 1, 3, 4)),
        permute_case("permute_cycle", (2, 3, 4, 5), (0, 2, 3, 1)),
        permute_case("permute_pixels", (3, 4, 5, 2, 3), (0, 3, 1, 4, 2)),
        roll_case("roll", (2, 5, 4, 3), -2, 3),
        roll_case("roll_rows", (3, 4, 2), 1, 0),
        reduce_case("reduce_sum", (3, 4, 5), 1, 1, 0),
        reduce_case("reduce_mean", (2, 3, 4, 5), 1, 2, MEAN),
        mse_case("mse", (4, 3), 1.0),
        mse_case("mse_image", (2, 3, 4, 5), 0.25),
        cross_entropy_case("cross_entropy", (6, 5), 1.0),
        cross_entropy_case("cross_entropy_sequence", (3, 4, 7), 0.5),
        cross_entropy_case("cross_entropy_mask", (2, 3, 4, 3), 1.0),
        binary_case("binary_cross_entropy", (4, 7), 2, 1.0),
        binary_case("binary_cross_entropy_mask", (2, 3, 4, 1), 5, 0.5),
        focal_case("focal", (4, 7), 2, 2.0, 0.25, 1.0),
        focal_case("focal_soft", (2, 3, 4, 2), 5, 1.5, 0.0, 0.75),
        kl_case("kl", (5, 6), 1.0, 1.0),
        kl_case("kl_sequence", (2, 3, 7), 3.0, 0.75),
    ]
    fixture = {
        "schema": "headroom.op_fixtures/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "cases": cases,
    }
    write("ops_image.json", fixture)


if __name__ == "__main__":
    main()
