# SPDX-License-Identifier: Apache-2.0
"""Steps a second and peak memory beside PyTorch on the same card: same model, precision, batch and optimizer, one process
each, interleaved round by round there and back, medians of the rounds. headroom's steps include its input pipeline;
PyTorch's batch is on the card. Nothing fails here: `wanted` says what was hoped for."""
import json
import os
import statistics
import subprocess
import sys

from machine import TOP, Skip, card_of, smi

ROUNDS = 5
PEER_PYTHON = os.environ.get("HEADROOM_PEER_PYTHON", sys.executable)

# steps: of one run of either side.
CASES = [
    {"preset": "resnet50", "batch": 256, "precision": "bfloat16", "optimizer": "momentum", "steps": 15},
    {"preset": "mobilenet_v2", "batch": 256, "precision": "bfloat16", "optimizer": "momentum", "steps": 21},
    {"preset": "gpt2_124m", "batch": 32, "precision": "bfloat16", "optimizer": "adamw", "steps": 11},
    {"preset": "cifar10_separable_cnn", "batch": 128, "precision": "float16", "optimizer": "adam", "steps": 101},
]
OURS = {"graph": ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on"],
        "eager": ["execution.mode=eager"],
        "selective": ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on",
                      "checkpoint.strategy=selective"]}
# Compared with eager's peak: equal knobs, and selective at no more than a tenth of the time.
WANTED = {"speed_of_compile": 1.0, "speed_of_eager": 1.2, "peak_of_eager": 1.0, "peak_geometric_mean": 0.85,
          "peak_selective": 0.7, "time_selective": 1.1}


class Headroom:
    def __init__(self, machine, case, name, card):
        self.name, self.machine = "headroom " + name, machine
        knobs = ["device.kind=cuda", "device.card=" + card, "device.vram=none", "batch.size=%d" % case["batch"],
                 "optimizer.kind=" + case["optimizer"], "precision.policy=mixed_" + case["precision"], *OURS[name]]
        self.argv = [machine.headroom, "run", case["preset"], *[w for k in knobs for w in ("-s", k)], "--steps",
                     str(case["steps"]), "--json"]
        self.seconds, self.report, self.error = [], None, None

    def run(self, steps):
        done = subprocess.run(self.argv, cwd=TOP, env=self.machine.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.error = done.stderr.strip()[-400:]
            return
        self.report = json.loads(done.stdout)
        self.seconds.append(self.report["step"]["seconds"])

    def result(self):
        if self.report is None:
            return {"name": self.name, "error": self.error}
        return {"name": self.name, "step_seconds": statistics.median(self.seconds), "all": self.seconds,
                "peak_bytes": self.report["memory"]["peak_in_use_bytes"],
                "peak_pool_bytes": self.report["memory"]["peak_pool_bytes"], **self.report["driver"],
                **{key: self.report["train"][key] for key in ("loss_first", "loss_last")}}

    def stop(self):
        pass


class Pytorch:
    def __init__(self, case, mode):
        self.name = "pytorch " + mode
        argv = [PEER_PYTHON, os.path.join(TOP, "tests/cuda/peer.py"), case["preset"], str(case["batch"]),
                case["optimizer"], case["precision"], mode]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.seconds, self.answer, self.error = [], None, None

    def run(self, steps):
        try:
            self.process.stdin.write("%d\n" % steps)
            self.process.stdin.flush()
            self.answer = json.loads(self.process.stdout.readline())
            self.seconds.append(self.answer["step_seconds"])
        except (OSError, ValueError):
            self.process.kill()
            self.error = self.process.communicate()[1].strip()[-400:]

    def result(self):
        if self.answer is None:
            return {"name": self.name, "error": self.error}
        return {"name": self.name, "step_seconds": statistics.median(self.seconds), "all": self.seconds,
                "peak_bytes": self.answer["peak_allocated_bytes"], "peak_pool_bytes": self.answer["peak_reserved_bytes"],
                **{key: self.answer[key] for key in ("loss_first", "loss_last")}}

    def stop(self):
        self.process.kill()
        self.process.wait()


def ratios(rows):
    """Of one case; a side that failed is left out."""
    by = {row["name"]: row for row in rows if "step_seconds" in row}
    ours, found = by.get("headroom graph"), {}
    if ours is None:
        return found
    for peer in ("eager", "compile"):
        if "pytorch " + peer in by:
            found["speed_of_" + peer] = by["pytorch " + peer]["step_seconds"] / ours["step_seconds"]
            found["peak_of_" + peer] = ours["peak_bytes"] / by["pytorch " + peer]["peak_bytes"]
    if "headroom selective" in by and "pytorch eager" in by:
        found["peak_selective"] = by["headroom selective"]["peak_bytes"] / by["pytorch eager"]["peak_bytes"]
        found["time_selective"] = by["headroom selective"]["step_seconds"] / ours["step_seconds"]
    return found


def measure_case(machine, case, card, rounds):
    subjects = [Headroom(machine, case, name, card) for name in OURS] + [Pytorch(case, m) for m in ("eager", "compile")]
    for index in range(rounds):
        for subject in subjects if index % 2 == 0 else subjects[::-1]:
            if subject.error is None:
                subject.run(case["steps"])
    rows = [subject.result() for subject in subjects]
    for subject in subjects:
        subject.stop()
    found = ratios(rows)
    print("%s, batch %d, %s" % (case["preset"], case["batch"], case["precision"]))
    for row in rows:
        print("  %-20s %s" % (row["name"], row.get("error") or "%8.2f ms, peak %9.1f MiB" %
                             (row["step_seconds"] * 1e3, row["peak_bytes"] / 2**20)))
    print("  " + ", ".join("%s %.2f" % pair for pair in found.items()), flush=True)
    return {**case, "subjects": rows, "ratios": found}


def summary(cases):
    found = {}
    for key in ("speed_of_eager", "speed_of_compile", "peak_of_eager", "peak_selective"):
        values = [case["ratios"][key] for case in cases if key in case["ratios"]]
        if values:
            found[key + "_geometric_mean"] = statistics.geometric_mean(values)
            found[key + "_least"], found[key + "_largest"] = min(values), max(values)
    return found


def measure(machine, options):
    card = card_of(smi("name"))
    if not os.path.exists(machine.headroom) or card is None:
        raise Skip("needed build/cuda/headroom (tests/cuda/run build) and a file of presets/cards for this card")
    rounds = 1 if options.quick else ROUNDS
    cases = [measure_case(machine, case, card, rounds) for case in CASES if (options.only or "") in case["preset"]]
    found = summary(cases)
    print("\n".join("%-36s %.3f" % pair for pair in found.items()))
    return {"rounds": rounds, "peer": PEER_PYTHON, "wanted": WANTED, "cases": cases, "summary": found}, []
