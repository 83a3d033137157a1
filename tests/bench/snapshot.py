# SPDX-License-Identifier: Apache-2.0
"""A PyTorch memory snapshot of a gibibyte, read as a trace: seconds, and the most resident memory.

The floor is the same file read through the same buffer with every byte added up: what memory and page cache allow."""
import json
import os
import subprocess
import sys
import tempfile

from measure import MIB, TOP, bench_program, figures, output_of, wanted

GIB = 1 << 30
EVENTS_PER_GIB = 3_720_000  # of make_snapshot.py, seed 1
SECONDS_WANTED = 10         # a GiB, at most
RESIDENT_BYTES_WANTED = 200 * MIB


def measure(options):
    events = EVENTS_PER_GIB // 64 if options.quick else EVENTS_PER_GIB
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        # a process of its own: resident memory of a child counts its parent's pages at the fork
        subprocess.run([sys.executable, os.path.join(TOP, "tests/bench/make_snapshot.py"), path, "--events",
                        str(events)],
                       check=True)
        runs = []
        for _ in range(options.rounds):
            text, resident_bytes = output_of([bench_program("snapshot"), path])
            runs.append({**json.loads(text), "resident_bytes": resident_bytes})
    first = runs[0]
    return {"rounds": options.rounds, "file_bytes": first["bytes"], "protocol": 4, "rows": first["rows"],
            "events": first["events"], "chunks": first["chunks"], "names": first["names"],
            **figures([run["read_seconds"] for run in runs], "read_seconds"),
            **figures([run["read_cpu_seconds"] for run in runs], "read_cpu_seconds"),
            **figures([run["floor_seconds"] for run in runs], "floor_seconds"),
            "resident_bytes": max(run["resident_bytes"] for run in runs),
            "read_seconds_of_a_gib_wanted": SECONDS_WANTED, "resident_bytes_wanted": RESIDENT_BYTES_WANTED}


def table(result):
    seconds = result["read_seconds"] * GIB / result["file_bytes"]
    return ["%.2f GiB, %d events: %.2f s, %.2f s a GiB (want %d: %s), %.2f s of a processor, floor %.2f s" % (
        result["file_bytes"] / GIB, result["events"], result["read_seconds"], seconds,
        result["read_seconds_of_a_gib_wanted"], wanted(seconds, result["read_seconds_of_a_gib_wanted"], False),
        result["read_cpu_seconds"], result["floor_seconds"]),
            "%.1f MiB resident at the most (want %d: %s)" % (
                result["resident_bytes"] / MIB, result["resident_bytes_wanted"] // MIB,
                wanted(result["resident_bytes"], result["resident_bytes_wanted"], False))]
