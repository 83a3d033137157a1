#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small ONNX files that tests/unit/test_onnx.c reads: make.py [FOLDER], with a Python that has torch, onnx,
onnxscript. What their weights hold is taken out (it is said to lie in another file, which does not exist); numbers that a
reader needs (shapes, scalars) stay. Prints each one's number of parameters, which the test has in its table.
"""
import logging
import os
import sys
import warnings

import onnx
import torch
from torch import nn
from torch.nn import functional as F

BATCH = 2


class Residual(nn.Module):
    """Batch norms that both exporters multiply into the convolutions."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.pool, self.fc = nn.MaxPool2d(3, 2, 1), nn.Linear(8, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = F.relu(self.bn2(self.conv2(x)) + x)
        return self.fc(x.mean([2, 3]))


class Inverted(nn.Module):
    """Depthwise convolution, squeeze and excitation, hard swish, a padding that differs by side."""

    def __init__(self):
        super().__init__()
        self.expand, self.deep = nn.Conv2d(3, 12, 1), nn.Conv2d(12, 12, 3, 2, groups=12)
        self.squeeze, self.excite, self.out = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1), nn.Linear(12, 10)

    def forward(self, x):
        x = F.hardswish(self.deep(F.pad(F.silu(self.expand(x)), (0, 1, 0, 1))))
        x = x * F.hardsigmoid(self.excite(F.relu6(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return self.out(torch.flatten(F.avg_pool2d(x, 2).mean((2, 3)), 1))


class Dilated(nn.Module):
    """Dilated convolutions, plain and depthwise."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=2, dilation=2), nn.Conv2d(8, 8, (3, 2), 2, dilation=(2, 3), groups=8)
        self.out = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        return self.out(F.relu(self.b(F.relu(self.a(x)))).mean((2, 3), keepdim=True)).flatten(1)


class Dense(nn.Module):
    """Concatenations that grow, norms before convolutions."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8 + 4 * k) for k in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(8 + 4 * k, 4, 3, padding=1) for k in range(3))
        self.out = nn.Linear(20, 10)

    def forward(self, x):
        found = [self.stem(x)]
        for norm, conv in zip(self.norms, self.convs):
            found.append(conv(F.relu(norm(torch.cat(found, 1)))))
        return self.out(torch.cat(found, 1).mean([2, 3]))


class Unet(nn.Module):
    """Up and down again: one output for each place."""

    def __init__(self):
        super().__init__()
        self.down, self.mid = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(24, 2, 1)

    def forward(self, x):
        a = F.relu(self.down(x))
        b = F.relu(self.mid(F.max_pool2d(a, 2)))
        return self.out(torch.cat([a, self.up(b), F.interpolate(b, scale_factor=2)], 1)).permute(0, 2, 3, 1)


class Segment(nn.Module):
    """Grown again between its pixels, by a factor and to a size."""

    def __init__(self):
        super().__init__()
        self.down, self.out = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        y = F.interpolate(F.relu(self.down(x)), (7, 11), mode="bilinear", align_corners=True)
        return F.interpolate(self.out(y), scale_factor=2, mode="bilinear").permute(0, 2, 3, 1)


class Attention(nn.Module):
    def __init__(self, width, heads, causal, eager=False):
        super().__init__()
        self.heads, self.causal, self.eager = heads, causal, eager
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, places, width = x.shape
        q, k, v = (t.view(batch, places, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.eager:
            y = (q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).reshape(batch, places, width))


class Block(nn.Module):
    def __init__(self, width, heads, causal, act="none", eager=False):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(width), Attention(width, heads, causal, eager), nn.LayerNorm(width)
        self.up, self.down, self.act = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), act

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        y = self.up(self.ln2(x))
        if self.act == "steps":
            y = 0.5 * y * (1 + torch.tanh(0.7978845608028654 * (y + 0.044715 * torch.pow(y, 3.0))))
        else:
            y = F.gelu(y, approximate=self.act)
        return x + self.down(y)


class Patches(nn.Module):
    """A vision transformer: patches, a class token, learned places."""

    def __init__(self, eager=False):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 4, 4)
        self.token, self.places = nn.Parameter(torch.rand(1, 1, 16)), nn.Parameter(torch.rand(1, 17, 16))
        self.block, self.ln, self.head = Block(16, 2, False, eager=eager), nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.conv(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.ln(self.block(x))[:, 0])


class Factor(nn.Module):
    """Scores that are multiplied by a half, whatever the features of a head."""

    def __init__(self):
        super().__init__()
        self.tokens, self.out = nn.Embedding(40, 16), nn.Linear(16, 40)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))

    def forward(self, ids):
        x = self.tokens(ids)
        q, k, v = (f(x).view(-1, 8, 2, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.transpose(2, 3) * 0.5, -1) @ v
        return self.out(x + self.o(y.transpose(1, 2).reshape(-1, 8, 16)))


class Gpt(nn.Module):
    """Tokens, causal attention, a GELU in steps, an output that shares the embedding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(9000, 16), nn.Embedding(8, 16)
        self.block, self.ln = Block(16, 2, True, "steps"), nn.LayerNorm(16)
        self.head = nn.Linear(16, 9000, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(8))
        return self.head(self.ln(self.block(x)))


class Open(nn.Module):
    """A sequence of any length up to the 40 rows of a table of positions."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 16), nn.Embedding(40, 16)
        self.block, self.head = Block(16, 2, True), nn.Linear(16, 50)

    def forward(self, ids):
        return self.head(self.block(self.tokens(ids) + self.places(torch.arange(ids.shape[1]))))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Rotary(nn.Module):
    """Rotary positions, grouped queries, root mean square norms in steps, a gated unit."""

    def __init__(self):
        super().__init__()
        self.tokens, self.norm, self.norm2 = nn.Embedding(60, 32), RmsNorm(32), RmsNorm(32)
        self.q, self.k, self.v = nn.Linear(32, 32, False), nn.Linear(32, 16, False), nn.Linear(32, 16, False)
        self.o = nn.Linear(32, 32, False)
        self.gate, self.up, self.down = nn.Linear(32, 64, False), nn.Linear(32, 64, False), nn.Linear(64, 32, False)
        turns = torch.arange(8.)[:, None] * 10000. ** (-torch.arange(4.) / 4)
        turns = torch.cat([turns, turns], -1)
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())

    def turned(self, x):
        return x * self.cos + torch.cat((-x[..., 4:], x[..., :4]), -1) * self.sin

    def forward(self, ids):
        x = self.tokens(ids)
        y, (batch, places, _) = self.norm(x), x.shape
        q, k, v = (t.view(batch, places, -1, 8).transpose(1, 2) for t in (self.q(y), self.k(y), self.v(y)))
        k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(batch, 4, places, 8) for t in (self.turned(k), v))
        y = F.scaled_dot_product_attention(self.turned(q), k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, places, 32))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Norms(nn.Module):
    """A group norm, which exporters write in steps, and an instance norm, which is an operator."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.GroupNorm(2, 8)
        self.conv2, self.norm2 = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.InstanceNorm2d(8, affine=True)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = F.silu(self.norm1(self.conv1(x)))
        return self.fc(F.relu(self.norm2(self.conv2(x)) + x).mean([2, 3]))


class Biased(nn.Module):
    """A convolution that has a bias although a norm follows it, beside one that has none."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.conv2, self.bn2, self.fc = nn.Conv2d(8, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))).mean([2, 3]))


class Dropped(nn.Module):
    """Exported as it trains: dropout stays, and so does a batch norm."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.drop = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Dropout(0.2)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x))).mean([2, 3])
        return self.down(self.drop(F.relu(self.up(x))))


class Tied(nn.Module):
    """A table that the output shares; the exporter by TorchScript writes it twice. Its values stay in the file."""

    def __init__(self):
        super().__init__()
        self.tokens, self.mid, self.head = nn.Embedding(40, 8), nn.Linear(8, 8), nn.Linear(8, 40)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        return self.head(F.relu(self.mid(self.tokens(ids))))


class Shuffle(nn.Module):
    """Channels of two groups that change places and are cut."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 8, 1), nn.Conv2d(4, 8, 1)

    def forward(self, x):
        x = self.conv(x)
        batch, channels, height, width = x.shape
        x = x.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(batch, channels, height, width)
        a, b = x.chunk(2, 1)
        return (self.out(a) + self.out(b)).mean([2, 3])


class Mixer(nn.Module):
    """Patches that are mixed across places, and then across channels."""

    def __init__(self):
        super().__init__()
        self.conv, self.ln1, self.ln2, self.head = nn.Conv2d(3, 8, 4, 4), nn.LayerNorm(8), nn.LayerNorm(8), nn.Linear(8, 10)
        self.places, self.back = nn.Linear(16, 12), nn.Linear(12, 16)
        self.up, self.down = nn.Linear(8, 20), nn.Linear(20, 8)

    def forward(self, x):
        x = self.conv(x).flatten(2).transpose(1, 2)
        x = x + self.back(F.gelu(self.places(self.ln1(x).transpose(1, 2)))).transpose(1, 2)
        x = x + self.down(F.gelu(self.up(self.ln2(x))))
        return self.head(x.mean(1))


class Pixels(nn.Module):
    """Pixels as channels, and back."""

    def __init__(self):
        super().__init__()
        self.first, self.mid = nn.Conv2d(12, 8, 3, padding=1), nn.Conv2d(8, 16, 1)
        self.out = nn.Conv2d(4, 5, 1)

    def forward(self, x):
        x = F.relu(self.first(F.pixel_unshuffle(x, 2)))
        return self.out(F.pixel_shuffle(self.mid(x), 2)).mean([2, 3])


class Windows(nn.Module):
    """Attention within windows of 2 by 3 pixels, of the image and of the rolled image, and patches that become one."""

    def __init__(self):
        super().__init__()
        self.conv, self.merge, self.head = nn.Conv2d(3, 8, 1), nn.Linear(32, 12, bias=False), nn.Linear(12, 10)
        self.qkv, self.proj = (nn.ModuleList(nn.Linear(8, n) for _ in range(2)) for n in (24, 8))
        self.tables = nn.ParameterList(nn.Parameter(torch.zeros(3 * 5, 2)) for _ in range(2))
        rows, columns = torch.arange(6) // 3, torch.arange(6) % 3
        apart = (rows[:, None] - rows + 1) * 5 + columns[:, None] - columns + 2
        self.register_buffer("apart", apart.flatten())

    def attend(self, x, which, shift):
        batch, height, width, features = x.shape
        down, across = height // 2, width // 3
        if shift:
            x = x.roll((-shift, -shift), (1, 2))
        x = x.view(batch, down, 2, across, 3, features).transpose(2, 3).reshape(-1, 6, features)
        q, k, v = self.qkv[which](x).reshape(-1, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = q * 0.5 @ k.transpose(-2, -1)
        scores = scores + self.tables[which][self.apart].view(6, 6, 2).permute(2, 0, 1).unsqueeze(0)
        if shift:
            parts = x.new_zeros((height, width))
            for part, (rows, columns) in enumerate([(slice(0, -shift), slice(-shift, None)), (slice(-shift, None), slice(0, -shift)),
                                                    (slice(-shift, None), slice(-shift, None))]):
                parts[rows, columns] = part + 1
            parts = parts.view(down, 2, across, 3).transpose(1, 2).reshape(-1, 6)
            mask = parts.unsqueeze(1) - parts.unsqueeze(2)
            mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
            scores = (scores.view(batch, down * across, 2, 6, 6) + mask.unsqueeze(1).unsqueeze(0)).view(-1, 2, 6, 6)
        y = self.proj[which]((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 6, features))
        y = y.view(batch, down, across, 2, 3, features).transpose(2, 3).reshape(batch, height, width, features)
        return y.roll((shift, shift), (1, 2)) if shift else y

    def forward(self, x):
        x = self.conv(x).permute(0, 2, 3, 1)
        x = x + self.attend(x, 0, 0)
        x = x + self.attend(x, 1, 1)
        x = torch.cat([x[:, i::2, j::2] for j in range(2) for i in range(2)], -1)
        return self.head(self.merge(x).mean((1, 2)))


class Sound(nn.Module):
    """Convolutions and pools of a sequence, strided, dilated and in groups, and a recurrent layer, of which the last place counts."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv1d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm1d(8)
        self.deep, self.mix = nn.Conv1d(8, 8, 3, padding=4, dilation=4, groups=4), nn.Conv1d(8, 6, 1)
        self.gru, self.head = nn.GRU(6, 7, batch_first=True), nn.Linear(7, 10)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.norm(self.first(x))), 3, 2, 1)
        x = F.avg_pool1d(self.mix(F.gelu(self.deep(x))), 2)
        return self.head(self.gru(x.transpose(1, 2))[0][:, -1])


def image(size):
    return torch.zeros(BATCH, 3, size, size)


def ids():
    return torch.zeros(BATCH, 8, dtype=torch.long)


# name, module, example, exporter, opset, batch left open ("places": and the sequence)
FILES = [
    ("residual_script", Residual, image(16), "script", 17, True), ("residual_dynamo", Residual, image(16), "dynamo", 18, True),
    ("inverted_script", Inverted, image(16), "script", 13, False), ("inverted_dynamo", Inverted, image(16), "dynamo", 20, True),
    ("dilated_script", Dilated, image(12), "script", 17, True), ("factor_script", Factor, ids(), "script", 17, True),
    ("segment_script", Segment, image(10), "script", 17, True), ("segment_dynamo", Segment, image(10), "dynamo", 20, True),
    ("dense_dynamo", Dense, image(8), "dynamo", 20, True), ("unet_script", Unet, image(8), "script", 17, True),
    ("patches_script", Patches, image(16), "script", 14, True), ("patches_dynamo", Patches, image(16), "dynamo", 20, True),
    ("patches_eager", lambda: Patches(eager=True), image(16), "dynamo", 18, True), ("gpt_dynamo", Gpt, ids(), "dynamo", 20, True),
    ("attention_dynamo", Gpt, ids(), "dynamo", 23, True), ("rotary_dynamo", Rotary, ids(), "dynamo", 20, True),
    ("gpt_fixed", Gpt, ids(), "dynamo", 20, False), ("tied_script", Tied, ids(), "script", 17, True), ("shuffle_script", Shuffle, image(8), "script", 17, False),
    ("shuffle_dynamo", Shuffle, image(8), "dynamo", 20, True), ("mixer_script", Mixer, image(16), "script", 17, True),
    ("mixer_dynamo", Mixer, image(16), "dynamo", 20, True), ("pixels_script", Pixels, image(8), "script", 17, True),
    ("pixels_dynamo", Pixels, image(8), "dynamo", 20, True),
    ("windows_script", Windows, image(12), "script", 17, False), ("windows_dynamo", Windows, image(12), "dynamo", 20, True),
    ("sound_script", Sound, torch.zeros(BATCH, 3, 40), "script", 17, True),
    ("sound_dynamo", Sound, torch.zeros(BATCH, 3, 40), "dynamo", 20, True),
    ("norms_script", Norms, image(16), "script", 17, True), ("norms_dynamo", Norms, image(16), "dynamo", 20, True),
    ("patches_fixed", Patches, image(16), "dynamo", 20, False), ("rotary_script", Rotary, ids(), "script", 17, True),
    ("open_script", Open, ids(), "script", 17, "places"), ("open_dynamo", Open, ids(), "dynamo", 20, "places"),
    ("biased_dynamo", Biased, image(8), "dynamo", 20, True),
    ("dropped_script", Dropped, image(16), "script_training", 17, True), ("dropped_dynamo", Dropped, image(16), "dynamo_training", 20, True),
]


def is_alike(tensor):
    values = onnx.numpy_helper.to_array(tensor)
    return (values == values.flat[0]).all()


def strip(model, whole=False):
    """Takes out what no reader needs."""
    graph = model.graph
    scales = {name for node in graph.node if node.op_type == "Resize" for name in node.input[1:]}
    for tensor in [] if whole else graph.initializer:
        count = 1
        for dim in tensor.dims:
            count *= dim
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims and count > 1 and count != 64 and not is_alike(tensor) \
                and tensor.name not in scales:  # masks and rotary tables of 8 by 8
            for field in ("raw_data", "float_data"):
                tensor.ClearField(field)
            tensor.data_location = onnx.TensorProto.EXTERNAL
    for node in graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del graph.value_info[:], graph.metadata_props[:], model.metadata_props[:]
    return model


def write(folder, name, make, example, exporter, opset, is_open):
    torch.manual_seed(1)
    module = make()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(0.5, 1)
        for key, buffer in module.named_buffers():
            if "running" in key:
                buffer.uniform_(0.5, 1)
    exporter, _, training = exporter.partition("_")
    module.train(training != "")
    path = os.path.join(folder, name + ".onnx")
    with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nowhere:
        warnings.simplefilter("ignore")
        before, sys.stdout = sys.stdout, nowhere
        try:
            if exporter == "dynamo":
                dims = {0: torch.export.Dim("batch"), **({1: torch.export.Dim("places", max=40)} if is_open == "places" else {})}
                shapes = (dims,) if is_open else None
                torch.onnx.export(module, (example,), path, dynamo=True, opset_version=opset, dynamic_shapes=shapes,
                                  verbose=False, external_data=False)
            else:
                torch.onnx.export(module, (example,), path, dynamo=False, opset_version=opset, input_names=["x"],
                                  dynamic_axes={"x": {0: "batch", **({1: "places"} if is_open == "places" else {})}} if is_open else None,
                                  do_constant_folding=not training,
                                  training=torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL)
        finally:
            sys.stdout = before
    whole = name.startswith(("tied", "windows"))  # tables and masks are looked at
    onnx.save(strip(onnx.load(path), whole), path)
    print('    {"%s", %d},' % (name, sum(p.numel() for p in module.parameters())))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for row in FILES:
        write(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)), *row)
