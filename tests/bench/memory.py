# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a training step against PyTorch's: the same model, batch and optimizer, gradients set to None.

Ours is peak_in_use_bytes, of a run for the seven models of `speed`, of a plan on the cpu device (the same bytes) for
the larger ones. PyTorch's is its profiler's (peers/pytorch_memory.py), in the layout that takes less. The seven also
show what checkpoint.strategy=selective costs: its steps stand beside those without it in the same rounds.
"""
from cases import CASES, EAGER, GRAPH, LARGE, knobs_of, preset_path
from measure import (MIB, Unavailable, figures, geometric_mean, headroom_program, json_of, knob_words, median,
                     peer_python, wanted)

THREADS = 2
SELECTIVE = GRAPH + ["checkpoint.strategy=selective"]
STEPS = 3
LARGE_CARD = ["device.kind=cpu", "device.card=h200-141g"]
RATIO_WANTED = 1.0             # at most, of every model in graph mode
GEOMETRIC_MEAN_WANTED = 0.85
SELECTIVE_RATIO_WANTED = 0.6
SELECTIVE_SECONDS_WANTED = 1.1


class Mode:
    """One way to run a case: its name, its knobs, what was found."""

    def __init__(self, name, case, knobs, more):
        self.name, self.seconds, self.report = name, [], None
        self.options = [preset_path(case["preset"]), *knob_words(knobs_of(case, knobs + more, THREADS)), "--json"]

    def run(self):
        self.report, _ = json_of([headroom_program(), "run", *self.options, "--steps", str(STEPS)])
        self.seconds.append(self.report["step"]["seconds"])

    def plan(self):
        self.report, _ = json_of([headroom_program(), "plan", *self.options])

    def result(self, peer_bytes):
        memory = self.report["memory"]
        measured = figures(self.seconds, "step_seconds") if self.seconds else {}
        return {"mode": self.name, **{key: memory[key] for key in (
            "peak_in_use_bytes", "peak_requested_bytes", "saved_for_backward_bytes", "static_bytes")},
            "at_peak": memory["at_peak"]["name"], "ratio": memory["peak_in_use_bytes"] / peer_bytes, **measured}


def peer_of(python, case):
    """The layout that takes less."""
    found = []
    for layout in case["layouts"]:
        argv = [python, "tests/bench/peers/pytorch_memory.py", case["preset"], str(case["batch"]), case["optimizer"],
                layout, "float32", str(THREADS)]
        found.append({"layout": layout, **json_of(argv)[0]})
    return min(found, key=lambda peer: peer["peak_bytes"])


def modes_of(case, more):
    modes = [Mode("graph", case, GRAPH, more), Mode("eager", case, EAGER, more),
             Mode("selective", case, SELECTIVE, more)]
    return modes


def run_modes(modes, rounds):
    """The eager ones once, for their memory; graph and selective in turn, for their time."""
    timed = [mode for mode in modes if mode.name in ("graph", "selective")]
    for mode in modes:
        if mode not in timed:
            mode.run()
    for index in range(rounds):
        for mode in timed if index % 2 == 0 else timed[::-1]:
            mode.run()


def measure_case(case, python, options):
    peer = peer_of(python, case)
    large = "name" not in case
    modes = modes_of(case, (LARGE_CARD if large else []) + options.set)
    if large:
        for mode in modes:
            mode.plan()
    else:
        run_modes(modes, options.rounds)
    for mode in modes:
        if mode.report["model"]["trainable_parameters"] != peer["parameters"]:
            raise Unavailable("%s: the peer trains another model (%d parameters)" % (case["preset"],
                                                                                    peer["parameters"]))
    result = {"preset": case["preset"], "batch": case["batch"], "optimizer": case["optimizer"],
              "source": "plan" if large else "run", "peer": peer,
              "modes": [mode.result(peer["peak_bytes"]) for mode in modes]}
    if not large:
        by_name = {mode.name: mode.seconds for mode in modes}
        result["selective_seconds_ratio"] = median([s / g for s, g in zip(by_name["selective"], by_name["graph"])])
    return result


def summary(cases, mode):
    ratios = {c["preset"]: m["ratio"] for c in cases for m in c["modes"] if m["mode"] == mode}
    worst = max(ratios, key=ratios.get)
    return {"mode": mode, "geometric_mean": geometric_mean(ratios.values()), "largest": ratios[worst],
            "largest_of": worst}


def measure(options):
    python = peer_python()
    cases = [measure_case(case, python, options) for case in CASES if case["counts"]]
    cases += [measure_case(case, python, options) for case in (LARGE[:1] if options.quick else LARGE)]
    return {"versions": {"peer": cases[0]["peer"]["peer"]}, "threads": THREADS, "rounds": options.rounds,
            "summaries": [summary(cases, mode) for mode in ("graph", "eager", "selective")],
            "ratio_wanted": RATIO_WANTED, "geometric_mean_wanted": GEOMETRIC_MEAN_WANTED,
            "selective_ratio_wanted": SELECTIVE_RATIO_WANTED,
            "selective_seconds_ratio_wanted": SELECTIVE_SECONDS_WANTED, "cases": cases}


def case_line(case):
    line = "%-22s batch %3d  pytorch %7.1f MiB (%s) " % (case["preset"], case["batch"],
                                                        case["peer"]["peak_bytes"] / MIB, case["peer"]["layout"])
    for mode in case["modes"]:
        line += "  %s %.1f %.2fx" % (mode["mode"], mode["peak_in_use_bytes"] / MIB, mode["ratio"])
    if "selective_seconds_ratio" in case:
        line += "  selective takes %.2fx the time (want %.2fx: %s)" % (
            case["selective_seconds_ratio"], SELECTIVE_SECONDS_WANTED,
            wanted(case["selective_seconds_ratio"], SELECTIVE_SECONDS_WANTED, False))
    return line


def table(result):
    lines = [case_line(case) for case in result["cases"]]
    bounds = {"graph": (GEOMETRIC_MEAN_WANTED, RATIO_WANTED), "selective": (SELECTIVE_RATIO_WANTED,) * 2}
    for row in result["summaries"]:
        line = "%s: geometric mean %.3fx, largest %.3fx of %s" % (row["mode"], row["geometric_mean"], row["largest"],
                                                                 row["largest_of"])
        if row["mode"] in bounds:
            mean, largest = bounds[row["mode"]]
            line += " (want %.2fx: %s, %.2fx: %s)" % (mean, wanted(row["geometric_mean"], mean, False), largest,
                                                     wanted(row["largest"], largest, False))
        lines.append(line)
    return lines
