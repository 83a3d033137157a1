#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peak_from_trace.py TRACE.csv: the peak of the training steps, recomputed from a run's trace and from nothing else.

Prints one JSON object: peak_in_use_bytes, peak_requested_bytes (at the first moment of the largest in_use),
peak_pool_bytes, and leaked_bytes, what is still held at the end beyond what the build took. An evaluation is a
program of its own: the rows between an `eval_begin`-less stretch that ends in an `eval` row do not count, so rows are
collected per stretch and a stretch that ends in `eval` is replayed without looking for a peak.
"""
import csv
import json
import sys


def stretches(rows):
    """Yields (kind, rows): the rows up to and including each mark (build, step, eval), and the kind of the mark."""
    pending = []
    for row in rows:
        pending.append(row)
        if row["event"] in ("build", "step", "eval"):
            yield row["event"], pending
            pending = []
    yield "end", pending


class Heap:
    def __init__(self):
        self.chunks = {}
        self.in_use = self.requested = self.pool = 0

    def apply(self, row):
        address, event = int(row["address"]), row["event"]
        requested, allocated = int(row["requested_bytes"]), int(row["allocated_bytes"])
        if event == "alloc":
            assert address not in self.chunks, f"{row['tensor']}: allocated over a living chunk at {address}"
            assert allocated >= requested, f"{row['tensor']}: got {allocated} of {requested} bytes"
            self.chunks[address] = (requested, allocated)
            self.in_use += allocated
            self.requested += requested
        elif event == "free":
            requested, allocated = self.chunks.pop(address)
            self.in_use -= allocated
            self.requested -= requested
        elif event == "grow":
            self.pool += allocated
        elif event == "shrink":
            self.pool -= allocated


def main(path):
    heap = Heap()
    peak = {"peak_in_use_bytes": 0, "peak_requested_bytes": 0, "peak_pool_bytes": 0, "steps": 0}
    with open(path, newline="", encoding="utf-8") as file:
        for kind, rows in stretches(csv.DictReader(file)):
            if kind == "build":  # a new counter epoch: what came before is over
                peak = dict.fromkeys(peak, 0)
            peak["steps"] += kind == "step"
            for row in rows:
                heap.apply(row)
                if kind != "step":
                    continue
                peak["peak_pool_bytes"] = max(peak["peak_pool_bytes"], heap.pool)
                if heap.in_use > peak["peak_in_use_bytes"]:
                    peak["peak_in_use_bytes"] = heap.in_use
                    peak["peak_requested_bytes"] = heap.requested
    print(json.dumps(peak))


if __name__ == "__main__":
    main(sys.argv[1])
