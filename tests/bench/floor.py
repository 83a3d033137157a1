# SPDX-License-Identifier: Apache-2.0
"""What a step on a card takes at least: launches, bytes and floating-point operations of every group of instructions, read
off the listing of a plan that no card is needed for. An instruction takes the longest of its launches inside a captured
graph, its arithmetic at the card's rate and its bytes at the card's bandwidth. `spare` counts what is moved although a
kernel that does two things at once would not move it: where to look next."""
import math
import re

from measure import headroom_program, knob_words, output_of

CARD = "h200-141g"
LAUNCH_SECONDS = 1.5e-6  # from one small kernel to the next inside a captured graph; an estimate
KNOBS = ["device.kind=cuda", "device.card=" + CARD, "device.vram=none", "execution.mode=graph", "allocator.kind=static",
         "execution.cuda_graph=on"]
CASES = [("resnet50", ["batch.size=256", "precision.policy=mixed_bfloat16", "optimizer.kind=momentum"]),
         ("mobilenet_v2", ["batch.size=256", "precision.policy=mixed_bfloat16", "optimizer.kind=momentum"]),
         ("gpt2_124m", ["batch.size=32", "precision.policy=mixed_bfloat16", "optimizer.kind=adamw"]),
         ("bert_base", ["batch.size=32", "precision.policy=mixed_bfloat16", "optimizer.kind=adamw"]),
         ("cifar10_separable_cnn", ["batch.size=128", "precision.policy=mixed_float16", "optimizer.kind=adam"])]
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "uint8": 1}
GROUPS = [("product", r"conv2d|dense|matmul|attention"), ("norm", r"batch_norm|layer_norm|rms_norm"),
          ("loss", r"softmax_cross_entropy|mse|kl"), ("cast", r"cast"), ("reorder", r"reorder"),
          ("precision", r"finite|unscale|scale_update|square_sum|clip"),
          ("optimizer", r"sgd|momentum|rmsprop|adam|lion|adafactor|ema"), ("copy", r"input|read|offload|fetch"),
          ("elementwise", r".*")]
NO_KERNEL = {"reshape", "input", "record", "wait", "repeat", "end"}
# Operands that a kernel reads twice because the first reading has to be over before the second begins.
TWICE = {"batch_norm": (0,), "batch_norm_bwd": (0, 1)}
LAUNCHES = {"batch_norm": 3, "batch_norm_statistics": 2, "batch_norm_bwd": 3, "softmax_cross_entropy_streaming": 2,
            "softmax_cross_entropy_with_gradient": 2, "layer_norm_bwd": 2}
GROUPED, GROUP = ("sgd", "momentum", "rmsprop", "adam", "lion", "ema", "cast"), 64
# Bytes that would not be moved if …
SPARE = {
    "gelu": lambda i: i.read[0].bytes,              # the product before it wrote both its sum and this
    "gelu_bwd": lambda i: 2 * i.read[1].bytes,      # the product before it wrote this instead
    "add": lambda i: i.made[0].bytes * (2 if i.phase == "backward" else 1),  # a product, a norm added it
    "cast": lambda i: 2 * i.read[0].bytes if i.phase == "backward" else 0,   # the product wrote float32
}
# Behind the bytes stands who computes it, in 25 places at least.
LINE = re.compile(r"^ *(\d+)  (input|forward|backward|update) +[\d.]+ \w+  .{25,}?  (\S+)/([a-z_0-9+]+)  ?(.*)$")
MADE = re.compile(r"^(\S+?)\[(\w+) ([\dx]+)(?: [\w ]+)?\](?:@\S+)?$")
KEPT = re.compile(r"^; [A-Z] +[\d.]+ \w+  (\S+?)\[(\w+) ([\dx]+)\]")


class Tensor:
    def __init__(self, dtype, shape):
        self.shape = [int(n) for n in shape.split("x")]
        self.bytes = math.prod(self.shape) * BYTES[dtype]
        self.dtype = dtype


class Instruction:
    def __init__(self, index, phase, op, made, read):
        self.index, self.phase, self.op, self.made, self.read = index, phase, op, made, read
        self.base = op.split("+")[0]

    def group(self):
        return next(name for name, pattern in GROUPS if re.fullmatch("(%s)\\w*" % pattern, self.base))

    def launches(self, before):
        """0: it goes with those before it, which are `before` in a row."""
        if self.base in GROUPED:
            return 1 if before % GROUP == 0 else 0
        return LAUNCHES.get(self.base, 1)

    def like(self, other):
        return other is not None and (self.op, [t.dtype for t in self.read], [t.dtype for t in self.made]) == \
            (other.op, [t.dtype for t in other.read], [t.dtype for t in other.made])

    def spare(self):
        return SPARE.get(self.base, lambda i: 0)(self)

    def bytes(self):
        gated = self.base == "batch_norm_bwd" and len(self.made) > 3  # its first stage makes what the second one reads
        pooled = self.base == "batch_norm_bwd" and len(self.read) > 5 and self.read[5].dtype == "uint8"
        twice = (0,) if gated else (0, 1, 5) if pooled else TWICE.get(self.base, ())
        rows = self.made[0].bytes if self.base in ("embedding", "slice") else None
        again = self.made[3].bytes if gated else 0
        return (again + sum(t.bytes for t in self.made) + sum((2 if k in twice else 1) * (t.bytes if rows is None else
                                                     min(t.bytes, rows)) for k, t in enumerate(self.read)))

    def flops(self):
        """Of the products; the others are far below the card's rate."""
        if self.base.startswith("attention"):
            query, joined = self.read[0].shape, len(self.read) in (1, 4)  # queries, keys and values side by side
            return 4 * math.prod(query) / (3 if joined else 1) * query[1] * (2.5 if self.base.endswith("_bwd") else 1) / 2  # causal
        if self.group() != "product" or len(self.made + self.read) < 3:
            return 0
        image = {"_bwd_data": self.read[0], "_bwd_weights": self.read[1]}
        image = next((t for end, t in image.items() if self.base.endswith(end)), self.made[0])
        weights = self.made[0] if self.base.endswith("_bwd_weights") else self.read[1]
        return 2 * math.prod(image.shape[:-1]) * math.prod(weights.shape)

    def seconds(self, card, launches):
        halves = [t.dtype for t in self.read + self.made if t.dtype in ("float16", "bfloat16")]
        rate = card[(halves[0] if halves else "float32") + "_flops"]
        return max(launches * LAUNCH_SECONDS, self.flops() / rate, self.bytes() / card["memory_bytes_per_second"])


def rates_of(row):
    """Of what `headroom cards NAME` prints."""
    return {key: float(rate) for key, rate in re.findall(r"^(\w+): ([\d.]+e[+\d]+)$", row, re.M)}


def card_of(name):
    return rates_of(output_of([headroom_program(), "cards", name])[0])


def read_listing(text):
    known, found = {}, []
    for line in text.splitlines():
        kept, here = KEPT.match(line), LINE.match(line)
        if kept:
            known[kept[1]] = Tensor(kept[2], kept[3])
        if not here:
            continue
        results, _, operands = here[5].split("  {")[0].partition("<- ")
        made = []
        for word in results.strip().split(", "):
            match = MADE.match(word.strip())
            if match:
                known[match[1]] = Tensor(match[2], match[3])
                made.append(known[match[1]])
        read = [known[word.strip()] for word in operands.split(", ") if word.strip() in known]
        if here[4].split("+")[0] not in NO_KERNEL:
            found.append(Instruction(int(here[1]), here[2], here[4], made, read))
    return found


def count(instructions, card):
    rows, before, run = {}, None, 0
    for i in instructions:
        run = run + 1 if i.like(before) else 0
        before, launches = i, i.launches(run)
        row = rows.setdefault(i.group(), {"group": i.group(), "instructions": 0, "launches": 0, "bytes": 0, "flops": 0,
                                          "floor_seconds": 0.0, "spare_bytes": 0})
        for key, value in (("instructions", 1), ("launches", launches), ("bytes", i.bytes()), ("flops", i.flops()),
                           ("floor_seconds", i.seconds(card, launches)), ("spare_bytes", i.spare())):
            row[key] += value
    return sorted(rows.values(), key=lambda row: -row["floor_seconds"])


def measure(options):
    card, cases = card_of(CARD), []
    for preset, knobs in CASES[-1:] if options.quick else CASES:
        for fuse in ("on", "off"):
            words = knob_words([*KNOBS, *knobs, "execution.fuse=" + fuse, *options.set])
            listing = output_of([headroom_program(), "plan", preset, *words, "--listing"])[0]
            groups = count(read_listing(listing), card)
            total = {key: sum(row[key] for row in groups) for key in groups[0] if key != "group"}
            cases.append({"preset": preset, "knobs": knobs, "fuse": fuse, **total, "groups": groups})
    return {"card": CARD, "launch_seconds_assumed": LAUNCH_SECONDS, "cases": cases}


def line_of(name, row):
    return "  %-14s %5d %6d %9.3f %8.3f %9.3f %9.3f" % (
        name, row["instructions"], row["launches"], row["bytes"] / 1e9, row["flops"] / 1e12,
        row["floor_seconds"] * 1e3, row["spare_bytes"] / 1e9)


def table(result):
    lines = []
    for case in result["cases"]:
        lines += ["%s on %s, execution.fuse=%s" % (case["preset"], result["card"], case["fuse"]),
                  "  %-14s %5s %6s %9s %8s %9s %9s" % ("", "instr", "launch", "GB", "TFLOP", "floor ms", "spare GB")]
        lines += [line_of(row["group"], row) for row in case["groups"]] + [line_of("all", case)]
    return lines
