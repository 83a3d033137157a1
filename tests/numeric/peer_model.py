# SPDX-License-Identifier: Apache-2.0
"""Any of the tiny model files as PyTorch sees it, for the scripts that make fixtures of whole steps and of training.

Parameters have headroom's names and layouts and are the leaves of autograd; what happens between them is
torch.nn.functional. Their values, and the masks of dropout, come from one of two places:

  OurNumbers    the recipes of engine/model/init.c and engine/ops/dropout.h, repeated with numpy
  PeerNumbers   PyTorch's own generator and torch.nn.init, from the same distributions
"""
import math
import re

import numpy as np
import torch
import torch.nn.functional as F

from make_attention_fixtures import buckets_of
from make_fixtures import MASK, Net, hash64, nhwc, nchw, oihw, philox, philox_key, philox_uniform, philox_words

# ---- where numbers come from ----------------------------------------------------------------------------------


def hash64_mix(a, b):
    """engine/base/hash.c"""
    z = ((a ^ b) + 0x9E3779B97F4A7C15) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def scale_of(rule, fan_in, fan_out, written):
    """Limit of the uniform rules, deviation of the normal ones; engine/model/layer_expand.c"""
    return {
        "glorot_uniform": lambda: math.sqrt(6 / (fan_in + fan_out)),
        "he_uniform": lambda: math.sqrt(6 / fan_in),
        "glorot_normal": lambda: math.sqrt(2 / (fan_in + fan_out)),
        "he_normal": lambda: math.sqrt(2 / fan_in),
        "he_normal_fan_out": lambda: math.sqrt(2 / fan_out),
    }.get(rule, lambda: written)()


class OurNumbers:
    def __init__(self, seed):
        self.seed = seed

    def initial(self, name, shape, rule, scale):
        count = math.prod(shape)
        if "uniform" in rule:
            uniform = philox_uniform(self.seed, "init/" + name, count)
            return ((np.float32(2) * uniform - np.float32(1)) * np.float32(scale)).reshape(shape)
        p = (philox_words(self.seed, "init/" + name, count).astype(np.float64) + 0.5) * 2.0**-32
        if rule == "truncated_normal":
            below = 0.022750131948179207
            p = below + p * (1 - 2 * below)
        quantile = torch.special.ndtri(torch.tensor(p)).numpy()
        return (quantile * scale).astype(np.float32).reshape(shape)

    def mask(self, layer, rate, shape, update, first_sample, seed=None):
        """[samples, ...] of booleans"""
        key = philox_key(self.seed if seed is None else seed, "dropout")
        key = hash64_mix(hash64_mix(key, hash64(layer.encode(), 0)), update)
        elements = math.prod(shape[1:])
        calls = np.arange((elements + 63) // 64 * 16, dtype=np.uint64)
        samples = first_sample + np.arange(shape[0], dtype=np.uint64)
        words = philox(key, calls[None, :], samples[:, None])
        words = words.reshape(shape[0], -1, 16, 4).swapaxes(2, 3).reshape(shape[0], -1)[:, :elements]
        return torch.tensor((words >= np.uint64(int(rate * 2**32))).reshape(shape))


class PeerNumbers:
    def __init__(self, seed):
        torch.manual_seed(seed)

    def initial(self, name, shape, rule, scale):
        values = torch.empty(shape)
        if "uniform" in rule:
            torch.nn.init.uniform_(values, -scale, scale)
        elif rule == "truncated_normal":
            torch.nn.init.trunc_normal_(values, 0, scale, -2 * scale, 2 * scale)
        else:
            torch.nn.init.normal_(values, 0, scale)
        return values.numpy()

    def mask(self, layer, rate, shape, update, first_sample):
        return torch.rand(shape) >= rate


# ---- layers ---------------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "none": lambda x: x, "relu": F.relu, "relu6": F.relu6, "gelu": F.gelu, "tanh": torch.tanh,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "sigmoid": torch.sigmoid,
    "hard_sigmoid": lambda x: (x / 6 + 0.5).clamp(0, 1), "hard_swish": F.hardswish,
}  # fmt: skip
TABLE_KINDS = ("embedding", "position_embedding", "class_token")


def expanded(layers, defaults, names=None, before=None):
    """Repeats written out; every layer is (mapping, what `before` means there)."""
    out, names = [], names or {}

    def worded(value):
        if isinstance(value, str):
            return re.sub(r"\{(\w+)([+-]\d+)?\}", lambda m: str(names[m[1]] + int(m[2] or 0)), value)
        return [worded(v) for v in value] if isinstance(value, list) else value

    for layer in layers:
        if "repeat" in layer:
            for k in range(layer["repeat"]):
                above = out[-1][0]["name"] if out else before
                out += expanded(layer["layers"], defaults, {**names, layer.get("index", "_"): k}, above)
        else:
            mapping = {key: worded(value) for key, value in layer.items()}
            out.append(({**defaults.get(layer["kind"], {}), **mapping}, before))
    return out


class PeerNet(Net):
    def __init__(self, name, numbers, dtype, memory_format=torch.contiguous_format):
        super().__init__(name, 0, dtype, memory_format)
        self.numbers = numbers
        self.layers = expanded(self.model["layers"], self.model.get("defaults", {}))
        self.update, self.first_sample, self.renamed = 1, 0, {}
        self.layer_losses = []

    def param(self, name, shape, rule, fan_in=0, fan_out=0, scale=0.05):
        owner, suffix = name.split("/")
        name = f"{self.renamed.get(owner, owner)}/{suffix}"
        if name not in self.params:
            if rule in ("zeros", "ones"):
                values = np.full(shape, float(rule == "ones"), dtype=np.float32)
            else:
                values = self.numbers.initial(name, shape, rule, scale_of(rule, fan_in, fan_out, scale))
            self.params[name] = torch.tensor(values, dtype=self.dtype).requires_grad_(True)
        return self.params[name]

    def weights(self, layer, suffix, shape, fan_in, fan_out, scale=None):
        rule = layer.get("init", "uniform" if layer["kind"] in TABLE_KINDS else "glorot_uniform")
        scale = layer.get("init_scale", 0.05) if scale is None else scale
        return self.param(f"{layer['name']}/{suffix}", shape, rule, fan_in, fan_out, scale)

    def kernel(self, layer, suffix, kernel, depth, filters, fan_in, fan_out):
        height, width = kernel if isinstance(kernel, list) else (kernel, kernel)
        area = height * width
        return self.weights(layer, suffix, (height, width, depth, filters), area * fan_in, area * fan_out)

    def zero_pad(self, layer, x):
        height, width = layer["padding"] if isinstance(layer["padding"], list) else [layer["padding"]] * 2
        return F.pad(x, (0, 0, width, width, height, height))

    def depthwise_conv2d(self, layer, x):
        channels = x.shape[3]
        w = self.kernel(layer, "weights", layer["kernel"], 1, channels, channels, 1)
        bias = self.bias(layer, channels)
        return self.conv(x, w, bias, layer.get("stride", 1), layer.get("padding", 0), channels)

    def conv1d(self, layer, x):
        features, filters = x.shape[2], layer["filters"]
        w = self.kernel(layer, "weights", [1, layer["kernel"]], features, filters, features, filters)
        bias = self.bias(layer, filters)
        y = F.conv1d(x.transpose(1, 2), w[0].permute(2, 1, 0), bias, layer.get("stride", 1), layer.get("padding", 0))
        return y.transpose(1, 2)

    def conv2d_transpose(self, layer, x):
        channels, filters, stride = x.shape[3], layer["filters"], layer.get("stride", 1)
        w = self.kernel(layer, "weights", layer["kernel"], filters, channels, channels, filters)
        bias = self.bias(layer, filters)
        y = F.conv_transpose2d(nchw(x, self.format), oihw(w, self.format), bias, stride, layer.get("padding", 0))
        return nhwc(y)

    def dense(self, layer, x):
        rows, units = x.shape[-1], layer["units"]
        transposed = layer.get("transpose", False)
        w = self.weights(layer, "weights", (units, rows) if transposed else (rows, units), rows, units)
        y = x @ (w.T if transposed else w)
        bias = self.bias(layer, units)
        return y if bias is None else y + bias

    def dropped(self, layer, rate, x):
        if not rate:
            return x
        mask = self.numbers.mask(layer["name"], rate, tuple(x.shape), self.update, self.first_sample)
        return x * mask * (1 / (1 - rate))

    def stochastic_depth(self, layer, x):
        """A sample is kept as the first element of a dropout would be."""
        if not layer["rate"]:
            return x
        kept = self.numbers.mask(layer["name"], layer["rate"], (x.shape[0], 1), self.update, self.first_sample)
        return x * (kept[:, 0].to(x.dtype) / (1 - layer["rate"])).reshape(-1, *[1] * (x.ndim - 1))

    def dropout(self, layer, x):
        return self.dropped(layer, layer["rate"], x)

    def embedding(self, layer, ids):
        entries = layer.get("vocabulary", self.classes[layer["from_input"]])
        table = self.weights(layer, "weights", (entries, layer["units"]), entries, layer["units"])
        return F.embedding(ids, table)

    def position_embedding(self, layer, x):
        return x + self.weights(layer, "weights", tuple(x.shape[1:]), *x.shape[1:])

    def class_token(self, layer, x):
        row = self.weights(layer, "weights", (1, x.shape[2]), 1, x.shape[2])
        return torch.cat([row.expand(x.shape[0], 1, -1), x], dim=1)

    def layer_norm(self, layer, x):
        features = (x.shape[-1],)
        gamma = self.param(layer["name"] + "/gamma", features, "ones")
        beta = self.param(layer["name"] + "/beta", features, "zeros")
        return F.layer_norm(x, features, gamma, beta, float(layer.get("epsilon", 1e-3)))

    def rms_norm(self, layer, x):
        gamma = self.param(layer["name"] + "/gamma", x.shape[-1:], "ones")
        return F.rms_norm(x, x.shape[-1:], gamma, float(layer.get("epsilon", 1e-3)))

    def layer_scale(self, layer, x):
        gains = self.param(layer["name"] + "/gamma", x.shape[-1:], "ones")
        with torch.no_grad():
            gains.fill_(float(np.float32(layer.get("initial", 1))))
        return x * gains

    def scale(self, layer, x):
        return x * layer["factor"]

    def project(self, layer, x, name, units, scale=None):
        width = x.shape[-1]
        w = self.weights(layer, name + "_weights", (width, units), width, units, scale)
        y = x @ w
        return y + self.param(f"{layer['name']}/{name}_bias", (units,), "zeros") if layer.get("bias", True) else y

    def rotary(self, x, base):
        """x[N,heads,L,F]: the halves of a head are turned against one another, as Llama's rotate_half does."""
        half = x.shape[-1] // 2
        frequencies = base ** (-torch.arange(half, dtype=x.dtype) / half)
        angles = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * torch.cat([frequencies, frequencies])
        turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        return x * angles.cos() + turned * angles.sin()

    def heads_of(self, layer, x, name, heads, features):
        y = self.project(layer, x, name, heads * features).unflatten(-1, (heads, features))
        if name != "value" and "qk_norm_epsilon" in layer:
            gamma = self.param(f"{layer['name']}/{name}_gamma", (features,), "ones")
            y = F.rms_norm(y, (features,), gamma, float(layer["qk_norm_epsilon"]))
        y = y.transpose(1, 2)
        return self.rotary(y, float(layer["rotary"])) if name != "value" and "rotary" in layer else y

    def relative_bias(self, layer, x, source=None):
        """[1,heads,queries,keys]: T5's, a row of the table for each distance of key and query."""
        rows, heads, causal = layer.get("buckets", 32), layer["heads"], layer.get("causal", False)
        keys = (x if source is None else source).shape[1]
        table = self.weights(layer, "weights", (rows, heads), rows, heads)
        distance = torch.arange(keys)[None, :] - torch.arange(x.shape[1])[:, None]
        return table[buckets_of(distance, rows, layer.get("distance", 128), causal)].permute(2, 0, 1)[None]

    def attention(self, layer, x, *others):
        """Queries from x; keys and values from another sequence, where there is one; a bias of the scores last."""
        samples, places, width = x.shape
        bias = others[-1] if others and others[-1].ndim == 4 else 0
        source = others[0] if others and others[0].ndim == 3 else x
        heads = layer["heads"]
        shared, features = layer.get("kv_heads", heads), layer.get("head_dim", width // heads)
        q = self.heads_of(layer, x, "query", heads, features)
        keys = {**layer, "bias": layer.get("key_bias", layer.get("bias", True))}
        k, v = (
            self.heads_of(keys if name == "key" else layer, source, name, shared, features).repeat_interleave(heads // shared, dim=1)
            for name in ("key", "value")
        )
        scores = q @ k.transpose(2, 3)
        scores = (scores * layer["scale"] if "scale" in layer else scores / math.sqrt(features)) + bias
        if layer.get("causal", False):
            later = torch.ones(places, source.shape[1], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        p = self.dropped(layer, layer.get("dropout", 0), torch.softmax(scores, dim=-1))
        mixed = (p @ v).transpose(1, 2).reshape(samples, places, heads * features)
        return self.project(layer, mixed, "output", width, layer.get("output_init_scale"))

    def roll(self, layer, x):
        shift = layer["shift"] if isinstance(layer["shift"], list) else [layer["shift"]] * 2
        return x.roll(shift, (1, 2))

    def patch_merging(self, layer, x):
        size = layer["size"]
        return torch.cat([x[:, i::size, j::size] for j in range(size) for i in range(size)], -1)

    def window_attention(self, layer, x):
        """Swin's: windows as samples; hidden from one another is what a roll put side by side, told by a rolled image of regions."""
        (samples, height, width, channels), heads, size, shift = x.shape, layer["heads"], layer["size"], layer.get("shift", 0)

        def windows(image):
            rows = image.unflatten(1, (height // size, size)).unflatten(3, (width // size, size))
            return rows.permute(0, 1, 3, 2, 4, 5).flatten(0, 2).flatten(1, 2)

        q, k, v = (self.heads_of(layer, windows(x), name, heads, channels // heads) for name in ("query", "key", "value"))
        table = self.weights(layer, "bias_table", ((2 * size - 1) ** 2, heads), (2 * size - 1) ** 2, heads)
        place = torch.arange(size)
        down = (place[:, None] - place[None, :] + size - 1)[:, None, :, None]
        right = (place[:, None] - place[None, :] + size - 1)[None, :, None, :]
        rows = (down * (2 * size - 1) + right).reshape(size * size, size * size)
        region = torch.zeros(1, height, width, 1)
        region[:, :shift] += 1
        region[:, :, :shift] += 2
        region = windows(region.roll((-shift, -shift), (1, 2)))[:, :, 0]
        hidden = -100.0 * (region[:, :, None] != region[:, None, :]).to(x.dtype)
        scores = q @ k.transpose(2, 3) / math.sqrt(channels // heads) + table[rows].permute(2, 0, 1)
        scores = scores.unflatten(0, (samples, -1)) + hidden[None, :, None]
        p = self.dropped(layer, layer.get("dropout", 0), torch.softmax(scores.flatten(0, 1), dim=-1))
        mixed = self.project(layer, (p @ v).transpose(1, 2).flatten(2), "output", channels)
        rows = mixed.unflatten(0, (samples, height // size, width // size)).unflatten(3, (size, size))
        return rows.permute(0, 1, 3, 2, 4, 5).reshape(samples, height, width, channels)

    def lstm(self, layer, x):
        """Gates in the order i, f, c, o, which is PyTorch's own; the forget gate's bias begins at one."""
        samples, _, features = x.shape
        units, name = layer["units"], layer["name"]
        w = self.weights(layer, "weights", (features, 4 * units), features, 4 * units)
        recurrent = self.weights(layer, "recurrent_weights", (units, 4 * units), units, 4 * units)
        if name + "/bias" not in self.params:
            bias = self.param(name + "/bias", (4 * units,), "zeros")
            with torch.no_grad():
                bias[units : 2 * units] = 1
        bias = self.params[name + "/bias"]
        zero = torch.zeros(1, samples, units, dtype=x.dtype)
        flat = [w.T.contiguous(), recurrent.T.contiguous(), bias, torch.zeros_like(bias)]
        return torch._VF.lstm(x, (zero, zero), flat, True, 1, 0.0, True, False, True)[0]

    def mixture_of_experts(self, layer, x):
        """Each sample by itself: first choices take an expert's slots in the order of the tokens, then second ones."""
        (samples, tokens, width), experts, inner = x.shape, layer["experts"], layer["units"]
        chosen, act = layer.get("top_k", 2), ACTIVATIONS[layer.pop("activation", "none")]
        room = min(tokens, math.ceil(layer.get("capacity_factor", 1.25) * (tokens * chosen / experts)))
        logits = x @ self.weights(layer, "router_weights", (width, experts), width, experts)
        shares = torch.softmax(logits, dim=-1)
        gates, choice = shares.topk(chosen)
        gates = gates / gates.sum(-1, keepdim=True) if layer.get("normalise", True) else gates
        into = [self.weights(layer, f"{name}_weights", (experts, width, inner), width, inner) for name in ("gate", "up")]
        down = self.weights(layer, "down_weights", (experts, inner, width), inner, width)
        counts = F.one_hot(choice, experts).sum(dim=(1, 2)).to(x.dtype) / tokens
        if layer.get("balance", 0):
            self.layer_losses.append(layer["balance"] * experts * (counts * shares.mean(dim=1)).sum(dim=-1).mean())
        out = torch.zeros_like(x)
        for n in range(samples):
            used = [0] * experts
            for k in range(chosen):
                for t in range(tokens):
                    e = int(choice[n, t, k])
                    used[e] += 1
                    if used[e] <= room:
                        hidden = act(x[n, t] @ into[0][e]) * (x[n, t] @ into[1][e])
                        out[n, t] += gates[n, t, k] * (hidden @ down[e])
        return out

    def slice(self, layer, x):
        return x.narrow(layer["axis"], layer.get("from", 0), layer["count"])

    def reshape(self, layer, x):
        return x.reshape(x.shape[0], *layer["shape"])

    def flatten(self, layer, x):
        return x.flatten(1)

    def global_avg_pool(self, layer, x):
        return x.mean(dim=(1, 2))

    def avg_pool(self, layer, x):
        size = layer["size"]
        return nhwc(F.avg_pool2d(nchw(x, self.format), size, layer.get("stride", size)))

    def forward(self, inputs):
        """`inputs`: one tensor for each of the model's inputs."""
        written = self.model.get("inputs") or [self.model["input"]]
        names = [entry.get("name", "input") for entry in written]
        self.classes = {name: entry.get("classes", 0) for name, entry in zip(names, written)}
        values, last = dict(zip(names, inputs)), names[0]
        self.layer_losses = []
        for layer, before in self.layers:
            words = layer.get("inputs", [layer["input"]] if "input" in layer else ["previous"])
            words = [{"previous": last, "before": before}.get(word, word) for word in words]
            layer = {**layer, "from_input": words[0]}
            if "share" in layer:
                self.renamed[layer["name"]] = layer["share"]
            given = [values[word] for word in words]
            if layer["kind"] == "add":
                y = given[0] + given[1]
            elif layer["kind"] == "multiply":
                image, factor = sorted(given, key=lambda x: -x.ndim)
                y = image * (factor if factor.ndim == image.ndim else factor[:, None, None, :])
            elif layer["kind"] == "concat":
                y = torch.cat(given, dim=layer.get("axis", -1))
            else:
                y = getattr(self, layer["kind"])(layer, *given)
            last = layer["name"]
            values[last] = ACTIVATIONS[layer.get("activation", "none")](y)
        return values[last]

    def loss(self, prediction, labels):
        """A mean over all rows, and over all numbers for squares."""
        if self.model["loss"] == "mean_squared_error":
            return F.mse_loss(prediction, labels)
        return F.cross_entropy(prediction.reshape(-1, prediction.shape[-1]), labels.reshape(-1))
