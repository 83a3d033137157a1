# SPDX-License-Identifier: Apache-2.0
"""What explain takes on large files: a PyTorch snapshot of a gibibyte, as it is and under a limit that it does not fit,
and two TensorFlow logs of 100 MB, one of training with a dump at its end and one that is a dump alone.

The floor is every byte of the file added up, read through the same buffer. Below it no reader can be; a snapshot is
some 200 million opcodes, most of them references of 5 bytes to a frame, each at least a load of the memo and a store.
Seconds of a processor say what explain takes; those of the clock what one waits while the machine does other things."""
import os
import subprocess
import sys
import tempfile
import time

from measure import MIB, TOP, Unavailable, bench_program, environment, figures, headroom_program, json_of

EVENTS = 3_720_000  # of make_snapshot.py, seed 1: a gibibyte
LOG_BYTES = 105_000_000
REFUSED = 1  # the exit code of a memory that ran out
LIMIT = ["-s", "device.vram=128MiB"]
ROUNDS = 5  # a round of all takes a minute on a machine that does other things
# name: what makes the file, how it is asked, seconds wanted
FILES = {"snapshot": (["make_snapshot.py", "--events", EVENTS], [], 10),
         "snapshot_limit": (["make_snapshot.py", "--events", EVENTS], LIMIT, 10),
         "log_training": (["make_log.py", "--bytes", LOG_BYTES, "--chunks", 20_000], [], 2),
         "log_dump": (["make_log.py", "--bytes", LOG_BYTES], [], 2)}


def make(words, path, quick):
    shorter = [word // 64 if quick and isinstance(word, int) else word for word in words[1:]]
    subprocess.run([sys.executable, os.path.join(TOP, "tests/bench", words[0]), path, *map(str, shorter)], check=True)


def explain(path, options):
    """Seconds of the clock and of a processor, and the most resident bytes."""
    began = time.monotonic()
    child = subprocess.Popen([headroom_program(), "explain", path, *options], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, env=environment(), cwd=TOP)
    said = child.stderr.read()
    child.stderr.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, REFUSED):
        raise Unavailable("explain: exit %d: %s" % (child.returncode, said.decode(errors="replace").strip()))
    return {"seconds": time.monotonic() - began, "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "resident_bytes": usage.ru_maxrss * 1024}


def measure_file(path, options, wanted_seconds, rounds):
    floor = json_of([bench_program("snapshot"), path])[0]["floor_seconds"]
    runs = [explain(path, options) for _ in range(rounds)]
    return {"file_bytes": os.path.getsize(path), "options": options, "seconds_wanted": wanted_seconds,
            **figures([run["seconds"] for run in runs], "seconds"),
            **figures([run["cpu_seconds"] for run in runs], "cpu_seconds"),
            "floor_seconds": floor, "resident_bytes": max(run["resident_bytes"] for run in runs)}


def measure(options):
    rows, made, rounds = {}, {}, min(options.rounds, ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        for name, (words, asked, wanted_seconds) in FILES.items():
            key = str(words)
            if key not in made:
                made[key] = os.path.join(folder, "%d.%s" % (len(made), "pickle" if "snapshot" in name else "log"))
                make(words, made[key], options.quick)
            rows[name] = measure_file(made[key], asked, wanted_seconds, rounds)
    return {"rounds": rounds, "files": rows}


def table(result):
    lines = ["%-15s %9s %9s %9s %9s %9s %9s" % ("file", "MiB", "seconds", "fastest", "processor", "floor", "resident")]
    for name, row in result["files"].items():
        lines.append("%-15s %9.1f %9.2f %9.2f %9.2f %9.3f %5.0f MiB   want %d: %s" % (
            name, row["file_bytes"] / MIB, row["seconds"], row["seconds_fastest"], row["cpu_seconds"],
            row["floor_seconds"], row["resident_bytes"] / MIB, row["seconds_wanted"],
            "ok" if row["seconds"] <= row["seconds_wanted"] else "ABOVE"))
    return lines
