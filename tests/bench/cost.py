# SPDX-License-Identifier: Apache-2.0
"""How well a step's time is foretold: on this machine after a calibration of its own, and on cards against what others
published for the same model, batch and precision."""
import math
import os
import tempfile

from measure import headroom_program, json_of, knob_words, wanted

FACTOR_WANTED = 2.0  # at most, either way
MACHINE = ["cifar10_separable_cnn", "mlp", "resnet18_cifar", "resnet50_tiny", "mobilenet_v2_tiny", "unet_tiny",
           "vgg16_tiny", "gpt2_124m_tiny", "bert_base_tiny", "vit_b16_tiny"]
# preset, knobs, units a sample (1: images), units a second, who measured it.
CARDS = [("resnet50", ["device.card=a100-80g", "precision.policy=mixed_float16", "batch.size=512", "execution.mode=graph"],
          1, 3411, "NVIDIA DeepLearningExamples, MXNet 22.10, A100 80 GB"),
         ("gpt2_124m", ["device.card=a100-80g", "precision.policy=mixed_bfloat16", "batch.size=16", "execution.mode=graph"],
          1024, 231e3, "llm.c, one of eight A100"),
         ("gpt2_1558m", ["device.card=h200-141g", "precision.policy=mixed_bfloat16", "batch.size=4",
                         "execution.mode=graph"], 1024, 46.8e3, "llm.c, one of eight H100")]


def seconds_of(argv):
    return json_of(argv)[0]["step"]["seconds"]


def measure_model(preset, steps, knobs):
    words = [preset, "--json", "-s", "device.vram=2GiB", "-s", "device.kind=cpu", *knob_words(knobs)]
    planned = seconds_of([headroom_program(), "plan", *words])
    measured = seconds_of([headroom_program(), "run", *words, "--steps", str(steps)])
    return {"preset": preset, "planned_seconds": planned, "measured_seconds": measured, "ratio": planned / measured}


def measure_card(preset, knobs, units, published, source):
    words = ["device.kind=plan", "device.vram=70GiB", *knobs]
    report = json_of([headroom_program(), "plan", preset, "--json", *knob_words(words)])[0]
    batch = next(int(knob.split("=")[1]) for knob in knobs if knob.startswith("batch.size"))
    simulated = batch * units / report["step"]["seconds"]
    return {"preset": preset, "knobs": knobs, "simulated_per_second": simulated, "published_per_second": published,
            "source": source, "ratio": simulated / published}


def measure(options):
    models, steps = (MACHINE[:2], 5) if options.quick else (MACHINE, 15)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        try:
            calibration = json_of([headroom_program(), "doctor", "--calibrate", "--json",
                                   *(["--seconds", "1"] if options.quick else []), *knob_words(options.set)])[0]
            rows = [measure_model(preset, steps, options.set) for preset in models]
        finally:
            del os.environ["XDG_CACHE_HOME"]
    return {"factor_wanted": FACTOR_WANTED, "calibration_seconds": calibration["seconds"],
            "families": calibration["families"], "models": rows, "cards": [measure_card(*card) for card in CARDS]}


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
