# SPDX-License-Identifier: Apache-2.0
"""Correctness on a real card: the tests of operations, steps and runtime; plan against run to the byte; the driver's
view against what is predicted; the card's own property file, for presets/cards, and whether plans with it are those with
ours."""
import concurrent.futures
import json
import os
import shutil
import tempfile
import time

from machine import LATE, SKIPPED, TOP, Skip, card_of, smi, why

TEST_SECONDS = 150
RUN_SECONDS = 90
TESTS_AT_ONCE = 4  # they wait for the judge, which is plain C
MIB = 1 << 20

# In one process: a context takes a good part of a second, and there are hundreds of trials. Check's own limits, which
# hold where it forks, are for tests that ctest runs; here TEST_SECONDS holds.
TEST_ENVIRONMENT = {"CK_FORK": "no", "CK_DEFAULT_TIMEOUT": "120", "OMP_WAIT_POLICY": "passive"}

# preset, knobs: small and large, both modes, every allocator, every precision. bfc takes all of its limit at once: how
# much that is must not depend on what the card has left; the last row is as a user has it.
VRAM = "device.vram=64GiB"
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
    ("demo", ["device.vram=none"]),
]

GIVE_BACK = {"allocator.kind=direct", "allocator.kind=async"}

# Planned twice, with the property file that was written by hand and with the card's own.
PLANS = [(preset, ["batch.size=%d" % batch, "precision.policy=" + policy, "execution.mode=" + mode])
         for preset, batch in (("resnet50", 64), ("gpt2_124m", 8))
         for policy in ("float32", "mixed_float16", "mixed_bfloat16") for mode in ("eager", "graph")]


def run_test(machine, path):
    """In one process; when that fails, once more with a process for each of its tests, which says what the others do."""
    name, began = os.path.basename(path), time.monotonic()
    status = machine.run([path], name, TEST_SECONDS, **TEST_ENVIRONMENT)
    row = {"test": name, "exit": status}
    if status not in (0, SKIPPED, LATE):
        row["in_one_process"], forked = status, name + "_forked"
        row["exit"] = machine.run([path], forked, TEST_SECONDS, **{**TEST_ENVIRONMENT, "CK_FORK": "yes"})
        row["tail"] = machine.tail_of(name) + machine.tail_of(forked)
    elif status == LATE:
        row["tail"] = machine.tail_of(name)
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def run_tests(machine, options, body, failed):
    paths = [path for path in machine.tests("test_*cuda*") if (options.only or "") in os.path.basename(path)]
    with concurrent.futures.ThreadPoolExecutor(TESTS_AT_ONCE) as pool:
        for row in pool.map(lambda path: run_test(machine, path), paths):
            body["tests"].append(row)
            word = {0: "passed", SKIPPED: "skipped", LATE: "took too long"}.get(row["exit"], "exit %d" % row["exit"])
            if "in_one_process" in row:
                word += ", exit %d in one process" % row["in_one_process"]
            print("%-32s %s (%.0f s)" % (row["test"], word, row["seconds"]), flush=True)
            if row["exit"] not in (0, SKIPPED):
                print("".join(row["tail"].splitlines(True)[-12:]))
                failed.append("%s: %s" % (row["test"], word))


def report_of(machine, command, preset, knobs, steps=3, **environment):
    """Of `headroom plan` or `run`: the report, or None and why not."""
    words = [word for knob in knobs for word in ("-s", knob)]
    status, out, err = machine.ask([machine.headroom, command, preset, *words, "--steps", str(steps), "--json"],
                                   RUN_SECONDS, **environment)
    try:
        return (json.loads(out), None) if status == 0 else (None, why(status, out, err))
    except ValueError:
        return None, "no report: " + why(status, out, err)


def differences(planned, ran):
    return sorted(key for key in planned["memory"] if planned["memory"][key] != ran["memory"].get(key))


def compare(machine, preset, knobs, failed):
    """One configuration, planned and run: every field of `memory`, and the driver's view."""
    name = " ".join([preset, *knobs])
    planned, plan_error = report_of(machine, "plan", preset, knobs)
    ran, run_error = report_of(machine, "run", preset, knobs)
    if planned is None or ran is None:
        failed.append("%s: %s" % (name, plan_error or run_error))
        print("%-96s %s" % (name[:96], plan_error or run_error), flush=True)
        return {"name": name, "error": plan_error or run_error, "of": "run" if plan_error is None else "plan"}
    differing = differences(planned, ran)
    driver = ran["driver"]
    row = {"name": name, "differing": differing, "peak_in_use_bytes": ran["memory"]["peak_in_use_bytes"],
           "peak_pool_bytes": ran["memory"]["peak_pool_bytes"], "loss_first": ran["train"]["loss_first"],
           "loss_last": ran["train"]["loss_last"], "step_seconds": ran["step"]["seconds"],
           "planned_seconds": planned["step"]["seconds"], **driver}
    if driver["process_bytes"] is not None and driver["outside_bytes"] is not None:
        row["predicted_process_bytes"] = ran["memory"]["peak_pool_bytes"] + driver["outside_bytes"]
        over = driver["process_bytes"] - row["predicted_process_bytes"]
        if GIVE_BACK.isdisjoint(knobs):  # else what was taken at the peak may be gone
            over = abs(over)
        row["process_within"] = over <= max(driver["process_bytes"] // 100, 64 * MIB)
        if not row["process_within"]:
            failed.append("%s: the driver counts %d B, predicted %d" % (name, driver["process_bytes"],
                                                                      row["predicted_process_bytes"]))
    if differing:
        row["planned"], row["ran"] = ({key: side["memory"][key] for key in differing} for side in (planned, ran))
        failed.append("%s: plan and run differ in %s" % (name, ", ".join(differing)))
    print("%-96s %s" % (name[:96], "equal" if not differing else "DIFFER: " + ", ".join(differing)), flush=True)
    return row


# ---- the card's own properties --------------------------------------------------------------------------------

def facts_of(machine, options, card, failed):
    """What the card says of itself, kept as CARD.json in the folder of results, beside the file of presets/cards."""
    path = os.path.join(options.out, (card or "card") + ".json")
    status, out, err = machine.ask([os.path.join(machine.build_folder, "tests/card_facts"), path], RUN_SECONDS)
    facts = {"exit": status, "words": out.strip().splitlines()}
    try:
        with open(path, encoding="utf-8") as file:
            own = json.load(file)
    except (OSError, ValueError) as error:
        facts["error"] = "%s; %s" % (why(status, out, err), error)
        failed.append("the card's own properties: " + facts["error"])
        return facts
    if status != 0:
        facts["error"] = why(status, out, err)
        failed.append("the card's own properties: " + facts["error"])
    facts["file"], facts["properties"] = os.path.basename(path), own
    if card is not None:
        with open(os.path.join(TOP, "presets/cards", card + ".json"), encoding="utf-8") as file:
            ours = json.load(file)
        facts["differing"] = {key: {"file": ours.get(key), "card": own.get(key)} for key in sorted({*ours, *own})
                              if ours.get(key) != own.get(key)}
        print("properties: " + ("; ".join("%s %s, the card says %s" % (key, two["file"], two["card"]) for key, two in
                                          facts["differing"].items()) or "those of the file"))
    return facts


def plan_with_own(machine, facts, card, options, failed):
    """The same plans with the hand-written file and with the card's."""
    rows = []
    with tempfile.TemporaryDirectory() as home:
        # A card of the user's own, under another name; and nothing that was remembered.
        folder = os.path.join(home, "headroom/presets/cards")
        os.makedirs(folder)
        shutil.copy(os.path.join(TOP, "presets/cards", card + ".yaml"), os.path.join(folder, "own.yaml"))
        with open(os.path.join(folder, "own.json"), "w", encoding="utf-8") as file:
            json.dump(facts["properties"], file)
        for preset, knobs in PLANS[:1] if options.quick else PLANS:
            reports = []
            for name in (card, "own"):
                common = ["device.kind=cuda", "device.card=" + name, VRAM]
                reports.append(report_of(machine, "plan", preset, common + knobs, XDG_DATA_HOME=home,
                                         XDG_CACHE_HOME=os.path.join(home, "cache")))
            row = {"name": " ".join([preset, *knobs])}
            error = reports[0][1] or reports[1][1]
            if error is not None:
                row["error"] = error
            else:
                row["differing"] = differences(reports[0][0], reports[1][0])
                row["planned"] = [{key: report["memory"][key] for key in row["differing"]} for report, _ in reports]
            if error is not None or row["differing"]:
                failed.append("%s, planned with the card's own properties: %s" %
                              (row["name"], error or "other " + ", ".join(row["differing"])))
            rows.append(row)
    print("planned with the card's own properties: %d of %d agree" % (sum(row.get("differing") == [] for row in rows),
                                                                      len(rows)), flush=True)
    return rows


# ---------------------------------------------------------------------------------------------------------------

def measure(machine, options, body, failed):
    if not machine.tests("test_*cuda*") and not os.path.exists(machine.headroom):
        raise Skip("nothing is built: tests/cuda/run build")
    card = body["card_file"] = card_of(smi("name"))
    if card is None:
        failed.append("no file of presets/cards has the title %s" % smi("name"))
    facts = body["card"] = facts_of(machine, options, card, failed)
    body["tests"] = []
    run_tests(machine, options, body, failed)
    if not os.path.exists(machine.headroom) or card is None:
        return
    body["devices"] = machine.ask([machine.headroom, "doctor"], RUN_SECONDS)[1]
    common = ["device.kind=cuda", "device.card=" + card, VRAM]
    body["plan_and_run"] = rows = []
    for preset, knobs in RUNS[:2] if options.quick else RUNS:
        if (options.only or "") in preset:
            rows.append(compare(machine, preset, common + knobs, failed))
    if "properties" in facts and not options.only:
        body["plan_with_own_properties"] = plan_with_own(machine, facts, card, options, failed)
