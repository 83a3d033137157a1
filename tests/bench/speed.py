# SPDX-License-Identifier: Apache-2.0
"""Training steps against PyTorch: the same model, batch and optimizer, two threads on both sides, passive waiting.

Interleaved: in every round each subject runs once, in turn there and back, so that whatever else the machine does
meets all alike. A headroom run is a process of its own and its steps include the input pipeline; a PyTorch process
stays warm and its batch is in memory. Both report the median of their steps; the figure is the median of the rounds.

The ceiling, measured in the same run, is the rate of the fastest large matrix product of either side and of the
fastest large copy. The floor of a step is the longer of its FLOPs at the one and its least traffic at the other; an
algorithm that multiplies less (Winograd) or a working set that stays in the cache may go below it.
"""
import json
import os
import re
import subprocess

from measure import (MIB, TOP, Unavailable, bench_program, environment, figures, headroom_program, json_of, knob_words,
                     load, output_of, wanted)

THREADS = 2
KEPT = "+kept"
# As it is installed, PyTorch on a CPU gives most of its memory back to the system in every step and faults it in
# again. These settings of glibc let it keep what it has: a peer for whoever knows of them, beside the usual one.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000",
               "MALLOC_TOP_PAD_": "268435456"}
RESIDENT_WANTED = 0.65  # of PyTorch's, at most

# steps: of one run. layouts: of the peer, the "+kept" one with KEEP_MEMORY. speedups: knobs of a headroom subject
# and how many times the speed of PyTorch, as it is installed, it should reach.
CASES = [
    {"name": "separable CNN, batch 128, Adam", "preset": "cifar10_separable_cnn", "batch": 128, "optimizer": "adam",
     "steps": 40, "layouts": ["nchw", "nhwc", "nhwc" + KEPT],
     "speedups": [(["execution.mode=eager"], 3.0), (["execution.mode=graph"], 3.0)]},
    {"name": "separable CNN, batch 16, Adam", "preset": "cifar10_separable_cnn", "batch": 16, "optimizer": "adam",
     "steps": 100, "layouts": ["nchw", "nhwc", "nhwc" + KEPT],
     "speedups": [(["execution.mode=eager"], 5.0), (["execution.mode=graph"], 5.0)]},
    {"name": "MLP, batch 128, Adam", "preset": "mlp", "batch": 128, "optimizer": "adam",
     "steps": 16, "layouts": ["nchw", "nchw" + KEPT],
     "speedups": [(["execution.mode=eager"], 1.3), (["execution.mode=graph"], 1.3)]},
    {"name": "ResNet-18, batch 32, momentum", "preset": "resnet18_cifar", "batch": 32, "optimizer": "momentum",
     "steps": 4, "layouts": ["nchw", "nhwc", "nhwc" + KEPT],
     "speedups": [(["execution.mode=graph", "execution.layout=auto"], 1.4),
                  (["execution.mode=graph", "execution.layout=nhwc"], 1.0)]},
]


class Headroom:
    def __init__(self, case, knobs, more):
        self.name = "headroom " + ", ".join(k.partition("=")[2] for k in knobs)
        every = knobs + ["batch.size=%d" % case["batch"], "optimizer.kind=" + case["optimizer"],
                         "threads.count=%d" % THREADS] + more
        self.options = [case["preset"], *knob_words(every)]
        self.seconds, self.resident_bytes, self.report = [], [], None

    def run(self, steps):
        self.report, resident_bytes = json_of([headroom_program(), "run", *self.options, "--steps", str(steps),
                                               "--json"])
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
                "parameters": self.report["model"]["trainable_parameters"], "isa": self.report["device"]["isa"]}


class Pytorch:
    def __init__(self, python, case, layout):
        self.name = "pytorch " + layout
        argv = [python, "tests/bench/peers/pytorch_step.py", case["preset"], str(case["batch"]), case["optimizer"],
                layout.replace(KEPT, ""), str(THREADS)]
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
        self.seconds.append(self.answer(str(steps))["step_seconds"])

    def finish(self):
        self.process.stdin.close()
        self.about = self.line()
        self.process.wait()

    def result(self):
        about = {key: self.about[key] for key in ("peer", "parameters", "peak_resident_bytes", "cuda_bytes")}
        return {"name": self.name, **figures(self.seconds, "step_seconds"), **about}


class Ceiling:
    def __init__(self):
        self.product_by, self.copy_bytes_per_second, self.onednn = {}, 0.0, None

    def note_product(self, who, flops_per_second):
        self.product_by[who] = max(self.product_by.get(who, 0.0), flops_per_second)

    def measure(self):
        found, _ = json_of([bench_program("ceiling"), str(THREADS)])
        self.note_product("onednn sgemm", found["product_flops_per_second"])
        self.copy_bytes_per_second = max(self.copy_bytes_per_second, found["copy_bytes_per_second"])
        self.onednn = found["onednn"]

    def result(self):
        return {"product_flops_per_second": max(self.product_by.values()), "product_by": self.product_by,
                "copy_bytes_per_second": self.copy_bytes_per_second}


def least_traffic_bytes(report, optimizer):
    """What a step cannot avoid to move when nothing stays in a cache: weights are read forward, backward and by the
    update, which writes them; gradients are written and read; optimizer slots are read and written; what backward
    needs is written once and read once."""
    slots = {"adam": 2, "momentum": 1, "sgd": 0}[optimizer]
    return (4 * report["model"]["trainable_parameters"] * (4 + 2 + 2 * slots) +
            2 * report["memory"]["saved_for_backward_bytes"])


def run_rounds(subjects, rounds, steps):
    for index in range(rounds):
        for subject in subjects if index % 2 == 0 else subjects[::-1]:
            subject.run(steps)


def measure_case(case, python, ceiling, options):
    ceiling.measure()
    steps = 2 if options.quick else case["steps"]
    ours = [Headroom(case, knobs, options.set) for knobs, _ in case["speedups"]]
    peers = [Pytorch(python, case, layout + suffix) for layout in case["layouts"]
             for suffix in (("", "+compile") if options.compiled else ("",))]
    try:
        ceiling.note_product("pytorch mm", peers[0].answer("product")["product_flops_per_second"])
        run_rounds([subject for pair in zip(ours, peers) for subject in pair] + ours[len(peers):] +
                   peers[len(ours):], options.rounds, steps)
        for subject in ours + peers:
            subject.finish()
    finally:
        for peer in peers:
            peer.process.kill()
            peer.process.wait()
    leanest = min((o.report for o in ours), key=lambda report: report["memory"]["saved_for_backward_bytes"])
    return {"name": case["name"], "preset": case["preset"], "batch": case["batch"], "optimizer": case["optimizer"],
            "load": load(), "steps_per_run": steps, "flops": leanest["step"]["flops"],
            "least_traffic_bytes": least_traffic_bytes(leanest, case["optimizer"]),
            "subjects": [subject.result() for subject in ours + peers],
            "speedups_wanted": [bound for _, bound in case["speedups"]]}


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


def measure(options):
    python = subprocess.run([os.path.join(TOP, "tests/bench/peers/setup")], stdout=subprocess.PIPE, text=True,
                            check=False)
    if python.returncode != 0:
        raise Unavailable("no PyTorch to compare with; try: tests/bench/peers/setup")
    ceiling = Ceiling()
    cases = [measure_case(case, python.stdout.strip(), ceiling, options) for case in CASES]
    ceiling.measure()
    for case in cases:
        compare(case, ceiling.result())
    peer = next(s["peer"] for s in cases[0]["subjects"] if "peer" in s)
    return {"versions": {"peer": peer, "onednn": ceiling.onednn}, "threads": THREADS, "rounds": options.rounds,
            "omp_wait_policy": "passive", "ceiling": ceiling.result(), "cases": cases}


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
    return lines
