#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first corpus of the targets torch_snapshot and pickle: small snapshots of every shape that PyTorch has
written, and pickles that must not be read. tests/fuzz/make_snapshots.py FOLDER"""
import os
import pickle
import struct
import sys

FRAMES = [{"name": "at::empty", "filename": "??", "line": 0},
          {"name": "linear", "filename": "/x/torch/nn/functional.py", "line": 114},
          {"name": "forward", "filename": "/home/me/model.py", "line": 31},
          {"name": "main", "filename": "/home/me/train.py", "line": 99}]
OTHER = [FRAMES[0], {"name": "step", "filename": "/home/me/optim.py", "line": 7}]


def entry(action, addr, size, time_us, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, **more}


def block(address, size, state, requested=0, frames=()):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": list(frames)}


def segment(address, blocks, device=0, kind="small", stream=0, expandable=False):
    total = sum(b["size"] for b in blocks)
    return {"device": device, "address": address, "total_size": total, "allocated_size": 0, "active_size": 0,
            "requested_size": 0, "stream": stream, "segment_type": kind, "segment_pool_id": (0, 0),
            "is_expandable": expandable, "frames": [], "blocks": blocks}


def plain():
    trace = [entry("segment_alloc", 0x1000, 4096, 10), entry("alloc", 0x1000, 500, 11, frames=FRAMES),
             entry("alloc", 0x1200, 900, 12, frames=OTHER, user_metadata="step 1", compile_context="N/A"),
             entry("free_requested", 0x1000, 500, 13), entry("free_completed", 0x1000, 500, 14),
             entry("snapshot", 0, 0, 15), {"action": "oom", "device_free": 7, "size": 99, "stream": 0, "time_us": 16}]
    blocks = [block(0x1000, 512, "inactive"), block(0x1200, 1024, "active_allocated", 900, OTHER),
              block(0x1600, 2560, "inactive")]
    return {"segments": [segment(0x1000, blocks)], "device_traces": [trace],
            "allocator_settings": {"max_split_size": -1, "garbage_collection_threshold": 0.5,
                                   "expandable_segments": True,
                                   "roundup_power2_divisions": {"1": 0, "2": 4}},
            "external_annotations": [{"name": "ProfilerStep#1", "stage": "START", "device": 0, "time_us": 11}]}


def ring():
    """Two devices; blocks from before the first event on both."""
    first = [entry("free_completed", 0x2000, 700, 5), entry("alloc", 0x2000, 800, 6),
             entry("free_requested", 0x2400, 9, 9)]
    second = [entry("alloc", 0x2000, 10, 7), entry("segment_map", 0x9000, 2048, 8), entry("alloc", 0x2000, 20, 8)]
    segments = [segment(0x2000, [block(0x2000, 1024, "active_allocated", 800),
                                 block(0x2400, 512, "active_pending_free", 9),
                                 block(0x2600, 512, "active_allocated", 300, FRAMES)], kind="large", stream=0x7f00),
                segment(0x2000, [block(0x2000, 2048, "active_allocated", 20)], device=1, expandable=True)]
    return {"device_traces": [first, second], "segments": segments}


def legacy():
    past = [{"addr": 0x1000, "real_size": 300, "frames": FRAMES}, {"addr": 0x1000, "real_size": 400, "frames": OTHER}]
    blocks = [{"size": 512, "state": "active_allocated", "history": past}, {"size": 1536, "state": "inactive"}]
    return [{"device": 0, "address": 0x1000, "total_size": 2048, "stream": 0, "segment_type": "small",
             "blocks": blocks}]


def by_hand():
    """Protocol 2 as a C++ writer has it: every item of a list between two marks, whole numbers of 8 bytes, no memo."""
    def text(word):
        return b"X" + struct.pack("<I", len(word)) + word.encode()

    def whole(value):
        return b"\x8a\x08" + struct.pack("<q", value)

    rows = b"".join(b"}(" + text("action") + text("alloc") + text("addr") + whole(64 * k) + text("size") + whole(64) +
                    text("stream") + whole(0) + text("time_us") + whole(k) + b"u" for k in range(1, 60))
    return b"\x80\x02}(" + text("segments") + b"]" + text("device_traces") + b"](](" + rows + b"eeu."


def main(folder):
    files = {"empty_traces": pickle.dumps({"segments": [], "device_traces": [[], []]}, 4), "by_hand": by_hand(),
             "global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.", "deep": b"\x80\x02" + b"](" * 90,
             "set": pickle.dumps({"segments": {1}}, 4),
             "types": pickle.dumps([None, True, 1.5, 1 << 60, -3, b"x", (), (1,)], 4)}
    for name, made in (("plain", plain), ("ring", ring), ("legacy", legacy)):
        for protocol in (2, 4, 5):
            files["%s_%d" % (name, protocol)] = pickle.dumps(made(), protocol)
    for name, data in files.items():
        with open(os.path.join(folder, name + ".pickle"), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main(sys.argv[1])
