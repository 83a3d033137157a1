#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the snapshots beside it: PyTorch's heap after a refusal. tests/data/refused/make_refused.py

hole        350 MiB are refused: 250 free on the device, and 300 behind 100 in a segment of 400
forgotten   the same heap, whose trace has the refusal alone
untold      the same trace, without what the device had free
near_full   5 MiB are refused, for which PyTorch asks for a segment of 20, beside 12 that are free
second_gpu  the same on device 1, beside a device 0 that holds more and refused nothing"""
import os
import pickle

MIB = 1 << 20
BASE = 1 << 32


def entry(action, addr, mib, time_us):
    return {"action": action, "addr": addr, "size": mib * MIB, "stream": 0, "time_us": time_us, "frames": []}


def block(address, mib, state):
    return {"address": address, "size": mib * MIB, "requested_size": mib * MIB if "active" in state[:6] else 0,
            "state": state, "frames": []}


def segment(device, blocks):
    total = sum(b["size"] for b in blocks)
    return {"device": device, "address": blocks[0]["address"], "total_size": total, "stream": 0,
            "segment_type": "large", "frames": [], "blocks": blocks}


def refusal(told, mib=350, free_mib=250):
    e = {"action": "oom", "size": mib * MIB, "stream": 0, "time_us": 9, "frames": []}
    return dict(e, device_free=free_mib * MIB) if told else e


def history(told=True):
    return [entry("segment_alloc", BASE, 400, 1), entry("alloc", BASE, 400, 2),
            entry("free_requested", BASE, 400, 3), entry("free_completed", BASE, 400, 4),
            entry("alloc", BASE, 100, 5), refusal(told)]


def heap(device=0):
    return segment(device, [block(BASE, 100, "active_allocated"), block(BASE + 100 * MIB, 300, "inactive")])


def snapshots():
    full = segment(0, [block(BASE, 600, "active_allocated")])
    taken = [entry("segment_alloc", BASE, 600, 1), entry("alloc", BASE, 600, 2)]
    return {"near_full": {"segments": [full], "device_traces": [taken + [refusal(True, 5, 12)]]},
            "hole": {"segments": [heap()], "device_traces": [history()]},
            "forgotten": {"segments": [heap()], "device_traces": [[refusal(True)]]},
            "untold": {"segments": [heap()], "device_traces": [history(False)]},
            "second_gpu": {"segments": [full, heap(1)], "device_traces": [taken, history()]}}


for name, made in snapshots().items():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".pickle"), "wb") as file:
        file.write(pickle.dumps(made, 4))
