#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a PyTorch memory snapshot as torch.cuda.memory._dump_snapshot does: CPython's own pickle of the same
dictionaries, with the sharing that PyTorch has: one dictionary for a frame, one list for the stack of an allocation and
of the block that it became, one for the two events of a release; texts of PyTorch's own are one, texts of an entry are
new each time. The heap is consistent: blocks tile their segments.

  make_snapshot.py FILE --events N [--seed S] [--protocol P] [--devices D] [--keep K]

N events of alloc, free_requested and free_completed; of them the last K are kept, as a full ring keeps them. An event
takes some 300 bytes. Needs about 3.5 bytes of memory for each byte written.
"""
import argparse
import pickle
import random

MIB = 1 << 20
SMALL_BYTES = MIB
FRAMES = 1500
STACK = (40, 90)  # frames of an allocation: C++, then PyTorch's Python, then the user's


class Frames:
    def __init__(self, dice):
        self.dice = dice
        files = ["/usr/lib/python3/dist-packages/torch/nn/modules/module%d.py" % k for k in range(40)]
        native = [{"name": "at::native::kernel_%d" % k, "filename": "??", "line": 0} for k in range(FRAMES // 3)]
        library = [{"name": "_call_impl_%d" % k, "filename": files[k % 40], "line": k} for k in range(FRAMES // 3)]
        user = [{"name": "forward_%d" % k, "filename": "/home/me/train/model%d.py" % (k % 9), "line": 10 + k}
                for k in range(FRAMES // 3)]
        self.layers = [native, library, user]
        self.sites = [self.site() for _ in range(400)]

    def site(self):
        depth = self.dice.randint(*STACK)
        return [self.dice.choice(layer) for layer in self.layers for _ in range(depth // 3)]

    def stack(self):
        """A stack as it is gathered: a new list of the same frames."""
        return list(self.dice.choice(self.sites))


class Heap:
    """One device. Freed blocks serve the next request of the same size; small ones come from segments of 2 MiB."""

    def __init__(self, device, frames, dice):
        self.device, self.frames, self.dice = device, frames, dice
        self.free, self.segments, self.trace, self.live, self.block_of = {}, [], [], {}, {}
        self.top = 0x7f0000000000 + (device << 36)
        self.time_us = 1_750_000_000_000_000
        self.current = None

    def note(self, action, addr, size, frames):
        self.time_us += self.dice.randint(1, 40)
        self.trace.append({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.time_us,
                           "compile_context": "N/%s" % "A", "user_metadata": "", "pool_id": (0, 0), "frames": frames})

    def segment(self, total, kind):
        segment = {"device": self.device, "address": self.top, "total_size": total, "allocated_size": 0,
                   "active_size": 0,
                   "requested_size": 0, "stream": 0, "segment_type": kind, "segment_pool_id": (0, 0),
                   "is_expandable": False, "frames": [], "blocks": []}
        self.top += total + 2 * MIB
        self.segments.append([segment, 0])
        self.note("segment_alloc", segment["address"], total, self.frames.stack())
        return self.segments[-1]

    def carve(self, rounded):
        if rounded > SMALL_BYTES:
            place = self.segment(-(-rounded // (2 * MIB)) * 2 * MIB, "large")
        else:
            if self.current is None or self.current[1] + rounded > self.current[0]["total_size"]:
                self.current = self.segment(2 * MIB, "small")
            place = self.current
        segment, used = place
        block = {"address": segment["address"] + used, "size": rounded, "requested_size": 0, "state": "inactive",
                 "frames": []}
        segment["blocks"].append(block)
        place[1] += rounded
        self.block_of[block["address"]] = (segment, block)
        return block["address"]

    def alloc(self, size):
        rounded = -(-size // 512) * 512
        spare = self.free.get(rounded)
        address = spare.pop() if spare else self.carve(rounded)
        stack = self.frames.stack()
        self.note("alloc", address, size, stack)
        self.live[address] = size
        self.block_of[address][1].update(state="active_allocated", requested_size=size, frames=stack)
        return address

    def release(self, address):
        size = self.live.pop(address)
        stack = self.frames.stack()
        self.note("free_requested", address, size, stack)
        self.note("free_completed", address, size, stack)
        block = self.block_of[address][1]
        block.update(state="inactive", requested_size=0, frames=[])
        self.free.setdefault(block["size"], []).append(address)

    def finish(self):
        for segment, used in self.segments:
            if used < segment["total_size"]:
                segment["blocks"].append({"address": segment["address"] + used, "size": segment["total_size"] - used,
                                          "requested_size": 0, "state": "inactive", "frames": []})
            active = [block for block in segment["blocks"] if block["state"] != "inactive"]
            segment["allocated_size"] = segment["active_size"] = sum(block["size"] for block in active)
            segment["requested_size"] = sum(block["requested_size"] for block in active)
        return [segment for segment, _ in self.segments]


def train(heap, events, dice):
    """Weights that stay; steps of a forward and a backward pass with activations and workspaces."""
    layers = [(dice.randrange(1, 1 << dice.randrange(10, 25)), dice.randrange(1, 1 << dice.randrange(10, 23)))
              for _ in range(120)]
    for weight, _ in layers:
        heap.alloc(weight)
    while len(heap.trace) < events:
        kept = []
        for _, activation in layers:
            kept.append(heap.alloc(activation))
            if dice.random() < 0.6:
                heap.release(heap.alloc(dice.choice(layers)[1] * 2))
        while kept:
            gradient = heap.alloc(heap.live[kept[-1]])
            heap.release(kept.pop())
            heap.release(gradient)


def snapshot(events, seed, devices, keep):
    dice = random.Random(seed)
    frames = Frames(dice)
    heaps = [Heap(device, frames, dice) for device in range(devices)]
    for heap in heaps:
        train(heap, events // devices, dice)
    segments = [segment for heap in heaps for segment in heap.finish()]
    return {"segments": segments, "device_traces": [heap.trace[-keep:] for heap in heaps],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0, "expandable_segments": False,
                                   "roundup_power2_divisions": {str(1 << k): 0 for k in range(17)}},
            "external_annotations": []}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--protocol", type=int, default=4)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--keep", type=int, default=1 << 40)
    args = parser.parse_args()
    with open(args.file, "wb") as file:
        pickle.dump(snapshot(args.events, args.seed, args.devices, args.keep), file, protocol=args.protocol)


if __name__ == "__main__":
    main()
