#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What eager mode keeps for backward, counted a second time.

Reads presets by itself (a reader for the YAML that presets use, nothing else of the program), follows the shapes,
applies the tape's keep rules of TensorFlow (pywrap_gradient_exclusions) and compares the scalars per sample with
those of `headroom plan --json`. Input, logits and softmax are counted; weights, labels, statistics and masks are not.

    Conv2D, DepthwiseConv2D, MatMul, Mean, Pad   keep their input
    BiasAdd, Concat of known shapes, Reshape     nothing
    FusedBatchNorm                               its input
    Relu, Relu6                                  their output
    Add                                          both inputs
    MaxPool                                      input and output
    softmax cross-entropy                        logits and softmax

usage: keep_table.py PROGRAM
"""
import json
import re
import subprocess
import sys

from model_sizes import with_sizes

EXPECTED = {
    "cifar10_separable_cnn": 58080,
    "resnet50": 28102608,
    "resnet50_keras": 28039356,
    "mobilenet_v2": 13726416,
    "mobilenet_v2_keras": 15711168,
    "resnet18": None,  # no published figure: the two counts must agree
    "resnet18_cifar": None,
    "vgg16": None,
}


# ---- YAML, as far as presets go ---------------------------------------------------------------------------------


def scalar(text):
    text = text.strip()
    if text[:1] == '"':
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


def flow(text, at):
    """The value at text[at:], and where it ends."""
    while text[at] == " ":
        at += 1
    if text[at] in "[{":
        mapping, close = text[at] == "{", "}" if text[at] == "{" else "]"
        out = {} if mapping else []
        at += 1
        while text[at] in " ,":
            at += 1
        while text[at] != close:
            if mapping:
                key, at = text[at : text.index(":", at)].strip(), text.index(":", at) + 1
                out[key], at = flow(text, at)
            else:
                value, at = flow(text, at)
                out.append(value)
            while text[at] in " ,":
                at += 1
        return out, at + 1
    if text[at] == '"':
        end = text.index('"', at + 1) + 1
    else:
        end = at
        while end < len(text) and text[end] not in ",]}":
            end += 1
    return scalar(text[at:end]), end


def block(lines, indent):
    """Takes the lines of one block from the front of the list."""
    out = None
    while lines and len(lines[0]) - len(lines[0].lstrip()) >= indent:
        line = lines.pop(0)
        text = line.strip()
        if text.startswith("- "):
            out = [] if out is None else out
            if text[2:].startswith("{"):
                out.append(flow(text[2:], 0)[0])
            else:  # a mapping that begins on the line of the dash
                lines.insert(0, " " * (indent + 2) + text[2:])
                out.append(block(lines, indent + 2))
            continue
        out = {} if out is None else out
        key, rest = (part.strip() for part in text.split(":", 1))
        if rest in (">", "|"):
            while lines and len(lines[0]) - len(lines[0].lstrip()) > indent:
                lines.pop(0)
        elif rest == "":
            out[key] = block(lines, len(lines[0]) - len(lines[0].lstrip()))
        else:
            out[key] = flow(rest, 0)[0]
    return out


def read(path):
    with open(path, encoding="utf-8") as file:
        lines = [re.sub(r"\s+#.*|^#.*", "", line.rstrip("\n")) for line in file]
    return block([line for line in lines if line.strip()], 0)


# ---- the model ---------------------------------------------------------------------------------------------------


def numbered(value, index, number):
    if isinstance(value, list):
        return [numbered(one, index, number) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"\{%s([+-]\d+)?\}" % index, lambda m: str(number + int(m.group(1) or 0)), value)


def written_out(layers, above=None):
    """Layers with their inputs named, repeats unrolled."""
    out = []
    for layer in layers:
        last = out[-1]["name"] if out else above
        if "repeat" in layer:
            for number in range(layer["repeat"]):
                before = out[-1]["name"] if out else above
                one_round = [
                    {key: numbered(value, layer.get("index"), number) for key, value in inner.items()}
                    for inner in layer["layers"]
                ]
                for inner in written_out(one_round, before):
                    inner["inputs"] = [before if name == "before" else name for name in inner["inputs"]]
                    out.append(inner)
            continue
        layer = dict(layer)
        names = layer.get("inputs") or [layer.get("input", last)]
        layer["inputs"] = [last if name in ("previous", None) else name for name in names]
        out.append(layer)
    return out


def pair(value):
    return value if isinstance(value, list) else [value, value]


def window(size, kernel, stride, padding):
    if padding == "same":
        return -(-size // stride)
    return (size + 2 * (0 if padding == "valid" else padding) - kernel) // stride + 1


def windowed(shape, layer, kernel, channels):
    sides = pair(kernel)
    strides = pair(layer.get("stride", sides if "size" in layer else 1))
    return [window(shape[k], sides[k], strides[k], layer.get("padding", "valid")) for k in (0, 1)] + [channels]


class Tape:
    """Values by name with their shapes, and which of them are kept. A view is the value it looks at."""

    def __init__(self):
        self.shape, self.storage, self.kept = {}, {}, set()

    def make(self, name, shape, view_of=None):
        self.shape[name] = shape
        self.storage[name] = self.storage[view_of] if view_of else name
        return name

    def keep(self, *names):
        self.kept |= {self.storage[name] for name in names}

    def scalars(self):
        total = 0
        for name in self.kept:
            count = 1
            for side in self.shape[name]:
                count *= side
            total += count
        return total


def activate(tape, layer, name):
    """The layer's output behind `name`, the result of its operation."""
    act = layer.get("activation", "none")
    if act not in ("none", "relu", "relu6"):
        raise SystemExit(f"no keep rule for activation {act}")
    out = tape.make(layer["name"], tape.shape[name], name if act == "none" else None)
    if act != "none":
        tape.keep(out)


def convolution(tape, layer, x):
    shape, kind, name = tape.shape[x], layer["kind"], layer["name"]
    tape.keep(x)
    channels = layer["filters"] if kind == "conv2d" else shape[2] * layer.get("multiplier", 1)
    y = tape.make(name + ":conv", windowed(shape, layer, layer["kernel"], channels))
    if kind == "separable_conv2d":
        tape.keep(y)
        y = tape.make(name + ":pointwise", tape.shape[y][:2] + [layer["filters"]])
    activate(tape, layer, y)


def run(tape, layer):
    kind, name, x = layer["kind"], layer["name"], layer["inputs"][0]
    shape = tape.shape[x]
    if kind in ("conv2d", "depthwise_conv2d", "separable_conv2d"):
        convolution(tape, layer, x)
    elif kind == "batch_norm":
        tape.keep(x)
        activate(tape, layer, tape.make(name + ":norm", shape))
    elif kind == "add":
        tape.keep(*layer["inputs"])
        activate(tape, layer, tape.make(name + ":sum", shape))
    elif kind == "max_pool":
        tape.keep(x, tape.make(name, windowed(shape, layer, layer["size"], shape[2])))
    elif kind == "zero_pad":
        tape.keep(x)
        amount = layer["padding"]
        top, bottom, left, right = amount if isinstance(amount, list) else [amount] * 4
        tape.make(name, [shape[0] + top + bottom, shape[1] + left + right, shape[2]])
    elif kind == "global_avg_pool":
        tape.keep(x)
        tape.make(name, [shape[2]])
    elif kind == "dense":
        tape.keep(x)
        activate(tape, layer, tape.make(name + ":product", shape[:-1] + [layer["units"]]))
    elif kind == "dropout":  # its mask is state
        tape.make(name, shape)
    elif kind == "flatten":
        count = 1
        for side in shape:
            count *= side
        tape.make(name, [count], x)
    else:
        raise SystemExit(f"no keep rule for {kind}")


def kept_scalars(model):
    tape = Tape()
    tape.make("input", model["input"]["shape"])
    layers = written_out(model["layers"], "input")
    for layer in layers:
        run(tape, {**model.get("defaults", {}).get(layer["kind"], {}), **layer})
    logits = layers[-1]["name"]
    tape.keep(logits, tape.make("softmax", tape.shape[logits]))
    return tape.scalars()


# ---- the comparison ----------------------------------------------------------------------------------------------


def planned_scalars(program, name, batch):
    words = [program, "plan", f"presets/models/{name}.yaml", "--json", "-s", "device.kind=plan"]
    words += ["-s", "execution.mode=eager", "-s", f"batch.size={batch}"]
    report = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return report["memory"]["saved_for_backward_bytes"] / 4 / batch


def main():
    wrong = 0
    for name, expected in EXPECTED.items():
        counted = kept_scalars(with_sizes(read(f"presets/models/{name}.yaml")["model"]))
        planned = planned_scalars(sys.argv[1], name, 4)
        good = counted == planned and expected in (None, counted)
        wrong += not good
        print(f"{name:24} counted {counted:>10}  planned {planned:>12}  expected {expected}  {'ok' if good else 'WRONG'}")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
