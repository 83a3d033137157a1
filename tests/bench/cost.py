# SPDX-License-Identifier: Apache-2.0
"""How well a step's time is foretold: on this machine after a calibration of its own, and on cards against what others
published for the same model, batch and precision.

On this machine with one thread, whose processor time is taken (bench_steps), so that a machine that does other things as well can
be measured: every tiny model as it is, and configurations of three of them that are drawn from the knobs, whose order by planned
time is held against that by measured time (Spearman). What is drawn is measured in rounds, one configuration behind the other, and
the fastest round counts."""
import glob
import math
import os
import random
import tempfile

from calibrate import calibrate
from measure import TOP, Unavailable, bench_program, headroom_program, json_of, knob_words, median, wanted

FACTOR_WANTED = 2.0  # at most, either way, on a card
ERROR_WANTED = 0.15  # at most, of half of the tiny models
ORDER_WANTED = 0.95  # at least
ONE_THREAD = ["threads.count=1"]
ORDERED = ["mobilenet_v2_tiny", "gpt2_124m_tiny", "unet_tiny"]
CONFIGURATIONS = 10  # of each
TURNS = {"batch.size": ["2", "4", "8", "16", "24"], "checkpoint.strategy": ["none", "sqrt", "every:2"],
         "precision.policy": ["float32", "mixed_bfloat16"], "execution.fuse": ["off", "on"],
         "execution.mode": ["eager", "graph"], "optimizer.kind": ["sgd", "momentum", "adam", "adamw", "lion"]}
PUBLISHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published")


def published_rows():
    """Those of throughput.txt: its head says what the columns are."""
    with open(os.path.join(PUBLISHED, "throughput.txt"), encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split(" | ") for line in lines if not line.startswith("#")]
    return [row for row in rows if row[0] != "elsewhere"]


def seconds_of(argv):
    return json_of(argv)[0]["step"]["seconds"]


def tiny_models():
    paths = glob.glob(os.path.join(TOP, "presets/models/*_tiny.yaml"))
    return sorted(os.path.basename(path)[:-len(".yaml")] for path in paths)


def measure_steps(configurations, rounds, seconds):
    """Of (preset, knobs) each."""
    rows = [{"preset": preset, "knobs": knobs, "measured_seconds": math.inf} for preset, knobs in configurations]
    for _ in range(rounds):
        for row in rows:
            argv = [bench_program("steps"), row["preset"], str(seconds), "device.vram=2GiB", *row["knobs"]]
            found = json_of(argv, HEADROOM_DATA=os.path.join(TOP, "presets"))[0]
            row.update(planned_seconds=found["planned_seconds"], low_seconds=found["low_seconds"],
                       high_seconds=found["high_seconds"],
                       measured_seconds=min(row["measured_seconds"], found["measured_seconds"]))
    for row in rows:
        row["ratio"] = row["planned_seconds"] / row["measured_seconds"]
    return rows


def drawn_configurations(count):
    """The same on every machine."""
    draw = random.Random(19)
    return [(preset, ["%s=%s" % (key, draw.choice(values)) for key, values in TURNS.items()])
            for preset in ORDERED for _ in range(count)]


def ranks(values):
    order = sorted(range(len(values)), key=lambda k: values[k])
    return [rank for _, rank in sorted(zip(order, range(len(values))))]


def spearman(rows):
    """Of distinct values."""
    planned, measured = ranks([row["planned_seconds"] for row in rows]), ranks([row["measured_seconds"] for row in rows])
    n = len(rows)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(planned, measured)) / (n * (n * n - 1))


def measure_card(row):
    use, model, card, batch, _, units, published, knobs, software = row[:9]
    path = os.path.join(PUBLISHED, model + ".yaml")
    words = ["device.kind=plan", "device.card=" + card, "batch.size=" + batch, *knobs.split()]
    try:
        report = json_of([headroom_program(), "plan", path if os.path.exists(path) else model, "--json",
                          *knob_words(words)])[0]
    except Unavailable:  # more is held than the card has, by our rules: there is no step to time
        return None
    planned = report["step"]["effective_batch"] * float(units) / report["step"]["seconds"]
    return {"preset": model, "card": card, "knobs": knobs.split(), "use": use, "simulated_per_second": planned,
            "published_per_second": float(published), "source": software, "ratio": planned / float(published)}


def measure(options):
    models, count, rounds, seconds = (tiny_models()[:3], 2, 1, 0.1) if options.quick else (
        tiny_models(), CONFIGURATIONS, 2, 1)
    cards = [measure_card(row) for row in published_rows()]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        try:
            calibration = calibrate(ONE_THREAD, 40)
            rows = measure_steps([(preset, []) for preset in models], rounds, seconds)
            order = measure_steps(drawn_configurations(count), rounds, seconds)
        finally:
            del os.environ["XDG_CACHE_HOME"]
    return {"factor_wanted": FACTOR_WANTED, "error_wanted": ERROR_WANTED, "order_wanted": ORDER_WANTED,
            "calibration_seconds": calibration["seconds"], "calibration_error": calibration["model_error"],
            "calibration_spread": calibration["spread"], "calibration_models": calibration["models"],
            "families": calibration["families"], "models": rows,
            "error": median([abs(row["ratio"] - 1) for row in rows]),
            "within_range": sum(row["low_seconds"] <= row["measured_seconds"] <= row["high_seconds"] for row in rows),
            "order": order, "spearman": spearman(order),
            "spearman_of_each": {preset: spearman([row for row in order if row["preset"] == preset]) for preset in ORDERED},
            "cards": [row for row in cards if row is not None], "cards_that_do_not_hold_it": cards.count(None)}


def table(result):
    lines = ["calibrated in %.1f s, its own models within %.0f %%" % (
        result["calibration_seconds"], 100 * result["calibration_error"]),
             "%-28s %10s %10s %7s" % ("this machine, one thread", "planned", "measured", "ratio")]
    for row in result["models"] + result["order"]:
        lines.append("%-28s %7.2f ms %7.2f ms %7.2f  %s" % (
            row["preset"], row["planned_seconds"] * 1e3, row["measured_seconds"] * 1e3, row["ratio"], " ".join(row["knobs"])))
    lines.append("half of %d tiny models within %.1f %%  %s; %d within the range of their plan" % (
        len(result["models"]), 100 * result["error"], wanted(result["error"], result["error_wanted"], False),
        result["within_range"]))
    lines.append("order of %d configurations: %.3f  %s (%s)" % (
        len(result["order"]), result["spearman"], wanted(result["spearman"], result["order_wanted"], True),
        ", ".join("%s %.3f" % each for each in result["spearman_of_each"].items())))
    lines.append("%-24s %10s %10s %7s" % ("cards, a second", "simulated", "published", "ratio"))
    for row in result["cards"]:
        lines.append("%-24s %10.0f %10.0f %7.2f  %s" % (
            row["preset"], row["simulated_per_second"], row["published_per_second"], row["ratio"], row["source"]))
    return lines
