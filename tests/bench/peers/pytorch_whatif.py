# SPDX-License-Identifier: Apache-2.0
"""How long PyTorch's own what-if takes: its MemTracker over one training step of fake tensors.

usage: pytorch_whatif.py MODEL BATCH OPTIMIZER REPEAT
`plan_seconds`: a new batch, one forward, backward and update under the tracker, with model and optimizer state made
before; each of REPEAT times at another batch size, behind one that is not counted. `build_seconds`: making the model.
"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

import models


def tracked_peak_bytes(training):
    tracker = MemTracker()
    tracker.track_external(training.model, training.optimizer)
    with tracker:
        training.step()
    return max(snapshot["Total"] for snapshot in tracker.get_tracker_snapshot("peak").values())


def main():
    name, batch, kind, repeat = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    seconds, peaks = [], []
    with FakeTensorMode():
        begin = time.perf_counter()
        training = models.Training(name, batch, kind, "plain")
        training.step()
        build_seconds = time.perf_counter() - begin
        for index in range(1 + repeat):
            begin = time.perf_counter()
            training.x, training.y = models.MODELS[name][1](batch + index)
            peaks.append(tracked_peak_bytes(training))
            seconds.append(time.perf_counter() - begin)
    counted = sorted(seconds[1:])
    print(json.dumps({"peer": "pytorch " + torch.__version__, "parameters": training.parameters,
                      "build_seconds": build_seconds, "plan_seconds_first": seconds[0],
                      "plan_seconds": counted[len(counted) // 2], "peak_bytes": peaks[0]}))


if __name__ == "__main__":
    main()
