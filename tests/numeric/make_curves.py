#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/curves.json with PyTorch in float32: training of three tiny models, each as its file says,
on the batches that headroom makes of its generated data in file order (pipeline.shuffle=0). Run by hand, from anywhere.

  same_start   losses of the first 20 steps from headroom's own initial weights and dropout masks, in float64 and in
               float32. Where the two part, float32 tells nothing: in resnet50_tiny, which normalises over few values,
               an update multiplies a difference by a hundred, and from the third step on PyTorch's own float32 is a
               tenth away from its float64. `float32_steps` counts the steps before that. `float64_steps` likewise, for
               float64 whose initial weights were moved by their last digits, eight times: behind step 17 of that model
               some activation lies so near zero that two of the eight take another branch.
  seeds        mean losses of steps 1-10, 91-100 and 191-200 from PyTorch's own initial weights and masks, five seeds
  band         [low, high] of the mean loss over each ten steps, for the mean of three runs of ours: least and greatest
               of the five seeds, widened on both sides by three standard deviations of such a mean, 3 s / sqrt(3). Five
               are few: without it, an equal engine's mean would leave one of the twenty ranges about every second time;
               with it about once in a hundred. s is taken over three neighbouring ranges together, because five values
               tell it badly. `descent` is what the training gains in units of the last range's width.
"""
import json
import math

import numpy as np
import torch
import yaml

from make_fixtures import HERE, MODELS, model_of
from peer_data import chains, images
from peer_model import OurNumbers, PeerNet, PeerNumbers

STEPS, BLOCK, SAME_START, SEEDS = 200, 10, 20, (1, 2, 3, 4, 5)
OUR_RUNS, DEVIATIONS = 3, 3.0
PARTED = 1e-3, 1e-6  # float32 from float64, float64 from what was moved; relative
MOVES, MOVED = 8, 2e-15


class Updates:
    """SGD, momentum and Adam as Keras writes them (epsilon outside the bias correction), at a constant rate."""

    def __init__(self, optimizer):
        self.kind, self.rate = optimizer["kind"], optimizer["learning_rate"]
        self.momentum, self.t, self.slots = optimizer.get("momentum", 0.9), 0, {}

    @torch.no_grad()
    def step(self, params):
        self.t += 1
        for name, w in params.items():
            if name not in self.slots:
                self.slots[name] = torch.zeros_like(w), torch.zeros_like(w)
            m, v = self.slots[name]
            g, w.grad = w.grad, None
            if self.kind == "sgd":
                w -= self.rate * g
            elif self.kind == "momentum":
                m.mul_(self.momentum).sub_(self.rate * g)
                w += m
            else:
                m += (g - m) * (1 - 0.9)
                v += (g * g - v) * (1 - 0.999)
                rate = self.rate * math.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
                w -= rate * m / (v.sqrt() + 1e-7)


def samples_of(model, count):
    entry = model["input"]
    if "classes" in entry:
        return chains(0, count, entry["shape"][0], entry["classes"])
    return images(0, count, entry["shape"], model["classes"])


@torch.no_grad()
def move(params, seed):
    generator = torch.Generator().manual_seed(seed)
    for w in params.values():
        w *= 1 + MOVED * (2 * torch.rand(w.shape, generator=generator, dtype=w.dtype) - 1)


def losses(name, file, data, numbers, steps, dtype, moved=0):
    batch = file["batch"]["size"]
    net, updates = PeerNet(name, numbers, dtype, torch.channels_last), Updates(file["optimizer"])
    out = []
    for step in range(steps):
        at = slice(step * batch, (step + 1) * batch)
        x, labels = (torch.tensor(values[at]) for values in data)
        x = x.to(dtype) if x.is_floating_point() else x
        net.update, net.first_sample = step + 1, step * batch
        if step == 0 and moved:
            net.forward([x])  # makes the parameters
            move(net.params, moved)
        loss = net.loss(net.forward([x]), labels)
        loss.backward()
        updates.step(net.params)
        out.append(float(loss.detach()))
    return np.array(out)


def rounded(values, digits):
    return [float(f"{v:.{digits}g}") for v in values]


def steps_together(exact, others, parted):
    apart = np.maximum.accumulate(np.abs(np.array(others) / exact - 1).max(axis=0)) > parted
    return int(np.argmax(apart)) if apart.any() else SAME_START


def same_start(name, file, data):
    def from_ours(dtype, moved=0):
        return losses(name, file, data, OurNumbers(1), SAME_START, dtype, moved)

    exact, single = from_ours(torch.float64), from_ours(torch.float32)
    moved = [from_ours(torch.float64, seed) for seed in range(1, MOVES + 1)]
    return {
        "seed": 1,
        "float64": rounded(exact, 15),
        "float32": rounded(single, 9),
        "float64_steps": steps_together(exact, moved, PARTED[1]),
        "float32_steps": steps_together(exact, [single], PARTED[0]),
    }


def band_of(blocks):
    variance = np.pad(blocks.var(axis=0, ddof=1), 1, mode="edge")
    deviation = np.sqrt((variance[:-2] + variance[1:-1] + variance[2:]) / 3)
    beyond = DEVIATIONS * deviation / math.sqrt(OUR_RUNS)
    return blocks.min(axis=0) - beyond, blocks.max(axis=0) + beyond


def curve(name):
    file = yaml.safe_load((MODELS / f"{name}.yaml").read_text())
    data = samples_of(model_of(name), STEPS * file["batch"]["size"])
    runs = np.array([losses(name, file, data, PeerNumbers(seed), STEPS, torch.float32) for seed in SEEDS])
    blocks = runs.reshape(len(SEEDS), -1, BLOCK).mean(axis=2)
    low, high = band_of(blocks)
    descent = float((blocks[:, 0] - blocks[:, -1]).mean() / (high - low)[-1])
    print(f"{name}: {blocks[:, 0].mean():.4f} to {blocks[:, -1].mean():.4f}, descent {descent:.2f} widths")
    return {
        "model": name,
        "same_start": same_start(name, file, data),
        "seeds": [{"seed": s, "means": rounded(b[[0, 9, 19]], 7)} for s, b in zip(SEEDS, blocks)],
        "descent": float(f"{descent:.3g}"),
        "band": [rounded(pair, 7) for pair in zip(low, high)],
    }


def main():
    torch.set_num_threads(1)
    fixture = {
        "schema": "headroom.curves/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "steps": STEPS,
        "block": BLOCK,
        "our_runs": OUR_RUNS,
        "curves": [curve(name) for name in ("resnet50_tiny", "gpt2_124m_tiny", "lstm_lm_medium_tiny")],
    }
    path = HERE / "fixtures" / "curves.json"
    path.write_text(json.dumps(fixture).replace('}, {"model"', '},\n{"model"') + "\n")
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
