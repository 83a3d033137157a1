# SPDX-License-Identifier: Apache-2.0
"""Training steps against PyTorch: the same model, batch and optimizer, two threads on both sides, passive waiting; in
float32, and in mixed_bfloat16 against autocast.

PyTorch runs in its best layout: the fastest of a pilot. Interleaved: in every round each subject runs once, in turn
there and back, so that whatever else the machine does meets all alike. A headroom run is a process of its own and its
steps include the input pipeline; a PyTorch process stays warm and its batch is in memory, as that of the subjects named
`resident` is, beside those that have new data in every step and that alone are counted. Both report the median of their
steps; the figure is the median of the rounds.

The ceiling, measured in the same run, is the rate of the fastest large matrix product of either side and of the
fastest large copy. The floor of a step is the longer of its FLOPs at the one and its least traffic at the other; an
algorithm that multiplies less (Winograd) or a working set that stays in the cache may go below it.
"""
import functools
import json
import re
import subprocess

from cases import CASES, RESIDENT, knobs_of, preset_path
from measure import (MIB, TOP, Unavailable, bench_program, environment, figures, geometric_mean, headroom_program,
                     json_of, knob_words, load, output_of, peer_python, wanted)

THREADS = 2
KEPT = "+kept"
# As it is installed, PyTorch on a CPU gives most of its memory back to the system in every step and faults it in
# again. These settings of glibc let it keep what it has: a peer for whoever knows of them, beside the usual one.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000",
               "MALLOC_TOP_PAD_": "268435456"}
RESIDENT_WANTED = 0.65       # of PyTorch's, at most
GEOMETRIC_MEAN_WANTED = 2.2  # at least, over the cases that count
MINIMUM_WANTED = 1.0
PILOT_STEPS = 2
POLICY_OF = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


class Headroom:
    def __init__(self, case, knobs, more):
        self.name = "headroom " + ", ".join("resident" if k in RESIDENT else k.partition("=")[2] for k in knobs)
        self.options = [preset_path(case["preset"]), *knob_words(knobs_of(case, knobs + more, THREADS))]
        self.seconds, self.resident_bytes, self.report = [], [], None

    def run(self, steps):
        # The first step of a process is slow: an odd number's median is one of the others.
        self.report, resident_bytes = json_of([headroom_program(), "run", *self.options, "--steps",
                                               str(max(3, steps)), "--json"])
        self.seconds.append(self.report["step"]["seconds"])
        self.resident_bytes.append(resident_bytes)

    def finish(self):
        """The scratch of the widest instruction, as the listing prints it."""
        listing, _ = output_of([headroom_program(), "plan", *self.options, "--listing"])
        self.scratch_bytes = max((int(n) for n in re.findall(r"\{workspace (\d+) B\}", listing)), default=0)

    def result(self):
        return {"name": self.name, **figures(self.seconds, "step_seconds"),
                "peak_resident_bytes": max(self.resident_bytes), "scratch_bytes": self.scratch_bytes,
                "peak_in_use_bytes": self.report["memory"]["peak_in_use_bytes"],
                **{key: self.report["train"][key] for key in ("loss_first", "loss_last")},
                "parameters": self.report["model"]["trainable_parameters"], "isa": self.report["device"]["isa"]}


class Pytorch:
    def __init__(self, python, case, layout, precision):
        self.name, self.layout = "pytorch " + layout, layout
        argv = [python, "tests/bench/peers/pytorch_step.py", case["preset"], str(case["batch"]), case["optimizer"],
                layout.replace(KEPT, ""), precision, str(THREADS)]
        settings = environment(**(KEEP_MEMORY if KEPT in layout else {}))
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=settings, cwd=TOP, text=True)
        self.seconds = []

    def answer(self, question):
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer says so
        return self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise Unavailable("the peer %s ended with exit %d" % (self.name, self.process.wait()))
        return json.loads(line)

    def run(self, steps):
        self.answered = self.answer(str(max(1, steps // 2)))
        self.seconds.append(self.answered["step_seconds"])

    def stop(self):
        self.process.kill()
        self.process.wait()

    def finish(self):
        self.process.stdin.close()
        self.about = self.line()
        self.process.wait()

    def result(self):
        about = {key: self.about[key] for key in ("peer", "parameters", "peak_resident_bytes", "cuda_bytes")}
        return {"name": self.name, **figures(self.seconds, "step_seconds"), **about,
                **{key: self.answered[key] for key in ("loss_first", "loss_last")}}


class Ceiling:
    """In bfloat16 the product's rate is PyTorch's alone."""

    def __init__(self, precision):
        self.product_by, self.copy_bytes_per_second, self.onednn = {}, 0.0, None
        self.precision = precision

    def note_product(self, who, flops_per_second):
        self.product_by[who] = max(self.product_by.get(who, 0.0), flops_per_second)

    def measure(self):
        found, _ = json_of([bench_program("ceiling"), str(THREADS)])
        if self.precision == "float32":
            self.note_product("onednn sgemm", found["product_flops_per_second"])
        self.copy_bytes_per_second = max(self.copy_bytes_per_second, found["copy_bytes_per_second"])
        self.onednn = found["onednn"]

    def result(self):
        return {"product_flops_per_second": max(self.product_by.values()), "product_by": self.product_by,
                "copy_bytes_per_second": self.copy_bytes_per_second}


def least_traffic_bytes(report, optimizer, precision):
    """What a step cannot avoid to move when nothing stays in a cache: weights are read forward, backward and by the
    update, which writes them; gradients are written and read; optimizer slots are read and written; what backward
    needs is written once and read once. In bfloat16 forward and backward read copies of 2 bytes, written once."""
    slots = {"adam": 2, "adamw": 2, "momentum": 1, "sgd": 0}[optimizer]
    read_bytes = 2 * 4 if precision == "float32" else 2 * 2 + 2
    return (report["model"]["trainable_parameters"] * (read_bytes + 4 * (2 + 2 + 2 * slots)) +
            2 * report["memory"]["saved_for_backward_bytes"])


def run_rounds(subjects, rounds, steps):
    for index in range(rounds):
        for subject in subjects if index % 2 == 0 else subjects[::-1]:
            subject.run(steps)


def fastest_of(python, case, precision, layouts):
    """The layout of a pilot: each runs twice, in turn. Its process goes on; the others end."""
    peers, best = [Pytorch(python, case, layout, precision) for layout in layouts], None
    try:
        for _ in range(2 if len(peers) > 1 else 0):
            for peer in peers:
                peer.run(PILOT_STEPS)
        best = min(peers, key=lambda peer: min(peer.seconds, default=0))
    finally:
        for peer in peers:
            if peer is not best:
                peer.stop()
    best.seconds = []
    return best


def peers_of(case, python, precision, options):
    """The best layout as PyTorch is installed, the same with memory kept, and on demand compiled."""
    peers = [fastest_of(python, case, precision, case["layouts"])]
    if precision == "float32":
        peers.append(Pytorch(python, case, peers[0].layout + KEPT, precision))
    if options.compiled:
        peers.append(Pytorch(python, case, peers[0].layout + "+compile", precision))
    return peers


def measure_case(case, precision, python, ceiling, options):
    ceiling.measure()
    steps = 1 if options.quick else case["steps"]
    policy = ["precision.policy=" + POLICY_OF[precision]]
    ours = [Headroom(case, knobs, policy + options.set) for knobs, _ in case["ours"]]
    peers = peers_of(case, python, precision, options)
    try:
        ceiling.note_product("pytorch mm", peers[0].answer("product")["product_flops_per_second"])
        subjects = [subject for pair in zip(ours, peers) for subject in pair]
        run_rounds(subjects + ours[len(peers):] + peers[len(ours):], options.rounds, steps)
        for subject in ours + peers:
            subject.finish()
    finally:
        for peer in peers:
            peer.stop()
    leanest = min((o.report for o in ours), key=lambda report: report["memory"]["saved_for_backward_bytes"])
    return {**{key: case[key] for key in ("name", "preset", "batch", "optimizer", "counts")},
            "load": load(), "steps_per_run": steps, "flops": leanest["step"]["flops"],
            "least_traffic_bytes": least_traffic_bytes(leanest, case["optimizer"], precision),
            "subjects": [subject.result() for subject in ours + peers],
            "speedups_wanted": [bound if precision == "float32" else MINIMUM_WANTED for _, bound in case["ours"]]}


def compare(case, ceiling):
    """Adds floor, fractions of it and ratios to the fastest layout of the peer."""
    by_product = case["flops"] / ceiling["product_flops_per_second"]
    by_copy = case["least_traffic_bytes"] / ceiling["copy_bytes_per_second"]
    case["floor_seconds"] = max(by_product, by_copy)
    case["floor_by"] = "product" if by_product >= by_copy else "copy"
    for subject in case["subjects"]:
        subject["floor_frac"] = case["floor_seconds"] / subject["step_seconds"]
    ours = [s for s in case["subjects"] if "peer" not in s]
    peers = sorted((s for s in case["subjects"] if "peer" in s), key=lambda s: s["step_seconds"])
    best = next(s for s in peers if KEPT not in s["name"])
    case["best_peer"], case["best_peer_of_all"] = best["name"], peers[0]["name"]
    if any(s["parameters"] != best["parameters"] for s in ours):
        raise Unavailable("%s: the peer trains another model (%d parameters)" % (case["name"], best["parameters"]))
    for subject, bound in zip(ours, case.pop("speedups_wanted")):
        subject["speedup"] = best["step_seconds"] / subject["step_seconds"]
        subject["speedup_rounds"] = [round(b / s, 3) for s, b in
                                     zip(subject["step_seconds_all"], best["step_seconds_all"])]
        subject["speedup_wanted"] = bound
        subject["speedup_over_all"] = peers[0]["step_seconds"] / subject["step_seconds"]
        subject["resident_ratio"] = subject["peak_resident_bytes"] / best["peak_resident_bytes"]
        # The strict one: against a PyTorch that was built without CUDA.
        subject["resident_ratio_strict"] = subject["peak_resident_bytes"] / (best["peak_resident_bytes"] -
                                                                              best["cuda_bytes"])
        subject["resident_ratio_wanted"] = RESIDENT_WANTED


def headline(cases):
    """Over the cases that count: the geometric mean of the first subject's ratios, and the least of them."""
    counted = {case["name"]: case["subjects"][0]["speedup"] for case in cases if case["counts"]}
    return {"speedup_geometric_mean": geometric_mean(counted.values()),
            "speedup_geometric_mean_wanted": GEOMETRIC_MEAN_WANTED,
            "speedup_minimum": min(counted.values()), "speedup_minimum_of": min(counted, key=counted.get),
            "speedup_minimum_wanted": MINIMUM_WANTED,
            "speedup_over_all_geometric_mean": geometric_mean(c["subjects"][0]["speedup_over_all"] for c in cases
                                                              if c["counts"])}


def measure(options, precision):
    python = peer_python()
    ceiling = Ceiling(precision)
    wanted_cases = [case for case in CASES if precision == "float32" or case["counts"]]
    if precision != "float32":
        wanted_cases = [{**case, "ours": [case["ours"][0]]} for case in wanted_cases]
    cases = [measure_case(case, precision, python, ceiling, options) for case in wanted_cases]
    ceiling.measure()
    for case in cases:
        compare(case, ceiling.result())
    peer = next(s["peer"] for s in cases[0]["subjects"] if "peer" in s)
    return {"versions": {"peer": peer, "onednn": ceiling.onednn}, "precision": POLICY_OF[precision],
            "threads": THREADS, "rounds": options.rounds, "omp_wait_policy": "passive", **headline(cases),
            "ceiling": ceiling.result(), "cases": cases}


measure_float32 = functools.partial(measure, precision="float32")
measure_bfloat16 = functools.partial(measure, precision="bfloat16")


def subject_line(s):
    line = "  %-22s %9.2f ms  %5.1f %%  %6.0f MiB" % (s["name"], s["step_seconds"] * 1e3, s["floor_frac"] * 100,
                                                     s["peak_resident_bytes"] / MIB)
    if "peer" in s:
        return line + "   (%.0f MiB without CUDA's libraries)" % ((s["peak_resident_bytes"] - s["cuda_bytes"]) / MIB)
    line += "   %.2fx (want %.1fx: %s; of all %.2fx)" % (
        s["speedup"], s["speedup_wanted"], wanted(s["speedup"], s["speedup_wanted"], True), s["speedup_over_all"])
    return line + "  memory %.2fx, strict %.2fx (want %.2fx: %s)  scratch %.1f MiB" % (
        s["resident_ratio"], s["resident_ratio_strict"], s["resident_ratio_wanted"],
        wanted(s["resident_ratio_strict"], s["resident_ratio_wanted"], False), s["scratch_bytes"] / MIB)


def table(result):
    ceiling = result["ceiling"]
    lines = ["ceiling: product %.1f GFLOP/s, copy %.1f GB/s; medians of %d runs, %d threads" % (
        ceiling["product_flops_per_second"] / 1e9, ceiling["copy_bytes_per_second"] / 1e9, result["rounds"],
        result["threads"])]
    for case in result["cases"]:
        lines.append("%s: floor %.2f ms by %s; step, share of the ceiling, peak of resident memory; against %s, and "
                     "the fastest of all, %s" % (case["name"], case["floor_seconds"] * 1e3, case["floor_by"],
                                                 case["best_peer"], case["best_peer_of_all"]))
        lines += [subject_line(subject) for subject in case["subjects"]]
    lines.append("%s: geometric mean %.2fx (want %.1fx: %s), least %.2fx, %s (want %.1fx: %s); of all %.2fx" % (
        result["precision"], result["speedup_geometric_mean"], result["speedup_geometric_mean_wanted"],
        wanted(result["speedup_geometric_mean"], result["speedup_geometric_mean_wanted"], True),
        result["speedup_minimum"], result["speedup_minimum_of"], result["speedup_minimum_wanted"],
        wanted(result["speedup_minimum"], result["speedup_minimum_wanted"], True),
        result["speedup_over_all_geometric_mean"]))
    return lines
