# SPDX-License-Identifier: Apache-2.0
"""Training steps of a bench model in PyTorch, timed: the peer of `headroom run`.

usage: pytorch_step.py MODEL BATCH OPTIMIZER LAYOUT THREADS
LAYOUT is nchw or nhwc (channels_last); with "+compile" behind it, torch.compile makes one program of the model, which
takes a C++ compiler and a minute. Reads lines from stdin and answers each with one JSON line:
  N         N steps after two that are not timed: median seconds a step, losses
  product   the rate of a large matrix product
At the end of stdin: one last line with what the process is and the memory it took.

In PyTorch's favour: fused optimizers, in-place ReLU, gradients set to None, denormals as zero, a process that stays
warm between runs, and a batch of floats that is already in memory (headroom's steps include its input pipeline).
"""
import json
import os
import re
import resource
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch import nn
from torch.nn import functional as F

WARM_UP_STEPS = 2


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
        y += x if self.side is None else self.side(x)
        return F.relu(y, inplace=True)


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
    return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9 if kind == "momentum" else 0.0, fused=True)


class Training:
    def __init__(self, name, batch, kind, layout):
        self.model = MODELS[name]()
        self.x = torch.randint(0, 256, (batch, 3, 32, 32)).float() / 255
        layout, _, compiled = layout.partition("+")
        if layout == "nhwc":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.to(memory_format=torch.channels_last)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.y = torch.randint(0, 10, (batch,))
        self.optimizer = optimizer_of(kind, self.model)
        if compiled:
            self.model = torch.compile(self.model)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, steps):
        seconds, losses = [], []
        for _ in range(WARM_UP_STEPS + steps):
            begin = time.perf_counter()
            losses.append(self.step())
            seconds.append(time.perf_counter() - begin)
        return {"step_seconds": sorted(seconds[WARM_UP_STEPS:])[steps // 2], "loss_first": losses[0],
                "loss_last": losses[-1]}


def product_flops_per_second():
    best = 0.0
    for n in (1024, 2048, 3072):
        a, b = torch.rand(n, n), torch.rand(n, n)
        for _ in range(5):
            begin = time.perf_counter()
            torch.mm(a, b)
            best = max(best, 2.0 * n**3 / (time.perf_counter() - begin))
    return {"product_flops_per_second": best}


def cuda_bytes():
    """Resident bytes of the CUDA libraries that the usual build maps even where there is no card: their files, and
    the anonymous pages that directly follow each. A build without CUDA would not have them."""
    total, end, ours = 0, None, False
    for line in open("/proc/self/smaps"):
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+\s*(.*)", line)
        if head:
            follows = head[1] == end and head[3] == ""
            ours = (ours and follows) or bool(re.search(r"/nvidia/|/cuda/|lib(torch|c10)_cuda", head[3]))
            end = head[2]
        elif line.startswith("Rss:") and ours:
            total += int(line.split()[1]) * 1024
    return total


def about(training):
    return {"peer": "pytorch " + torch.__version__, "python": sys.version.split()[0],
            "threads": torch.get_num_threads(), "parameters": training.parameters,
            "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "cuda_bytes": cuda_bytes()}


def main():
    name, batch, kind, layout, threads = sys.argv[1:6]
    torch.set_flush_denormal(True)
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    training = Training(name, int(batch), kind, layout)
    for line in sys.stdin:
        answer = product_flops_per_second() if line.strip() == "product" else training.run(int(line))
        print(json.dumps(answer), flush=True)
    print(json.dumps(about(training)), flush=True)


if __name__ == "__main__":
    main()
