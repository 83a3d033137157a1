#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/step_*.json with PyTorch in float64: one training step of tiny models of every family,
dropout and all. Run by hand, from anywhere. Each tensor has its norm and 64 entries at a fixed stride.

What is zero but for rounding is stored as {"zero_below": …} instead: the gradient of an attention's key bias, because
softmax does not see what is added to a whole row; that of a shift before a 1x1 convolution whose result is normalised,
and the mean of such a result.
"""
import json
import math
import sys

import numpy as np
import torch

from make_fixtures import HERE, entries, philox_uniform
from peer_model import OurNumbers, PeerNet

SEED = 1
ZERO = 1e-12  # of the largest norm among tensors of one kind


def slot_values(seed, slot, shape, entry):
    """What step_harness.c puts into a slot: floats in [0, 1), ids and masks from the same floats, one label from a count."""
    if len(shape) == 1:
        return torch.tensor([(3 * n + seed) % entry["classes"] for n in range(shape[0])])
    purpose = "test/images" if slot == 0 else f"test/slot{slot}"
    uniform = philox_uniform(seed, purpose, math.prod(shape)).astype(np.float64).reshape(shape)
    if entry.get("classes"):
        return torch.tensor(np.floor(uniform * entry["classes"]).astype(np.int64))
    return torch.tensor(uniform)


def step(name, seed, batch):
    net = PeerNet(name, OurNumbers(seed), torch.float64)
    inputs = net.model.get("inputs") or [net.model["input"]]
    given = [slot_values(seed, k, [batch] + i["shape"], i) for k, i in enumerate(inputs)]
    prediction = net.forward(given)
    classes = net.model.get("classes", net.model.get("labels", {}).get("classes"))
    shape = list(prediction.shape[:-1] if classes else prediction.shape)
    labels = slot_values(seed, len(inputs), shape, {"classes": classes})
    loss = net.loss(prediction, labels) + sum(net.layer_losses)
    loss.backward()
    out = {"logits": prediction, "loss": loss.reshape(1)}
    out.update({key + ":grad": w.grad for key, w in net.params.items()})
    out.update(net.state)
    return {key: value.detach().numpy().reshape(-1) for key, value in out.items()}


def packed(values, zero_below):
    norm = float(np.linalg.norm(values))
    if norm < zero_below:
        return {"elements": values.size, "zero_below": zero_below}
    return {"elements": values.size, "norm": norm, "entries": [float(f"{v:.12g}") for v in entries(values)]}


def kind_of(key):
    return "grad" if key.endswith(":grad") else key.split("/")[-1]


def step_fixture(name, batch):
    values = step(name, SEED, batch)
    largest = {}
    for key, v in values.items():
        largest[kind_of(key)] = max(largest.get(kind_of(key), 0), np.linalg.norm(v))
    tensors = {key: packed(v, ZERO * largest[kind_of(key)]) for key, v in values.items()}
    fixture = {
        "schema": "headroom.fixture/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "model": name,
        "seed": SEED,
        "batch": batch,
        "optimizer": {"kind": "sgd", "learning_rate": 0.125},
        "tensors": tensors,
    }
    path = HERE / "fixtures" / f"step_{name}.json"
    path.write_text(json.dumps(fixture).replace('}, "', '},\n"') + "\n")
    print(f"{path.name}: {path.stat().st_size} bytes, {sum('zero_below' in t for t in tensors.values())} zeros")


def main():
    """Of the models that are named, else of all."""
    torch.set_num_threads(1)
    for name, batch in [
        ("gpt2_124m_tiny", 2), ("bert_base_tiny", 2), ("lstm_lm_medium_tiny", 3), ("unet_tiny", 2),
        ("mobilenet_v2_tiny", 2), ("resnet50_tiny", 2), ("vit_b16_tiny", 2), ("resnext50_tiny", 2),
        ("densenet121_tiny", 2), ("efficientnet_b0_tiny", 2), ("mobilenet_v3_large_tiny", 2), ("regnet_y_1_6gf_tiny", 2),
        ("llama3_2_1b_tiny", 2), ("qwen3_0_6b_tiny", 2), ("gemma_2b_tiny", 2),
        ("whisper_small_tiny", 2), ("convnext_t_tiny", 2), ("mixtral_8x7b_tiny", 2), ("t5_base_tiny", 2),
        ("swin_t_tiny", 2),
    ]:  # fmt: skip
        if not sys.argv[1:] or name in sys.argv[1:]:
            step_fixture(name, batch)


if __name__ == "__main__":
    main()
