# SPDX-License-Identifier: Apache-2.0
"""Checkpointing under a budget against PyTorch: two residual networks with momentum, our peak at most 0.6 of PyTorch's.

PyTorch's peak is that of its own records of memory (torch.profiler with profile_memory; peers/pytorch_memory.py), in
the layout that takes less, without scratch of its libraries; ours is peak_in_use_bytes of a run and has all of it. The
budget is 0.6 of PyTorch's peak. Of ResNet-50 at 16 images weights, momentum and gradients alone are 0.71 of it, so that no recomputation
gets there: optimizer.fused_backward=on updates a weight as soon as its gradient is there and lets the gradient go.
`least` is the smallest peak that any budget comes to, with it and without.

Times: in every round each subject runs once, in turn there and back, PyTorch's warm process among them; the median of
the rounds' own ratios counts, because whatever else the machine does meets all of a round alike.
"""
import json
import re
import subprocess

from cases import GRAPH, IMAGE_LAYOUTS, knobs_of, preset_path
from measure import (MIB, TOP, Unavailable, environment, figures, headroom_program, json_of, knob_words, median,
                     peer_python, wanted)
from memory import peer_of
from speed import Pytorch

THREADS = 2
STEPS = 3
ROUNDS = 5  # a round of both takes minutes on a machine that does other things
PEAK_WANTED = 0.6
SECONDS_WANTED = 1.1
FUSED = "optimizer.fused_backward=on"
CASES = [{"preset": "resnet18_cifar", "batch": 32, "optimizer": "momentum", "layouts": IMAGE_LAYOUTS},
         {"preset": "resnet50_64", "batch": 16, "optimizer": "momentum", "layouts": IMAGE_LAYOUTS}]


def words_of(case, knobs):
    return [preset_path(case["preset"]), *knob_words(knobs_of(case, GRAPH + knobs, THREADS)), "--json"]


class Ours:
    def __init__(self, name, case, knobs):
        self.name, self.knobs, self.words, self.seconds, self.report = name, knobs, words_of(case, knobs), [], None

    def run(self):
        self.report, _ = json_of([headroom_program(), "run", *self.words, "--steps", str(STEPS)])
        self.seconds.append(self.report["step"]["seconds"])

    def result(self, peer_bytes):
        memory = self.report["memory"]
        return {"name": self.name, "knobs": self.knobs, "flops": self.report["step"]["flops"],
                **{key: memory[key] for key in ("peak_in_use_bytes", "static_bytes")},
                "at_peak": memory["at_peak"]["name"], "ratio": memory["peak_in_use_bytes"] / peer_bytes,
                **figures(self.seconds, "step_seconds")}


class Peer(Pytorch):
    def run(self):
        super().run(2)

    def result(self):
        return {"name": self.name, **figures(self.seconds, "step_seconds")}


def least_of(case, knobs):
    """MiB: as the refusal of a budget that nothing keeps says it."""
    words = words_of(case, knobs + ["checkpoint.strategy=budget:1MiB"])
    refused = subprocess.run([headroom_program(), "plan", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=environment(), cwd=TOP, check=False)
    found = re.search(r"found is ([0-9.]+) MiB", json.loads(refused.stdout)["sentence"])
    return float(found[1])


def run_rounds(subjects, rounds):
    for index in range(rounds):
        for subject in subjects if index % 2 == 0 else subjects[::-1]:
            subject.run()


def ratios(subject, other):
    return median([a / b for a, b in zip(subject.seconds, other.seconds)])


def measure_case(case, python, rounds):
    peer = peer_of(python, case)
    budget = "checkpoint.strategy=budget:%dMiB" % (peer["peak_bytes"] * PEAK_WANTED / MIB)
    ours = [Ours("plain", case, []), Ours("selective", case, ["checkpoint.strategy=selective", FUSED]),
            Ours("budget", case, [budget, FUSED])]
    pytorch = Peer(python, case, peer["layout"], "float32")
    try:
        run_rounds([*ours, pytorch], rounds)
    finally:
        pytorch.stop()
    if ours[0].report["model"]["trainable_parameters"] != peer["parameters"]:
        raise Unavailable("%s: the peer trains another model" % case["preset"])
    plain, kept = ours[0], ours[-1]
    return {"preset": case["preset"], "batch": case["batch"], "optimizer": case["optimizer"], "peer": peer,
            "subjects": [*(subject.result(peer["peak_bytes"]) for subject in ours), pytorch.result()],
            "least_mib": {"fused_backward": least_of(case, [FUSED]), "without": least_of(case, [])},
            "seconds_of_plain": ratios(kept, plain), "seconds_of_pytorch": ratios(kept, pytorch)}


def measure(options):
    python, rounds = peer_python(), min(options.rounds, ROUNDS)
    cases = [measure_case(case, python, rounds) for case in CASES]
    return {"versions": {"peer": cases[0]["peer"]["peer"]}, "threads": THREADS, "rounds": rounds,
            "peak_wanted": PEAK_WANTED, "seconds_wanted": SECONDS_WANTED, "cases": cases}


def table(result):
    lines = []
    for case in result["cases"]:
        lines.append("%s, batch %d: pytorch %.1f MiB (%s); least %.1f MiB, %.1f without %s" % (
            case["preset"], case["batch"], case["peer"]["peak_bytes"] / MIB, case["peer"]["layout"],
            case["least_mib"]["fused_backward"], case["least_mib"]["without"], FUSED))
        for subject in case["subjects"]:
            memory = "%7.1f MiB %.2fx" % (subject["peak_in_use_bytes"] / MIB, subject["ratio"]) if "ratio" in subject \
                else " " * 17
            lines.append("  %-16s %s  %.2f s a step" % (subject["name"], memory, subject["step_seconds"]))
        kept = next(s for s in case["subjects"] if s["name"] == "budget")
        lines.append("  budget: %.2fx the peak (want %.2f: %s), %.2fx the time of plain (want %.2f: %s), %.2fx of "
                     "pytorch's" % (kept["ratio"], PEAK_WANTED, wanted(kept["ratio"], PEAK_WANTED, False),
                                    case["seconds_of_plain"], SECONDS_WANTED,
                                    wanted(case["seconds_of_plain"], SECONDS_WANTED, False),
                                    case["seconds_of_pytorch"]))
    return lines
