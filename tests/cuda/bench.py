# SPDX-License-Identifier: Apache-2.0
"""Steps a second and peak memory beside PyTorch on the same card: same model, precision, batch and optimizer, one
process each, interleaved round by round there and back, medians of the rounds. A step is measured with its batch on the card,
and whole. PyTorch's `eager` and `compile` have theirs there, as headroom's `resident` has (pipeline.resident); PyTorch's
`pipeline` copies one from pinned memory. headroom's `graph`, `eager` and `selective` include all of the input pipeline: each step
has data of its own. `host` says what making those cost a step on one core, beside the card's work. Engines of
cuDNN are measured on both sides (workspace.search, torch.backends.cudnn.benchmark). Nothing fails here:
`wanted` says what was hoped for."""
import json
import os
import queue
import statistics
import tempfile
import threading
import time

from machine import CUT, PEER_PYTHON, TOP, Skip, end_group, matches, start, why

ROUNDS = 2
RUN_SECONDS = 100      # of one run of headroom
FIRST_SECONDS = 200    # until a peer's first answer: torch.compile
ANSWER_SECONDS = 60    # until its others
HOST_SECONDS = 20
LEAST_SECONDS = 3      # a case is not begun with less

# steps: of one run of either side; side: of its images. compile: where torch.compile is measured too, which takes a minute.
CASES = [
    {"preset": "gpt2_124m", "batch": 32, "precision": "bfloat16", "optimizer": "adamw", "steps": 11, "compile": True},
    {"preset": "resnet50", "batch": 256, "side": 224, "precision": "bfloat16", "optimizer": "momentum", "steps": 15,
     "compile": True},
    {"preset": "bert_base", "batch": 32, "precision": "bfloat16", "optimizer": "adamw", "steps": 11},
    {"preset": "mobilenet_v2", "batch": 256, "side": 224, "precision": "bfloat16", "optimizer": "momentum", "steps": 21},
]
CASES_REHEARSED = [{"preset": "mlp_tiny", "batch": 4, "precision": "bfloat16", "optimizer": "adam", "steps": 5},
                   {"preset": "resnet18_cifar_tiny", "batch": 2, "side": 8, "precision": "bfloat16", "optimizer": "momentum",
                    "steps": 3}]
OURS = {"graph": ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on"],
        "eager": ["execution.mode=eager", "allocator.kind=caching"],
        "selective": ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on",
                      "checkpoint.strategy=selective"],
        "resident": ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on", "pipeline.resident=on"]}
# Compared with eager's peak: equal knobs, and selective at no more than a tenth of the time.
WANTED = {"speed_of_compile": 1.0, "speed_of_eager": 1.2, "peak_of_eager": 1.0, "peak_geometric_mean": 0.85,
          "peak_selective": 0.7, "time_selective": 1.1}


class Headroom:
    def __init__(self, machine, case, name):
        self.name, self.machine = "headroom " + name, machine
        knobs = machine.knobs("none") + ["workspace.search=on", "batch.size=%d" % case["batch"], "optimizer.kind=" + case["optimizer"],
                                         "precision.policy=mixed_" + case["precision"], *OURS[name]]
        self.argv = [machine.headroom, "run", case["preset"], *[w for k in knobs for w in ("-s", k)], "--steps",
                     str(case["steps"]), "--json"]
        self.seconds, self.report, self.error = [], None, None

    def run(self, _steps, seconds):
        os.makedirs(self.machine.logs, exist_ok=True)
        status, out, err = self.machine.ask(self.argv, min(seconds, RUN_SECONDS))
        try:
            report = json.loads(out) if status == 0 else None
            self.seconds.append(report["step"]["seconds"])
            self.report = report
        except (ValueError, TypeError, KeyError):
            self.error = why(status, out, err)

    def result(self):
        if self.report is None:
            return {"name": self.name, "error": self.error or "no time was left"}
        row = {"name": self.name, "step_seconds": statistics.median(self.seconds), "all": self.seconds,
               "peak_bytes": self.report["memory"]["peak_in_use_bytes"],
               "peak_pool_bytes": self.report["memory"]["peak_pool_bytes"], **self.report["driver"],
               "h2d_bytes_per_step": self.report["transfer"]["h2d_bytes_per_step"],
               **{key: self.report["train"][key] for key in ("loss_first", "loss_last", "examples_per_second", "data")}}
        return row if self.error is None else {**row, "later_error": self.error}

    def stop(self):
        pass


class Pytorch:
    """One process for all rounds. It is asked through a thread, for it may hang; what it says lies in a file, for a
    pipe that nobody reads would stop it."""

    def __init__(self, case, mode):
        self.name = "pytorch " + mode
        self.seconds, self.answer, self.error, self.process = [], None, None, None
        self.said, self.lines = tempfile.TemporaryFile(), queue.Queue()
        argv = [PEER_PYTHON, os.path.join(TOP, "tests/cuda/peer.py"), case["preset"], str(case["batch"]),
                case["optimizer"], case["precision"], mode]
        try:
            self.process = start(argv, stdin=-1, stdout=-1, stderr=self.said, text=True)
        except OSError as error:
            self.error = str(error)
            return
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def run(self, steps, seconds):
        self.ask(str(steps), min(seconds, ANSWER_SECONDS if self.seconds else FIRST_SECONDS))

    def ask(self, line, most):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.lines.get(timeout=most))
            self.seconds.append(answer["step_seconds"])
            self.answer = answer
        except queue.Empty:
            self.give_up("no answer within %.0f s" % most)
        except (OSError, ValueError, TypeError, KeyError):
            self.give_up("no answer")

    def give_up(self, reason):
        end_group(self.process)
        self.said.seek(0)
        self.error = ("%s: %s" % (reason, self.said.read().decode(errors="replace").strip()[-500:])).strip(": ")

    def result(self):
        if self.answer is None:
            return {"name": self.name, "error": self.error or "no time was left"}
        row = {"name": self.name, "step_seconds": statistics.median(self.seconds), "all": self.seconds,
               "peak_bytes": self.answer["peak_allocated_bytes"], "peak_pool_bytes": self.answer["peak_reserved_bytes"],
               **{key: self.answer[key] for key in ("loss_first", "loss_last", "peer", "cudnn", "parameters")
                  if key in self.answer}}
        return row if self.error is None else {**row, "later_error": self.error}

    def stop(self):
        if self.process is not None:
            end_group(self.process)
        self.said.close()


def ratios(rows):
    """Of one case; a side that failed is left out."""
    by = {row["name"]: row for row in rows if "step_seconds" in row}
    ours, found = by.get("headroom graph"), {}
    if ours is None:
        return found
    for peer in ("eager", "compile"):
        if "pytorch " + peer in by:
            if "headroom resident" in by:
                found["speed_resident_of_" + peer] = (by["pytorch " + peer]["step_seconds"] /
                                                      by["headroom resident"]["step_seconds"])
            found["speed_of_" + peer] = by["pytorch " + peer]["step_seconds"] / ours["step_seconds"]
            found["peak_of_" + peer] = ours["peak_bytes"] / by["pytorch " + peer]["peak_bytes"]
    if "pytorch pipeline" in by:
        found["speed_of_pipeline"] = by["pytorch pipeline"]["step_seconds"] / ours["step_seconds"]
    if "headroom selective" in by and "pytorch eager" in by:
        found["peak_selective"] = by["headroom selective"]["peak_bytes"] / by["pytorch eager"]["peak_bytes"]
        found["time_selective"] = by["headroom selective"]["step_seconds"] / ours["step_seconds"]
    return found


def run_rounds(subjects, case, rounds, deadline):
    """Every subject at least once while there is time, then as many whole rounds as the time is enough for."""
    done, longest = 0, 0.0
    while done < rounds and (done == 0 or time.monotonic() + longest < deadline):
        began = time.monotonic()
        for subject in subjects if done % 2 == 0 else subjects[::-1]:
            left = deadline - time.monotonic()
            if subject.error is None and left > 1:
                subject.run(case["steps"], left)
        done += 1
        # The first round has what is compiled once.
        longest = max(longest, time.monotonic() - began) if done > 1 else (time.monotonic() - began) / 2
    return done


def host_of(machine, case):
    """What the pipeline costs a step; None for what is no image, which costs next to nothing."""
    program = os.path.join(machine.build_folder, "bench/bench_pipeline")
    if "side" not in case or not os.path.exists(program):
        return None
    status, out, err = machine.ask([program, str(case["side"]), str(case["batch"]), case["precision"]], HOST_SECONDS)
    try:
        return json.loads(out) if status == 0 else {"error": why(status, out, err)}
    except ValueError:
        return {"error": why(status, out, err)}


def subjects_of(machine, case, tally):
    ours = [Headroom(machine, case, name) for name in OURS]
    if machine.rehearses:
        tally.skip(case["preset"] + " in PyTorch", "PyTorch does not run on the emulated card")
        return ours
    return ours + [Pytorch(case, mode) for mode in ("eager", "pipeline", *(["compile"] if case.get("compile") else []))]


def measure_case(machine, case, rounds, seconds, tally):
    deadline = time.monotonic() + seconds
    host = host_of(machine, case)
    subjects = subjects_of(machine, case, tally)
    try:
        done = run_rounds(subjects, case, rounds, deadline)
        rows = [subject.result() for subject in subjects]
    finally:
        for subject in subjects:
            subject.stop()
    found = ratios(rows)
    print("%s, batch %d, %s, %d rounds" % (case["preset"], case["batch"], case["precision"], done))
    for row in rows:
        print("  %-20s %s" % (row["name"], row.get("error") or "%8.2f ms, peak %9.1f MiB" %
                             (row["step_seconds"] * 1e3, row["peak_bytes"] / 2**20)))
    print("  " + ", ".join("%s %.2f" % pair for pair in found.items()))
    if host is not None:
        print("  on the host: " + ", ".join("%s %s" % pair for pair in host.items()), flush=True)
    return {**case, "rounds": done, "host": host, "subjects": rows, "ratios": found}


def summary(cases):
    found = {}
    for key in ("speed_of_eager", "speed_resident_of_eager", "speed_of_pipeline", "speed_of_compile", "peak_of_eager",
                "peak_selective"):
        values = [case["ratios"][key] for case in cases if key in case["ratios"]]
        if values:
            found[key + "_geometric_mean"] = statistics.geometric_mean(values)
            found[key + "_least"], found[key + "_largest"] = min(values), max(values)
    return found


def measure(machine, options, body, tally):
    if not os.path.exists(machine.headroom):
        raise Skip("nothing is built: scripts/dev/bundle --binaries where there is a compiler, or tests/cuda/run build")
    cases = CASES_REHEARSED if options.rehearse else CASES
    cases = [case for case in cases if matches(options, case["preset"])]
    body.update(rounds=1 if options.quick else ROUNDS, peer=PEER_PYTHON, wanted=WANTED, cases=[], summary={})
    for index, case in enumerate(cases):
        seconds = machine.left(1e9) / (len(cases) - index)
        if seconds < LEAST_SECONDS:
            tally.note(case["preset"], CUT, why(CUT, "", ""))
            continue
        body["cases"].append(measure_case(machine, case, body["rounds"], seconds, tally))
        body["summary"] = summary(body["cases"])
        if machine.rehearses:  # elsewhere what one side lacks stands in its row, and nothing fails
            for row in body["cases"][-1]["subjects"]:
                if "error" in row:
                    tally.failed.append("%s, %s: %s" % (case["preset"], row["name"], row["error"]))
    print("\n".join("%-36s %.3f" % pair for pair in body["summary"].items()))
