# SPDX-License-Identifier: Apache-2.0
"""checkpoint.strategy=budget by plans for a card: what half of the plain peak costs in step time, by recomputation, with the activations on
the host, and with a budget that may do either; the smallest peak that is found beside what one instruction holds at least; what of
vgg16, of which weights, gradients and momentum are two thirds, is kept with the knobs that reach these; and the largest batch
whose peak in use is within 16 GiB with at most one extra forward pass of operations (Checkmate's measure). Processor seconds of each plan stand beside them; all else is the same on every machine."""
import os
import re
import subprocess
import time

from measure import TOP, environment, headroom_program, knob_words

CARD = ["device.kind=plan", "device.card=a100-80g"]
MODELS = [("vgg16", 32), ("resnet50", 32), ("unet", 32), ("mobilenet_v2", 32), ("gpt2_355m", 8)]
BATCHES = [("mobilenet_v2", 5.1), ("unet", 3.8), ("resnet50", None), ("vgg16", None)]  # by Checkmate
# What recomputation alone cannot bring to half, and the knobs that do.
BESIDE = [("vgg16", 32, beside) for beside in
          (["optimizer.fused_backward=on"], ["optimizer.fused_backward=on", "offload.activations=on"],
           ["optimizer.fused_backward=on", "offload.activations=on", "offload.optimizer=on"])]
ROOM = 16 << 30
PARTS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def plan(preset, knobs):
    """The report, None where it is refused or does not fit; what was said; processor seconds."""
    import json
    before = time.perf_counter(), os.times()
    run = subprocess.run([headroom_program(), "plan", preset, "--json", *knob_words(CARD + knobs)], capture_output=True, text=True,
                         check=False, cwd=TOP, env=environment(HEADROOM_DATA=os.path.join(TOP, "presets")))
    after = os.times()
    seconds = after.children_user + after.children_system - before[1].children_user - before[1].children_system
    report = json.loads(run.stdout) if run.stdout.startswith("{") else {}
    held = report.get("memory", {}).get("peak_in_use_bytes")
    return report if run.returncode == 0 and held else None, run.stderr, seconds


def bytes_said(sentence):
    found = re.search(r"the smallest peak that was found is ([\d.]+) ([KMG])iB", sentence)
    return round(float(found.group(1)) * PARTS[found.group(2)]) if found else None


def budget(bytes_):
    return "checkpoint.strategy=budget:%dB" % bytes_


def measure_half(preset, batch, mode, options):
    knobs = ["execution.mode=" + mode, "batch.size=%d" % batch, *options.set]
    plain, _, _ = plan(preset, knobs)
    peak = plain["memory"]["peak_in_use_bytes"]
    half, said, seconds = plan(preset, [*knobs, budget(peak // 2)])
    least = bytes_said(plan(preset, [*knobs, budget(1)])[1])
    row = {"preset": preset, "mode": mode, "batch": batch, "plain_bytes": peak, "static_bytes": plain["memory"]["static_bytes"],
           "smallest_bytes": least, "plan_seconds": seconds, "half_kept": half is not None}
    if half is None:
        half, said, row["plan_seconds"] = plan(preset, [*knobs, budget(least + least // 200)])
    if half is not None:
        row.update(budget_peak_bytes=half["memory"]["peak_in_use_bytes"],
                   slower=half["step"]["seconds"] / plain["step"]["seconds"] - 1)
    return row


def measure_link(preset, batch, mode, options):
    """With all activations on the host, and half of the plain peak with the leave to send some."""
    knobs = ["execution.mode=" + mode, "batch.size=%d" % batch, *options.set]
    plain = plan(preset, knobs)[0]
    peak = plain["memory"]["peak_in_use_bytes"]
    sent = plan(preset, [*knobs, "offload.activations=on"])[0]
    both, _, seconds = plan(preset, [*knobs, "offload.activations=on", budget(peak // 2)])
    row = {"preset": preset, "mode": mode, "batch": batch, "sent_bytes": sent["memory"]["peak_in_use_bytes"],
           "sent_slower": sent["step"]["seconds"] / plain["step"]["seconds"] - 1, "plan_seconds": seconds, "half_kept": both is not None}
    if both is not None:
        row.update(budget_peak_bytes=both["memory"]["peak_in_use_bytes"], slower=both["step"]["seconds"] / plain["step"]["seconds"] - 1)
    return row


def measure_beside(preset, batch, mode, beside, options):
    knobs = ["execution.mode=" + mode, "batch.size=%d" % batch, *options.set]
    plain = plan(preset, knobs)[0]
    peak = plain["memory"]["peak_in_use_bytes"]
    half = plan(preset, [*knobs, *beside, budget(peak // 2)])[0]
    row = {"preset": preset, "mode": mode, "batch": batch, "beside": beside, "plain_bytes": peak, "half_kept": half is not None,
           "smallest_bytes": bytes_said(plan(preset, [*knobs, *beside, budget(1)])[1])}
    if half is not None:
        row.update(budget_peak_bytes=half["memory"]["peak_in_use_bytes"], slower=half["step"]["seconds"] / plain["step"]["seconds"] - 1)
    return row


def largest(keeps, low, high):
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def measure_batch(preset, wanted, mode, options):
    knobs = ["execution.mode=" + mode, *options.set]
    step = plan(preset, [*knobs, "batch.size=8"])[0]["step"]["flops"] / 8
    forward = plan(preset, [*knobs, "batch.size=8", "execution.tape=none"])[0]["step"]["flops"] / 8
    extra = {}

    def fits(batch):
        report = plan(preset, [*knobs, "batch.size=%d" % batch])[0]
        return report is not None and report["memory"]["peak_in_use_bytes"] <= ROOM

    def keeps(batch):
        report = plan(preset, [*knobs, "batch.size=%d" % batch, budget(ROOM)])[0]
        if report is not None:
            extra[batch] = (report["step"]["flops"] / batch - step) / forward
        return report is not None and extra[batch] <= 1

    plain = largest(fits, 1, 1000)
    batch = largest(keeps, plain, 8 * plain)
    return {"preset": preset, "mode": mode, "plain_batch": plain, "batch": batch, "times": batch / plain, "wanted": wanted,
            "extra_forwards": extra.get(batch, 0)}


def measure(options):
    modes = ["graph"] if options.quick else ["graph", "eager"]
    return {"halves": [measure_half(preset, batch, mode, options) for mode in modes
                       for preset, batch in (MODELS[:1] if options.quick else MODELS)],
            "links": [measure_link(preset, batch, mode, options) for mode in modes
                      for preset, batch in (MODELS[:1] if options.quick else MODELS)],
            "beside": [measure_beside(preset, batch, mode, beside, options) for mode in modes
                       for preset, batch, beside in (BESIDE[:1] if options.quick else BESIDE)],
            "room_bytes": ROOM,
            "batches": [measure_batch(preset, wanted, mode, options) for mode in modes
                        for preset, wanted in (BATCHES[:1] if options.quick else BATCHES)]}


def table(result):
    lines = ["%-14s %-6s %10s %10s %9s %8s %8s" % ("half of plain", "", "plain GiB", "peak", "slower", "least", "plan s")]
    for row in result["halves"]:
        plain = row["plain_bytes"]
        lines.append("%-14s %-6s %10.2f %9.1f%% %8.1f%% %7.1f%% %8.2f" % (
            row["preset"], row["mode"], plain / (1 << 30), 100 * row.get("budget_peak_bytes", 0) / plain,
            100 * row.get("slower", 0), 100 * (row["smallest_bytes"] or 0) / plain, row["plan_seconds"]))
    lines.append("%-14s %-6s %10s %10s %9s %8s %8s" % ("with the link", "", "all sent", "slower", "half", "slower", "plan s"))
    for row, plain in zip(result["links"], result["halves"]):
        lines.append("%-14s %-6s %9.1f%% %9.1f%% %8.1f%% %7.1f%% %8.2f" % (
            row["preset"], row["mode"], 100 * row["sent_bytes"] / plain["plain_bytes"], 100 * row["sent_slower"],
            100 * row.get("budget_peak_bytes", 0) / plain["plain_bytes"], 100 * row.get("slower", 0), row["plan_seconds"]))
    for row in result["beside"]:
        lines.append("%-14s %-6s least %5.1f%%  half %s  with %s" % (
            row["preset"], row["mode"], 100 * (row["smallest_bytes"] or 0) / row["plain_bytes"],
            "%.1f%% slower" % (100 * row["slower"]) if row["half_kept"] else "refused", " ".join(row["beside"])))
    lines.append("%-14s %-6s %10s %10s %9s %8s %8s" % ("largest batch", "", "plain", "budget", "times", "wanted", "forwards"))
    for row in result["batches"]:
        lines.append("%-14s %-6s %10d %10d %8.2fx %8s %8.2f" % (row["preset"], row["mode"], row["plain_batch"], row["batch"],
                                                               row["times"], row["wanted"] or "", row["extra_forwards"]))
    return lines
