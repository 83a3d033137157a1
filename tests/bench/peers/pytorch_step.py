# SPDX-License-Identifier: Apache-2.0
"""Training steps of a bench model in PyTorch, timed: the peer of `headroom run`.

usage: pytorch_step.py MODEL BATCH OPTIMIZER LAYOUT PRECISION THREADS
LAYOUT is plain or nhwc (channels_last); with "+compile" behind it, torch.compile makes one program of the model, which
takes a C++ compiler and a minute. PRECISION is float32 or bfloat16 (autocast). Reads lines from stdin and answers each
with one JSON line:
  N         N steps after one that is not timed: median seconds a step, losses
  product   the rate of a large matrix product in that precision
At the end of stdin: one last line with what the process is and the memory it took.

models.py says what is done in PyTorch's favour; here also: denormals as zero, a process that stays warm between runs.
headroom's steps include its input pipeline.
"""
import json
import os
import re
import resource
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

import models

WARM_UP_STEPS = 1  # of a run; the process stays warm between runs


class Timed(models.Training):
    def run(self, steps):
        seconds, losses = [], []
        for _ in range(WARM_UP_STEPS + steps):
            begin = time.perf_counter()
            losses.append(self.step().item())
            seconds.append(time.perf_counter() - begin)
        return {"step_seconds": sorted(seconds[WARM_UP_STEPS:])[steps // 2], "loss_first": losses[0],
                "loss_last": losses[-1]}


def product_flops_per_second(precision):
    best = 0.0
    for n in (1024, 2048, 3072):
        a, b = torch.rand(n, n, dtype=getattr(torch, precision)), torch.rand(n, n, dtype=getattr(torch, precision))
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
    name, batch, kind, layout, precision, threads = sys.argv[1:7]
    torch.set_flush_denormal(True)
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    layout, _, compiled = layout.partition("+")
    training = Timed(name, int(batch), kind, layout, precision)
    if compiled:
        training.compile()
    for line in sys.stdin:
        if line.strip() == "product":
            answer = product_flops_per_second(precision)
        else:
            answer = training.run(int(line))
        print(json.dumps(answer), flush=True)
    print(json.dumps(about(training)), flush=True)


if __name__ == "__main__":
    main()
