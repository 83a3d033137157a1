# SPDX-License-Identifier: Apache-2.0
"""One training step of a bench model in PyTorch, timed: the peer of `headroom run`.

usage: pytorch_step.py MODEL BATCH OPTIMIZER LAYOUT THREADS STEPS
Prints one JSON line: median seconds a step, peak resident bytes, losses. Input is a fixed uint8-derived float
batch already in memory, so that only the step is timed. LAYOUT is nchw or nhwc (channels_last).
"""
import json
import os
import resource
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch import nn
from torch.nn import functional as F


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


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(cout)
        self.side = None
        if stride != 1 or cin != cout:
            self.side = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.b2(self.c2(F.relu(self.b1(self.c1(x)), inplace=True)))
        return F.relu(y + (x if self.side is None else self.side(x)), inplace=True)


class ResNet18(nn.Module):
    """presets/models/resnet18_cifar.yaml"""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        blocks, cin = [], 64
        for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [Block(cin, cout, stride), Block(cout, cout, 1)]
            cin = cout
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


MODELS = {"cifar10_separable_cnn": SeparableCnn, "mlp": Mlp, "resnet18_cifar": ResNet18}


def optimizer_of(kind, model):
    if kind == "adam":
        return torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, fused=True)
    return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9 if kind == "momentum" else 0.0)


def main():
    name, batch, kind, layout, threads, steps = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], *map(int, sys.argv[5:7])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = MODELS[name]()
    x = torch.randint(0, 256, (batch, 3, 32, 32)).float() / 255
    if layout == "nhwc":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,))
    optimizer = optimizer_of(kind, model)
    seconds, losses = [], []
    for _ in range(steps + 2):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"peer": "pytorch " + torch.__version__, "seconds_median": sorted(seconds[2:])[steps // 2],
                      "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "loss_first": losses[0], "loss_last": losses[-1]}))


if __name__ == "__main__":
    main()
