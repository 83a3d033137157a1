# SPDX-License-Identifier: Apache-2.0
"""How long a what-if takes, in one process: plans on a card file, plans on the cpu device with remembered workspace
answers, and there the first plans at new shapes with nothing remembered. Beside them PyTorch's own way to ask without
a card: its memory tracker over a step of fake tensors (peers/pytorch_whatif.py)."""
import tempfile

from measure import figures, headroom_program, json_of, knob_words, peer_python, wanted

SHAPES = 16  # of plan --repeat: the i-th plan is at batch.size + i mod 16
FIRST_WANTED = 0.100
# wanted: at most, for a plan with remembered answers. batch: the least of the shapes, on the card and on the cpu.
CASES = [
    {"preset": "resnet50", "batch": 64, "optimizer": "momentum", "wanted": 1e-3},
    {"preset": "bert_base", "batch": 8, "optimizer": "adamw", "wanted": 1e-3},
    {"preset": "gpt2_1558m", "batch": 2, "optimizer": "adamw", "wanted": 2e-3},
]
CPU = ["device.kind=cpu", "device.card=h200-141g", "threads.count=2"]
PLANS, NEW_ROUNDS = 400, 3


def repeated(case, knobs, plans, cache):
    options = knob_words(["batch.size=%d" % case["batch"], *knobs])
    report, _ = json_of([headroom_program(), "plan", case["preset"], *options, "--repeat", str(plans), "--json"],
                        XDG_CACHE_HOME=cache)
    return report


def plans_of(case, knobs, plans, options):
    """Medians of runs, each of them the median of its plans; the first run fills the cache."""
    with tempfile.TemporaryDirectory() as cache:
        repeated(case, knobs, SHAPES, cache)
        reports = [repeated(case, knobs, plans, cache) for _ in range(options.rounds)]
    return {"instructions": reports[0]["step"]["instructions"], "distinct_peaks": reports[0]["plan"]["distinct_peaks"],
            **figures([report["plan"]["seconds_median"] for report in reports], "plan_seconds"),
            "plan_seconds_of_the_slowest_plan": max(report["plan"]["seconds_max"] for report in reports)}


def first_plans_of(case, knobs):
    """With an empty cache each of the first plans of a process meets new shapes, but for the one that --repeat has
    behind it already."""
    reports = []
    for _ in range(NEW_ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            reports.append(repeated(case, knobs, SHAPES, cache))
    return {**figures([report["plan"]["seconds_median"] for report in reports], "first_plan_seconds"),
            "first_plan_seconds_of_the_slowest_plan": max(report["plan"]["seconds_max"] for report in reports)}


def peer_of(python, case, options):
    argv = [python, "tests/bench/peers/pytorch_whatif.py", case["preset"], str(case["batch"]), case["optimizer"],
            "1" if options.quick else "2"]
    return json_of(argv)[0]


def measure_case(case, python, options):
    plans = 4 * SHAPES if options.quick else PLANS
    return {"preset": case["preset"], "batch": case["batch"], "plan_seconds_wanted": case["wanted"],
            "card": plans_of(case, options.set, plans, options),
            "cpu": plans_of(case, CPU + options.set, plans, options),
            "new_shapes": first_plans_of(case, CPU + options.set), "peer": peer_of(python, case, options)}


def measure(options):
    python = peer_python()
    cases = [measure_case(case, python, options) for case in CASES]
    return {"versions": {"peer": cases[0]["peer"]["peer"]}, "rounds": options.rounds,
            "plans_per_run": 4 * SHAPES if options.quick else PLANS, "first_plan_seconds_wanted": FIRST_WANTED,
            "cases": cases}


def table(result):
    lines = []
    for case in result["cases"]:
        line = "%-11s" % case["preset"]
        for where in ("card", "cpu"):
            line += "  %s %.3f ms (want %.0f ms: %s)" % (
                where, case[where]["plan_seconds"] * 1e3, case["plan_seconds_wanted"] * 1e3,
                wanted(case[where]["plan_seconds"], case["plan_seconds_wanted"], False))
        first = case["new_shapes"]
        line += "  new shapes there %.1f ms, slowest %.1f (want %.0f ms: %s)" % (
            first["first_plan_seconds"] * 1e3, first["first_plan_seconds_of_the_slowest_plan"] * 1e3,
            FIRST_WANTED * 1e3, wanted(first["first_plan_seconds_of_the_slowest_plan"], FIRST_WANTED, False))
        lines.append(line + "  pytorch %.0f ms, %.0f times" % (
            case["peer"]["plan_seconds"] * 1e3, case["peer"]["plan_seconds"] / case["card"]["plan_seconds"]))
    return lines
