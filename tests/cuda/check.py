# SPDX-License-Identifier: Apache-2.0
"""Correctness on a real card: the tests of operations, steps and runtime; plan against run to the byte; the driver's view
against what is predicted; the card's own property file, for presets/cards."""
import json
import os
import subprocess
import time

from machine import SKIPPED, TOP, Skip, card_of, smi, tail_of

TEST_SECONDS = 150
RUN_SECONDS = 120
MIB = 1 << 20

# preset, knobs: small and large, both modes, every allocator, every precision.
RUNS = [
    ("demo", []),
    ("demo", ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on"]),
    ("demo", ["allocator.kind=caching", "precision.policy=mixed_float16"]),
    ("demo", ["allocator.kind=async", "precision.policy=mixed_bfloat16"]),
    ("demo", ["allocator.kind=direct", "offload.activations=on"]),
    ("mlp", ["execution.mode=graph", "optimizer.kind=adam8bit"]),
    ("resnet50", ["batch.size=64", "precision.policy=mixed_bfloat16", "execution.mode=graph"]),
    ("resnet50", ["batch.size=32", "checkpoint.strategy=selective"]),
    ("mobilenet_v2", ["batch.size=64", "precision.policy=mixed_float16", "execution.mode=graph"]),
    ("gpt2_124m", ["batch.size=8", "precision.policy=mixed_bfloat16", "execution.mode=graph"]),
    ("gpt2_124m", ["batch.size=4", "precision.policy=mixed_bfloat16", "execution.deterministic=on"]),
    ("lstm_lm_medium", ["execution.mode=graph"]),
]


def run_tests(machine, options, failed):
    rows = []
    for path in machine.tests("test_*cuda*"):
        name = os.path.basename(path)
        if (options.only or "") not in name:
            continue
        log = os.path.join(options.out, name + ".log")
        began = time.time()
        status = machine.run([path], log, TEST_SECONDS)
        rows.append({"test": name, "exit": status, "seconds": round(time.time() - began, 1)})
        print("%-32s %s" % (name, "skipped" if status == SKIPPED else "passed" if status == 0 else "exit %d" % status))
        if status not in (0, SKIPPED):
            print(tail_of(log, 12))
            failed.append(name)
    return rows


def report_of(machine, command, preset, knobs, steps):
    words = [word for knob in knobs for word in ("-s", knob)]
    done = subprocess.run([machine.headroom, command, preset, *words, "--steps", str(steps), "--json"], cwd=TOP,
                          env=machine.environment, capture_output=True, text=True, check=False, timeout=RUN_SECONDS)
    if done.returncode != 0:
        return None, (done.stderr.strip() or done.stdout.strip())[-500:]
    return json.loads(done.stdout), None


def differences(planned, ran):
    return sorted(key for key in planned["memory"] if planned["memory"][key] != ran["memory"].get(key))


def compare(machine, preset, knobs, failed):
    """One configuration, planned and run: every field of `memory`, and the driver's view."""
    steps = 3
    name = " ".join([preset, *knobs])
    planned, plan_error = report_of(machine, "plan", preset, knobs, steps)
    ran, run_error = report_of(machine, "run", preset, knobs, steps)
    if planned is None or ran is None:
        failed.append("%s: %s" % (name, plan_error or run_error))
        return {"name": name, "error": plan_error or run_error}
    differing = differences(planned, ran)
    driver = ran["driver"]
    row = {"name": name, "differing": differing, "peak_in_use_bytes": ran["memory"]["peak_in_use_bytes"],
           "peak_pool_bytes": ran["memory"]["peak_pool_bytes"], "loss_first": ran["train"]["loss_first"],
           "loss_last": ran["train"]["loss_last"], "step_seconds": ran["step"]["seconds"],
           "planned_seconds": planned["step"]["seconds"], **driver}
    if driver["process_bytes"] is not None:
        row["predicted_process_bytes"] = ran["memory"]["peak_pool_bytes"] + driver["outside_bytes"]
        off = abs(row["predicted_process_bytes"] - driver["process_bytes"])
        row["process_within"] = off <= max(driver["process_bytes"] // 100, 64 * MIB)
        if not row["process_within"]:
            failed.append("%s: the driver counts %d B, predicted %d" % (name, driver["process_bytes"],
                                                                      row["predicted_process_bytes"]))
    if differing:
        failed.append("%s: plan and run differ in %s" % (name, ", ".join(differing)))
    print("%-96s %s" % (name[:96], "equal" if not differing else "DIFFER: " + ", ".join(differing)))
    return row


def measure(machine, options):
    os.makedirs(options.out, exist_ok=True)
    failed = []
    body = {"tests": run_tests(machine, options, failed)}
    if not body["tests"] and not os.path.exists(machine.headroom):
        raise Skip("nothing is built: tests/cuda/run build")
    card = card_of(smi("name"))
    body["card_file"] = card
    if os.path.exists(machine.headroom) and card is not None:
        common = ["device.kind=cuda", "device.card=" + card, "device.vram=none"]
        rows = RUNS[:2] if options.quick else RUNS
        body["plan_and_run"] = [compare(machine, preset, common + knobs, failed) for preset, knobs in rows
                                if (options.only or "") in preset]
        body["devices"] = subprocess.run([machine.headroom, "doctor"], cwd=TOP, env=machine.environment,
                                         capture_output=True, text=True, check=False).stdout
    elif card is None:
        failed.append("no file of presets/cards has the title %s" % smi("name"))
    return body, failed
