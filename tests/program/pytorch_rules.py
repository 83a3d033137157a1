#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""execution.as=pytorch beside what PyTorch did (tests/bench/results; tests/bench/peers wrote it there).

pytorch_saved.json    what autograd keeps of networks that are presets too: equal to the byte, but for those in DIFFERENT
pytorch_steps/*.json  every request of a step: those of a plan are as large, in the same order, and what is alive is never another
                      number of bytes, the optimizer's among them; of networks in PARTLY, which are not made alike, a part

Workspaces are left out on both sides: they are the libraries', and a planned device has its own. So is what a training loop does
beside the step: our count of right answers, and in PyTorch's the last batch, answer and loss, which live until they are replaced.

usage: pytorch_rules.py PROGRAM
"""
import collections
import json
import re
import subprocess
import sys

RESULTS = "tests/bench/results/"
PLANNED = ["-s", "execution.as=pytorch", "-s", "execution.mode=eager", "-s", "device.kind=plan", "-s", "device.card=unlimited", "-s",
           "precision.policy=float32", "-s", "optimizer.kind=sgd"]
# Network: what its preset keeps more or less of a sample, and why.
DIFFERENT = {
    "vgg16": ((-100352, 0), "its average pooling of 7x7 to 7x7 keeps what it reads; the preset has none"),
    "efficientnet_b0": ((-36, 0), "nine draws of stochastic depth, which the preset does without"),
    "convnext_tiny": ((-68, 0), "seventeen draws of stochastic depth"),
}
# Network: its preset, and how many bytes more or less may be alive behind a request: MobileNetV2 has a local variable to the
# end of its forward pass.
WHOLE = {"resnet18": ("resnet18", 0), "resnet50": ("resnet50", 0), "mobilenet_v2": ("mobilenet_v2", 10240)}
# Network: its preset, how many of PyTorch's requests are ours too, and what part the peak of what is alive may be off.
PARTLY = {
    "vgg16": ("vgg16", 105, 0),
    "densenet121": ("densenet121", 1348, 0),  # gradients of slices are views there
    "efficientnet_b0": ("efficientnet_b0", 808, 1e-6),  # stochastic depth
    "vit_b_16": ("vit_b16", 529, 0.001),  # its attention is one product there, and copies between
}
PHASES = {"forward": "forward", "loss": "forward", "backward": "backward"}
LINE = re.compile(r"\s*\d+\s+(\w+)\s+[\d.]+ \w+\s+(alloc|free)\s+\w\s+(\d+) B\s+(\S+?)\[")


def output(program, preset, batch, *words):
    command = [program, "plan", preset, *PLANNED, "-s", "batch.size=%d" % batch, *words]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


# ---- what is kept ---------------------------------------------------------------------------------------------------

def saved(program, preset, batch):
    return json.loads(output(program, preset, batch, "--json"))["memory"]["saved_for_backward_bytes"]


def check_saved(program):
    with open(RESULTS + "pytorch_saved.json", encoding="utf-8") as file:
        rows = [row for row in json.load(file)["rows"] if "preset" in row]
    for row in rows:
        two, three = (saved(program, row["preset"]["name"], batch) for batch in (2, 3))
        off = (three - two - row["pytorch"]["bytes_a_sample"], 3 * two - 2 * three - row["pytorch"]["fixed_bytes"])
        expected = DIFFERENT.get(row["name"], ((0, 0), ""))[0]
        if off != expected:
            sys.exit("%s: keeps %+d B a sample and %+d B beside PyTorch, expected %+d and %+d" % (row["name"], *off, *expected))
    return len(rows)


# ---- what is asked for ----------------------------------------------------------------------------------------------

def recorded(network):
    """[(phase, bytes, or minus the number of the request that is released)] without workspaces."""
    with open(RESULTS + "pytorch_steps/%s.json" % network, encoding="utf-8") as file:
        step = json.load(file)
    numbers, events, count = [], [], 0
    for phase, line in step["phases"]["float32"].items():
        for word in line.split():
            if word == "-":
                continue
            if word[0] == "-":
                number = numbers[len(numbers) - int(word[1:])]
                if number is not None:
                    events.append((phase, -number))
                continue
            tensor = word[0] != "w"
            count += tensor
            numbers.append(count if tensor else None)
            if tensor:
                events.append((phase, int(word.split("@")[0])))
    return step["batch"], list(renumbered(events))


def renumbered(events):
    """Of the phases that are compared, requests counted from 1."""
    number, count, made = {}, 0, 0
    for phase, value in events:
        count += value > 0
        if phase not in PHASES:
            continue
        if value > 0:
            made += 1
            number[count] = made
            yield PHASES[phase], value
        else:
            yield PHASES[phase], -number[-value]


def planned(program, preset, batch, phases=("forward", "backward"), *words):
    events, live, count = [], {}, 0
    for line in output(program, preset, batch, "--listing", *words).splitlines():
        match = LINE.match(line)
        if match is None or match.group(1) not in phases:
            continue
        phase, what, size, name = match.groups()
        if name.endswith("workspace") or name == "correct":
            continue
        if what == "alloc":
            count += 1
            live.setdefault(name, []).append(count)  # gradients that are added up have one name, and one size
            events.append((phase, int(size)))
        elif name in live:  # what is older than the phases is none of theirs
            events.append((phase, -live[name].pop()))
    return events


def sizes(events):
    return [(phase, value) for phase, value in events if value > 0]


def alive(events):
    """Bytes that are alive when each request has been served."""
    made, now, line = [], 0, []
    for _, value in events:
        if value > 0:
            made.append(value)
            now += value
            line.append(now)
        else:
            now -= made[-value - 1]
    return line


def check_whole(program, network, preset):
    batch, theirs = recorded(network)
    ours = planned(program, preset, batch)
    for number, (a, b) in enumerate(zip(sizes(theirs), sizes(ours))):
        if a != b:
            sys.exit("%s: request %d is %s in PyTorch, planned %s" % (network, number, a, b))
    if len(sizes(theirs)) != len(sizes(ours)):
        sys.exit("%s: %d requests in PyTorch, planned %d" % (network, len(sizes(theirs)), len(sizes(ours))))
    return theirs, ours


def check_alive(network, theirs, ours, most):
    off = [abs(a - b) for a, b in zip(alive(theirs), alive(ours))]
    if max(off) > most:
        sys.exit("%s: behind request %d other bytes are alive than in PyTorch: %d more or less"
                 % (network, off.index(max(off)), max(off)))


def check_part(program, network, preset, least, within):
    batch, theirs = recorded(network)
    ours = planned(program, preset, batch)
    shared = sum((collections.Counter(sizes(theirs)) & collections.Counter(sizes(ours))).values())
    peaks = max(alive(theirs)), max(alive(ours))
    if shared < least or abs(peaks[1] / peaks[0] - 1) > within:
        sys.exit("%s: %d of %d requests, peak %d beside PyTorch's %d" % (network, shared, len(sizes(theirs)), peaks[1], peaks[0]))
    print("%s: %d of %d requests, peak %d beside PyTorch's %d" % (network, shared, len(sizes(theirs)), peaks[1], peaks[0]))


# ---- the optimizer --------------------------------------------------------------------------------------------------

OPTIMIZERS = {"sgd": ["optimizer.kind=momentum"], "adamw": ["optimizer.kind=adamw"],
              "adamw_loop": ["optimizer.kind=adamw", "optimizer.implementation=loop"],
              "adamw_fused": ["optimizer.kind=adamw", "optimizer.implementation=fused"]}


def updates_of(line):
    """Requests, and behind each how many bytes are alive."""
    events, made = [], 0
    for word in line.split():
        if word[0] == "-":
            events.append(("update", -(made + 1 - int(word[1:]))))
        else:
            made += 1
            events.append(("update", int(word.split("@")[0])))
    return sizes(events), alive(events)


def check_optimizers(program, network, preset):
    with open(RESULTS + "pytorch_steps/%s.json" % network, encoding="utf-8") as file:
        step = json.load(file)
    for optimizer, knobs in OPTIMIZERS.items():
        words = [word for knob in knobs for word in ("-s", knob)]
        events = planned(program, preset, step["batch"], ("update",), *words)
        if updates_of(step["optimizers"][optimizer]) != (sizes(events), alive(events)):
            sys.exit("%s, %s: other requests than PyTorch's" % (network, optimizer))


def main():
    program = sys.argv[1]
    kept = check_saved(program)
    for network, (preset, most) in WHOLE.items():
        theirs, ours = check_whole(program, network, preset)
        check_alive(network, theirs, ours, most)
        check_optimizers(program, network, preset)
    for network, (preset, least, within) in PARTLY.items():
        check_part(program, network, preset, least, within)
    print("%d networks keep what autograd keeps; %d make PyTorch's requests, %d a part of them" % (kept, len(WHOLE), len(PARTLY)))


if __name__ == "__main__":
    main()
