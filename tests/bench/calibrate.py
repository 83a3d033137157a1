# SPDX-License-Identifier: Apache-2.0
"""How well this machine's own steps are foretold after a calibration: planned over measured, for the demo and ResNet-18
on the cpu device. Wants a machine that does nothing else; a calibration that was refused says why."""
import json
import math
import os
import subprocess
import tempfile

from measure import Unavailable, environment, figures, headroom_program, json_of, knob_words, median

FACTOR_WANTED = 1.15  # at most, either way
# preset, knobs, steps of a run: the demo as it is, ResNet-18 on images of 224x224
MODELS = [("demo", [], 60), ("resnet18", ["batch.size=8", "device.vram=4GiB"], 12)]
ROUNDS = 5


def calibrate_once(knobs, seconds):
    """Also one that was refused is a document; its exit code is 1."""
    argv = [headroom_program(), "doctor", "--calibrate", "--json", "--seconds", str(seconds), *knob_words(knobs)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise Unavailable(done.stderr.strip())
    return json.loads(done.stdout)


def calibrate(knobs, seconds):
    """A machine that does other things as well has it in several goes; `seconds` of the document are those of all."""
    document, took = calibrate_once(knobs, seconds), 0
    while document["goes_on"]:
        took += document["seconds"]
        document = calibrate_once(knobs, seconds)
    document["seconds"] += took
    if document["refusal"] is not None:
        raise Unavailable("the calibration was refused: " + document["refusal"])
    return document


def measure_model(preset, knobs, steps, rounds):
    words = [preset, "--json", "-s", "device.kind=cpu", *knob_words(knobs)]
    planned = json_of([headroom_program(), "plan", *words])[0]["step"]["seconds"]
    measured = [json_of([headroom_program(), "run", *words, "--steps", str(steps)])[0]["step"]["seconds"]
                for _ in range(rounds)]
    return {"preset": preset, "knobs": knobs, "planned_seconds": planned, **figures(measured, "measured_seconds"),
            "ratio": planned / median(measured)}


def measure(options):
    seconds, rounds = (8, 1) if options.quick else (40, ROUNDS)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        try:
            document = calibrate(options.set, seconds)
            rows = [measure_model(preset, knobs + options.set, min(steps, 6) if options.quick else steps, rounds)
                    for preset, knobs, steps in MODELS]
        finally:
            del os.environ["XDG_CACHE_HOME"]
    return {"factor_wanted": FACTOR_WANTED, "isa": document["isa"], "threads": document["threads"],
            "calibration_seconds": document["seconds"], "noise": document["noise"],
            "fit": document["models"], "families": document["families"], "models": rows}


def table(result):
    lines = ["%s, %s, %d threads: calibrated in %.1f s, noise %.0f %%" % (
        result["machine"]["cpu"], result["isa"], result["threads"], result["calibration_seconds"], 100 * result["noise"]),
             "%-12s %12s %12s %7s   within %.0f %%" % ("", "planned", "measured", "ratio", 100 * (FACTOR_WANTED - 1))]
    for row in result["models"]:
        factor = math.exp(abs(math.log(row["ratio"])))
        lines.append("%-12s %9.2f ms %9.2f ms %7.3f   %s" % (
            row["preset"], row["planned_seconds"] * 1e3, row["measured_seconds"] * 1e3, row["ratio"],
            "yes" if factor <= FACTOR_WANTED else "NO"))
    return lines
