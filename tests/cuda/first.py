# SPDX-License-Identifier: Apache-2.0
"""What has to be known of a card first: its own properties, for presets/cards; every path into a library once, with who
computed and in how much scratch memory; plan against run to the byte, cheap rows first, and the driver's view; then the tests of
operations, steps and runtime, the slowest last."""
import collections
import concurrent.futures
import csv
import json
import os
import re
import tempfile
import time

from machine import CUT, LATE, MIB, SKIPPED, TOP, Skip, matches, why

SMOKE_SECONDS = 25
RUN_SECONDS = 60
TESTS_AT_ONCE = 4  # they wait for the judge, which is plain C
STEPS = 8          # a step is captured once three were alike

# In one process: a context takes a good part of a second, and there are hundreds of trials. Check's own limits, which
# hold where it forks, are for tests that ctest runs; here the table's hold.
TEST_ENVIRONMENT = {"CK_FORK": "no", "CK_DEFAULT_TIMEOUT": "120", "OMP_WAIT_POLICY": "passive"}

# Every path into a library, and our own beside it: what it is, preset, knobs.
BF16, F16 = "precision.policy=mixed_bfloat16", "precision.policy=mixed_float16"
SMOKE = [
    ("products", "mlp", []),
    ("products in two bytes", "mlp", [BF16]),
    ("convolutions", "resnet18_cifar", ["batch.size=32"]),
    ("convolutions in two bytes", "resnet18_cifar", ["batch.size=32", BF16]),
    ("convolutions, sums fused", "resnet18_cifar", ["batch.size=32", F16, "execution.mode=graph"]),
    ("depthwise convolutions", "mobilenet_v2", ["batch.size=8", BF16]),
    ("transposed convolutions", "unet", ["batch.size=1", BF16]),
    ("attention", "gpt2_124m", ["batch.size=1", BF16]),
    ("attention of our own", "gpt2_124m", ["batch.size=1"]),
    ("attention with dropout", "bert_base", ["batch.size=1", BF16]),
    ("attention, deterministic", "gpt2_124m", ["batch.size=1", BF16, "execution.deterministic=on"]),
    ("recurrent", "lstm_lm_medium", []),
]
SMOKE_REHEARSED = [
    ("products", "mlp_tiny", []),
    ("convolutions in two bytes", "resnet18_cifar_tiny", ["batch.size=2", BF16]),
    ("attention", "gpt2_124m_tiny", ["batch.size=1", BF16]),
]

# Losses of a captured step are those of a step that is issued call by call, to the bit. cuDNN's gradient of attention adds
# in any order unless it is told not to: on an H100 two runs of GPT-2, captured or not, ended at 5.778899 and 5.778876.
CAPTURED = [("resnet18_cifar", ["batch.size=32", BF16]), ("gpt2_124m", ["batch.size=1", BF16, "execution.deterministic=on"]),
            ("mlp", [])]
CAPTURED_REHEARSED = [("mlp_tiny", [])]
GRAPH = ["execution.mode=graph", "allocator.kind=static"]

# preset, knobs: both modes, every allocator, every precision; the cheap first. bfc takes all of its limit at once: how
# much that is must not depend on what the card has left; the last row but one is as a user has it.
RUNS = [
    ("demo", []),
    ("demo", ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on"]),
    ("demo", ["allocator.kind=caching", F16]),
    ("demo", ["allocator.kind=async", BF16]),
    ("demo", ["allocator.kind=direct", "offload.activations=on"]),
    ("demo", ["device.vram=none"]),
    ("mlp", ["execution.mode=graph", "optimizer.kind=adam8bit"]),
    ("lstm_lm_medium", ["execution.mode=graph"]),
    ("gpt2_124m", ["batch.size=4", BF16, "execution.deterministic=on"]),
    ("gpt2_124m", ["batch.size=8", BF16, "execution.mode=graph"]),
    ("gpt2_124m", ["batch.size=4", BF16, "execution.deterministic=on", "compress.lora=8", "compress.lora_targets=all",
                   "compress.lora_base=nf4"]),
    ("mlp", ["execution.mode=graph", "compress.prune=polynomial:0.2:0.8:1:9:4", "compress.quantize=int8"]),
    ("mobilenet_v2", ["batch.size=64", F16, "execution.mode=graph"]),
    ("resnet50", ["batch.size=32", "checkpoint.strategy=selective"]),
    ("resnet50", ["batch.size=64", BF16, "execution.mode=graph"]),
    ("resnet18_cifar", ["batch.size=32"]),
    ("resnet18_cifar", ["batch.size=32", F16, "execution.mode=graph"]),
    ("unet", ["batch.size=1", BF16]),
]
RUNS_REHEARSED = [("mlp_tiny", []), ("mlp_tiny", ["execution.mode=graph", "allocator.kind=static", "execution.cuda_graph=on"]),
                  ("resnet18_cifar_tiny", ["batch.size=2", "allocator.kind=caching", BF16])]
GIVE_BACK = {"allocator.kind=direct", "allocator.kind=async"}

# What tells two cards of a kind, or two of their drivers, apart.
OWN_PROPERTIES = {"pciDeviceId", "cudaDeviceId", "driverVer"}

# Planned twice, with the property file that was written by hand and with the card's own.
PLANS = [(preset, ["batch.size=%d" % batch, "precision.policy=" + policy, "execution.mode=" + mode])
         for preset, batch in (("resnet50", 64), ("gpt2_124m", 8))
         for policy in ("float32", "mixed_float16", "mixed_bfloat16") for mode in ("eager", "graph")]

# Tests of the card are those of tests/numeric that name it and those of tests/unit that name its libraries; the seconds of
# those that take long, the slowest last.
TEST_SECONDS = 40
ENDED = re.compile(r"^\d+%: Checks: ", re.MULTILINE)  # Check's last words: every test has run
LONG_TESTS = {"test_cuda_tiles": 60, "test_cuda_update_fixtures": 60, "test_cuda_updates": 60, "test_cuda_ops_in_place": 60,
              "test_cuda_products": 60, "test_cuda_engines": 60, "test_cuda_step": 100, "test_cuda_edges": 100, "test_ops_cuda": 120}
TESTS_REHEARSED = {"test_cuda_loss", "test_cuda_moves"}
# What a card does not run, and why.
LEFT_OUT = {
    "test_cuda_card_cudnn": "asks cuDNN for engines that are never taken",
    "test_cuda_refused": "the emulated card's refusals",
    "test_cuda_small_card": "a card of one multiprocessor, which is emulated",
}


def tests_of_card():
    """[(test, its seconds)], the slowest last."""
    found = [name[:-2] for folder, pattern in (("unit", r"test_cudnn_\w+\.c"), ("numeric", r"test_(cuda_\w+|ops_cuda)\.c"))
             for name in sorted(os.listdir(os.path.join(TOP, "tests", folder))) if re.fullmatch(pattern, name)]
    short = [name for name in found if name not in LONG_TESTS and name not in LEFT_OUT]
    return [(name, TEST_SECONDS) for name in short] + list(LONG_TESTS.items())


def run_test(machine, name, seconds):
    """In one process; when that dies, once more with a process for each of its tests, which says what the others do."""
    path, began = os.path.join(machine.build_folder, "tests", name), time.monotonic()
    if not os.path.exists(path):
        return {"test": name, "exit": None, "seconds": 0.0}
    status = machine.run([path], name, seconds, **TEST_ENVIRONMENT)
    row = {"test": name, "exit": status}
    if status not in (0, SKIPPED, LATE, CUT) and ENDED.search(machine.tail_of(name)):
        row["tail"] = machine.tail_of(name)
    elif status not in (0, SKIPPED, LATE, CUT):
        row["in_one_process"], forked = status, name + "_forked"
        row["exit"] = machine.run([path], forked, seconds, **{**TEST_ENVIRONMENT, "CK_FORK": "yes"})
        row["tail"] = machine.tail_of(name) + machine.tail_of(forked)
    elif status in (LATE, CUT):
        row["tail"] = machine.tail_of(name)
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def word_of(row):
    word = {None: "not built", 0: "passed", SKIPPED: "skipped", LATE: "took too long", CUT: "the part's time was over"}
    text = word.get(row["exit"], "exit %d" % (row["exit"] or 0))
    return text + (", exit %d in one process" % row["in_one_process"] if "in_one_process" in row else "")


def run_tests(machine, options, body, tally):
    rows = [row for row in tests_of_card() if matches(options, row[0]) and (not options.rehearse or row[0] in TESTS_REHEARSED)]
    with concurrent.futures.ThreadPoolExecutor(TESTS_AT_ONCE) as pool:
        for row in pool.map(lambda test: run_test(machine, *test), rows):
            body["tests"].append(row)
            print("%-32s %s (%.0f s)" % (row["test"], word_of(row), row["seconds"]), flush=True)
            if row["exit"] is None or (row["exit"] == SKIPPED and options.rehearse):
                tally.skip(row["test"], word_of(row))
            elif row["exit"] not in (0, SKIPPED) or "in_one_process" in row:
                print("".join(row.get("tail", "").splitlines(True)[-12:]))
                tally.note(row["test"], row["exit"], word_of(row))
    for name, reason in LEFT_OUT.items() if options.rehearse else ():
        tally.skip(name, reason)


def report_of(machine, command, preset, knobs, steps=STEPS, more=(), seconds=None, **environment):
    """Of `headroom plan` or `run`: exit status, and the report, or None and why not."""
    words = [word for knob in knobs for word in ("-s", knob)]
    status, out, err = machine.ask([machine.headroom, command, preset, *words, "--steps", str(steps), "--json", *more],
                                   seconds or RUN_SECONDS, **environment)
    try:
        return (status, json.loads(out), None) if status == 0 else (status, None, why(status, out, err))
    except ValueError:
        return 1, None, "no report: " + why(status, out, err)


def judge_loaded(name, report, captures, tally):
    """Fails where the card computes otherwise than was planned, and where a step was to be captured and is not. What of that
    the report has is kept."""
    step = report["step"]
    for row in step.get("prepared") or ():
        tally.failed.append("%s: %s, planned %s, is computed by %s: %s" % (name, row["first"], row["planned"],
                                                                         row["implementation"], row["reason"]))
    capture = step.get("capture")
    if captures and capture is not None and (capture["refusal"] is not None or capture["replays"] == 0):
        tally.failed.append("%s: %d steps were replayed as captured: %s" % (name, capture["replays"], capture["refusal"]))
    return {key: step.get(key) for key in ("prepared", "unplanned", "capture")}


# ---- a smoke of every path ------------------------------------------------------------------------------------

def read_times(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def who_computed(rows):
    """{"cudnn eng36 k2=3": [instructions, most scratch bytes]}; of our own kernels their first word alone."""
    found = collections.Counter()
    most = collections.Counter()
    for row in (row for row in rows if row["implementation"]):
        name = row["implementation"] if row["implementation"].startswith("cu") else row["implementation"].split(" ")[0]
        found[name] += 1
        most[name] = max(most[name], int(row["workspace_bytes"]))
    return {name: [count, most[name]] for name, count in found.most_common()}


def smoke_one(machine, what, preset, knobs, tally):
    table = os.path.join(machine.logs, "smoke_%s.csv" % re.sub(r"\W+", "_", what))
    os.makedirs(machine.logs, exist_ok=True)
    status, report, error = report_of(machine, "run", preset, machine.knobs() + knobs, 4, ["--times", table], SMOKE_SECONDS)
    row = {"what": what, "name": " ".join([preset, *knobs])}
    if report is None:
        tally.note("%s (%s)" % (what, row["name"]), status, error)
        print("%-28s %s" % (what, error), flush=True)
        return {**row, "error": error}
    row["who"] = who_computed(read_times(table))
    row.update({key: report["step"].get(key) for key in ("implementations", "fallbacks")},
               **judge_loaded("%s (%s)" % (what, row["name"]), report, False, tally))
    row["loss_last"] = report["train"]["loss_last"]
    print("%-28s %s" % (what, "; ".join("%s x%d%s" % (name, count, " %d KiB" % (size >> 10) if size else "")
                                        for name, (count, size) in row["who"].items())), flush=True)
    return row


def capture_one(machine, preset, knobs, tally):
    """The same steps, issued call by call and captured."""
    name, found = " ".join([preset, *knobs]), []
    for word in ("off", "on"):
        more = machine.knobs() + GRAPH + knobs + ["execution.cuda_graph=" + word]
        status, report, error = report_of(machine, "run", preset, more)
        if report is None:
            tally.note("%s, cuda_graph=%s" % (name, word), status, error)
            return {"name": name, "error": error}
        found.append(report)
    losses = [report["train"]["loss_last"] for report in found]
    row = {"name": name, "losses": losses, "equal": losses[0] == losses[1], **judge_loaded(name, found[1], True, tally)}
    if not row["equal"]:
        tally.failed.append("%s: a loss of %r issued call by call, %r captured" % (name, *losses))
    print("captured %-60s %s" % (name, "the same loss" if row["equal"] else "ANOTHER LOSS"), flush=True)
    return row


def smoke(machine, options, body, tally):
    body["smoke"], body["captured"] = [], []
    for row in SMOKE_REHEARSED if options.rehearse else SMOKE:
        body["smoke"].append(smoke_one(machine, *row, tally))
    for row in CAPTURED_REHEARSED if options.rehearse else CAPTURED:
        body["captured"].append(capture_one(machine, *row, tally))


# ---- plan against run -----------------------------------------------------------------------------------------

def differences(planned, ran):
    return sorted(key for key in planned["memory"] if planned["memory"][key] != ran["memory"].get(key))


def context_bytes(machine, card):
    """What the card's row says that a context and the libraries take."""
    text = machine.ask([machine.headroom, "cards", card], RUN_SECONDS)[1]
    found = re.search(r"^context: (\d+)MiB$", text, re.MULTILINE)
    return int(found[1]) * MIB if found else None


def compare(machine, preset, knobs, context, tally):
    """One configuration, planned and run: every field of `memory`, and the process as the driver counts it against what is
    planned: the pool and the card's context."""
    name = " ".join([preset, *knobs])
    for command in ("plan", "run"):
        status, report, error = report_of(machine, command, preset, machine.knobs() + knobs)
        if report is None:
            tally.note("%s, %s" % (name, command), status, error)
            print("%-96s %s" % (name[:96], error), flush=True)
            return {"name": name, "error": error, "of": command}
        planned, ran = (report, None) if command == "plan" else (planned, report)
    differing, driver = differences(planned, ran), ran["driver"]
    row = {"name": name, "differing": differing, "peak_in_use_bytes": ran["memory"]["peak_in_use_bytes"],
           "peak_pool_bytes": ran["memory"]["peak_pool_bytes"], "loss_first": ran["train"]["loss_first"],
           "loss_last": ran["train"]["loss_last"], "step_seconds": ran["step"]["seconds"],
           "planned_seconds": planned["step"]["seconds"], **driver,
           **judge_loaded(name, ran, "execution.cuda_graph=on" in knobs, tally)}
    if driver["process_bytes"] is not None and context is not None:
        row["predicted_process_bytes"] = planned["memory"]["peak_pool_bytes"] + context
        over = driver["process_bytes"] - row["predicted_process_bytes"]
        row["process_ratio"] = driver["process_bytes"] / row["predicted_process_bytes"]
        row["process_within"] = (over if not GIVE_BACK.isdisjoint(knobs) else abs(over)) <= max(
            driver["process_bytes"] // 100, 64 * MIB)
        if not row["process_within"] and not machine.rehearses:
            tally.failed.append("%s: the driver counts %d B, planned were %d" % (name, driver["process_bytes"],
                                                                               row["predicted_process_bytes"]))
    if differing:
        row["planned"], row["ran"] = ({key: side["memory"][key] for key in differing} for side in (planned, ran))
        tally.failed.append("%s: plan and run differ in %s" % (name, ", ".join(differing)))
    print("%-96s %s" % (name[:96], "equal" if not differing else "DIFFER: " + ", ".join(differing)), flush=True)
    return row


# ---- the card's own properties --------------------------------------------------------------------------------

def facts_of(machine, options, card, tally):
    """What the card says of itself, kept as CARD.json in the folder of results, beside the file of presets/cards."""
    path = os.path.join(options.out, (card or "card") + ".json")
    status, out, err = machine.ask([os.path.join(machine.build_folder, "tests/card_facts"), path], RUN_SECONDS)
    facts = {"exit": status, "words": out.strip().splitlines()}
    try:
        with open(path, encoding="utf-8") as file:
            own = json.load(file)
    except (OSError, ValueError) as error:
        facts["error"] = "%s; %s" % (why(status, out, err), error)
        tally.note("the card's own properties", status, facts["error"])
        return facts
    if status != 0:
        facts["error"] = why(status, out, err)
        tally.note("the card's own properties", status, facts["error"])
    facts["file"], facts["properties"] = os.path.basename(path), own
    written = os.path.join(TOP, "presets/cards", "%s.json" % card)
    if os.path.exists(written):
        with open(written, encoding="utf-8") as file:
            ours = json.load(file)
        facts["differing"] = {key: {"file": ours.get(key), "card": own.get(key)} for key in sorted({*ours, *own} - OWN_PROPERTIES)
                              if ours.get(key) != own.get(key)}
        print("properties: " + ("; ".join("%s %s, the card says %s" % (key, two["file"], two["card"]) for key, two in
                                          facts["differing"].items()) or "those of the file"))
    return facts


def plan_with_own(machine, facts, card, options, tally):
    """The same plans with the hand-written file and with the card's."""
    rows = []
    with tempfile.TemporaryDirectory() as home:
        # A card of the user's own, under another name; and nothing that was remembered.
        folder = os.path.join(home, "headroom/presets/cards")
        os.makedirs(folder)
        status, out, err = machine.ask([machine.headroom, "cards", card], RUN_SECONDS)
        if status != 0:
            tally.note("cards " + card, status, why(status, out, err))
            return rows
        with open(os.path.join(folder, "own.yaml"), "w", encoding="utf-8") as file:
            file.write(out)
        with open(os.path.join(folder, "own.json"), "w", encoding="utf-8") as file:
            json.dump(facts["properties"], file)
        for preset, knobs in PLANS[:1] if options.quick or options.rehearse else PLANS:
            reports = []
            for name in (card, "own"):
                common = ["device.kind=cuda", "device.card=" + name, "device.vram=64GiB"]
                reports.append(report_of(machine, "plan", preset, common + knobs, XDG_DATA_HOME=home,
                                         XDG_CACHE_HOME=os.path.join(home, "cache")))
            row = {"name": " ".join([preset, *knobs])}
            status, _, error = reports[0] if reports[0][1] is None else reports[1]
            if error is not None:
                row["error"] = error
                tally.note("%s, planned with the card's own properties" % row["name"], status, error)
            else:
                row["differing"] = differences(reports[0][1], reports[1][1])
                row["planned"] = [{key: report["memory"][key] for key in row["differing"]} for _, report, _ in reports]
                if row["differing"]:
                    tally.failed.append("%s, planned with the card's own properties: other %s" %
                                        (row["name"], ", ".join(row["differing"])))
            rows.append(row)
    print("planned with the card's own properties: %d of %d agree" % (sum(row.get("differing") == [] for row in rows),
                                                                      len(rows)), flush=True)
    return rows


# ---------------------------------------------------------------------------------------------------------------

def measure(machine, options, body, tally):
    if not os.path.exists(machine.headroom):
        raise Skip("nothing is built: scripts/dev/bundle --binaries where there is a compiler, or tests/cuda/run build")
    card = body["card_file"] = machine.card()
    if card is None:
        tally.failed.append("no row of `headroom cards` has the title %s" % machine.smi("name"))
    facts = body["card"] = facts_of(machine, options, card, tally)
    body["tests"] = []
    said = machine.ask([machine.headroom, "doctor"], RUN_SECONDS)[1]
    body["devices"] = said.split("\nfiles\n")[0]  # where they lie is nobody's business
    if not options.only:
        smoke(machine, options, body, tally)
    body["context_bytes"], body["plan_and_run"] = card and context_bytes(machine, card), []
    runs = RUNS_REHEARSED if options.rehearse else RUNS[:2] if options.quick else RUNS
    for preset, knobs in runs:
        if matches(options, " ".join([preset, *knobs])):
            body["plan_and_run"].append(compare(machine, preset, knobs, body["context_bytes"], tally))
    if "properties" in facts and "differing" in facts and not options.only:
        body["plan_with_own_properties"] = plan_with_own(machine, facts, card, options, tally)
    run_tests(machine, options, body, tally)
