# SPDX-License-Identifier: Apache-2.0
"""What taking half of the filters out saves (compress.prune_structure=filter, headroom export --strip): bytes, and examples a
second of inference before and after, of one process each round. The demo is trained beside its unpruned self, for accuracy; of
ResNet-18, whose residual blocks lose the filters between their two convolutions, a few steps make the masks and no more."""
import os
import tempfile

from measure import figures, headroom_program, json_of, knob_words, output_of

PRUNED = ["compress.prune_structure=filter"]
# preset, knobs, schedule, steps, and at most so many rounds of evaluations
CASES = [("demo", [], "polynomial:0:0.5:100:300:10", 400, 11),
         ("resnet18_cifar", ["device.kind=cpu", "device.vram=8GiB", "batch.size=32"], "constant:0.5:0:-1:1", 3, 3)]


def trained(preset, knobs, steps, save, *more):
    output_of([headroom_program(), "run", preset, *knob_words([*knobs, "train.save=" + save, *more]), "--steps", str(steps)])


def exported(preset, knobs, save, *more):
    return json_of([headroom_program(), "export", preset, *knob_words(knobs), "--save", save, "--strip", "--json", *more])[0]


def measure_case(case, options):
    preset, knobs, schedule, steps, rounds = case
    knobs = [*knobs, *options.set]
    with tempfile.TemporaryDirectory() as folder:
        save, plain = os.path.join(folder, "pruned.safetensors"), os.path.join(folder, "plain.safetensors")
        trained(preset, knobs, steps, save, "compress.prune=" + schedule, *PRUNED)
        made = [exported(preset, knobs, save) for _ in range(min(rounds, options.rounds))]
        result = {"preset": preset, "knobs": knobs, "prune": schedule, "steps": steps, "sizes": made[0]["sizes"],
                  "parameters": made[0]["parameters"], "deployed_parameters": made[0]["deployed_parameters"],
                  "layers": made[0]["layers"]}
        if steps > 3:
            trained(preset, knobs, steps, plain)
            result["accuracy_unpruned"] = exported(preset, knobs, plain)["evaluation"]["trained"]["accuracy"]
    for when in ("trained", "deployed"):
        one = made[0]["evaluation"][when]
        rates = [run["evaluation"][when]["examples_per_second"] for run in made]
        result[when] = {"accuracy": one["accuracy"], "loss": one["loss"], "samples": one["samples"],
                        "peak_in_use_bytes": one["peak_in_use_bytes"], **figures(rates, "examples_per_second")}
    ratios = [run["evaluation"]["deployed"]["examples_per_second"] / run["evaluation"]["trained"]["examples_per_second"]
              for run in made]
    return {**result, **figures(ratios, "times_as_fast")}


def measure(options):
    return {"rounds": options.rounds, "cases": [measure_case(case, options) for case in CASES[:1 if options.quick else None]]}


def table(result):
    lines = ["%-16s %12s %12s %6s %9s %9s %6s %8s %8s" % (
        "", "bytes", "shrunk", "", "ex/s", "shrunk", "times", "accuracy", "shrunk")]
    for case in result["cases"]:
        before, after = case["sizes"]["stripped"]["ram_bytes"], case["sizes"]["deployed"]["ram_bytes"]
        lines.append("%-16s %12d %12d %5.1f%% %9.0f %9.0f %6.2f %8.4f %8.4f" % (
            case["preset"], before, after, 100 * after / before, case["trained"]["examples_per_second"],
            case["deployed"]["examples_per_second"], case["times_as_fast"], case["trained"]["accuracy"],
            case["deployed"]["accuracy"]))
    return lines
