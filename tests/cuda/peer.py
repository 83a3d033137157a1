# SPDX-License-Identifier: Apache-2.0
"""Training steps of a bench model in PyTorch on a card, timed: the peer of `headroom run -s device.kind=cuda`.

usage: peer.py MODEL BATCH OPTIMIZER PRECISION eager|compile|pipeline|memory
Reads lines from stdin; N: N steps, answered with one JSON line: median seconds a step (synchronised around each, as
headroom's are by the loss that is read back), losses, and PyTorch's own counters of the steps: peak allocated and reserved
bytes, and the bytes of this process as the driver counts them. The batch is on the card; with `pipeline` it comes from pinned
memory in every step. With `memory` a line is "N BATCH PRECISION FILE", the model is made anew for it, and what the allocator
was asked for in one step more is written to FILE. Images are channels_last; TF32 is off; cuDNN's benchmark mode is on, in
PyTorch's favour, but for `memory`: there it is as PyTorch has it by itself.
"""
import gc
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bench", "peers"))

import torch

import models
from truth import IMAGES

WARM_UP_STEPS = 3


def process_bytes():
    """What nvidia-smi says that this process has; None where it does not say."""
    try:
        text = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=10, check=True).stdout
        return next((int(line.split(",")[1]) << 20 for line in text.splitlines() if line.split(",")[0] == str(os.getpid())), None)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


class Copied:
    """The batch in pinned memory, copied to the card ahead of every step."""

    def __init__(self, training):
        self.training = training
        x = training.x if isinstance(training.x, tuple) else (training.x,)
        self.parts = [part.to("cpu").pin_memory() for part in (*x, training.y)]

    def step(self):
        parts = [part.to("cuda", non_blocking=True) for part in self.parts]
        self.training.x = tuple(parts[:-1]) if isinstance(self.training.x, tuple) else parts[0]
        self.training.y = parts[-1]
        return self.training.step()


def run(training, steps, parameters):
    seconds, losses = [], []
    torch.cuda.reset_peak_memory_stats()
    for index in range(WARM_UP_STEPS + steps):
        if index == WARM_UP_STEPS:
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        losses.append(training.step().item())
        seconds.append(time.perf_counter() - begin)
    answer = {"step_seconds": sorted(seconds[WARM_UP_STEPS:])[steps // 2], "loss_first": losses[0],
              "loss_last": losses[-1], "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
              "peak_reserved_bytes": torch.cuda.max_memory_reserved(), "process_bytes": process_bytes(),
              "peer": "pytorch " + torch.__version__, "cudnn": torch.backends.cudnn.version(), "parameters": parameters}
    torch.cuda.empty_cache()  # others have the card until the next round
    return answer


def requests(training):
    """One step: bytes of every request in order, and -k where that of the k-th (from 1) is given back, 0 where one is that
    was there before."""
    torch.cuda.memory._record_memory_history(context=None, stacks="python")
    training.step()
    torch.cuda.synchronize()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    kept, made, row = {}, 0, []
    for event in events:
        if event["action"] == "alloc":
            made += 1
            kept[event["addr"]] = made
            row.append(event["size"])
        elif event["action"] == "free_completed":
            row.append(-kept.pop(event["addr"], 0))
    return row


def make(name, batch, kind, precision, mode):
    torch.manual_seed(0)
    training = models.Training(name, batch, kind, "nhwc" if name in IMAGES else "plain", precision, "cuda")
    if mode == "compile":
        training.compile()
    return Copied(training) if mode == "pipeline" else training, training.parameters


def main():
    name, batch, kind, precision, mode = sys.argv[1:6]
    torch.backends.cudnn.benchmark = mode != "memory"
    torch.backends.cudnn.allow_tf32 = False
    if mode != "memory":
        training, parameters = make(name, int(batch), kind, precision, mode)
    for line in sys.stdin:
        words = line.split()
        if mode == "memory":
            training = None
            gc.collect()
            torch.cuda.empty_cache()
            training, parameters = make(name, int(words[1]), kind, words[2], mode)
        answer = run(training, int(words[0]), parameters)
        if mode == "memory":
            with open(words[3], "w", encoding="utf-8") as file:
                json.dump(requests(training), file)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
