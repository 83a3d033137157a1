#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every request of one training step of PyTorch, over a card of numbers (scripts/record), as small files.

  tests/bench/peers/pytorch_step_requests.py write [MODEL]
                                          tests/bench/results/pytorch_steps/MODEL.json, for one or all: the fourth step; of
                                          the transformer, which is no preset, its model file too
  tests/bench/peers/pytorch_step_requests.py variants
                                          tests/bench/results/pytorch_variants.json: a step of three rounds with a loss over three,
                                          one whose gradients are clipped, and one of the transformer whose blocks run again
  tests/bench/peers/pytorch_step_requests.py step MODEL PRECISION BATCH
                                          the training script that is recorded

A file has a step's phases up to backward for each precision, and the phase of each optimizer, which is the same for both (float32
weights). A phase is a line of words in the order of the events:

  6422528@3   a request of so many bytes for a tensor, made by the third of "operations" (from 0)
  w75392@3    one that is no tensor's: a workspace of cuDNN or cuBLAS, or what a kernel needs beside its operands
  -2          a release of the last request but one: 1 is the latest before this event
  -           a release of what is older than the step

Wants a Python with PyTorch (CUDA 13) and torchvision that runs this, and a release build with headroom_numbers.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import torch
import torch.utils.checkpoint

import pytorch_record

FOLDER = os.path.join(pytorch_record.HERE, "../results/pytorch_steps")
MODELS = {"resnet18": 4, "resnet50": 2, "mobilenet_v2": 2, "vgg16": 2, "densenet121": 2, "vit_b_16": 2, "efficientnet_b0": 2,
          "transformer": 2, "causal": 8, "resnext50_32x4d": 2, "mobilenet_v3_large": 2, "regnet_y_1_6gf": 2,
          "convnext_tiny": 2}  # batch
PHASES = ("input", "zero_grad", "forward", "loss", "backward", "optimizer")
OPERATION = re.compile(r"at::_ops::(\w+)::(?:call|redispatch)")
OF_TENSORS = ("at::detail::empty_generic", "at::detail::empty_strided_generic", "at::native::resize_bytes_cuda")
MAKERS = ("empty_memory_format", "empty_strided", "empty_like", "new_empty_strided")  # on behalf of another operation


# ---- the script that is recorded ------------------------------------------------------------------------------------

def operation_of(frames):
    """The innermost that does more than to make a tensor; what calls the allocator directly has none."""
    called = [match.group(1) for match in (OPERATION.search(frame["name"]) for frame in frames) if match]
    return next((name for name in called if name not in MAKERS), called[0] if called else "")


def events_of(trace):
    """Phase by phase: words with the operations' names still in them."""
    words, live, count = {phase: [] for phase in PHASES}, {}, 0
    for event in trace:
        line = words[event["user_metadata"] or "backward"]  # its threads have no name
        if event["action"] == "alloc":
            count += 1
            live[event["addr"]] = count
            tensor = any(frame["name"].startswith(OF_TENSORS) for frame in event["frames"])
            line.append(("" if tensor else "w", event["size"], operation_of(event["frames"])))
        elif event["action"] == "free_completed":
            number = live.pop(event["addr"], None)
            line.append("-" if number is None else "-%d" % (count - number + 1))
    return words


def four_steps(name, model, update, precision, batch):
    """A plain loop, of which the last step is recorded. Its phases are written with each request."""
    memory, phase = torch.cuda.memory, torch.cuda.memory._set_memory_metadata
    for k in range(4):
        if k == 3:
            memory._record_memory_history(None)
            memory._record_memory_history(stacks="all", clear_history=True)
        phase("input")
        x, y = pytorch_record.batch_of(name, batch, "cuda")
        phase("zero_grad")
        update.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "autocast"):
            phase("forward")
            answer = model(x)
            phase("loss")
            loss = torch.nn.functional.cross_entropy(answer, y)
        phase("backward")
        loss.backward()
        phase("optimizer")
        update.step()
    return events_of(memory._snapshot()["device_traces"][0])


def words_in_order(trace):
    """As events_of, where a phase that comes again has a number. What has no name belongs to the phase before it."""
    words, live, count, current = {}, {}, 0, ""
    for event in trace:
        current = event["user_metadata"] or current
        line = words.setdefault(current, [])
        if event["action"] == "alloc":
            count += 1
            live[event["addr"]] = count
            tensor = any(frame["name"].startswith(OF_TENSORS) for frame in event["frames"])
            line.append("%s%d" % ("" if tensor else "w", event["size"]))
        elif event["action"] == "free_completed":
            number = live.pop(event["addr"], None)
            line.append("-" if number is None else "-%d" % (count - number + 1))
    return {phase: " ".join(line) for phase, line in words.items()}


def run_again(block):
    """torch.utils.checkpoint around a block, as a network's own forward would call it."""
    forward = block.forward
    block.forward = lambda *args, **words: torch.utils.checkpoint.checkpoint(forward, *args, use_reentrant=False, **words)


def varied(name, batch, rounds, norm, precision="float32", again=False):
    """Steps of several rounds, their gradients clipped where a norm is given, with blocks run again; the last is recorded."""
    memory, phase = torch.cuda.memory, torch.cuda.memory._set_memory_metadata
    model = pytorch_record.model_of(name).cuda()
    for block in model.blocks.layers if again else ():
        run_again(block)
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        if k == 2:
            memory._record_memory_history(None)
            memory._record_memory_history(stacks="all", clear_history=True)
        phase("zero_grad")
        update.zero_grad()
        for number in range(rounds):
            phase("input%d" % number)
            x, y = pytorch_record.batch_of(name, batch, "cuda")
            phase("round%d" % number)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "autocast"):
                answer = model(x)
                loss = torch.nn.functional.cross_entropy(answer, y)
            loss = loss / rounds if rounds > 1 else loss
            loss.backward()
        phase("update")
        if norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), norm)
        update.step()
    print(json.dumps(words_in_order(memory._snapshot()["device_traces"][0])))


def step(name, precision, batch):
    model = pytorch_record.model_of(name).cuda()
    updates = ((o, pytorch_record.optimizer_of(o, model.parameters())) for o in pytorch_record.OPTIMIZERS)
    print(json.dumps({optimizer: four_steps(name, model, update, precision, batch) for optimizer, update in updates}))


# ---- the files ------------------------------------------------------------------------------------------------------

def record(words, command="step"):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, pytorch_record.RECORD, "--card", pytorch_record.CARD, "--output",
                              os.path.join(folder, "step.pickle"), __file__, command, *map(str, words)],
                             stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def line_of(events, operations):
    words = []
    for event in events:
        if isinstance(event, str):
            words.append(event)
            continue
        kind, size, name = event
        if name not in operations:
            operations.append(name)
        words.append("%s%d@%d" % (kind, size, operations.index(name)))
    return " ".join(words)


def export_transformer():
    sys.path.insert(0, os.path.join(pytorch_record.TOP, "scripts/export"))
    from torch_to_headroom import model_file
    words = torch.zeros(2, pytorch_record.Transformer.SEQUENCE, dtype=torch.long)
    text = model_file(pytorch_record.Transformer(), (words,), name="transformer")[0]
    with open(os.path.join(FOLDER, "transformer.yaml"), "w", encoding="utf-8") as file:
        file.write(text)


def write(name, batch):
    operations, steps, updates = [], {}, {}
    for precision in pytorch_record.PRECISIONS:
        for optimizer, phases in record((name, precision, batch)).items():
            lines = {phase: line_of(phases[phase], operations) for phase in PHASES}
            words = " ".join(lines.values()).split()
            if sum("@" in word for word in words) * 2 != len(words):
                sys.exit("%s %s %s: the step keeps something" % (name, optimizer, precision))
            update = lines.pop("optimizer")
            if steps.setdefault(precision, lines) != lines or updates.setdefault(optimizer, update) != update:
                sys.exit("%s %s %s: not the phases of the others" % (name, optimizer, precision))
    result = {"model": name, "batch": batch, "card": pytorch_record.CARD, "PyTorch": torch.__version__,
              "cuDNN": torch.backends.cudnn.version(), "operations": operations, "phases": steps, "optimizers": updates}
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    if name == "transformer":
        export_transformer()
    print(name, {p: {k: len(v.split()) for k, v in lines.items()} for p, lines in steps.items()},
          {k: len(v.split()) for k, v in updates.items()}, flush=True)


def variants():
    name, rounds = "resnet18", 3
    result = {"model": name, "batch": MODELS[name], "PyTorch": torch.__version__, "rounds": rounds,
              "accumulate": record((name, MODELS[name], rounds), "varied"), "clip": record((name, MODELS[name], 1, 1.0), "varied")}
    result["checkpoint"] = {precision: record(("transformer", MODELS["transformer"], 1, "none", precision), "varied")
                            for precision in pytorch_record.PRECISIONS}
    with open(os.path.join(FOLDER, "../pytorch_variants.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


def main():
    words = sys.argv[1:]
    if words[:1] == ["varied"]:
        norm = float(words[4]) if len(words) == 5 else None
        varied(words[1], int(words[2]), int(words[3]), norm, *(words[5:6] + [True] if len(words) > 5 else []))
        return
    if words == ["variants"]:
        variants()
        return
    if len(words) == 4 and words[0] == "step":
        step(*words[1:3], int(words[3]))
    elif words[:1] == ["write"] and len(words) <= 2:
        for name in words[1:] or MODELS:
            write(name, MODELS[name])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
