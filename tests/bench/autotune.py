# SPDX-License-Identifier: Apache-2.0
"""pipeline.autotune beside every setting by hand, for steps that hide making, balance it, and wait for it."""
import statistics

from measure import bench_program, json_of, wanted

SHARE_WANTED = 0.95  # of the best by hand, at least
SIDE, BATCH = 128, 32
STEPS_MS = (2, 8, 16)  # of one core


def case_of(step_ms, rounds):
    found, _ = json_of([bench_program("autotune"), str(SIDE), str(BATCH), str(step_ms), str(rounds)])
    settings = [{**each, "batches_per_second": statistics.median(each["batches_per_second"])} for each in found["settings"]]
    best = max((each for each in settings if each["by"] == "hand"), key=lambda each: each["batches_per_second"])
    shares = {each["by"]: each["batches_per_second"] / best["batches_per_second"] for each in settings if each["by"] != "hand"}
    return {"step_ms": step_ms, "best_by_hand": best, "share_of_best": shares, "settings": settings}


def measure_autotune(options):
    rounds = 21 if options.rounds == 11 else min(options.rounds, 21)  # this machine does other things too
    steps = STEPS_MS[:1] if options.quick else STEPS_MS
    return {"rounds": rounds, "side": SIDE, "batch": BATCH, "seconds_to_settle": 10, "share_wanted": SHARE_WANTED,
            "cases": [case_of(step, rounds) for step in steps]}


def table(result):
    lines = []
    for case in result["cases"]:
        best = case["best_by_hand"]
        lines.append("step of %d ms: best by hand %.1f batches/s (map_threads=%d prefetch=%d)" % (
            case["step_ms"], best["batches_per_second"], best["map_threads"], best["prefetch"]))
        for each in case["settings"]:
            if each["by"] != "hand":
                share = case["share_of_best"][each["by"]]
                lines.append("  %-10s %.1f batches/s (map_threads=%d prefetch=%d): %.3f of it (want %.2f: %s)" % (
                    each["by"], each["batches_per_second"], each["map_threads"], each["prefetch"], share,
                    result["share_wanted"], wanted(share, result["share_wanted"], True)))
    return lines
