#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures with PyTorch. Run by hand, from anywhere: python3 tests/numeric/make_fixtures.py

Nothing here comes from headroom's engine but the description of its numbers: the model files are read and built
anew with torch.nn.functional, and the seeded initialiser (engine/model/init.c) is repeated with numpy. Each
fixture holds, per tensor, the norm and 64 entries at a fixed stride of one training step in float64, and how far
PyTorch's own float32 step is from it.

Needs torch, numpy and PyYAML.
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "program"))
from model_sizes import with_sizes  # noqa: E402
MODELS = HERE.parents[1] / "presets" / "models"
ENTRIES = 64
MASK = (1 << 64) - 1

# ---- the engine's numbers, repeated ---------------------------------------------------------------------------


def hash64(data, seed):
    """engine/base/hash.c"""
    golden, mix_1, mix_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

    def mix(a, b):
        z = ((a ^ b) + golden) & MASK
        z = (z ^ (z >> 30)) * mix_1 & MASK
        z = (z ^ (z >> 27)) * mix_2 & MASK
        return z ^ (z >> 31)

    state = mix(seed, len(data))
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        state = (state ^ (word * mix_1 & MASK)) * mix_2 & MASK
        state ^= state >> 32
    return mix(state, 0)


def philox_key(seed, purpose):
    return hash64(purpose.encode(), seed)


def philox(key, low, high):
    """Philox4x32-10 of arrays of counters: words as [..., 4]; engine/base/philox.c"""
    low, high = np.broadcast_arrays(np.asarray(low, np.uint64), np.asarray(high, np.uint64))
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    x = [low & mask, low >> shift, high & mask, high >> shift]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p0 = x[0] * np.uint64(0xD2511F53)
        p1 = x[2] * np.uint64(0xCD9E8D57)
        x = [
            (p1 >> shift) ^ x[1] ^ np.uint64(k[0]),
            p1 & mask,
            (p0 >> shift) ^ x[3] ^ np.uint64(k[1]),
            p0 & mask,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(x, axis=-1)


def philox_words(seed, purpose, count):
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    return philox(philox_key(seed, purpose), blocks, 0).reshape(-1)[:count]


def philox_uniform(seed, purpose, count):
    """count float32 numbers in [0, 1)"""
    words = philox_words(seed, purpose, count)
    return (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def initial(seed, name, shape, rule, fan_in, fan_out):
    """engine/model/init.c"""
    count = math.prod(shape)
    if rule in ("zeros", "ones"):
        return np.full(shape, 0.0 if rule == "zeros" else 1.0, dtype=np.float32)
    scale = 6.0 / fan_in if rule == "he_uniform" else 6.0 / (fan_in + fan_out)
    uniform = philox_uniform(seed, "init/" + name, count)
    values = (np.float32(2) * uniform - np.float32(1)) * np.float32(math.sqrt(scale))
    return values.reshape(shape)


# ---- a model file as PyTorch sees it --------------------------------------------------------------------------
# Parameters live in headroom's layouts ([kh, kw, C/groups, F], [I, O]) as the leaves of autograd, and images are
# NHWC between layers: every gradient comes out in the engine's own order. Inside a layer PyTorch gets one of its two
# memory formats. Its float32 differs between them: channels-last runs the kernels that our NHWC runs, contiguous
# others that come nearer.

FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def nchw(x, memory_format=torch.contiguous_format):
    return x.permute(0, 3, 1, 2).contiguous(memory_format=memory_format)


def nhwc(x):
    return x.permute(0, 2, 3, 1)


def oihw(w, memory_format=torch.contiguous_format):
    return w.permute(3, 2, 0, 1).contiguous(memory_format=memory_format)


def model_of(name):
    return with_sizes(yaml.safe_load((MODELS / f"{name}.yaml").read_text())["model"])


class Net:
    def __init__(self, name, seed, dtype, memory_format):
        self.model = model_of(name)
        self.seed, self.dtype, self.format = seed, dtype, memory_format
        self.params, self.state = {}, {}

    def param(self, name, shape, rule, fan_in=0, fan_out=0):
        if name not in self.params:
            values = initial(self.seed, name, shape, rule, fan_in, fan_out)
            self.params[name] = torch.tensor(values, dtype=self.dtype, requires_grad=True)
        return self.params[name]

    def kernel(self, layer, suffix, kernel, depth, filters, fan_in, fan_out):
        rule = layer.get("init", "glorot_uniform")
        name = f"{layer['name']}/{suffix}"
        area = kernel * kernel
        return self.param(name, (kernel, kernel, depth, filters), rule, area * fan_in, area * fan_out)

    def bias(self, layer, count):
        return self.param(layer["name"] + "/bias", (count,), "zeros") if layer.get("bias", True) else None

    def conv(self, x, w, bias, stride, padding, groups):
        return nhwc(F.conv2d(nchw(x, self.format), oihw(w, self.format), bias, stride, padding, 1, groups))

    def conv2d(self, layer, x):
        groups = layer.get("groups", 1)
        depth, filters = x.shape[3] // groups, layer["filters"]
        w = self.kernel(layer, "weights", layer["kernel"], depth, filters, depth, filters)
        bias = self.bias(layer, filters)
        return self.conv(x, w, bias, layer.get("stride", 1), layer.get("padding", 0), groups)

    def separable_conv2d(self, layer, x):
        channels, filters = x.shape[3], layer["filters"]
        dw = self.kernel(layer, "depthwise_weights", layer["kernel"], 1, channels, channels, 1)
        pw = self.kernel(layer, "pointwise_weights", 1, channels, filters, channels, filters)
        mid = self.conv(x, dw, None, layer.get("stride", 1), layer.get("padding", 0), channels)
        return self.conv(mid, pw, self.bias(layer, filters), 1, 0, 1)

    def dense(self, layer, x):
        rows, units = x.shape[1], layer["units"]
        rule = layer.get("init", "glorot_uniform")
        w = self.param(layer["name"] + "/weights", (rows, units), rule, rows, units)
        y = x @ w
        bias = self.bias(layer, units)
        return y if bias is None else y + bias

    def batch_norm(self, layer, x):
        name, channels = layer["name"], (x.shape[-1],)
        gamma = self.param(name + "/gamma", channels, "ones")
        beta = self.param(name + "/beta", channels, "zeros")
        mean = self.state.setdefault(name + "/moving_mean", torch.zeros(channels, dtype=self.dtype))
        variance = self.state.setdefault(name + "/moving_variance", torch.ones(channels, dtype=self.dtype))
        momentum, epsilon = layer["momentum"], float(layer["epsilon"])
        return nhwc(F.batch_norm(nchw(x, self.format), mean, variance, gamma, beta, True, momentum, epsilon))

    def max_pool(self, layer, x):
        size = layer["size"]
        return nhwc(F.max_pool2d(nchw(x, self.format), size, layer.get("stride", size), layer.get("padding", 0)))

    def forward(self, images):
        values, last = {}, images
        for layer in self.model["layers"]:
            names = layer.get("inputs", [layer["input"]] if "input" in layer else [])
            inputs = [values[n] for n in names] if names else [last]
            kind = layer["kind"]
            if kind == "add":
                y = inputs[0] + inputs[1]
            elif kind == "flatten":
                y = inputs[0].flatten(1)
            elif kind == "global_avg_pool":
                y = inputs[0].mean(dim=(1, 2))
            else:
                y = getattr(self, kind)(layer, inputs[0])
            if layer.get("activation", "none") == "relu":
                y = F.relu(y)
            values[layer["name"]] = last = y
        return last


# ---- one step -------------------------------------------------------------------------------------------------


def batch_of(model, seed, batch):
    shape = [batch] + model["input"]["shape"]
    images = philox_uniform(seed, "test/images", math.prod(shape)).reshape(shape)
    labels = [(3 * n + seed) % model["classes"] for n in range(batch)]
    return images, labels


def updated(optimizer, w, g):
    """The first update from slots of zero, as Keras writes it."""
    rate = optimizer["learning_rate"]
    if optimizer["kind"] == "momentum":
        return w - rate * g
    m, v = g * (1 - 0.9), g * g * (1 - 0.999)
    return w - rate * math.sqrt(1 - 0.999) / (1 - 0.9) * m / (v.sqrt() + 1e-7)


def step(name, seed, batch, optimizer, dtype, memory_format):
    """{tensor name: values} of one training step; the running statistics under their own names."""
    net = Net(name, seed, dtype, FORMATS[memory_format])
    images, labels = batch_of(net.model, seed, batch)
    logits = net.forward(torch.tensor(images, dtype=dtype))
    loss = F.cross_entropy(logits, torch.tensor(labels))
    loss.backward()
    out = {"logits": logits, "loss": loss.reshape(1)}
    for key, w in net.params.items():
        out[key + ":grad"] = w.grad
        out[key] = updated(optimizer, w.detach(), w.grad)
    out.update(net.state)
    return {key: value.detach().numpy().astype(np.float64).reshape(-1) for key, value in out.items()}


def entries(values):
    stride = max(1, values.size // ENTRIES)
    return values[::stride][:ENTRIES]


def distance(a, b):
    norm = np.linalg.norm(b)
    return float(np.linalg.norm(a - b) / norm) if norm > 0 else float(np.linalg.norm(a))


def step_fixture(name, seed, batch, optimizer, gradients_only):
    exact = step(name, seed, batch, optimizer, torch.float64, "contiguous")
    single = {f: step(name, seed, batch, optimizer, torch.float32, f) for f in FORMATS}
    tensors = {}
    for key, values in exact.items():
        if gradients_only and not (key.endswith(":grad") or key in ("logits", "loss")):
            continue
        tensors[key] = {
            "elements": values.size,
            "norm": float(np.linalg.norm(values)),
            "entries": [float(v) for v in entries(values)],
            "float32_distance": {f: distance(entries(single[f][key]), entries(values)) for f in FORMATS},
        }
    return {
        "schema": "headroom.fixture/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "model": name,
        "seed": seed,
        "batch": batch,
        "optimizer": optimizer,
        "tensors": tensors,
    }


# ---- single operations ----------------------------------------------------------------------------------------


def operand(case, index, shape):
    """Values of input `index` of a case, in [-1, 1)."""
    uniform = philox_uniform(index, "test/ops/" + case, math.prod(shape))
    return torch.tensor((2.0 * uniform.astype(np.float64) - 1.0).reshape(shape), requires_grad=True)


def op_fixture(name, op, attr, shapes, forward):
    """`forward(*inputs)` gives the outputs; the gradient of output 0 is input number 9 of the case."""
    inputs = [operand(name, k, shape) for k, shape in enumerate(shapes)]
    outputs = forward(*inputs)
    gradient = operand(name, 9, outputs[0].shape).detach()
    grads = torch.autograd.grad(outputs[0], inputs, gradient, allow_unused=True)

    def packed(t):
        values = t.detach().numpy().reshape(-1)
        return {"norm": float(np.linalg.norm(values)), "entries": [float(v) for v in entries(values)]}

    return {
        "name": name,
        "op": op,
        "attr": attr,
        "in": [list(shape) for shape in shapes],
        "out": [packed(t) for t in outputs],
        "grad": [None if g is None else packed(g) for g in grads],
    }


def window(kernel, stride, top, left, bottom, right, groups=1):
    return {
        "kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": stride[0], "stride_w": stride[1],
        "pad_top": top, "pad_left": left, "pad_bottom": bottom, "pad_right": right, "groups": groups,
    }  # fmt: skip


def conv_case(name, x, filters, bias, attr):
    def forward(image, w, *b):
        padding = (attr["pad_left"], attr["pad_right"], attr["pad_top"], attr["pad_bottom"])
        padded = F.pad(nchw(image), padding)
        stride = (attr["stride_h"], attr["stride_w"])
        dilation = (attr.get("gap_h", 0) + 1, attr.get("gap_w", 0) + 1)
        return [nhwc(F.conv2d(padded, oihw(w), *(b or (None,)), stride, 0, dilation, attr["groups"]))]

    weights = (attr["kernel_h"], attr["kernel_w"], x[3] // attr["groups"], filters)
    return op_fixture(name, "conv2d", attr, [x, weights] + ([(filters,)] if bias else []), forward)


def pool_case(name, x, attr):
    def forward(image):
        padding = (attr["pad_left"], attr["pad_right"], attr["pad_top"], attr["pad_bottom"])
        padded = F.pad(nchw(image), padding, value=-math.inf)
        kernel, stride = (attr["kernel_h"], attr["kernel_w"]), (attr["stride_h"], attr["stride_w"])
        return [nhwc(F.max_pool2d(padded, kernel, stride))]

    return op_fixture(name, "max_pool", attr, [x], forward)


def norm_case(name, x):
    def forward(image, gamma, beta, running_mean, running_variance):
        mean, variance = running_mean.detach().clone(), running_variance.detach().clone()
        channels_first = image.movedim(-1, 1)
        y = F.batch_norm(channels_first, mean, variance, gamma, beta, True, 0.1, 1e-3).movedim(1, -1)
        dims = tuple(range(len(x) - 1))
        biased = image.var(dim=dims, unbiased=False)
        return [y, image.mean(dim=dims), biased, mean, variance]  # the last two: updated inputs 3 and 4

    attr = {"epsilon": 1e-3, "momentum": 0.1}
    return op_fixture(name, "batch_norm", attr, [x] + [(x[-1],)] * 4, forward)


def op_fixtures():
    same = (1, 1, 1, 1)
    return {
        "schema": "headroom.op_fixtures/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "cases": [
            conv_case("plain", (2, 5, 6, 3), 4, True, window((3, 3), (1, 1), 0, 0, 0, 0)),
            conv_case("same", (2, 5, 6, 3), 4, False, window((3, 3), (1, 1), *same)),
            conv_case("strided", (2, 7, 6, 5), 3, True, window((3, 3), (2, 2), *same)),
            conv_case("one_sided", (1, 6, 7, 2), 5, False, window((3, 3), (2, 2), 0, 0, 1, 1)),
            conv_case("rectangular", (2, 6, 9, 3), 2, True, window((1, 5), (1, 2), 0, 2, 0, 1)),
            conv_case("grouped", (2, 5, 5, 6), 4, True, window((3, 3), (1, 1), *same, groups=2)),
            conv_case("depthwise", (2, 6, 5, 3), 6, False, window((3, 3), (1, 1), 0, 0, 0, 0, groups=3)),
            conv_case("stem", (1, 15, 14, 3), 4, False, window((7, 7), (2, 2), 3, 3, 3, 3)),
            conv_case("pointwise_strided", (2, 6, 6, 4), 8, False, window((1, 1), (2, 2), 0, 0, 0, 0)),
            op_fixture("dense", "dense", {}, [(5, 7), (7, 3), (3,)], lambda x, w, b: [x @ w + b]),
            norm_case("norm_image", (3, 4, 5, 6)),
            norm_case("norm_features", (9, 4)),
            pool_case("pool", (2, 6, 7, 3), window((2, 2), (2, 2), 0, 0, 0, 0)),
            pool_case("pool_overlapping", (2, 7, 6, 3), window((3, 3), (2, 2), *same)),
            pool_case("pool_one_sided", (1, 5, 8, 2), window((3, 2), (1, 2), 0, 1, 1, 0)),
            op_fixture("mean", "global_avg_pool", {}, [(2, 3, 5, 4)], lambda x: [x.mean(dim=(1, 2))]),
            op_fixture("relu", "relu", {}, [(3, 4, 2, 5)], lambda x: [F.relu(x)]),
        ],
    }


# ---- files ----------------------------------------------------------------------------------------------------


def write(name, fixture):
    text = json.dumps(fixture).replace('}, "', '},\n"').replace("}, {", "},\n{")  # one tensor a line
    path = HERE / "fixtures" / name
    path.write_text(text + "\n")
    print(f"{name}: {path.stat().st_size} bytes")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    momentum = {"kind": "momentum", "learning_rate": 0.01}
    adam = {"kind": "adam", "learning_rate": 0.001}
    write("ops.json", op_fixtures())
    for seed in range(1, 6):
        write(f"resnet18_cifar_{seed}.json", step_fixture("resnet18_cifar", seed, 2, momentum, seed > 1))
    write("separable_cnn.json", step_fixture("cifar10_separable_cnn", 1, 3, adam, False))
    write("mlp.json", step_fixture("mlp", 1, 3, adam, False))


if __name__ == "__main__":
    main()
