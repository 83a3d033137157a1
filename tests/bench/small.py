# SPDX-License-Identifier: Apache-2.0
"""The two short measurements: a plan of ResNet-18, and the allocator by itself."""
import re

from measure import ROUNDS, bench_program, figures, headroom_program, json_of, knob_words, output_of, wanted

PLAN_SECONDS_WANTED = 1e-3  # at most
PAIR_NS_WANTED = 130        # at most, for 1 KiB with one live block: the fastest C++ allocators of its kind


def measure_plan(options):
    plans = 16 if options.quick else 1000
    argv = [headroom_program(), "plan", "resnet18_cifar", *knob_words(options.set), "--repeat", str(plans), "--json"]
    reports = [json_of(argv)[0] for _ in range(options.rounds)]
    return {"rounds": options.rounds, "preset": "resnet18_cifar", "plans_per_run": plans,
            "instructions": reports[0]["step"]["instructions"], "distinct_peaks": reports[0]["plan"]["distinct_peaks"],
            **figures([report["plan"]["seconds_median"] for report in reports], "plan_seconds"),
            "plan_seconds_of_the_slowest_plan": max(report["plan"]["seconds_max"] for report in reports),
            "plan_seconds_wanted": PLAN_SECONDS_WANTED}


def plan_table(result):
    return ["%s: %.3f ms a plan of %d instructions (want %.1f ms: %s), slowest single plan %.3f ms" % (
        result["preset"], result["plan_seconds"] * 1e3, result["instructions"], result["plan_seconds_wanted"] * 1e3,
        wanted(result["plan_seconds"], result["plan_seconds_wanted"], False),
        result["plan_seconds_of_the_slowest_plan"] * 1e3)]


def measure_allocator(_):
    """bench_bfc takes medians of 11 itself and has no knobs."""
    text, _ = output_of([bench_program("bfc")])
    rows = re.findall(r"^(.+?) +([\d.]+) ns a pair +\(fastest ([\d.]+)\)", text, re.MULTILINE)
    return {"rounds": ROUNDS, "pair_ns_wanted": PAIR_NS_WANTED,
            "heaps": [{"name": name, "pair_ns": float(ns), "pair_ns_fastest": float(best)} for name, ns, best in rows]}


def allocator_table(result):
    lines = ["%-44s %6.1f ns for an allocation and its release" % (heap["name"], heap["pair_ns"])
             for heap in result["heaps"]]
    first = result["heaps"][0]["pair_ns"]
    lines[0] += " (want %d: %s)" % (result["pair_ns_wanted"], wanted(first, result["pair_ns_wanted"], False))
    return lines
