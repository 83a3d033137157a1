# SPDX-License-Identifier: Apache-2.0
"""How well a step's time is foretold: on this machine after a calibration of its own, and on cards against what others
published for the same model, batch and precision."""
import math
import os
import tempfile

from calibrate import calibrate
from measure import headroom_program, json_of, knob_words, wanted

FACTOR_WANTED = 2.0  # at most, either way
MACHINE = ["cifar10_separable_cnn", "mlp", "resnet18_cifar", "resnet50_tiny", "mobilenet_v2_tiny", "unet_tiny",
           "vgg16_tiny", "gpt2_124m_tiny", "bert_base_tiny", "vit_b16_tiny"]
PUBLISHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published")


def published_rows():
    """Those of throughput.txt: its head says what the columns are."""
    with open(os.path.join(PUBLISHED, "throughput.txt"), encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split(" | ") for line in lines if not line.startswith("#")]
    return [row for row in rows if row[0] != "elsewhere"]


def seconds_of(argv):
    return json_of(argv)[0]["step"]["seconds"]


def measure_model(preset, steps, knobs):
    words = [preset, "--json", "-s", "device.vram=2GiB", "-s", "device.kind=cpu", *knob_words(knobs)]
    planned = seconds_of([headroom_program(), "plan", *words])
    measured = seconds_of([headroom_program(), "run", *words, "--steps", str(steps)])
    return {"preset": preset, "planned_seconds": planned, "measured_seconds": measured, "ratio": planned / measured}


def measure_card(row):
    use, model, card, batch, _, units, published, knobs, software = row[:9]
    path = os.path.join(PUBLISHED, model + ".yaml")
    words = ["device.kind=plan", "device.card=" + card, "batch.size=" + batch, *knobs.split()]
    report = json_of([headroom_program(), "plan", path if os.path.exists(path) else model, "--json", *knob_words(words)])[0]
    planned = report["step"]["effective_batch"] * float(units) / report["step"]["seconds"]
    return {"preset": model, "card": card, "knobs": knobs.split(), "use": use, "simulated_per_second": planned,
            "published_per_second": float(published), "source": software, "ratio": planned / float(published)}


def measure(options):
    models, steps = (MACHINE[:2], 5) if options.quick else (MACHINE, 15)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        try:
            calibration = calibrate(options.set, 8 if options.quick else 20)
            rows = [measure_model(preset, steps, options.set) for preset in models]
        finally:
            del os.environ["XDG_CACHE_HOME"]
    return {"factor_wanted": FACTOR_WANTED, "calibration_seconds": calibration["seconds"],
            "families": calibration["families"], "models": rows, "cards": [measure_card(row) for row in published_rows()]}


def table(result):
    lines = ["calibrated in %.1f s" % result["calibration_seconds"],
             "%-24s %10s %10s %7s" % ("this machine", "planned", "measured", "ratio")]
    for row in result["models"]:
        factor = math.exp(abs(math.log(row["ratio"])))
        lines.append("%-24s %7.1f ms %7.1f ms %7.2f  %s" % (
            row["preset"], row["planned_seconds"] * 1e3, row["measured_seconds"] * 1e3, row["ratio"],
            wanted(factor, result["factor_wanted"], False)))
    lines.append("%-24s %10s %10s %7s" % ("cards, a second", "simulated", "published", "ratio"))
    for row in result["cards"]:
        lines.append("%-24s %10.0f %10.0f %7.2f  %s" % (
            row["preset"], row["simulated_per_second"], row["published_per_second"], row["ratio"], row["source"]))
    return lines
