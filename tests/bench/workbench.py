# SPDX-License-Identifier: Apache-2.0
"""The workbench in a pseudo-terminal: how soon it is there, what it writes, computes and keeps in memory when nothing
changes and while it trains, how soon it answers a key; what a frame costs, drawn without a terminal. Other terminal
programs stand beside it when they are installed (scripts/dev/deps --bench).

The processes that it starts are found and told apart. Where there are none, it trains on threads of its own, and the
thread that draws is what the figures of a front end are about.
"""
import random
import shutil
import tempfile

from measure import (MIB, Unavailable, bench_program, figures, headroom_program, json_of, knob_words, median, wanted)
from terminal import Terminal, cpu_seconds, family, name_of, watch

# at most
WANTED = {"first_frame_seconds": 0.050, "frame_seconds": 0.004, "idle_bytes_per_second": 0.0, "idle_cpu_frac": 0.002,
          "running_bytes_per_second": 5000.0, "running_cpu_frac": 0.015, "resident_bytes": 12 * MIB,
          "key_seconds": 0.050, "telemetry_cost_frac": 0.01}
SIZES = [(24, 80), (50, 160)]
KEYS = 24
PEERS = {"htop": ["htop"], "btop": ["btop"], "tig": ["tig"]}
BUSY = ["presets/models/resnet50.yaml", "-s", "device.kind=cpu", "-s", "device.card=", "-s", "device.vram=6GiB",
        "-s", "batch.size=16"]
# preset with knobs, steps of a turn
TELEMETRY = [(["presets/demo.yaml"], 60), (["presets/models/resnet18_cifar.yaml", "device.kind=cpu", "device.card=",
                                           "device.vram=4GiB", "batch.size=32"], 8)]
SETTLE_SECONDS = 3.0
BUSY_SECONDS = 120.0
BUILT_CPU_SECONDS = 3.0  # more than a build takes: then it trains


def training_cpu_seconds(terminal):
    """Of the worker, or of everything where there is none."""
    pids = family(terminal.pid)
    return sum(cpu_seconds(pid) for pid in [pid for pid in pids if "@worker" in name_of(pid)] or pids)


def first_frames(argv, size, home, rounds):
    times, sizes = [], []
    for _ in range(rounds):
        with Terminal(argv, *size, home) as terminal:
            seconds, count = terminal.first_frame()
        times.append(seconds)
        sizes.append(count)
    return {**figures(times, "first_frame_seconds"), "first_frame_bytes": median(sizes)}


def key_latencies(terminal, keys):
    """Into the command line goes a character that no screen shows, at moments that the frames do not know."""
    dice = random.Random(1)
    terminal.press(b":")
    terminal.listen(0.5)
    seconds = []
    for _ in range(keys):
        terminal.listen(dice.uniform(0.05, 0.3))
        seconds.append(terminal.answer_seconds(b"~", b"~"))
        terminal.press(b"\x7f")
    terminal.press(b"\x1b")
    return figures(seconds, "key_seconds")


def measure_headroom(size, home, rounds, seconds, knobs):
    argv = [headroom_program(), "presets/demo.yaml", *knob_words(knobs)]
    result = {"rows": size[0], "columns": size[1], **first_frames(argv, size, home, rounds)}
    with Terminal(argv, *size, home) as terminal:
        terminal.listen(SETTLE_SECONDS)
        result["running"] = watch(terminal, seconds)
        result["running"].update(key_latencies(terminal, KEYS if rounds > 1 else 4))
        terminal.listen(0.5)
        terminal.press(b":run\r")
        terminal.listen(SETTLE_SECONDS)  # the step ends, the message is written, the plans are made
        result["idle"] = watch(terminal, seconds)
    return result


def measure_busy(size, home, rounds, knobs):
    """Keys while a large step computes."""
    argv = [headroom_program(), *BUSY, *knob_words(knobs)]
    with Terminal(argv, *size, home) as terminal:
        terminal.first_frame()
        if not terminal.listen_until(lambda: training_cpu_seconds(terminal) > BUILT_CPU_SECONDS, BUSY_SECONDS):
            raise Unavailable("%s does not compute" % BUSY[0])
        before = training_cpu_seconds(terminal)
        result = {"preset": BUSY[0], "rows": size[0], "columns": size[1],
                  **key_latencies(terminal, 4 * KEYS if rounds > 1 else 4)}
        result["training_cpu_seconds"] = training_cpu_seconds(terminal) - before
    return result


def measure_frames(rounds):
    """Each screen, from a program that draws them without a terminal."""
    found, _ = json_of([bench_program("frames"), "201" if rounds > 1 else "11"])
    kinds = ("frame_seconds", "whole_frame_seconds")
    return [{"screen": f["screen"], "rows": f["rows"], "columns": f["columns"],
             **{kind: median(f[kind]) for kind in kinds}, **{kind + "_slowest": max(f[kind]) for kind in kinds}}
            for f in found]


def measure_telemetry(rounds):
    """Steps in a worker that is read as the workbench reads it, and on an engine that nobody listens to, in turns."""
    results = []
    for (preset, *knobs), steps in TELEMETRY:
        found, _ = json_of([bench_program("telemetry"), preset, str(rounds), str(steps), *knobs],
                           HEADROOM_PROGRAM=headroom_program())
        on, off = found["on_seconds"], found["off_seconds"]
        results.append({"preset": preset, "steps": steps, **figures(on, "on_seconds"), **figures(off, "off_seconds"),
                        "telemetry_cost_frac": median([a / b for a, b in zip(on, off)]) - 1})
    return results


def measure_peer(name, size, home, rounds, seconds):
    result = {"name": name, "rows": size[0], "columns": size[1], **first_frames(PEERS[name], size, home, rounds)}
    with Terminal(PEERS[name], *size, home) as terminal:
        terminal.listen(SETTLE_SECONDS)
        result["steady"] = watch(terminal, seconds)
    return result


def measure(options):
    rounds, seconds = options.rounds, 2.0 if options.quick else 10.0
    with tempfile.TemporaryDirectory() as home:
        frames = measure_frames(rounds)
        screens = [measure_headroom(size, home, rounds, seconds, options.set) for size in SIZES]
        busy = measure_busy(SIZES[0], home, rounds, options.set)
        telemetry = measure_telemetry(rounds)
        peers = [measure_peer(name, size, home, rounds, seconds) for name in PEERS if shutil.which(name)
                 for size in SIZES]
    return {"rounds": rounds, "wanted": WANTED, "frames": frames, "screens": screens, "busy": busy,
            "telemetry": telemetry, "peers": peers,
            "peers_not_installed": [name for name in PEERS if not shutil.which(name)]}


# ---- the table ----------------------------------------------------------------------------------------------------

def verdict(result, key, value):
    return wanted(value, result["wanted"][key], False)


def front_end_cpu(watched):
    """Without processes of its own the program computes where it draws: the thread that draws is asked."""
    return watched["cpu_frac" if watched["children"] else "drawing_cpu_frac"]


def resident_text(result, running):
    if not running["children"]:
        return "resident %.1f MiB with the training in it" % (running["resident_bytes"] / MIB)
    children = ", ".join("%s %.1f" % (c["name"], c["resident_bytes"] / MIB) for c in running["children"])
    return "resident %.1f MiB (%s); apart: %s" % (
        running["resident_bytes"] / MIB, verdict(result, "resident_bytes", running["resident_bytes"]), children)


def screen_lines(result, s):
    running, idle = s["running"], s["idle"]
    idle_cpu = idle["cpu_frac"] + sum(child["cpu_frac"] for child in idle["children"])
    return [
        "%dx%d  first frame %.1f ms (%s), %d bytes   key while training %.1f ms, slowest %.1f (%s)" % (
            s["columns"], s["rows"], s["first_frame_seconds"] * 1e3,
            verdict(result, "first_frame_seconds", s["first_frame_seconds"]), s["first_frame_bytes"],
            running["key_seconds"] * 1e3, running["key_seconds_slowest"] * 1e3,
            verdict(result, "key_seconds", running["key_seconds"])),
        "       idle %.0f B/s (%s), CPU %.3f %% (%s)   training %.0f B/s (%s), drawing %.2f %% of a core (%s)" % (
            idle["bytes_per_second"], verdict(result, "idle_bytes_per_second", idle["bytes_per_second"]),
            idle_cpu * 100, verdict(result, "idle_cpu_frac", idle_cpu), running["bytes_per_second"],
            verdict(result, "running_bytes_per_second", running["bytes_per_second"]), front_end_cpu(running) * 100,
            verdict(result, "running_cpu_frac", front_end_cpu(running))),
        "       " + resident_text(result, running)]


def table(result):
    lines = ["%dx%d  %-9s a frame %.3f ms, slowest %.3f (%s); written whole %.3f, slowest %.3f" % (
        f["columns"], f["rows"], f["screen"], f["frame_seconds"] * 1e3, f["frame_seconds_slowest"] * 1e3,
        verdict(result, "frame_seconds", f["frame_seconds"]), f["whole_frame_seconds"] * 1e3,
        f["whole_frame_seconds_slowest"] * 1e3) for f in result["frames"]]
    for s in result["screens"]:
        lines += screen_lines(result, s)
    busy = result["busy"]
    lines.append("%dx%d  key while %s computes %.1f ms, slowest %.1f (%s)" % (
        busy["columns"], busy["rows"], busy["preset"], busy["key_seconds"] * 1e3, busy["key_seconds_slowest"] * 1e3,
        verdict(result, "key_seconds", busy["key_seconds"])))
    for t in result["telemetry"]:
        lines.append("%s: a step takes %.3f ms with telemetry, %.3f without: %+.2f %% (%s)" % (
            t["preset"], t["on_seconds"] * 1e3, t["off_seconds"] * 1e3, t["telemetry_cost_frac"] * 100,
            verdict(result, "telemetry_cost_frac", t["telemetry_cost_frac"])))
    for p in result["peers"]:
        steady = p["steady"]
        lines.append("%dx%d  %s: first frame %.0f ms, steady %.0f B/s, CPU %.2f %%, resident %.1f MiB" % (
            p["columns"], p["rows"], p["name"], p["first_frame_seconds"] * 1e3, steady["bytes_per_second"],
            steady["cpu_frac"] * 100, steady["resident_bytes"] / MIB))
    if result["peers_not_installed"]:
        lines.append("not installed, not measured: " + ", ".join(result["peers_not_installed"]))
    return lines
