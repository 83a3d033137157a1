#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_snapshot.py FILE.pickle: whether a memory snapshot is what PyTorch writes and what its viewer can draw.

Loads it with Python's own pickle, from which every class is withheld; checks every key's type; blocks tile their
segments; then walks the events backwards from the segments, as the viewer does, and forwards: what an event allocates
is free before it and lies in a segment behind it, what it releases lives before it. Prints one JSON object with sums.
"""
import io
import json
import pickle
import pickletools
import sys

SEGMENT = {"device": int, "address": int, "total_size": int, "allocated_size": int, "active_size": int,
           "requested_size": int, "stream": int, "segment_type": str, "segment_pool_id": tuple, "is_expandable": bool,
           "frames": list, "blocks": list}
BLOCK = {"address": int, "size": int, "requested_size": int, "state": str, "frames": list}
ENTRY = {"action": str, "size": int, "stream": int, "time_us": int, "frames": list}
FRAME = {"name": str, "filename": str, "line": int}
STATES = ("active_allocated", "active_pending_free", "inactive")
ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "snapshot", "oom")
# What PyTorch's MemoryViz.js can read.
OPCODES = set("PROTO FRAME MARK STOP MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET EMPTY_DICT SETITEM SETITEMS DICT "
              "EMPTY_LIST APPEND APPENDS LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 BININT BININT1 BININT2 LONG1 "
              "BINFLOAT NEWTRUE NEWFALSE NONE SHORT_BINUNICODE BINUNICODE".split())


class PlainData(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("a class: %s.%s" % (module, name))


def must(holds, *what):
    if not holds:
        sys.exit("check_snapshot.py: " + " ".join(str(word) for word in what))


def check_opcodes(data):
    """Known opcodes, protocol at most 4, at most 1000 items a batch."""
    marks = []
    for opcode, argument, position in pickletools.genops(data):
        must(opcode.name in OPCODES, "byte", position, "has the opcode", opcode.name)
        must(opcode.name != "PROTO" or 2 <= argument <= 4, "protocol", argument)
        if opcode.name == "MARK":
            marks.append(0)
        elif opcode.name in ("APPENDS", "SETITEMS"):
            limit = 1000 if opcode.name == "APPENDS" else 2000  # keys and values
            must(marks.pop() <= limit, "byte", position, "ends a batch of more than 1000 items")
        elif marks and opcode.stack_after and not opcode.stack_before:
            marks[-1] += 1


def check_keys(thing, keys):
    for key, kind in keys.items():
        must(type(thing.get(key)) is kind, key, "is", type(thing.get(key)), "in", thing)
    for frame in thing.get("frames", ()):
        must(all(type(frame.get(key)) is kind for key, kind in FRAME.items()), "frame", frame)


def check_segment(segment):
    check_keys(segment, SEGMENT)
    must(segment["segment_type"] in ("small", "large"), segment["segment_type"])
    address = segment["address"]
    sums = {"allocated_size": 0, "active_size": 0, "requested_size": 0}
    for block in segment["blocks"]:
        check_keys(block, BLOCK)
        must(block["state"] in STATES, block["state"])
        must(block["address"] == address and block["size"] > 0, "block", block, "is not at", address)
        must(block["requested_size"] <= block["size"], "block", block)
        address += block["size"]
        if block["state"] != "inactive":
            sums["allocated_size"] += block["size"] if block["state"] == "active_allocated" else 0
            sums["active_size"] += block["size"]
            sums["requested_size"] += block["requested_size"]
    must(address == segment["address"] + segment["total_size"], "segment", segment["address"], "is not tiled")
    must(all(segment[key] == value for key, value in sums.items()), "segment", segment["address"], "sums", sums)


def live_blocks(segments):
    return {block["address"]: block["requested_size"] for segment in segments for block in segment["blocks"]
            if block["state"] != "inactive"}


def without(ranges, start, size):
    """The mapped ranges {start: size} without a part of one of them, or None when no range has it."""
    for low, total in ranges.items():
        if low <= start and start + size <= low + total:
            rest = {other: length for other, length in ranges.items() if other != low}
            rest.update({low: start - low} if start > low else {})
            rest.update({start + size: low + total - start - size} if start + size < low + total else {})
            return rest
    return None


def joined(ranges):
    """The same with neighbours as one."""
    whole = {}
    for start, size in sorted(ranges.items()):
        last = max(whole, default=None)
        if last is not None and last + whole[last] == start:
            whole[last] += size
        else:
            whole[start] = size
    return whole


def check_trace(trace, segments):
    """Returns what stood before the first event, and the requested bytes alive then, at the peak and at the end."""
    live = live_blocks(segments)
    mapped = {segment["address"]: segment["total_size"] for segment in segments}
    end = sum(live.values())
    for entry in reversed(trace):
        check_keys(entry, ENTRY)
        action, size = entry["action"], entry["size"]
        must(action in ACTIONS, action)
        must(type(entry.get("device_free" if action == "oom" else "addr")) is int, entry)
        if action == "alloc":
            must(live.pop(entry["addr"], None) == size, "alloc of", entry, "does not live behind it")
            must(any(start <= entry["addr"] < start + total for start, total in mapped.items()), entry, "in no segment")
        elif action == "free_completed":
            must(entry["addr"] not in live, entry, "lives behind its release")
            live[entry["addr"]] = size
        elif action == "free_requested":
            must(live.get(entry["addr"]) == size, entry, "does not live before its release")
        elif action in ("segment_alloc", "segment_map"):
            must(action == "segment_map" or mapped.get(entry["addr"]) == size, entry, "is no segment behind it")
            mapped = without(mapped, entry["addr"], size)
            must(mapped is not None, entry, "is in no segment behind it")
            must(not any(entry["addr"] <= address < entry["addr"] + size for address in live), entry, "was in use")
        elif action in ("segment_free", "segment_unmap"):
            must(not any(low < entry["addr"] + size and entry["addr"] < low + total for low, total in mapped.items()),
                 entry, "is mapped behind its release")
            mapped = joined({**mapped, entry["addr"]: size}) if action == "segment_unmap" else {
                **mapped, entry["addr"]: size}
    start = peak = now = sum(live.values())
    for earlier, later in zip(trace, trace[1:]):
        must(earlier["time_us"] <= later["time_us"], later, "lies before the one ahead of it")
    for entry in trace:
        now += entry["size"] if entry["action"] == "alloc" else 0
        now -= entry["size"] if entry["action"] == "free_completed" else 0
        peak = max(peak, now)
    must(now == end, "requested bytes at the end are", now, "by events and", end, "by blocks")
    return {"start_segments": len(mapped), "start_bytes": start, "peak_requested_bytes": peak, "end_bytes": end,
            "entries": len(trace)}


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    check_opcodes(data)
    snapshot = PlainData(io.BytesIO(data)).load()
    must(type(snapshot) is dict, "the pickle is no dictionary")
    for key, kind in (("segments", list), ("device_traces", list), ("allocator_settings", dict)):
        must(type(snapshot.get(key)) is kind, key, "is missing")
    for segment in snapshot["segments"]:
        check_segment(segment)
    places = [(segment["device"], segment["address"]) for segment in snapshot["segments"]]
    must(places == sorted(places), "segments are not sorted")
    must(all(device < len(snapshot["device_traces"]) for device, _ in places), "a segment's device has no trace")
    traces = [check_trace(trace, [s for s in snapshot["segments"] if s["device"] == device])
              for device, trace in enumerate(snapshot["device_traces"])]
    names = {frame["name"] for trace in snapshot["device_traces"] for entry in trace for frame in entry["frames"]}
    print(json.dumps({"devices": traces, "segments": len(places), "names": len(names)}))


if __name__ == "__main__":
    main(sys.argv[1])
