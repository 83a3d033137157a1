# SPDX-License-Identifier: Apache-2.0
"""The models of presets/models and tests/bench/presets in PyTorch, with their batches, losses and optimizers.

In PyTorch's favour: ReLU in place, fused optimizers, attention through scaled_dot_product_attention, an LSTM that is
given the time axis first, a batch of floats that is already in memory. Trainable parameters are those of the presets,
to the last one; PyTorch's second bias of an LSTM is left out of training.
"""
import functools

import torch
from torch import nn
from torch.nn import functional as F


# ---- images ----------------------------------------------------------------------------------------------------

class SeparableCnn(nn.Module):
    """presets/models/cifar10_separable_cnn.yaml"""

    def __init__(self):
        super().__init__()
        self.d1 = nn.Conv2d(3, 3, 3, groups=3, bias=False)
        self.p1 = nn.Conv2d(3, 32, 1)
        self.d2 = nn.Conv2d(32, 32, 3, groups=32, bias=False)
        self.p2 = nn.Conv2d(32, 64, 1)
        self.f1 = nn.Linear(10816, 64)
        self.f2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.p1(self.d1(x)), inplace=True), 2)
        x = F.relu(self.p2(self.d2(x)), inplace=True)
        return self.f2(F.relu(self.f1(torch.flatten(x, 1)), inplace=True))


class Mlp(nn.Module):
    """presets/models/mlp.yaml"""

    def __init__(self):
        super().__init__()
        self.f1, self.f2, self.f3 = nn.Linear(3072, 2048), nn.Linear(2048, 2048), nn.Linear(2048, 10)

    def forward(self, x):
        x = F.relu(self.f1(torch.flatten(x, 1)), inplace=True)
        return self.f3(F.relu(self.f2(x), inplace=True))


def conv_norm(cin, cout, kernel, stride=1, groups=1, activation=None):
    layers = [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*layers, *([activation(inplace=True)] if activation else []))


class Residual(nn.Module):
    """relu(branch(x) + side(x)); the side is a 1x1 convolution where the shape changes."""

    def __init__(self, branch, cin, cout, stride):
        super().__init__()
        self.branch = branch
        self.side = conv_norm(cin, cout, 1, stride) if stride != 1 or cin != cout else nn.Identity()

    def forward(self, x):
        y = self.branch(x)
        y += self.side(x)
        return F.relu(y, inplace=True)


def basic_block(cin, width, stride):
    branch = nn.Sequential(conv_norm(cin, width, 3, stride, activation=nn.ReLU), conv_norm(width, width, 3))
    return Residual(branch, cin, width, stride), width


def bottleneck(cin, width, stride):
    branch = nn.Sequential(conv_norm(cin, width, 1, activation=nn.ReLU),
                           conv_norm(width, width, 3, stride, activation=nn.ReLU), conv_norm(width, 4 * width, 1))
    return Residual(branch, cin, 4 * width, stride), 4 * width


class GlobalMean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def resnet(block, counts, stem, classes):
    layers, cin = stem, 64
    for stage, count in enumerate(counts):
        for index in range(count):
            layer, cin = block(cin, 64 << stage, 2 if stage > 0 and index == 0 else 1)
            layers.append(layer)
    return nn.Sequential(*layers, GlobalMean(), nn.Linear(cin, classes))


def resnet18_cifar():
    return resnet(basic_block, (2, 2, 2, 2), [conv_norm(3, 64, 3, activation=nn.ReLU)], 10)


def resnet_imagenet(block, counts):
    return resnet(block, counts, [conv_norm(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 1000)


class Inverted(nn.Module):
    def __init__(self, cin, cout, stride, widening):
        super().__init__()
        width = cin * widening
        layers = [conv_norm(cin, width, 1, activation=nn.ReLU6)] if widening != 1 else []
        self.branch = nn.Sequential(*layers, conv_norm(width, width, 3, stride, width, nn.ReLU6),
                                    conv_norm(width, cout, 1))
        self.added = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.branch(x) if self.added else self.branch(x)


def mobilenet_v2():
    layers, cin = [conv_norm(3, 32, 3, 2, activation=nn.ReLU6)], 32
    for widening, cout, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)):
        for index in range(count):
            layers.append(Inverted(cin, cout, stride if index == 0 else 1, widening))
            cin = cout
    return nn.Sequential(*layers, conv_norm(320, 1280, 1, activation=nn.ReLU6), GlobalMean(), nn.Dropout(0.2),
                         nn.Linear(1280, 1000))


def vgg16():
    layers, cin = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(cin, width, 3, padding=1), nn.ReLU(inplace=True)]
            cin = width
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    for features in (25088, 4096):
        layers += [nn.Linear(features, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    return nn.Sequential(*layers, nn.Linear(4096, 1000))


def double_conv(cin, cout):
    return nn.Sequential(conv_norm(cin, cout, 3, activation=nn.ReLU), conv_norm(cout, cout, 3, activation=nn.ReLU))


class UNet(nn.Module):
    """presets/models/unet.yaml"""

    def __init__(self):
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.down = nn.ModuleList(double_conv(cin, cout) for cin, cout in zip((3,) + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.merge = nn.ModuleList(double_conv(2 * w, w) for w in widths[-2::-1])
        self.out = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        kept = []
        for index, layer in enumerate(self.down):
            x = layer(F.max_pool2d(x, 2) if index else x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


# ---- sequences -------------------------------------------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self, width, heads, causal=False, dropout=0.0):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.dropout = heads, causal, dropout

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal,
                                           dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Before(nn.Module):
    """A block that normalises before each half: GPT-2, ViT."""

    def __init__(self, width, heads, causal, gelu, epsilon):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(gelu), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Behind(nn.Module):
    """A block that normalises behind each half: BERT."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.attention = Attention(width, heads, dropout=0.1)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        x = self.norm1(x + self.dropout(self.attention(x)))
        return self.norm2(x + self.dropout(self.mlp(x)))


class Gpt2(nn.Module):
    def __init__(self, words, length, width, heads, blocks):
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(Before(width, heads, True, "tanh", 1e-5) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        for table in (self.word.weight, self.position):
            nn.init.normal_(table, std=0.02)

    def forward(self, tokens):
        return F.linear(self.norm(self.blocks(self.word(tokens) + self.position)), self.word.weight)


class Bert(nn.Module):
    """presets/models/bert_base.yaml"""

    def __init__(self, words=30522, length=512, width=768, heads=12, blocks=12):
        super().__init__()
        self.word, self.segment = nn.Embedding(words, width), nn.Embedding(2, width)
        self.position = nn.Parameter(torch.zeros(length, width))
        self.norm, self.dropout = nn.LayerNorm(width, 1e-12), nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(Behind(width, heads) for _ in range(blocks)))
        self.pooler = nn.Linear(width, width)

    def forward(self, inputs):
        x = self.word(inputs[0]) + self.segment(inputs[1]) + self.position
        return torch.tanh(self.pooler(self.blocks(self.dropout(self.norm(x)))[:, 0]))


class Vit(nn.Module):
    """presets/models/vit_b16.yaml"""

    def __init__(self, width=768, heads=12, blocks=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token, self.position = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(197, width))
        self.blocks = nn.Sequential(*(Before(width, heads, False, "none", 1e-6) for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


class LstmLm(nn.Module):
    """presets/models/lstm_lm_medium.yaml; tokens come as [time, sample]."""

    def __init__(self, words=10000, width=650):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(words, width), nn.Dropout(0.5)
        self.lstm = nn.LSTM(width, width, 2, dropout=0.5)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(parameter)
                parameter.requires_grad_(False)
        self.output = nn.Linear(width, words)

    def forward(self, tokens):
        return self.output(self.dropout(self.lstm(self.dropout(self.embedding(tokens)))[0]))


# ---- batches and losses ----------------------------------------------------------------------------------------

def images(size, classes):
    return lambda batch: (torch.rand(batch, 3, size, size), torch.randint(0, classes, (batch,)))


def masked_images(batch):
    return torch.rand(batch, 3, 256, 256), torch.randint(0, 2, (batch, 256, 256))


def tokens(words, length, time_first=False):
    def make(batch):
        shape = (length, batch) if time_first else (batch, length)
        return torch.randint(0, words, shape), torch.randint(0, words, shape)
    return make


def sentences(batch):
    return (torch.randint(0, 30522, (batch, 512)), torch.randint(0, 2, (batch, 512))), torch.rand(batch, 768)


def cross_entropy(logits, labels):
    return F.cross_entropy(logits, labels)


def token_cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


# preset: model, batch, loss
MODELS = {
    "cifar10_separable_cnn": (SeparableCnn, images(32, 10), cross_entropy),
    "mlp": (Mlp, images(32, 10), cross_entropy),
    "resnet18_cifar": (resnet18_cifar, images(32, 10), cross_entropy),
    "resnet50_64": (functools.partial(resnet_imagenet, bottleneck, (3, 4, 6, 3)), images(64, 1000), cross_entropy),
    "mobilenet_v2_64": (mobilenet_v2, images(64, 1000), cross_entropy),
    "gpt2_4x256": (functools.partial(Gpt2, 8192, 128, 256, 4, 4), tokens(8192, 128), token_cross_entropy),
    "lstm_lm_medium": (LstmLm, tokens(10000, 35, True), token_cross_entropy),
    "resnet18": (functools.partial(resnet_imagenet, basic_block, (2, 2, 2, 2)), images(224, 1000), cross_entropy),
    "resnet50": (functools.partial(resnet_imagenet, bottleneck, (3, 4, 6, 3)), images(224, 1000), cross_entropy),
    "mobilenet_v2": (mobilenet_v2, images(224, 1000), cross_entropy),
    "vgg16": (vgg16, images(224, 1000), cross_entropy),
    "unet": (UNet, masked_images, cross_entropy),
    "gpt2_124m": (functools.partial(Gpt2, 50257, 1024, 768, 12, 12), tokens(50257, 1024), token_cross_entropy),
    "gpt2_1558m": (functools.partial(Gpt2, 50257, 1024, 1600, 25, 48), tokens(50257, 1024), token_cross_entropy),
    "bert_base": (Bert, sentences, F.mse_loss),
    "vit_b16": (Vit, images(224, 1000), cross_entropy),
}


def optimizer_of(kind, model):
    parameters = [p for p in model.parameters() if p.requires_grad]
    if kind in ("adam", "adamw"):
        make = torch.optim.Adam if kind == "adam" else torch.optim.AdamW
        return make(parameters, lr=1e-3, eps=1e-7, fused=True)
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9 if kind == "momentum" else 0.0, fused=True)


class Training:
    """layout is plain or nhwc (channels_last), precision float32, or bfloat16 or float16 (autocast; float16 with a
    scaled loss). On a card the batch is there already."""

    def __init__(self, name, batch, kind, layout, precision="float32", device="cpu"):
        make, data, self.loss_of = MODELS[name]
        self.device = device
        self.model = make().to(device)
        x, y = data(batch)
        self.x = tuple(part.to(device) for part in x) if isinstance(x, tuple) else x.to(device)
        self.y = y.to(device)
        if layout == "nhwc":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        self.autocast = precision != "float32"
        self.type = getattr(torch, precision)
        self.scaler = torch.amp.GradScaler(device, enabled=precision == "float16") if device != "cpu" else None
        self.parameters = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        self.optimizer = optimizer_of(kind, self.model)

    def compile(self):
        self.model = torch.compile(self.model)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, self.type, enabled=self.autocast):
            loss = self.loss_of(self.model(self.x), self.y)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss.detach()
