# SPDX-License-Identifier: Apache-2.0
"""Writes headroom's model file of a Keras model: its layers with their names, sizes and connections.

  from keras_to_headroom import to_headroom
  to_headroom(model, "model.yaml")                                    # a live Functional or Sequential model

  python3 keras_to_headroom.py keras.applications:MobileNetV2 --output mobilenet_v2.yaml
  python3 keras_to_headroom.py ./mine.py:build --arguments '{"width": 64}' --output mine.yaml

Needs Keras 3 and nothing else. Weights are not written. What headroom's layers cannot hold is named all at once; then nothing
is written and the exit status is 1 (from Python: CannotExport).
"""
import argparse
import importlib
import importlib.util
import json
import math
import os
import re
import sys
import tempfile

import keras

HEAD = "# Written by keras_to_headroom.py"
MAX_INPUTS = 6  # of a concat
BINARY = ["binary_cross_entropy", "focal"]
LOSSES = ["softmax_cross_entropy", "mean_squared_error"] + BINARY
TAKE_ACTIVATION = {"dense", "conv2d", "conv1d", "depthwise_conv2d", "separable_conv2d", "conv2d_transpose", "batch_norm", "add", "multiply"}
ACTIVATIONS = {"relu": "relu", "relu6": "relu6", "gelu": "gelu", "silu": "silu", "swish": "silu", "tanh": "tanh",
               "sigmoid": "sigmoid", "hard_silu": "hard_swish", "hard_swish": "hard_swish", "hard_sigmoid": "hard_sigmoid",
               "mish": "mish", "softplus": "softplus"}
# What headroom takes where an attribute is not written.
OTHERWISE = {"stride": 1, "padding": "valid", "groups": 1, "multiplier": 1, "bias": True, "epsilon": 1e-3, "momentum": 0.01,
             "dropout": 0.0, "from": 0, "of": "sum", "causal": False, "slope": 0.01}


class CannotExport(Exception):
    """problems: a list of sentences."""

    def __init__(self, name, problems):
        self.problems = problems
        count = "1 thing" if len(problems) == 1 else "%d things" % len(problems)
        super().__init__("%s in %s cannot be said in headroom's layers; nothing was written:\n%s"
                         % (count, name, "\n".join("  " + problem for problem in problems)))


class Unsupported(Exception):
    """One layer that headroom has not: why, and perhaps what to do."""


class Line:
    """One layer of the file; shape is a sample's."""

    def __init__(self, kind, name, inputs, shape, attrs=None):
        self.kind, self.name, self.inputs, self.shape, self.attrs = kind, name, list(inputs), tuple(shape), dict(attrs or {})


HANDLERS = {}


def takes(*names):
    def keep(function):
        for name in names:
            HANDLERS[name] = function
        return function
    return keep


def activation_of(layer, key="activation"):
    function = getattr(layer, key, None)
    word = function if isinstance(function, str) else keras.activations.serialize(function) if function is not None else "linear"
    return word["config"]["name"] if isinstance(word, dict) else word


def short(values):
    values = [values, values] if isinstance(values, int) else list(values)
    return values[0] if values[0] == values[1] else values


def graph_of(model):
    """The Functional model that a Sequential one is; None when it is neither."""
    return model if hasattr(model, "_nodes_by_depth") else getattr(model, "_functional", None)


class Walk:
    def __init__(self, model):
        self.model = model
        self.problems, self.notes, self.lines, self.names = {}, [], [], {}
        self.made = {}     # lines by the tensor they give
        self.owners = {}   # a layer's first line, for those that are called again
        self.counted = 0   # parameters of the lines
        self.layer = None
        self.node = None   # the call at hand
        self.last = set()  # tensors that the model gives
        self.loss = None   # what was asked for

    def unique(self, word):
        word = re.sub(r"[^A-Za-z0-9_.-]", "_", word).lstrip("-")[-60:]
        word += "_layer" if word in ("input", "before", "previous", "labels", "probs", "loss", "correct") else ""
        count = self.names[word] = self.names.get(word, -1) + 1
        return word if count == 0 else self.unique("%s_%d" % (word, count))

    def emit(self, kind, inputs, shape, attrs=None, suffix=""):
        if any(source.kind.startswith("plus3") for source in inputs):
            raise Unsupported("reads a sum with a number, for which there is no layer")
        line = Line(kind, self.unique(self.layer.name + suffix), inputs, shape, attrs)
        self.lines.append(line)
        return line

    def reshaped(self, line, shape, suffix="_reshape"):
        return line if line.shape == tuple(shape) else self.emit("reshape", [line], shape, {"shape": list(shape)}, suffix)

    def own(self, line, count=None):
        """Counts the layer's parameters once; a second call shares them."""
        first = self.owners.setdefault(id(self.layer), line)
        if first is not line:
            line.attrs["share"] = first.name
        else:
            self.counted += count if count is not None else sum(math.prod(w.shape) for w in self.layer.trainable_weights)
        return line

    def activated(self, line, word):
        """The line with the activation as its own. The softmax of the model's result is the loss's."""
        if word == "linear":
            return line
        if word == "sigmoid" and self.loss in BINARY:  # a line of its own, which may be the loss's: judge_logits
            return self.emit("sigmoid", [line], line.shape, {}, "_sigmoid")
        if word == "softmax" and id(self.node.outputs[0]) in self.last:
            self.note("the last softmax is left out: headroom's cross entropy has its own")
            return line
        if word == "softmax":
            return self.emit("softmax", [line], line.shape, {}, "_softmax")
        if word not in ACTIVATIONS:
            raise Unsupported("the activation %s" % word)
        line.attrs["activation"] = ACTIVATIONS[word]
        return line

    def note(self, sentence):
        if sentence not in self.notes:
            self.notes.append(sentence)

    def refuse(self, operation, why):
        of = type(operation)
        self.problems.setdefault((of.__name__, why), []).append(operation.name)

    def sentences(self):
        out = []
        for (of, why), names in self.problems.items():
            more = " and %d more" % (len(names) - 1) if len(names) > 1 else ""
            out.append("%s `%s`%s: %s" % (of, names[0], more, why))
        return out

    # ---- the graph

    def walk(self, model):
        """Lines for every operation of a Functional model whose inputs have lines, in its own order."""
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                if not node.is_input:
                    self.step(node)

    def step(self, node):
        operation = node.operation
        inputs = [self.made[id(tensor)] for tensor in node.input_tensors]
        shape = node.outputs[0].shape[1:]
        self.layer, self.node = operation, node
        try:
            if None in inputs:
                raise Unsupported("")
            if isinstance(operation, keras.Model):
                outputs = self.nested(operation, inputs)
            else:
                handler = HANDLERS.get(type(operation).__name__)
                if handler is None:
                    raise Unsupported("no layer of headroom does this")
                if None in shape:
                    raise Unsupported("a size that is not fixed")
                outputs = [handler(self, operation, inputs, tuple(shape), node)]
        except Unsupported as problem:
            if str(problem):
                self.refuse(operation, str(problem))
            outputs = [None] * len(node.outputs)
            if len(inputs) == 1 and inputs[0] is not None:  # what follows is looked at too
                outputs = [Line("refused", operation.name, inputs, tensor.shape[1:]) for tensor in node.outputs]
        for tensor, line in zip(node.outputs, outputs):
            self.made[id(tensor)] = line

    def nested(self, model, inputs):
        model = graph_of(model)
        if model is None:
            raise Unsupported("a model that is no graph of layers; try: a Functional or Sequential model")
        for tensor, line in zip(model.inputs, inputs):
            self.made[id(tensor)] = line
        self.walk(model)
        return [self.made[id(tensor)] for tensor in model.outputs]


# ---- layers -----------------------------------------------------------------------------------------------------

@takes("Identity", "GaussianNoise", "GaussianDropout", "ActivityRegularization")
def identity(walk, layer, inputs, shape, node):
    if type(layer).__name__.startswith("Gaussian"):
        raise Unsupported("random noise other than dropout")
    return inputs[0]


@takes("Rescaling", "Normalization")
def prepared(walk, layer, inputs, shape, node):
    """What is done to samples before the first weight is left to the pipeline."""
    if inputs[0].kind != "input":
        scale = getattr(layer, "scale", None)
        if isinstance(scale, (int, float)) and not layer.offset:
            return walk.emit("scale", inputs, shape, {"factor": float(scale)})
        raise Unsupported("a normalisation inside the model")
    walk.note("the preparation of samples (%s) is left out: it belongs to the input pipeline" % type(layer).__name__)
    return inputs[0]


@takes("Dense")
def dense(walk, layer, inputs, shape, node):
    line = walk.own(walk.emit("dense", inputs, shape, {"units": layer.units, "bias": layer.use_bias}))
    return walk.activated(line, activation_of(layer))


def window(layer):
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        raise Unsupported("images with their channels first")
    rates = tuple(getattr(layer, "dilation_rate", (1,)))
    return {"kernel": short(layer.kernel_size), "stride": short(layer.strides),
            **({"dilation": short(rates)} if any(rate != 1 for rate in rates) else {}),
            "padding": layer.padding, "bias": layer.use_bias}


@takes("Conv1D")
def convolution_of_steps(walk, layer, inputs, shape, node):
    if layer.data_format != "channels_last":
        raise Unsupported("sequences with their channels first")
    attrs = {"filters": layer.filters, "kernel": layer.kernel_size[0], "stride": layer.strides[0],
             **({"dilation": layer.dilation_rate[0]} if layer.dilation_rate[0] != 1 else {}),
             "padding": layer.padding, "groups": layer.groups, "bias": layer.use_bias}
    return walk.activated(walk.own(walk.emit("conv1d", inputs, shape, attrs)), activation_of(layer))


@takes("Conv2D", "DepthwiseConv2D", "SeparableConv2D", "Conv2DTranspose")
def convolution(walk, layer, inputs, shape, node):
    kind = {"Conv2D": "conv2d", "DepthwiseConv2D": "depthwise_conv2d", "SeparableConv2D": "separable_conv2d",
            "Conv2DTranspose": "conv2d_transpose"}[type(layer).__name__]
    attrs = window(layer)
    if kind == "conv2d" and layer.groups == inputs[0].shape[-1] > 1:
        kind, attrs["multiplier"] = "depthwise_conv2d", layer.filters // layer.groups
    elif kind == "conv2d":
        attrs = {"filters": layer.filters, **attrs, "groups": layer.groups}
    elif kind == "conv2d_transpose":
        if "dilation" in attrs:
            raise Unsupported("a transposed convolution with a dilation of %s" % attrs["dilation"])
        if layer.output_padding is not None:
            raise Unsupported("an output padding of its own")
        attrs = {"filters": layer.filters, **attrs}
    else:
        attrs["multiplier"] = layer.depth_multiplier
        attrs = {"filters": layer.filters, **attrs} if kind == "separable_conv2d" else attrs
    return walk.activated(walk.own(walk.emit(kind, inputs, shape, attrs)), activation_of(layer))


@takes("BatchNormalization")
def batch_norm(walk, layer, inputs, shape, node):
    if not layer.scale or not layer.center:
        raise Unsupported("a batch norm without gamma or beta; try: scale=True, center=True")
    if layer.axis not in (-1, len(shape)):
        raise Unsupported("a batch norm over another axis than the last")
    if not layer.trainable:
        walk.note("frozen batch norms are written as they train")
    count = sum(math.prod(w.shape) for w in (layer.gamma, layer.beta))
    attrs = {"epsilon": layer.epsilon, "momentum": round(1 - layer.momentum, 9)}
    return walk.own(walk.emit("batch_norm", inputs, shape, attrs), count)


@takes("LayerNormalization", "RMSNormalization")
def norm(walk, layer, inputs, shape, node):
    rms = type(layer).__name__ == "RMSNormalization"
    if not rms and (not layer.scale or not layer.center or getattr(layer, "rms_scaling", False)):
        raise Unsupported("a layer norm without gamma or beta")
    axis = layer.axis if isinstance(layer.axis, int) else layer.axis[0] if len(layer.axis) == 1 else None
    if axis not in (-1, len(shape)):
        raise Unsupported("a norm over other axes than the last")
    return walk.own(walk.emit("rms_norm" if rms else "layer_norm", inputs, shape, {"epsilon": layer.epsilon}))


@takes("Activation", "ReLU", "LeakyReLU", "Softmax", "Gelu", "Relu", "Relu6", "Silu", "Sigmoid", "Tanh", "HardSilu", "HardSigmoid")
def activation(walk, layer, inputs, shape, node):
    of = type(layer).__name__
    if of == "ReLU" and layer.negative_slope and (layer.threshold or layer.max_value is not None):
        raise Unsupported("a ReLU with a slope of %g, and a threshold or a largest value" % layer.negative_slope)
    if of == "Softmax" and layer.axis not in (-1, len(shape), (-1,), [-1], (len(shape),), [len(shape)], None):
        raise Unsupported("a softmax over other axes than the last")
    if of == "LeakyReLU" or (of == "ReLU" and layer.negative_slope):
        return walk.emit("leaky_relu", inputs, shape, {"slope": float(layer.negative_slope)})
    if of == "ReLU" and (layer.threshold or layer.max_value not in (None, 6)):
        raise Unsupported("a ReLU with a threshold of %s and a largest value of %s" % (layer.threshold, layer.max_value))
    word = activation_of(layer) if of == "Activation" else \
        "relu6" if of == "ReLU" and layer.max_value else {"HardSilu": "hard_silu", "HardSigmoid": "hard_sigmoid"}.get(of, of.lower())
    if word == "relu6" and inputs[0].kind == "plus3":
        return Line("plus3_relu6", "", inputs[0].inputs, shape)
    if word in ("linear", "softmax"):
        return walk.activated(inputs[0], word)
    if word not in ACTIVATIONS:
        raise Unsupported("the activation %s" % word)
    return walk.emit(ACTIVATIONS[word], inputs, shape)


@takes("Dropout", "SpatialDropout2D", "StochasticDepth")
def dropout(walk, layer, inputs, shape, node):
    noise = getattr(layer, "noise_shape", None)
    if type(layer).__name__ == "StochasticDepth" or (noise is not None and all(size in (None, 1) for size in noise)):
        walk.note("stochastic depth is left out: branches that Keras drops at random always count")
        return inputs[0]
    if noise is not None or type(layer).__name__ == "SpatialDropout2D":
        raise Unsupported("a dropout of whole channels")
    return walk.emit("dropout", inputs, shape, {"rate": float(layer.rate)}) if layer.rate else inputs[0]


@takes("MaxPooling2D", "AveragePooling2D")
def pool(walk, layer, inputs, shape, node):
    attrs = {"size": short(layer.pool_size), "stride": short(layer.strides), "padding": layer.padding}
    return walk.emit("max_pool" if type(layer).__name__.startswith("Max") else "avg_pool", inputs, shape, attrs)


@takes("MaxPooling1D", "AveragePooling1D")
def pool_of_steps(walk, layer, inputs, shape, node):
    if layer.data_format != "channels_last":
        raise Unsupported("sequences with their channels first")
    attrs = {"size": layer.pool_size[0], "stride": layer.strides[0], "padding": layer.padding}
    return walk.emit("max_pool1d" if type(layer).__name__.startswith("Max") else "avg_pool1d", inputs, shape, attrs)


@takes("GlobalAveragePooling2D")
def global_pool(walk, layer, inputs, shape, node):
    line = walk.emit("global_avg_pool", inputs, (inputs[0].shape[-1],))
    return walk.reshaped(line, shape)


@takes("GlobalAveragePooling1D")
def mean_of_places(walk, layer, inputs, shape, node):
    return walk.reshaped(walk.emit("reduce", inputs, (inputs[0].shape[-1],), {"axis": 1, "of": "mean"}), shape)


@takes("ZeroPadding2D")
def zero_pad(walk, layer, inputs, shape, node):
    (top, bottom), (left, right) = layer.padding
    edges = top if top == bottom == left == right else [top, bottom, left, right]
    return walk.emit("zero_pad", inputs, shape, {"padding": edges}) if any((top, bottom, left, right)) else inputs[0]


@takes("UpSampling2D")
def upsample(walk, layer, inputs, shape, node):
    if layer.interpolation not in ("nearest", "bilinear"):
        raise Unsupported("an upsampling that is %s" % layer.interpolation)
    mode = {"mode": "bilinear"} if layer.interpolation == "bilinear" else {}
    return walk.emit("upsample", inputs, shape, {"size": short(layer.size), **mode})


def with_number(walk, kind, inputs, shape, node):
    """relu6(x + 3) / 6 is how Keras writes a hard sigmoid; a factor is a scale."""
    number = next((value for value in node.arguments.args if isinstance(value, (int, float))), None)
    if kind == "add" and number == 3:
        return Line("plus3", "", inputs, shape)
    if kind == "multiply" and inputs[0].kind == "plus3_relu6" and math.isclose(number or 0, 1 / 6, rel_tol=1e-3):
        return walk.emit("hard_sigmoid", inputs[0].inputs, shape)
    if kind == "multiply" and number:
        return walk.emit("scale", inputs, shape, {"factor": float(number)})
    raise Unsupported("a %s with a number or a constant" % ("sum" if kind == "add" else "product"))


@takes("Add", "Multiply")
def pointwise(walk, layer, inputs, shape, node):
    kind = type(layer).__name__.lower()
    if len(inputs) < 2:
        return with_number(walk, kind, inputs, shape, node)
    line = inputs[0]
    for k, other in enumerate(inputs[1:]):
        line, other = (line, other) if math.prod(line.shape) >= math.prod(other.shape) else (other, line)
        gate = kind == "multiply" and len(other.shape) == len(line.shape) and \
            other.shape == (1,) * (len(line.shape) - 1) + line.shape[-1:]
        if other.shape != line.shape and not gate:
            raise Unsupported("of %s and %s" % (list(line.shape), list(other.shape)))
        line = walk.emit(kind, [line, other], line.shape, {}, "" if k == 0 else "_%d" % k)
    return line


@takes("Concatenate")
def concat(walk, layer, inputs, shape, node):
    axis = layer.axis + len(shape) + 1 if layer.axis < 0 else layer.axis
    inputs = list(inputs)
    while len(inputs) > 1:
        first, inputs = inputs[:MAX_INPUTS], inputs[MAX_INPUTS:]
        size = list(first[0].shape)
        size[axis - 1] = sum(line.shape[axis - 1] for line in first)
        inputs.insert(0, walk.emit("concat", first, size, {"axis": axis}, "" if len(inputs) == 0 else "_part"))
    return inputs[0]


@takes("Flatten", "Reshape")
def reshape(walk, layer, inputs, shape, node):
    if inputs[0].shape == tuple(shape):
        return inputs[0]
    return walk.emit("flatten", inputs, shape) if len(shape) == 1 else walk.reshaped(inputs[0], shape, "")


@takes("LayerScale")
def layer_scale(walk, layer, inputs, shape, node):
    """A learned factor for each channel."""
    return walk.own(walk.emit("layer_scale", inputs, shape))


@takes("Embedding")
def embedding(walk, layer, inputs, shape, node):
    if inputs[0].kind != "input":
        raise Unsupported("ids that are no input of the model")
    inputs[0].attrs["classes"] = max(inputs[0].attrs.get("classes", 0), layer.input_dim)
    return walk.own(walk.emit("embedding", inputs, shape, {"units": layer.output_dim, "vocabulary": layer.input_dim}))


@takes("LSTM", "GRU")
def recurrence(walk, layer, inputs, shape, node):
    cell, of = layer.cell, type(layer).__name__
    if of == "GRU" and not cell.reset_after:
        raise Unsupported("a GRU that resets before its product; try: reset_after=True")
    if activation_of(cell) != "tanh" or activation_of(cell, "recurrent_activation") != "sigmoid" or not cell.use_bias or \
            cell.dropout or cell.recurrent_dropout or layer.go_backwards or layer.return_state or layer.stateful:
        raise Unsupported("%s with other gates, dropout, states or no biases; try: keras.layers.%s(units, return_sequences=True)"
                          % ("a GRU" if of == "GRU" else "an LSTM", of))
    places = inputs[0].shape[0]
    line = walk.own(walk.emit(of.lower(), inputs, (places, layer.units), {"units": layer.units}))
    if layer.return_sequences:
        return line
    last = walk.emit("slice", [line], (1, layer.units), {"axis": 1, "from": places - 1, "count": 1}, "_last")
    return walk.reshaped(last, (layer.units,))


@takes("MultiHeadAttention")
def attention(walk, layer, inputs, shape, node):
    words = {**dict(zip(("query", "value", "key"), node.arguments.args)), **node.arguments.kwargs}
    named = [words[key] for key in ("query", "value", "key") if words.get(key) is not None]
    if len(named) != len(inputs):
        raise Unsupported("attention with a mask, or with keys and values of different tensors")
    inputs = [walk.made[id(tensor)] for tensor in named]
    width = inputs[0].shape[-1]
    if len(set(map(id, inputs[1:]))) > 1 or words.get("attention_mask") is not None or words.get("return_attention_scores"):
        raise Unsupported("attention with a mask, or with keys and values of different tensors")
    if layer._value_dim != layer._key_dim or shape[-1] != width or len(shape) != 2 or inputs[-1].shape[-1] != width:
        raise Unsupported("attention whose heads or output have sizes of their own")
    attrs = {"heads": layer._num_heads, "causal": bool(words.get("use_causal_mask")), "dropout": float(layer._dropout),
             "bias": layer._use_bias}
    if layer._num_heads * layer._key_dim != width:
        attrs["head_dim"] = layer._key_dim
    sources = inputs[:1] if inputs[-1] is inputs[0] else [inputs[0], inputs[-1]]
    return walk.own(walk.emit("attention", sources, shape, attrs))


# ---- the file ---------------------------------------------------------------------------------------------------

def scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return re.sub(r"e-0(\d)", r"e-\1", "%.10g" % value)
    return "[%s]" % ", ".join(scalar(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


def written(line):
    attrs = {key: value for key, value in line.attrs.items()
             if OTHERWISE.get(key) != value or (key == "stride" and line.kind.endswith("_pool"))}
    if line.kind.endswith("_pool") and attrs.get("stride") == attrs.get("size"):
        attrs.pop("stride", None)
    if line.kind == "embedding" and line.attrs["vocabulary"] == line.inputs[0].attrs["classes"]:
        del attrs["vocabulary"]
    return attrs


def defaults_of(lines):
    """What all layers of a kind have in common, where there are several."""
    common = {}
    for kind in dict.fromkeys(line.kind for line in lines):
        of = [written(line) for line in lines if line.kind == kind]
        same = {key: of[0][key] for key in of[0] if key not in ("share", "activation", "units", "vocabulary")
                and all(one.get(key) == of[0][key] for one in of)}
        if len(of) > 1 and same and kind not in ("reshape", "slice", "concat", "zero_pad"):
            common[kind] = same
    return common


def mapping(pairs):
    return "{%s}" % ", ".join("%s: %s" % pair for pair in pairs)


def input_lines(inputs):
    forms = []
    for line in inputs:
        words = [("name", line.name)] if len(inputs) > 1 else []
        words += [("type", "int32"), ("classes", line.attrs["classes"])] if "classes" in line.attrs else []
        forms.append(mapping(words + [("shape", scalar(line.shape))]))
    return ["  input: " + forms[0]] if len(forms) == 1 else ["  inputs:"] + ["    - " + form for form in forms]


def layer_lines(lines, common, first):
    out, above = [], first
    for line in lines:
        words = [("name", line.name), ("kind", line.kind)]
        if len(line.inputs) > 1:
            words.append(("inputs", "[%s]" % ", ".join(source.name for source in line.inputs)))
        elif line.inputs[0] is not above:
            words.append(("input", line.inputs[0].name))
        words += [(key, scalar(value)) for key, value in written(line).items() if key not in common.get(line.kind, {})]
        out.append("    - " + mapping(words))
        above = line
    return out


def alive(outputs, lines):
    seen, todo = set(outputs), list(outputs)
    while todo:
        for source in todo.pop().inputs:
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return [line for line in lines if line in seen]


def judge_logits(walk, lines, outputs):
    """Binary losses take logits: the sigmoid that only moves part from an output is the loss's, or it is said that it stays."""
    out, taken = [], set()
    for top in outputs:
        moves, at = [], top
        while at.kind in ("reshape", "flatten", "slice", "upsample") and "mode" not in at.attrs and \
                sum(line.inputs.count(at) for line in lines) <= (at is not top):
            moves.append(at)
            at = at.inputs[0]
        if at.kind == "sigmoid":
            walk.note("the last sigmoid is left out: headroom's %s has its own" % walk.loss)
            at = at.inputs[0]
            taken.add(at)
            if moves:
                moves[-1].inputs = [at]
        elif at not in taken:
            walk.note("the model ends in no sigmoid that could be left out: headroom's %s takes its outputs as logits" % walk.loss)
        out.append(moves[0] if moves else at)
    return out


def with_activations(lines, outputs):
    """A layer that only an activation reads takes it as its own; returns the lines and outputs that are left."""
    readers, gone = {}, {}
    for line in lines:
        for source in line.inputs:
            readers[source] = readers.get(source, 0) + 1
    for line in lines:
        source = line.inputs[0]
        before = gone.get(source, source)
        if line.kind in ACTIVATIONS.values() and before.kind in TAKE_ACTIVATION and "activation" not in before.attrs and \
                readers[source] == 1 and source not in outputs:
            before.attrs["activation"] = line.kind
            gone[line] = before
    for line in lines:
        line.inputs = [gone.get(source, source) for source in line.inputs]
    return [line for line in lines if line not in gone], [gone.get(line, line) for line in outputs]


def loss_lines(outputs, loss):
    """The labels and losses: one for each output."""
    last = outputs[0].shape[-1]
    kind = loss or ("softmax_cross_entropy" if last > 1 else "mean_squared_error")
    if len(outputs) == 1 and len(outputs[0].shape) < 3 and kind != "focal":
        return (["  classes: %d" % last] if kind == "softmax_cross_entropy" else []) + ["  loss: " + kind]
    label = "{type: int32, classes: %d}" % last if kind == "softmax_cross_entropy" else "{type: float32}"
    labels = ["  labels: " + label] if len(outputs) > 1 or len(outputs[0].shape) >= 3 else []
    if len(outputs) == 1 and kind != "focal":
        return labels + ["  loss: " + kind]
    kind += ", gamma: 2, alpha: 0" if kind == "focal" else ""  # as BinaryFocalCrossentropy() has them
    return labels + ["  losses:"] + ["    - {kind: %s, prediction: %s}" % (kind, line.name) for line in outputs]


def model_file(model, name=None, loss=None):
    """The text of the file, its number of trainable parameters and what is to be said; raises CannotExport."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", name or model.name).lstrip("-")[:64] or "model"
    model = graph_of(model)
    if model is None:
        raise CannotExport(name, ["it is no graph of layers; try: a Functional or a built Sequential model"])
    walk = Walk(model)
    inputs = []
    for tensor in model.inputs:
        line = Line("input", "input" if len(model.inputs) == 1 else walk.unique(tensor._keras_history.operation.name), [], tensor.shape[1:])
        if None in tensor.shape[1:]:
            walk.refuse(tensor._keras_history.operation, "a size that is not fixed; try: an Input with every size")
            line.shape = tuple(size or 8 for size in line.shape)
        inputs.append(line)
        walk.made[id(tensor)] = line
    if walk.problems:
        raise CannotExport(name, walk.sentences())
    walk.last, walk.loss = set(map(id, model.outputs)), loss
    walk.walk(model)
    outputs = [walk.made.get(id(tensor)) for tensor in model.outputs]
    if walk.problems:
        raise CannotExport(name, walk.sentences())
    same = [line for line in outputs if line.shape == outputs[0].shape]
    if loss in BINARY:
        same = judge_logits(walk, alive(same, walk.lines), same)
    lines, same = with_activations(alive(same, walk.lines), same)
    common = defaults_of(lines)
    text = ["%s: %s, %d parameters." % (HEAD, model.name, walk.counted), "title: %s, exported from Keras" % model.name, "model:",
            "  name: " + name] + input_lines(inputs) + loss_lines(same, loss)
    if common:
        text += ["  defaults:"] + ["    %s: %s" % (kind, mapping((k, scalar(v)) for k, v in attrs.items()))
                                   for kind, attrs in common.items()]
    return "\n".join(text + ["  layers:"] + layer_lines(lines, common, inputs[0])) + "\n", walk.counted, walk.notes


def write_file(path, text):
    """Whole or not at all; replaces only what this script has written."""
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if not file.readline().startswith(HEAD):
                raise FileExistsError("%s is there already, and not of this script: choose another name" % path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError("%s: there is no folder %s" % (path, folder))
    handle, part = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path) + ".")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def to_headroom(model, path, name=None, loss=None):
    """Writes the model file of a Functional or Sequential model. Returns its number of trainable parameters.

    loss: one of LOSSES. Raises CannotExport with everything that headroom's layers cannot hold;
    nothing is written then.
    """
    stem = os.path.splitext(os.path.basename(path))[0]
    text, count, notes = model_file(model, name or stem, loss)
    write_file(path, text)
    for note in notes:
        print("keras_to_headroom: note: " + note, file=sys.stderr)
    return count


def found(word):
    """What MODULE:NAME or FILE.py:NAME names."""
    where, _, name = word.rpartition(":")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(where))[0], where)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(where)
    for part in name.split("."):
        module = getattr(module, part)
    return module


def main():
    parser = argparse.ArgumentParser(description="Writes headroom's model file of a Keras model.",
                                     epilog="example: keras_to_headroom.py keras.applications:MobileNetV2 --output mobilenet_v2.yaml")
    parser.add_argument("model", metavar="MODULE:NAME", help="a function that makes the model, or the model; FILE.py:NAME for a file")
    parser.add_argument("--arguments", metavar="JSON", type=json.loads, default=None,
                        help="what the function is called with; without it keras.applications get no weights")
    parser.add_argument("--loss", choices=LOSSES)
    parser.add_argument("--output", metavar="FILE.yaml", required=True)
    options = parser.parse_args()
    try:
        model = found(options.model)
        words = options.arguments if options.arguments is not None else \
            {"weights": None} if options.model.startswith("keras.applications") else {}
        model = model if isinstance(model, keras.Model) else model(**words)
        count = to_headroom(model, options.output, loss=options.loss)
    except (CannotExport, OSError) as error:
        sys.exit("keras_to_headroom: %s" % error)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        sys.exit("keras_to_headroom: %s: %s: %s" % (options.model, type(error).__name__, error))
    print("%s: %d parameters; see: headroom plan %s" % (options.output, count, options.output))


if __name__ == "__main__":
    main()
