# SPDX-License-Identifier: Apache-2.0
"""The allocators by themselves, in nanoseconds, beside TensorFlow's and PyTorch's own, glibc and mimalloc."""
import os
import re
import subprocess

from measure import ROUNDS, bench_program, median, output_of, wanted

PAIR_NS_WANTED = 60 # at most, for 1 KiB with one live block, bfc and caching
EVENTS_PER_SECOND_WANTED = 10e6 # at least, of a replay of a million events shaped like training
PEERS = {"TensorFlow": "tensorflow_bfc", "PyTorch": "pytorch_caching"}
PEER_CASES = {"1": "1 KiB, one live block", "100": "1 KiB, 100 live, then all freed",
              "1000": "1 KiB, 1000 live, then all freed", "training": "a request of the stream `training`"}
MIMALLOC = ["/usr/lib/x86_64-linux-gnu/libmimalloc.so.2", "/usr/lib/aarch64-linux-gnu/libmimalloc.so.2"]


def rows_of(text):
    found = re.findall(r"^(\S+) +(.+?) +([\d.]+) ns +\(fastest ([\d.]+)\)", text, re.MULTILINE)
    return [{"allocator": kind, "heap": heap, "ns": float(ns), "ns_fastest": float(best)}
            for kind, heap, ns, best in found]


def measure_malloc(name, **variables):
    rows = rows_of(output_of([bench_program("allocators"), "malloc"], **variables)[0])
    return [dict(row, allocator=name) for row in rows]


def measure_peer(name, program):
    """Nothing when the peer cannot be had here: its script says why."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", program)
    done = subprocess.run([script, "time"], stdout=subprocess.PIPE, text=True, check=False)
    times = {}
    for word, ns in re.findall(r"^(\S+) ([\d.]+)$", done.stdout, re.MULTILINE):
        times.setdefault(word, []).append(float(ns))
    return [{"allocator": name, "heap": PEER_CASES[word], "ns": median(values), "ns_fastest": min(values)}
            for word, values in times.items()]


def measure_replays():
    text, _ = output_of([bench_program("replay")])
    return [{"allocator": kind, "what": what, "ns_an_event": float(ns)} for kind, what, ns in re.findall(
        r"^(\S+) +(.+?) +([\d.]+) ns an event", text, re.MULTILINE)]


def measure(_):
    """bench_allocators takes medians of 11 itself and has no knobs."""
    rows = rows_of(output_of([bench_program("allocators")])[0])
    for name, program in PEERS.items():
        rows += measure_peer(name, program)
    rows += measure_malloc("glibc")
    mimalloc = [path for path in [os.environ.get("HEADROOM_MIMALLOC", "")] + MIMALLOC if os.path.exists(path)]
    if mimalloc:
        rows += measure_malloc("mimalloc", LD_PRELOAD=mimalloc[0])
    return {"rounds": ROUNDS, "pair_ns_wanted": PAIR_NS_WANTED, "heaps": rows,
            "events_per_second_wanted": EVENTS_PER_SECOND_WANTED, "replays": measure_replays()}


def table(result):
    names = list(dict.fromkeys(row["allocator"] for row in result["heaps"]))
    cases = list(dict.fromkeys(row["heap"] for row in result["heaps"]))
    ns = {(row["allocator"], row["heap"]): row["ns"] for row in result["heaps"]}
    lines = ["%-42s" % "ns for an allocation and its release" + "".join("%11s" % name for name in names)]
    for case in cases:
        lines.append("%-42s" % case + "".join("%11s" % ("%.1f" % ns[name, case] if (name, case) in ns else "–")
                                              for name in names))
    for name in ("bfc", "caching"):
        if (name, cases[0]) in ns:
            lines.append("%s: %.1f ns a pair (want %d: %s)" % (name, ns[name, cases[0]], result["pair_ns_wanted"], wanted(
                ns[name, cases[0]], result["pair_ns_wanted"], False)))
    for row in result["replays"]:
        lines.append("%-8s %-24s %6.1f million events a second" % (row["allocator"], row["what"], 1e3 / row["ns_an_event"]))
    return lines
