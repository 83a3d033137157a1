# SPDX-License-Identifier: Apache-2.0
"""What masks cost in a step, by the times of its instructions (headroom run --times): what its updates and its pruning need more
than the updates of the same step without masks, a run of which stands beside it. The least time of each instruction counts,
so that the machine's other work is in neither. In most updates the update reads the mask, 4 bytes a float32 weight; beside it
stands what the fastest large copy of this machine needs for as many bytes, measured in the same minute. A mask that is
made anew in every update is the other end: the schedule's default makes one in a hundred."""
import csv
import os
import tempfile

from measure import bench_program, figures, headroom_program, json_of, knob_words, output_of, wanted

CASES = [("cifar10_separable_cnn", ["batch.size=128"]), ("mlp", ["batch.size=128"]), ("resnet18_cifar", ["batch.size=16"])]
APPLIED, MADE = "constant:0.5:1000000", "constant:0.5:0:-1:1"
FREQUENCY = 100  # tfmot's
SHARE_WANTED = 0.03  # of a step, at most
THREADS = 2


def times_of(preset, knobs, options):
    """Least seconds of all instructions, and of updates with their pruning; bytes of the latter. Per step."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "times.csv")
        output_of([headroom_program(), "run", preset, *knob_words(knobs + options.set), "--steps",
                   "3" if options.quick else "7", "--times", path])
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    updates = [row for row in rows if row["family"] == "update"]
    return [sum(int(row["least_ns"]) for row in some) / 1e9 for some in (rows, updates)], \
        sum(int(row["bytes_moved"]) for row in updates)


def measure_case(preset, knobs, options):
    knobs = [*knobs, "device.kind=cpu", "device.vram=8GiB", "threads.count=%d" % THREADS]
    shares, seconds, made, moved = [], [], [], 0
    for _ in range(options.rounds):
        (_, plain), without = times_of(preset, knobs, options)
        (step, masked), moved = times_of(preset, [*knobs, "compress.prune=" + APPLIED], options)
        shares.append((masked - plain) / step)
        seconds.append(masked - plain)
        moved -= without
        (_, anew), _ = times_of(preset, [*knobs, "compress.prune=" + MADE], options)
        made.append(anew - plain)
    return {"preset": preset, "knobs": knobs, "bytes_moved": moved, **figures(seconds, "prune_seconds"),
            **figures(shares, "share_of_step"), **figures(made, "made_anew_seconds")}


def measure(options):
    cases = [measure_case(preset, knobs, options) for preset, knobs in CASES[:1 if options.quick else None]]
    copy = json_of([bench_program("ceiling"), str(THREADS)])[0]["copy_bytes_per_second"]
    floors = [{"preset": case["preset"], "floor_seconds": case["bytes_moved"] / copy} for case in cases]
    return {"floor": floors, "copy_bytes_per_second": copy, "share_of_step_wanted": SHARE_WANTED, "rounds": options.rounds,
            "cases": cases}


def table(result):
    lines = ["%-22s %9s %9s %8s %12s %14s" % ("", "floor ms", "masked ms", "of step", "", "made anew ms")]
    for floor, case in zip(result["floor"], result["cases"]):
        share = case["share_of_step"]
        lines.append("%-22s %9.3f %9.3f %7.2f%% %12s %14.3f" % (
            case["preset"], floor["floor_seconds"] * 1e3, case["prune_seconds"] * 1e3, share * 100,
            "(want %d%%: %s)" % (SHARE_WANTED * 100, wanted(share, SHARE_WANTED, False)),
            case["made_anew_seconds"] * 1e3))
    return lines
