# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes: five models, every instruction timed by events (`headroom run --times`), beside what
tests/bench/floor.py says that the card needs at least. The tables lie whole in the logs, times_PRESET.csv: their columns are
those that a rate is fitted to and an estimate judged by. Then small questions, each a few lines of a model written for it; and
what the measured search for engines (workspace.search) wins."""
import collections
import glob
import os
import shutil
import statistics
import sys

from first import BF16, read_times, report_of
from machine import TOP, Skip, matches, why

sys.path.insert(0, os.path.join(TOP, "tests/bench"))
import floor

RUN_SECONDS = 90
LISTING_SECONDS = 60
STEPS = 12
GRAPH = ["execution.mode=graph", "allocator.kind=static"]
MODELS = [
    ("resnet50", ["batch.size=256", BF16]), ("gpt2_124m", ["batch.size=32", BF16]),
    ("mobilenet_v2", ["batch.size=256", BF16]), ("bert_base", ["batch.size=32", BF16]),
    ("lstm_lm_medium", ["batch.size=256", BF16]),
]
MODELS_REHEARSED = [("mlp_tiny", []), ("gpt2_124m_tiny", ["batch.size=1", BF16])]
ENGINES_SECONDS = 60
ENGINES = [("resnet50", ["batch.size=256", BF16]), ("mobilenet_v2", ["batch.size=256", BF16]),
           ("gpt2_124m", ["batch.size=32", BF16]), ("bert_base", ["batch.size=32", BF16])]
ENGINES_REHEARSED = [("cifar10_separable_cnn_tiny", ["batch.size=2"])]
WORST = 12  # instructions of a model that are named: those furthest behind the floor, in milliseconds

# A question, and the models that answer it side by side: name, batch, its layers behind an input of 768 numbers.
DENSE = "    - {kind: dense, units: %s%s}\n"
QUESTIONS = {
    "a bias gradient beside the product of 3072 by 768, or without one": [
        ("with", 8192, DENSE % (3072, "") + DENSE % (768, "")),
        ("without", 8192, DENSE % (3072, ", bias: false") + DENSE % (768, ", bias: false"))],
    "a vocabulary of 50,257 or of 50,304": [
        ("50257", 8192, DENSE % (50257, ", bias: false")), ("50304", 8192, DENSE % (50304, ", bias: false"))],
}
QUESTIONS_REHEARSED = {"a vocabulary of 50 or of 64": [("50", 4, DENSE % (50, ", bias: false")),
                                                       ("64", 4, DENSE % (64, ", bias: false"))]}


def rates_of(machine):
    card = machine.card()
    return floor.rates_of(machine.ask([machine.headroom, "cards", card], LISTING_SECONDS)[1]) if card else {}


def floor_of(machine, preset, knobs, rates):
    """{instruction: its group, floor's seconds and bytes}; None and why where there is no listing."""
    words = [word for knob in knobs for word in ("-s", knob)]
    status, out, err = machine.ask([machine.headroom, "plan", preset, *words, "--listing"], LISTING_SECONDS)
    if status != 0:
        return None, status, why(status, out, err)
    found, before, run = {}, None, 0
    for i in floor.read_listing(out):
        run = run + 1 if i.like(before) else 0
        before = i
        found[i.index] = {"group": i.group(), "bytes": i.bytes(), "flops": i.flops(),
                          "seconds": i.seconds(rates, i.launches(run)) if rates else 0.0}
    return found, 0, None


def sums_of(rows, least):
    """A line for each group of instructions: what they took, moved and computed, and what they need at least."""
    groups = {}
    for row in rows:
        at = least.get(int(row["instr"]))
        if at is None:
            continue
        group = groups.setdefault(at["group"], {"group": at["group"], "instructions": 0, "ms": 0.0, "floor_ms": 0.0,
                                                "estimated_ms": 0.0, "bytes": 0, "flops": 0})
        for key, value in (("instructions", 1), ("ms", int(row["took_ns"]) / 1e6), ("floor_ms", at["seconds"] * 1e3),
                           ("estimated_ms", int(row["estimated_ns"] or 0) / 1e6), ("bytes", at["bytes"]),
                           ("flops", at["flops"])):
            group[key] += value
    for group in groups.values():
        seconds = group["ms"] / 1e3 or float("inf")
        group.update(gb_per_second=group["bytes"] / seconds / 1e9, tflop_per_second=group["flops"] / seconds / 1e12)
    return sorted(groups.values(), key=lambda group: -group["ms"])


def worst_of(rows, least):
    def behind(row):
        return int(row["took_ns"]) / 1e6 - least[int(row["instr"])]["seconds"] * 1e3

    known = sorted((row for row in rows if int(row["instr"]) in least), key=behind, reverse=True)[:WORST]
    return [{"name": row["name"], "implementation": row["implementation"], "results": row["results"],
             "ms": int(row["took_ns"]) / 1e6, "floor_ms": least[int(row["instr"])]["seconds"] * 1e3} for row in known]


def times_of(machine, name, preset, knobs):
    """Exit status, the rows of its table, the report, why not."""
    os.makedirs(machine.logs, exist_ok=True)
    table = os.path.join(machine.logs, "times_%s.csv" % name)
    status, report, error = report_of(machine, "run", preset, knobs, STEPS, ["--times", table], RUN_SECONDS)
    return (status, read_times(table) if report is not None else [], report, error)


def measure_model(machine, preset, knobs, rates, tally):
    knobs = machine.knobs("none") + GRAPH + knobs
    row = {"preset": preset, "knobs": knobs}
    status, times, report, error = times_of(machine, preset, preset, knobs)
    if error is not None:
        tally.note(preset, status, error)
        print("%-16s %s" % (preset, error), flush=True)
        return {**row, "error": error}
    least, status, error = floor_of(machine, preset, knobs, rates)
    row.update(instructions_ms=sum(int(r["took_ns"]) for r in times) / 1e6, step_ms=report["step"]["seconds"] * 1e3,
               untimed=sum(r["took_ns"] == "0" for r in times))
    print("%-16s %.3f ms in %d instructions, a step %.3f ms" % (preset, row["instructions_ms"], len(times),
                                                               row["step_ms"]), flush=True)
    if error is not None:
        tally.note(preset + ", its floor", status, error)
        return {**row, "error": error}
    row.update(groups=sums_of(times, least), worst=worst_of(times, least), families=families_of(times))
    for group in row["groups"]:
        print("  %-12s %4d %9.3f ms, floor %8.3f, estimated %8.3f  %7.0f GB/s %7.1f TFLOP/s" % (
            group["group"], group["instructions"], group["ms"], group["floor_ms"], group["estimated_ms"],
            group["gb_per_second"], group["tflop_per_second"]), flush=True)
    return row


def ask_question(machine, question, sides, tally):
    row = {"question": question, "sides": []}
    for name, batch, layers in sides:
        path = os.path.join(machine.logs, "asked_%s.yaml" % name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("model:\n  name: asked\n  input: {shape: [768]}\n  classes: %s\n  loss: softmax_cross_entropy\n"
                       "  layers:\n%s" % (layers.rsplit("units: ", 1)[1].split(",")[0].split("}")[0], layers))
        status, times, _, error = times_of(machine, "asked_" + name, path,
                                           machine.knobs() + GRAPH + ["batch.size=%d" % batch, BF16])
        if error is not None:
            tally.note("%s: %s" % (question, name), status, error)
        row["sides"].append({"side": name, "error": error, "ms": {r["name"] + " " + r["results"]: int(r["took_ns"]) / 1e6
                                                                  for r in times if r["family"] != "update"}})
    print("%s: %s" % (question, ", ".join("%s %s" % (side["side"], side["error"] or "%.3f ms" % sum(side["ms"].values()))
                                           for side in row["sides"])),
          flush=True)
    return row


def families_of(rows):
    """By family and type: how often what was foretold is taken, in the median: what a generation's rates are fitted by."""
    ratios = collections.defaultdict(list)
    for row in rows:
        if int(row["took_ns"]) and row["estimated_ns"]:
            ratios[row["family"], row["dtype"]].append(int(row["took_ns"]) / int(row["estimated_ns"]))
    return [{"family": family, "dtype": dtype, "instructions": len(found), "took_of_estimated": statistics.median(found)}
            for (family, dtype), found in sorted(ratios.items())]


def measure_engines(machine, preset, knobs, tally):
    """The step by the engines of cuDNN's heuristics and by those that workspace.search finds; and whether the plan behind it has
    the run's peak. The times are among the logs, CARD.cudnn-VERSION.engines.json: they may stand in presets/cards."""
    row = {"preset": preset, "knobs": knobs}
    home = os.path.join(machine.build_folder, "logs", "engines_home")
    kept = os.path.join(home, "headroom/presets/cards/*.engines.json")
    peaks = {}
    for name, command, search in (("heuristics", "run", "off"), ("searched", "run", "on"), ("planned", "plan", "on")):
        status, report, error = report_of(machine, command, preset, [*machine.knobs(), *knobs, "workspace.search=" + search],
                                          seconds=ENGINES_SECONDS, XDG_DATA_HOME=home)
        if report is None:
            tally.note("engines of %s, %s" % (preset, name), status, error)
            return row
        peaks[name] = report["memory"]["peak_in_use_bytes"]
        row[name + "_ms"], row["search"] = report["step"]["seconds"] * 1e3, row.get("search") or report["step"]["search"]
    for path in glob.glob(kept):
        shutil.copy(path, machine.log(os.path.basename(path)))
    row["plan_equals_run"] = peaks["planned"] == peaks["searched"]
    if not row["plan_equals_run"]:
        tally.failed.append("engines of %s: planned %d bytes at the peak, had %d" % (preset, peaks["planned"], peaks["searched"]))
    if row["search"]["refusal"] is not None:
        tally.failed.append("engines of %s: %s" % (preset, row["search"]["refusal"]))
    print("%s: %.3f ms by the heuristics' engines, %.3f ms by those of %d measured graphs" %
          (preset, row["heuristics_ms"], row["searched_ms"], row["search"]["graphs_known"]), flush=True)
    return row


def measure(machine, options, body, tally):
    if not os.path.exists(machine.headroom):
        raise Skip("nothing is built: scripts/dev/bundle --binaries where there is a compiler, or tests/cuda/run build")
    rates, body["models"], body["questions"] = rates_of(machine), [], []
    models = MODELS_REHEARSED if options.rehearse else MODELS[:1] if options.quick else MODELS
    for preset, knobs in models:
        if matches(options, preset):
            body["models"].append(measure_model(machine, preset, knobs, rates, tally))
    for question, sides in (QUESTIONS_REHEARSED if options.rehearse else QUESTIONS).items():
        body["questions"].append(ask_question(machine, question, sides, tally))
    body["engines"] = [measure_engines(machine, preset, knobs, tally) for preset, knobs in
                       (ENGINES_REHEARSED if options.rehearse else ENGINES) if matches(options, preset)]
    ratios = [group["ms"] / group["floor_ms"] for row in body["models"] for group in row.get("groups", ()) if group["floor_ms"]]
    body["median_of_floor"] = statistics.median(ratios) if ratios else None
