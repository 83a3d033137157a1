# SPDX-License-Identifier: Apache-2.0
"""The packer: the challenging problems of minimalloc and two programs' lifetimes (where HEADROOM_PACKING or
../shared/data/packing has them), and programs made up here, in processor time of one thread."""
import glob
import os
import re

from measure import TOP, bench_program, median, output_of, wanted

CAPACITY_BYTES = 1048576
SEEDS = (0, 1, 2)
FIT_SECONDS_WANTED = 1     # each of A to G within its capacity, at most
FIT_ALL_SECONDS_WANTED = 3 # all of them, at most
LINE = re.compile(r"^(.+?) +(\d+)  offsets +\+([\d.]+) % +([\d.]+) ms  search +\+([\d.]+) % +([\d.]+) ms +(\d+) (\w+)",
                  re.MULTILINE)


def files(pattern):
    folder = os.environ.get("HEADROOM_PACKING", os.path.join(TOP, "../shared/data/packing"))
    return sorted(glob.glob(os.path.join(folder, pattern)))


def rows_of(arguments):
    text, _ = output_of([bench_program("pack"), *arguments])
    return [{"problem": name, "buffers": int(buffers), "first_gap_percent": float(first), "first_ms": float(first_ms),
             "gap_percent": float(gap), "ms": float(ms), "height_bytes": int(height), "state": state}
            for name, buffers, first, first_ms, gap, ms, height, state in LINE.findall(text)]


def measure(options):
    challenging, programs = files("[A-K].%d.csv" % CAPACITY_BYTES), files("G_1.csv") + files("resnet50.csv")
    seeds = SEEDS[:1] if options.quick else SEEDS
    fits = [rows_of(["-c", str(CAPACITY_BYTES), "-s", "30", "-r", str(seed), *challenging]) for seed in seeds]
    least = [] if options.quick or not challenging else rows_of(["-s", "60", *challenging])
    return {"rounds": options.rounds, "seeds": list(seeds), "capacity_bytes": CAPACITY_BYTES,
            "fit_seconds_wanted": FIT_SECONDS_WANTED, "fit_all_seconds_wanted": FIT_ALL_SECONDS_WANTED,
            "fits": [dict(rows[0], ms=median([row["ms"] for row in rows]), ms_all=[row["ms"] for row in rows])
                     for rows in zip(*fits)],
            "fit_all_seconds": [sum(row["ms"] for row in rows) / 1e3 for rows in fits],
            "least": least, "programs": (rows_of(["-s", "5", *programs]) if programs else []) + rows_of(["-s", "5", "-g"])}


def table(result):
    lines = ["%-18s fits %d in %8.1f ms (want %d s: %s)" % (
        row["problem"], result["capacity_bytes"], row["ms"], result["fit_seconds_wanted"],
        wanted(row["ms"] / 1e3, result["fit_seconds_wanted"], False)) for row in result["fits"]]
    if result["fits"]:
        lines.append("together %.2f s at the most (want %d: %s)" % (
            max(result["fit_all_seconds"]), result["fit_all_seconds_wanted"],
            wanted(max(result["fit_all_seconds"]), result["fit_all_seconds_wanted"], False)))
    lines += ["%-18s minimised to %d (%s) in %.1f ms" % (row["problem"], row["height_bytes"], row["state"], row["ms"])
              for row in result["least"]]
    lines += ["%-18s %6d buffers: first +%.4f %% in %.1f ms, then +%.4f %% in %.1f ms (%s)" % (
        row["problem"], row["buffers"], row["first_gap_percent"], row["first_ms"], row["gap_percent"], row["ms"],
        row["state"]) for row in result["programs"]]
    return lines
