# SPDX-License-Identifier: Apache-2.0
"""Training steps of a bench model in PyTorch on a card, timed: the peer of `headroom run -s device.kind=cuda`.

usage: peer.py MODEL BATCH OPTIMIZER PRECISION eager|compile
Reads lines from stdin; N: N steps, answered with one JSON line: median seconds a step (synchronised around each, as
headroom's are by the loss that is read back), losses, and PyTorch's own counters of the steps: peak allocated and reserved
bytes. Images are channels_last; TF32 is off; cuDNN's benchmark mode is on, in PyTorch's favour.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bench", "peers"))

import torch

import models

WARM_UP_STEPS = 3
IMAGES = ("cifar10_separable_cnn", "resnet50", "mobilenet_v2")


def run(training, steps):
    seconds, losses = [], []
    for index in range(WARM_UP_STEPS + steps):
        if index == WARM_UP_STEPS:
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        losses.append(training.step().item())
        seconds.append(time.perf_counter() - begin)
    answer = {"step_seconds": sorted(seconds[WARM_UP_STEPS:])[steps // 2], "loss_first": losses[0],
              "loss_last": losses[-1], "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
              "peak_reserved_bytes": torch.cuda.max_memory_reserved(), "peer": "pytorch " + torch.__version__,
              "cudnn": torch.backends.cudnn.version(), "parameters": training.parameters}
    torch.cuda.empty_cache()  # others have the card until the next round
    return answer


def main():
    name, batch, kind, precision, mode = sys.argv[1:6]
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    training = models.Training(name, int(batch), kind, "nhwc" if name in IMAGES else "plain", precision, "cuda")
    if mode == "compile":
        training.compile()
    for line in sys.stdin:
        print(json.dumps(run(training, int(line))), flush=True)


if __name__ == "__main__":
    main()
