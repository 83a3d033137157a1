#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small PyTorch modules with the structure of well-known families, and their model files as
scripts/export/torch_to_headroom.py writes them: exported_modules.py FOLDER. tests/data/exported has what it wrote."""
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/export"))

import torch
from torch import nn
from torch.nn import functional as F

from torch_to_headroom import to_headroom


def conv(cin, cout, kernel=3, stride=1, groups=1, act=nn.ReLU, padding=None):
    padding = kernel // 2 if padding is None else padding
    norm = nn.BatchNorm2d(cout)
    return nn.Sequential(nn.Conv2d(cin, cout, kernel, stride, padding, groups=groups, bias=False), norm, *([act()] if act else []))


class Block(nn.Module):
    """ResNet's basic block."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.conv2 = conv(cin, cout, 3, stride), conv(cout, cout, act=None)
        self.down = conv(cin, cout, 1, stride, act=None) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu_(self.conv2(self.conv1(x)).add_(self.down(x)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean([2, 3]))


class Dense(nn.Module):
    """DenseNet: each layer reads all before it."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(8 + 4 * k), nn.ReLU(), nn.Conv2d(8 + 4 * k, 4, 3, padding=1))
                                    for k in range(7))
        self.classifier = nn.Linear(36, 10)

    def forward(self, x):
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        x = F.avg_pool2d(torch.cat(features, 1), 2)
        return self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Inverted(nn.Module):
    """MobileNetV2's blocks, with a depthwise multiplier and stochastic depth."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8, 3, 2, act=nn.ReLU6)
        self.block = nn.Sequential(conv(8, 24, 1, act=nn.ReLU6), conv(24, 24, 3, 1, 24, nn.ReLU6), conv(24, 8, 1, act=None))
        self.wide = conv(8, 16, 3, 2, 8, nn.SiLU)
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        kept = x.new_empty(x.shape[0], 1, 1, 1).bernoulli_(0.9).div_(0.9)
        x = self.wide(x + self.block(x) * kept)
        return self.head(self.drop(nn.AdaptiveAvgPool2d(1)(x).squeeze(3).squeeze(2)))


class Excite(nn.Module):
    """MobileNetV3's squeeze and excite, ConvNeXt's block with its layer scale, and today's other activations."""

    def __init__(self):
        super().__init__()
        self.stem, self.deep = conv(3, 16, 3, 2, act=nn.Hardswish), conv(16, 16, 7, 1, 16, act=None)
        self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.norm, self.wide, self.narrow = nn.LayerNorm(16, eps=1e-6), nn.Linear(16, 32), nn.Linear(32, 16)
        self.layer_scale = nn.Parameter(torch.ones(16, 1, 1))
        self.mish, self.head = nn.Linear(16, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.deep(self.stem(x))
        gate = F.hardsigmoid(self.excite(F.leaky_relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)), 0.1)))
        x = gate * x
        y = self.narrow(F.gelu(self.wide(self.norm(x.permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
        x = F.adaptive_avg_pool2d(x + self.layer_scale * y, 1).flatten(1)
        return self.head(F.softplus(F.mish(self.mish(x))))


class Dilated(nn.Module):
    """A pyramid of dilated convolutions beside one another (DeepLab), plain, strided and depthwise."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8, 3, 2)
        self.rates = nn.ModuleList(nn.Conv2d(8, 4, 3, padding=rate, dilation=rate) for rate in (1, 2, 5))
        self.deep = nn.Conv2d(12, 12, (3, 2), padding="same", dilation=(2, 3), groups=12)
        self.last, self.head = nn.Conv2d(12, 16, 3, 2, 2, dilation=2), nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        x = self.last(F.relu(self.deep(torch.cat([rate(x) for rate in self.rates], 1))))
        return self.head(F.relu(x).mean((2, 3)))


class Norms(nn.Module):
    """Norms over a sample's own places: groups of channels, one group, and every channel by itself."""

    def __init__(self):
        super().__init__()
        self.stem, self.inner, self.head = nn.Conv2d(3, 12, 3, 2, 1), nn.Conv2d(12, 12, 3, 1, 1), nn.Linear(12, 10)
        self.groups, self.one = nn.GroupNorm(4, 12, eps=1e-6), nn.GroupNorm(1, 12)
        self.instance = nn.InstanceNorm2d(12, affine=True)

    def forward(self, x):
        x = F.silu(self.groups(self.stem(x)))
        x = x + self.instance(self.inner(self.one(x)))
        return self.head(x.mean((2, 3)))


class Shuffled(nn.Module):
    """Pixels as channels and back, channels of groups (ShuffleNet, also written out), images turned around their edges."""

    def __init__(self):
        super().__init__()
        self.stem, self.branch = nn.Conv2d(3, 16, 3, padding=1), conv(8, 8, 1)
        self.wide, self.head = nn.Conv2d(4, 6, 3, padding=1, groups=2), nn.Linear(24, 10)

    def forward(self, x):
        x = torch.cat([self.branch(y) for y in self.stem(x).chunk(2, 1)], 1)
        x = x.view(-1, 2, 8, 16, 16).transpose(1, 2).contiguous().view(-1, 16, 16, 16)
        a, b = x.chunk(2, 1)
        x = F.pixel_shuffle(torch.cat([a, self.branch(b)], 1), 2).roll((1, -3), (2, 3))
        x = nn.ChannelShuffle(2)(self.wide(x))
        return self.head(F.relu(F.pixel_unshuffle(x, 2)).mean((2, 3)))


class Mixer(nn.Module):
    """MLP-Mixer: a dense layer over places between two permutations."""

    def __init__(self):
        super().__init__()
        self.stem, self.norms = nn.Conv2d(3, 16, 4, 4), nn.ModuleList(nn.LayerNorm(16) for _ in range(2))
        self.places = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 16))
        self.features, self.head = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)), nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = x + self.places(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.features(self.norms[1](x))).mean(1))


class Windows(nn.Module):
    """Swin: attention within windows, of the image and of the rolled image, and patches that become one."""

    order, hides = (0, 1, 3, 2, 4, 5), -100.0  # of windows and their places; what is added to scores of torn pixels

    def __init__(self):
        super().__init__()
        self.stem, self.norm, self.reduction = nn.Conv2d(3, 12, 2, 2), nn.LayerNorm(48, 1e-5), nn.Linear(48, 24, bias=False)
        self.qkv, self.proj, self.head = nn.ModuleList(), nn.ModuleList(), nn.Linear(24, 10)
        self.tables = nn.ParameterList(nn.Parameter(torch.zeros(49, 3)) for _ in range(2))
        for _ in range(2):
            self.qkv.append(nn.Linear(12, 36))
            self.proj.append(nn.Linear(12, 12))
        place = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        away = place[:, :, None] - place[:, None, :] + 3
        self.register_buffer("rows", (7 * away[0] + away[1]).flatten())

    def attend(self, x, k, shift):
        n = x.shape[0]
        x = x.roll((-shift, -shift), (1, 2)) if shift else x
        x = x.view(n, 2, 4, 2, 4, 12).permute(*self.order).reshape(n * 4, 16, 12)
        q, key, v = self.qkv[k](x).view(n * 4, 16, 3, 3, 4).permute(2, 0, 3, 1, 4)
        scores = (q * 0.5) @ key.transpose(-2, -1) + self.tables[k][self.rows].view(16, 16, 3).permute(2, 0, 1)[None]
        if shift:
            region = x.new_zeros(8, 8)
            for count, rows in enumerate((slice(0, -4), slice(-4, -shift), slice(-shift, None))):
                for more, columns in enumerate((slice(0, -4), slice(-4, -shift), slice(-shift, None))):
                    region[rows, columns] = 3 * count + more
            region = region.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
            hidden = (region[:, None] != region[:, :, None]).float() * self.hides
            scores = (scores.view(n, 4, 3, 16, 16) + hidden[None, :, None]).view(n * 4, 3, 16, 16)
        x = self.proj[k]((scores.softmax(-1) @ v).transpose(1, 2).reshape(n * 4, 16, 12))
        x = x.view(n, 2, 2, 4, 4, 12).permute(*(self.order.index(k) for k in range(6))).reshape(n, 8, 8, 12)
        return x.roll((shift, shift), (1, 2)) if shift else x

    def forward(self, x):
        x = self.stem(x).permute(0, 2, 3, 1)
        x = x + self.attend(x, 0, 0)
        x = x + self.attend(x, 1, 2)
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.reduction(self.norm(x)).mean((1, 2)))


class Inception(nn.Module):
    """Branches, kernels of one row or column, paddings by side, windows over the edge, and an auxiliary head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.row, self.column = nn.Conv2d(8, 8, (1, 5), padding=(0, 2)), nn.Conv2d(8, 8, (5, 1), padding="same")
        self.side, self.point = nn.Conv2d(8, 8, 3, (2, 1), (0, 1)), nn.Conv2d(24, 16, 1)
        self.aux, self.fc = nn.Linear(16 * 4 * 4, 10), nn.Linear(8, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        pooled = F.avg_pool2d(x, 3, stride=1, padding=1)
        x = self.point(torch.cat([self.row(x), self.column(x), pooled], 1))
        x = F.max_pool2d(x, 3, 3, ceil_mode=True).relu_()
        aux = self.aux(torch.flatten(F.dropout(x, 0.1), 1))
        a, b = x.chunk(2, 1)
        return self.fc(F.tanh(self.side(F.pad(a + b, (1, 0, 0, 1)))).mean((2, 3))), aux


class Patches(nn.Module):
    """A vision transformer with nn.MultiheadAttention."""

    def __init__(self, width=24):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, 17, width))
        self.norm1, self.norm2, self.norm = (nn.LayerNorm(width, eps=1e-6) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, 3, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).reshape(x.shape[0], 24, 16).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1) + self.position
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.mlp(self.norm2(x))
        return self.head(self.norm(x)[:, 0])


class Gpt(nn.Module):
    """GPT-2's block as nanoGPT writes it, with the output tied to the table of words."""

    def __init__(self, width=24, places=16, words=48):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(places, width)
        self.ln_1, self.ln_2, self.ln_f = (nn.LayerNorm(width) for _ in range(3))
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 96), nn.Linear(96, width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def attend(self, x):
        n, places, width = x.shape
        q, k, v = (y.view(n, places, 4, width // 4).transpose(1, 2) for y in self.c_attn(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(n, places, width))

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        x = x + self.attend(self.ln_1(x))
        x = x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))
        return self.lm_head(self.ln_f(x)).view(-1, 48)


class Grouped(nn.Module):
    """RMS norm, grouped queries and a gated feed-forward network without biases."""

    def __init__(self, width=24, words=48):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm1, self.norm2, self.norm = (nn.RMSNorm(width, eps=1e-5) for _ in range(3))
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = nn.Linear(width, 12, bias=False), nn.Linear(width, 12, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*size, bias=False) for size in ((width, 40), (width, 40), (40, width)))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(-1, (-1, 6)).transpose(1, 2) for f in (self.q, self.k, self.v))
        k, v = (z[:, :, None].expand(-1, -1, 2, -1, -1).reshape(z.shape[0], 4, -1, 6) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return self.head(self.norm(x + self.down(F.silu(self.gate(y)) * self.up(y))))


class Norm(nn.Module):
    """A root mean square norm, written out."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Rotary(nn.Module):
    """Llama's attention as it is written with tables of cosines and sines, with Qwen3's norms of queries and keys."""

    def __init__(self, width=24, words=48, places=16):
        super().__init__()
        self.embed, self.norm, self.last = nn.Embedding(words, width), Norm(width), Norm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.q_norm, self.k_norm, self.head = Norm(6), Norm(6), nn.Linear(width, words, bias=False)
        turns = torch.arange(places)[:, None] / 1e4 ** (torch.arange(0, 6, 2) / 6)
        self.register_buffer("turns", torch.cat([turns, turns], -1), persistent=False)

    def turn(self, x):
        half = x.shape[-1] // 2
        other = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * self.turns.cos() + other * self.turns.sin()

    def forward(self, tokens):
        x = self.embed(tokens)
        y = self.norm(x)
        q, k, v = (f(y).view(*y.shape[:2], 4, 6) for f in (self.q, self.k, self.v))
        q, k = self.turn(self.q_norm(q).transpose(1, 2)), self.turn(self.k_norm(k).transpose(1, 2))
        y = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True)
        return self.head(self.last(x + self.o(y.transpose(1, 2).reshape(*x.shape))))


class Relative(nn.Module):
    """T5's attention: scores as they are, with a bias by the distance of query and key that all blocks share."""

    def __init__(self, width=16, words=32):
        super().__init__()
        self.words, self.table = nn.Embedding(words, width), nn.Embedding(8, 2)
        self.blocks = nn.ModuleList(nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4)) for _ in range(2))
        self.norms = nn.ModuleList(Norm(width) for _ in range(3))

    def rows(self, places):
        """8 buckets of keys before the query: four of one place, four that grow up to 12 places."""
        behind = -(torch.arange(places)[None, :] - torch.arange(places)[:, None]).clamp(max=0)
        far = 4 + (torch.log(behind.float() / 4) / math.log(12 / 4) * 4).to(torch.long)
        return torch.where(behind < 4, behind, torch.min(far, torch.full_like(far, 7)))

    def forward(self, tokens):
        x = self.words(tokens)
        n, places, width = x.shape
        bias = self.table(self.rows(places)).permute(2, 0, 1).unsqueeze(0)
        bias = bias + torch.full((places, places), torch.finfo(torch.float32).min).triu(1)
        for (q, k, v, o), norm in zip(self.blocks, self.norms):
            y = norm(x)
            y, z, w = (f(y).view(n, places, 2, width // 2).transpose(1, 2) for f in (q, k, v))
            p = torch.softmax(y @ z.transpose(2, 3) + bias, -1)
            x = x + o((p @ w).transpose(1, 2).reshape(n, places, width))
        return F.linear(self.norms[2](x) * width ** -0.5, self.words.weight)


class Translate(nn.Module):
    """An encoder layer of torch.nn over one input and attention across to it from another, written out."""

    def __init__(self, width=16, words=32):
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
        self.encoder = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, batch_first=True)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.head = nn.Linear(width, words)

    def forward(self, source, target):
        memory, x = self.encoder(self.source(source)), self.target(target)
        q = self.query(x).view(*x.shape[:2], 2, 8).transpose(1, 2)
        k, v = (f(memory).view(*memory.shape[:2], 2, 8).transpose(1, 2) for f in (self.key, self.value))
        p = F.dropout(torch.softmax(q @ k.transpose(-2, -1) / 8 ** 0.5, -1), 0.1)
        return self.head(x + self.out((p @ v).transpose(1, 2).flatten(2)))


class Unet(nn.Module):
    """One step down, one up, a label for each pixel."""

    def __init__(self):
        super().__init__()
        self.inside, self.below = conv(3, 4), conv(4, 8)
        self.up, self.last = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        x = self.inside(x)
        y = self.up(F.interpolate(self.below(F.max_pool2d(F.max_pool2d(x, 2), 2)), scale_factor=2))
        return self.last(torch.cat([x, y], dim=1))


class Segment(nn.Module):
    """What has been made smaller grows again between its pixels, to the size of another image and of the input; a mean over all of it."""

    def __init__(self):
        super().__init__()
        self.stem, self.near, self.far, self.head = conv(3, 8), conv(8, 8, 3, 2), conv(8, 8, 3, 2), nn.Conv2d(24, 10, 1)

    def forward(self, x):
        stem = self.stem(x)
        near = F.adaptive_avg_pool2d(self.near(stem), (7, 8))
        far = F.interpolate(self.far(near), near.shape[-2:], mode="bilinear", align_corners=True)
        both = F.interpolate(torch.cat([near, far], 1), x.shape[-2:], mode="bilinear")
        return F.relu(self.head(torch.cat([stem, both], 1))).mean([2, 3])


class Lstm(nn.Module):
    """A language model of two LSTM layers."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(12, 16), nn.LSTM(16, 16, 2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(16, 12)

    def forward(self, tokens):
        return self.out(self.lstm(self.words(tokens))[0])


class Waves(nn.Module):
    """Convolutions and pools of sequences: strided, dilated, in groups, and pools whose windows overlap; two classes a sample or more."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(4, 8, 3, padding=1), nn.Conv1d(8, 8, 5, 2, padding=4, dilation=2, groups=2, bias=False)
        self.third, self.out = nn.Conv1d(8, 12, 4, padding="same"), nn.Linear(12, 6)

    def forward(self, x):
        x = F.max_pool1d(F.gelu(self.first(x)), 3, 2, padding=1)
        x = F.avg_pool1d(torch.relu(self.second(x)), 2)
        return torch.sigmoid(self.out(self.third(x).mean(2)))


class Gru(nn.Module):
    """Two layers with a dropout between them, and one whose last state alone is read."""

    def __init__(self):
        super().__init__()
        self.words, self.two, self.last = nn.Embedding(12, 16), nn.GRU(16, 12, 2, batch_first=True, dropout=0.1), nn.GRU(12, 8)
        self.out = nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.two(self.words(tokens))[0]
        return self.out(self.last(x.transpose(0, 1))[1].squeeze(0))


class Autoencoder(nn.Module):
    """A layer that is used twice, one that is used backwards, and a squared error."""

    def __init__(self):
        super().__init__()
        self.first, self.middle = nn.Linear(20, 12), nn.Linear(12, 12, bias=False)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        x = torch.sigmoid(self.middle(torch.relu(self.middle(x) * 0.5)))
        return (x @ self.middle.weight) @ self.first.weight


class Shares(nn.Module):
    """A binary classifier's probabilities, their number a sample squeezed away, also given to something else."""

    def __init__(self):
        super().__init__()
        self.first, self.out = nn.Linear(8, 6), nn.Linear(6, 4)

    def shares(self, x):
        return torch.sigmoid(self.out(torch.sigmoid(self.first(x))))

    def forward(self, x):
        x = self.shares(x)
        return x.view(-1, 2, 2), (x * 2).view(-1, 2, 2)


class OneShare(Shares):
    def forward(self, x):
        return self.shares(x)[:, :1].squeeze(1)


class MixedShares(Shares):
    def forward(self, x):
        return torch.cat([self.shares(x), x], 1)


class Mistakes(nn.Module):
    """What no layer holds, in three places: a quotient that is rounded, a gradient by frequency, a cumulative sum."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(12, 16, scale_grad_by_freq=True), nn.Linear(16, 12)

    def forward(self, tokens):
        x = torch.div(self.words(tokens), 3, rounding_mode="floor")
        return self.out(torch.cumsum(x, 1))


class Slanted(nn.Module):
    """Scores that are lowered ahead of a place, and not hidden: no causal attention."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(12, 16), nn.Linear(16, 12)
        self.register_buffer("slope", torch.full((8, 8), -1.0).triu(1))

    def forward(self, tokens):
        q = self.words(tokens).view(-1, 8, 2, 8).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, q, q, attn_mask=self.slope)
        return self.out(y.transpose(1, 2).reshape(-1, 8, 16))


class WindowsTurned(Windows):
    """The image column by column."""
    order = (0, 3, 1, 4, 2, 5)


class WindowsInside(Windows):
    """The places of a window column by column."""
    order = (0, 1, 3, 4, 2, 5)


class WindowsDown(Windows):
    """The windows column by column."""
    order = (0, 3, 1, 2, 4, 5)


class WindowsFaint(Windows):
    """Pixels that are torn apart see each other all the same."""
    hides = -3.0


class TakenTwice(nn.Module):
    """Patches of every second pixel, which are not those of the image."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 12, 2, 2), nn.Linear(48, 10)

    def forward(self, x):
        x = self.stem(x).permute(0, 2, 3, 1)[:, ::2, ::2]
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(x.mean((1, 2)))


class JoinedTwice(nn.Module):
    """The same layers joined as they lie and turned."""

    def __init__(self):
        super().__init__()
        self.stem, self.a, self.b = nn.Conv2d(3, 12, 2, 2), nn.Linear(24 * 64, 10), nn.Linear(36 * 64, 10)

    def forward(self, x):
        x = self.stem(x)
        y, z = x.transpose(2, 3), torch.relu(x)
        return self.a(torch.cat([x, y], 1).flatten(1)) + self.b(torch.cat([y, x, z], 1).flatten(1))


class RolledBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 12, 2, 2), nn.Linear(12, 10)

    def forward(self, x):
        return self.head(self.stem(x).roll(1, 0).mean((2, 3)))


class Unmade(nn.Module):
    def __init__(self):
        super().__init__()
        raise RuntimeError("a width of 7\nand more lines")


class Short(nn.Module):
    """All in bfloat16, with a row of the table that PyTorch does not train."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(12, 16, padding_idx=3), nn.Linear(16, 12)
        self.to(torch.bfloat16)

    def forward(self, tokens):
        return self.out(self.words(tokens))


IMAGES, TOKENS = torch.zeros(8, 3, 16, 16), torch.zeros(8, 16, dtype=torch.long)
MODULES = {"residual": (Residual, (IMAGES,)), "dense": (Dense, (IMAGES,)), "inverted": (Inverted, (IMAGES,)), "excite": (Excite, (IMAGES,)),
           "inception": (Inception, (torch.zeros(8, 3, 25, 25),)), "patches": (Patches, (IMAGES,)), "gpt": (Gpt, (TOKENS,)),
           "shuffled": (Shuffled, (IMAGES,)), "mixer": (Mixer, (IMAGES,)), "windows": (Windows, (IMAGES,)),
           "norms": (Norms, (IMAGES,)), "dilated": (Dilated, (IMAGES,)), "grouped": (Grouped, (TOKENS,)),
           "rotary": (Rotary, (TOKENS,)), "relative": (Relative, (TOKENS,)), "translate": (Translate, (TOKENS, TOKENS)), "unet": (Unet, (IMAGES,)),
           "segment": (Segment, (torch.zeros(8, 3, 18, 18),)),
           "waves": (Waves, (torch.zeros(8, 4, 24),)), "lstm": (Lstm, (TOKENS,)), "gru": (Gru, (TOKENS,)), "autoencoder": (Autoencoder, (torch.zeros(8, 20),))}


def main():
    for name, (module, examples) in MODULES.items():
        loss = {"autoencoder": "mean_squared_error", "waves": "binary_cross_entropy"}.get(name)
        to_headroom(module(), examples, os.path.join(sys.argv[1], name + ".yaml"), loss=loss)


if __name__ == "__main__":
    main()
