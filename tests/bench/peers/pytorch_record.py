#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own CUDA build over a card of numbers (scripts/record): training steps, recorded and replayed.

  tests/bench/peers/pytorch_record.py steps     every model, optimizer and precision; what PyTorch counted, and `headroom
                                                replay` of the recording: tests/bench/results/pytorch_record.json
  tests/bench/peers/pytorch_record.py limits    the same steps on cards that are too small; added to that file
  tests/bench/peers/pytorch_record.py saved     what autograd keeps on the processor, by saved_tensors_hooks: bytes a sample
                                                and fixed; added to that file
  tests/bench/peers/pytorch_record.py step MODEL OPTIMIZER PRECISION BATCH
                                                the training script that is recorded

Wants a Python with PyTorch (CUDA 13) and torchvision that runs this, and a release build with headroom_numbers.
"""
import concurrent.futures
import json
import os
import platform
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "../../..")
RESULT = os.path.join(HERE, "../results/pytorch_record.json")
RECORD = os.path.join(TOP, "scripts/record/torch_record.py")
HEADROOM = os.path.join(os.environ.get("HEADROOM_BUILD", os.path.join(TOP, "build/release")), "headroom")
CARD = "rtx4090-24g"
MODELS = {"resnet50": 16, "mobilenet_v2": 32, "transformer": 8}  # batch
OPTIMIZERS = ("sgd", "adamw", "adamw_loop", "adamw_fused")
PRECISIONS = ("float32", "autocast")
PUBLISHED = {"resnet50": (85913512, 212484), "mobilenet_v2": (78213544, 136452)}  # bytes a sample, fixed


class Transformer(torch.nn.Module):
    """Of GPT-2's kind: 6 blocks of 512, a vocabulary of 8192, 256 tokens."""
    WIDTH, VOCABULARY, SEQUENCE = 512, 8192, 256

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(self.VOCABULARY, self.WIDTH)
        self.positions = torch.nn.Embedding(self.SEQUENCE, self.WIDTH)
        block = torch.nn.TransformerEncoderLayer(self.WIDTH, 8, 4 * self.WIDTH, dropout=0.1, activation="gelu",
                                                 batch_first=True, norm_first=True)
        self.blocks = torch.nn.TransformerEncoder(block, 6, enable_nested_tensor=False)
        self.head = torch.nn.Linear(self.WIDTH, self.VOCABULARY, bias=False)

    def forward(self, words):
        x = self.tokens(words) + self.positions.weight
        mask = torch.nn.Transformer.generate_square_subsequent_mask(words.shape[1], device=words.device)
        return self.head(self.blocks(x, mask=mask, is_causal=True)).flatten(0, 1)


class Causal(torch.nn.Module):
    """Three convolutions that see what came before, padded at one end, and one of an even kernel."""
    CHANNELS, PLACES, CLASSES, TAPS = 64, 1000, 10, 5

    def __init__(self):
        super().__init__()
        self.before = torch.nn.ModuleList(torch.nn.Conv1d(self.CHANNELS, self.CHANNELS, self.TAPS) for _ in range(3))
        self.even = torch.nn.Conv1d(self.CHANNELS, self.CHANNELS, 4, padding="same")
        self.head = torch.nn.Linear(self.CHANNELS, self.CLASSES)

    def forward(self, x):
        for convolution in self.before:
            x = torch.nn.functional.pad(x, (self.TAPS - 1, 0))
            x = torch.nn.functional.relu_(convolution(x))
        return self.head(torch.nn.functional.relu_(self.even(x)).mean(2))


OWN = {"transformer": Transformer, "causal": Causal}  # networks that are no preset


def model_of(name):
    if name in OWN:
        return OWN[name]()
    import torchvision
    return getattr(torchvision.models, name)()


def batch_of(name, batch, device):
    if name == "transformer":
        shape = (batch, Transformer.SEQUENCE)
        return (torch.randint(0, Transformer.VOCABULARY, shape, device=device),
                torch.randint(0, Transformer.VOCABULARY, (batch * Transformer.SEQUENCE,), device=device))
    if name == "causal":
        return (torch.randn(batch, Causal.CHANNELS, Causal.PLACES, device=device),
                torch.randint(0, Causal.CLASSES, (batch,), device=device))
    return torch.randn(batch, 3, 224, 224, device=device), torch.randint(0, 1000, (batch,), device=device)


def optimizer_of(name, parameters):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    form = {"adamw": {}, "adamw_loop": {"foreach": False}, "adamw_fused": {"fused": True}}[name]  # {}: foreach on a card
    return torch.optim.AdamW(parameters, lr=1e-3, **form)


# ---- the script that is recorded ------------------------------------------------------------------------------------

def train(name, optimizer, precision, batch):
    model = model_of(name).cuda()
    update = optimizer_of(optimizer, model.parameters())
    for _ in range(3):
        x, y = batch_of(name, batch, "cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "autocast"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        update.zero_grad()
        loss.backward()
        update.step()
        loss.item()


def step(name, optimizer, precision, batch):
    train(name, optimizer, precision, batch)
    print(json.dumps(torch.cuda.memory_stats()))  # all of it is free again, as at the end of the recording


# ---- recordings beside replays --------------------------------------------------------------------------------------

def record(words, memory, path, card=CARD):
    """The counts of PyTorch's allocator, None when it ran out of memory."""
    run = subprocess.run([sys.executable, RECORD, "--card", card, "--output", path,
                          *(["--memory", str(memory)] if memory else []), __file__, "step", *map(str, words)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1])
    if "OutOfMemoryError" not in run.stderr:
        sys.exit("%s: %s" % (words, run.stderr))
    return None


def replay(path, memory=None):
    words = [HEADROOM, "replay", path, "--allocator", "caching", "--json"]
    run = subprocess.run(words + (["-s", "device.vram=%d" % memory] if memory else []), stdout=subprocess.PIPE, text=True,
                         check=False)
    return json.loads(run.stdout)["allocators"][0]


def both(stats, replayed):
    """The counts that PyTorch and the replay have. The other key is a setting."""
    return sorted(set(stats) & set(replayed["statistics"]) - {"max_split_size"})


def differences(stats, replayed):
    """Of them, those that are not equal."""
    return {key: [stats[key], replayed["statistics"][key]] for key in both(stats, replayed)
            if replayed["statistics"][key] != stats[key]}


def steps():
    rows = []
    for name, batch in MODELS.items():
        for optimizer in OPTIMIZERS:
            for precision in PRECISIONS:
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "step.pickle")
                    stats = record((name, optimizer, precision, batch), None, path)
                    replayed = replay(path)
                rows.append({"model": name, "batch": batch, "optimizer": optimizer, "precision": precision,
                             "allocated": stats["allocated_bytes.all.peak"], "reserved": stats["reserved_bytes.all.peak"],
                             "requested": stats["requested_bytes.all.peak"],
                             "allocations": stats["allocation.all.allocated"],
                             "replayed_allocated": replayed["memory"]["peak_in_use_bytes"],
                             "replayed_reserved": replayed["memory"]["peak_pool_bytes"],
                             "counts": len(both(stats, replayed)),
                             "counts_that_differ": differences(stats, replayed)})
                print(rows[-1], flush=True)
    return rows


def first_refusal(path):
    """Bytes of the first request that the recorded run was refused."""
    import pickle
    with open(path, "rb") as file:
        events = pickle.load(file)["device_traces"][0]
    return next((event["size"] for event in events if event["action"] == "oom"), None)


def rounded(requested):
    """PyTorch writes down what it was refused as it had rounded it."""
    return (requested + 511) // 512 * 512


def limits():
    """The same step on smaller cards: does PyTorch over numbers finish, does the replay of the roomy recording?"""
    rows = []
    for name, batch in MODELS.items():
        words = (name, "adamw", "float32", batch)
        with tempfile.TemporaryDirectory() as folder:
            roomy, tight = os.path.join(folder, "roomy.pickle"), os.path.join(folder, "tight.pickle")
            reserved = record(words, None, roomy)["reserved_bytes.all.peak"]
            for part in (80, 90, 95, 98, 99, 100):
                memory = reserved * part // 100 >> 21 << 21
                finished = record(words, memory, tight) is not None
                replayed = replay(roomy, memory)
                failures = replayed["failures"]
                rows.append({"model": name, "memory": memory, "percent": part, "finished": finished,
                             "first_refused": first_refusal(tight), "replay_finished": not failures,
                             "replay_first_refused": rounded(failures[0]["requested_bytes"]) if failures else None})
                print(rows[-1], flush=True)
    return rows


# ---- a card beside its numbers --------------------------------------------------------------------------------------

AT_ONCE = 6  # steps on the card: their memory is their own, and most of their time is Python's


def on_card(words):
    """The counts of PyTorch's allocator after the step on the card that is here."""
    run = subprocess.run([sys.executable, __file__, "step", *map(str, words)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    if run.returncode != 0:
        raise RuntimeError(run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])


def beside_numbers(name, optimizer, precision, card):
    words = (name, optimizer, precision, MODELS[name])
    row = {"model": name, "batch": MODELS[name], "optimizer": optimizer, "precision": precision}
    try:
        with tempfile.TemporaryDirectory() as folder:
            real, numbers = on_card(words), record(words, None, os.path.join(folder, "step.pickle"), card)
    except (RuntimeError, ValueError, OSError, subprocess.SubprocessError, SystemExit) as error:
        return {**row, "error": str(error)}
    return {**row, "allocated": real["allocated_bytes.all.peak"], "reserved": real["reserved_bytes.all.peak"],
            "numbers_allocated": numbers["allocated_bytes.all.peak"],
            "numbers_reserved": numbers["reserved_bytes.all.peak"],
            "counts": len(set(real) & set(numbers)),
            "counts_that_differ": {key: [real[key], numbers.get(key)] for key in sorted(real)
                                   if real[key] != numbers.get(key)}}


def card_rows(card):
    asked = [(name, optimizer, precision, card) for name in MODELS for optimizer in OPTIMIZERS for precision in PRECISIONS]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for row in pool.map(lambda words: beside_numbers(*words), asked):
            rows.append(row)
            print({**row, "counts_that_differ": len(row.get("counts_that_differ", ()))}, flush=True)
    return rows


# ---- what autograd keeps --------------------------------------------------------------------------------------------

def kept(name, batch):
    """Bytes of storages that a forward pass keeps, each once, without those of parameters and buffers."""
    model = model_of(name)
    own = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    storages = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    x, y = batch_of(name, batch, "cpu")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    total = sum(storages.values())
    del loss
    return total


def saved():
    rows = []
    for name in MODELS:
        one, two, three = (kept(name, batch) for batch in (1, 2, 3))
        row = {"model": name, "bytes_a_sample": two - one, "fixed_bytes": 2 * one - two, "linear": three == 2 * two - one}
        if name in PUBLISHED:
            row["as_measured_before"] = (row["bytes_a_sample"], row["fixed_bytes"]) == PUBLISHED[name]
        rows.append(row)
        print(rows[-1], flush=True)
    return rows


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))


def keep(part, rows, path=RESULT, card=CARD + ", of numbers"):
    result = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    result["machine"] = {"processor": processor(), "architecture": platform.machine(), "card": card,
                         "PyTorch": torch.__version__, "CUDA": torch.version.cuda, "cuDNN": torch.backends.cudnn.version()}
    result[part] = rows
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


def main():
    words = sys.argv[1:]
    if len(words) == 5 and words[0] == "step":
        step(*words[1:4], int(words[4]))
    elif len(words) == 3 and words[0] == "card":
        keep("card", card_rows(words[2]), words[1], torch.cuda.get_device_name() + ", and its numbers")
    elif words in (["steps"], ["limits"], ["saved"]):
        keep(words[0], {"steps": steps, "limits": limits, "saved": saved}[words[0]]())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
