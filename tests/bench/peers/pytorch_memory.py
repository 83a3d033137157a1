# SPDX-License-Identifier: Apache-2.0
"""The peak memory of a training step in PyTorch: its profiler's, with profile_memory.

usage: pytorch_memory.py MODEL BATCH OPTIMIZER LAYOUT PRECISION THREADS
Model, batch and optimizer are made under the profiler too, so that the sum of its records is what is allocated; the
peak is the largest sum within the steps behind the first, in which the optimizer's state exists from the beginning.
The records are of PyTorch's own allocator, temporaries inside operations included (a hook on tensors would miss
those), scratch that oneDNN and MKL take by themselves not: in PyTorch's favour, because headroom's peak has it all.
"""
import json
import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch.profiler import ProfilerActivity, profile, record_function

import models

STEPS = 2


def peak_bytes(events):
    """The largest sum of the memory records within steps, and whether the sum ended where a step had begun."""
    begin_ns = min(e.start_ns() for e in events if e.name() == "measured steps")
    records = sorted((e.start_ns(), i, e.nbytes()) for i, e in enumerate(events) if e.name() == "[memory]")
    held = peak = at_begin = 0
    for time_ns, _, count in records:
        held += count
        if time_ns < begin_ns:
            at_begin = held
        else:
            peak = max(peak, held)
    return peak, at_begin, held


def main():
    name, batch, kind, layout, precision, threads = sys.argv[1:7]
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        training = models.Training(name, int(batch), kind, layout, precision)
        training.step()
        with record_function("measured steps"):
            for _ in range(STEPS - 1):
                training.step()
    peak, before, behind = peak_bytes(profiler.profiler.kineto_results.events())
    print(json.dumps({"peer": "pytorch " + torch.__version__, "parameters": training.parameters, "peak_bytes": peak,
                      "held_before_bytes": before, "held_behind_bytes": behind}))


if __name__ == "__main__":
    main()
