# SPDX-License-Identifier: Apache-2.0
"""The short measurement: a plan of ResNet-18."""
from measure import figures, headroom_program, json_of, knob_words, wanted

PLAN_SECONDS_WANTED = 1e-3  # at most


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
