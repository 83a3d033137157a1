# SPDX-License-Identifier: Apache-2.0
"""Writes headroom's model file of a PyTorch module: its layers with their names, sizes and shared weights.

  from torch_to_headroom import to_headroom
  to_headroom(module, (example,), "model.yaml")                       # a live module and a batch it takes

  python3 torch_to_headroom.py torchvision.models:resnet50 --shape 3,224,224 --output resnet50.yaml
  python3 torch_to_headroom.py ./mine.py:Net --ids 128 --arguments '{"width": 64}' --output mine.yaml

Needs PyTorch (2.6 or later) and nothing else. The module is traced by torch.export in training mode and not changed; no
arithmetic is done, and its weights are not written. What headroom's layers cannot hold is named all at once; then
nothing is written and the exit status is 1 (from Python: CannotExport). HEADROOM_EXPORT_DEBUG=1 shows tracebacks.

How it works. A tensor is a layer's output and the axes that it has in memory; PyTorch's dimensions are a view of those.
Images lie as [height, width, channels] here, so that permute, view, flatten and their like move no byte until a layer needs
another order than there is: then a permute layer moves them.
"""
import argparse
import contextlib
import copy
import importlib
import importlib.util
import json
import logging
import math
import operator
import os
import re
import sys
import tempfile
import warnings

import torch

aten = torch.ops.aten
HEAD = "# Written by torch_to_headroom.py"
MAX_INPUTS = 6  # of a concat
BINARY = ["binary_cross_entropy", "focal"]
LOSSES = ["softmax_cross_entropy", "mean_squared_error"] + BINARY
ACTIVATIONS = {"relu", "relu6", "gelu", "silu", "tanh", "sigmoid", "hard_swish", "hard_sigmoid", "mish", "softplus"}
TAKE_ACTIVATION = {"conv2d", "conv1d", "depthwise_conv2d", "conv2d_transpose", "dense", "batch_norm", "group_norm", "add", "multiply"}
# Half-built layers: what stands in the graph until the layer that completes it.
OPEN = {"heads": "attention without an output projection", "scores": "a product of two tensors",
        "parameter": "a parameter by itself", "rotary": "queries or keys with rotary positions", "negated": "a negative",
        "half_turned": "halves of a head that changed places", "biases": "biases by relative position outside of attention's scores", "times_table": "a product with a table of numbers",
        "square": "a square", "rstd": "one by a root", "normed": "a root mean square norm without a weight"}


class CannotExport(Exception):
    """problems: a list of sentences."""

    def __init__(self, name, problems):
        self.problems = problems
        count = "1 thing" if len(problems) == 1 else "%d things" % len(problems)
        super().__init__("%s in %s cannot be said in headroom's layers; nothing was written:\n%s"
                         % (count, name, "\n".join("  " + problem for problem in problems)))


class Unsupported(Exception):
    """One operation that has no layer: why, and what to do."""

    def __init__(self, why, instead=None):
        super().__init__(why)
        self.instead = instead


class NotHeld(Unsupported):
    """Of an operation whatever it reads: an attribute that no layer has."""


# ---- layers and tensors -----------------------------------------------------------------------------------------

class Layer:
    """One line of the file, or an input of the model (kind `input`), or a parameter that some layer will hold."""

    def __init__(self, kind, name, inputs, shape, attrs=None, params=()):
        self.kind, self.name, self.inputs, self.shape = kind, name, list(inputs), tuple(shape)
        self.attrs, self.params = dict(attrs or {}), list(params)
        self.module = self.made_of = self.places = None
        self.refused = kind == "refused" or any(source.refused for source in self.inputs)  # or follows from what was


class Axis:
    """A run of places in memory; `copied` when PyTorch only pretends to have it (expand)."""

    def __init__(self, size, copied=False):
        self.size, self.copied = size, copied


class Tensor:
    """axes: as they lie in memory, the batch first, none of size 1. dims: the axes of each dimension, outermost first."""

    def __init__(self, layer, axes, dims):
        self.layer, self.axes, self.dims = layer, list(axes), [tuple(d) for d in dims]

    @property
    def shape(self):
        return [size_of(d) for d in self.dims]


class Missing:
    """A result that no layer gives: who reads it is refused with this reason."""

    def __init__(self, why, instead=None):
        self.why, self.instead = why, instead


def size_of(axes):
    return math.prod(axis.size for axis in axes)


def plain(layer, order=None):
    """A tensor whose memory is the layer's output; order[k] is the place of dimension k in memory."""
    axes = [Axis(size) for size in layer.shape]
    order = range(len(axes)) if order is None else order
    dims = [(axes[k],) if axes[k].size != 1 else () for k in order]
    return Tensor(layer, [axis for axis in axes if axis.size != 1], dims)


def pieces(tensor, sizes):
    """The same tensor under another shape, as view makes it: in the axes that it has, or where these do not divide, in
    those that it is left with where neighbours in memory are one."""
    try:
        return cut_as(tensor, sizes)
    except Unsupported:
        return cut_as(joined(tensor), sizes)


def joined(tensor):
    """Its numbers in one dimension; what follows one another there and in memory is one axis."""
    runs, place = [], {axis: k for k, axis in enumerate(tensor.axes)}
    for axis in in_dims(tensor):
        follows = runs and not axis.copied and not runs[-1][-1].copied and place[axis] == place[runs[-1][-1]] + 1
        runs[-1:] = [runs[-1] + [axis]] if follows else runs[-1:] + [[axis]]
    whole = {run[0]: Axis(size_of(run), run[0].copied) for run in runs}
    return Tensor(tensor.layer, [whole[axis] for axis in tensor.axes if axis in whole], [tuple(whole[run[0]] for run in runs)])


def cut_as(tensor, sizes):
    queue = [axis for dim in tensor.dims for axis in dim]
    split, dims = {}, []
    for size in sizes:
        dim, room = [], size
        while room > 1:
            axis = queue.pop(0)
            if room % axis.size != 0:
                if axis.size % room != 0:
                    raise Unsupported("a view of %s as %s cuts across dimensions" % (tensor.shape, list(sizes)))
                outer, inner = Axis(room, axis.copied), Axis(axis.size // room, axis.copied)
                split[axis] = (outer, inner)
                queue.insert(0, inner)
                axis = outer
            dim.append(axis)
            room //= axis.size
        dims.append(dim)
    return Tensor(tensor.layer, unfold(tensor.axes, split), dims)


def unfold(axes, split):
    out = []
    for axis in axes:
        out += unfold(split[axis], split) if axis in split else [axis]
    return out


def refined(tensor, cuts):
    """The tensor with dimension k cut into pieces of sizes cuts[k]."""
    cut = pieces(tensor, [size for sizes in cuts for size in sizes])
    dims, at = [], 0
    for sizes in cuts:
        dims.append([axis for dim in cut.dims[at:at + len(sizes)] for axis in dim])
        at += len(sizes)
    return Tensor(cut.layer, cut.axes, dims)


def common_cut(a, b):
    """Sizes into which both products can be cut: for (8, 4) and (4, 8) these are 4, 2, 4."""
    a, b, out = list(a), list(b), []
    while a and b:
        small, large = (a, b) if a[-1] <= b[-1] else (b, a)
        size = small.pop()
        rest, odd = divmod(large.pop(), size)
        if odd:
            raise Unsupported("two tensors whose dimensions do not divide each other")
        large += [rest] if rest != 1 else []
        out.insert(0, size)
    return out


def in_dims(tensor):
    """Its axes in the order of its dimensions."""
    return [axis for dim in tensor.dims for axis in dim]


def aligned(walk, a, b):
    """Both with the same axes, in the same order in memory; the one whose memory is not as its dimensions are is moved."""
    cuts = [common_cut([x.size for x in p], [y.size for y in q]) for p, q in zip(a.dims, b.dims)]
    a, b = refined(a, cuts), refined(b, cuts)
    place = {axis: k for k, axis in enumerate(in_dims(a))}
    other = {axis: k for k, axis in enumerate(in_dims(b))}
    if [place[x] for x in a.axes] != [other[x] for x in b.axes]:
        if in_dims(b) == b.axes:
            a = walk.moved(a, [in_dims(a)[other[x]] for x in b.axes])
        else:
            b = walk.moved(b, [in_dims(b)[place[x]] for x in a.axes])
    return a, b


MOST_PERMUTED = 4  # dimensions of a sample


def regrouped(walk, tensor, order):
    """The layer that brings a tensor's axes into this order: kind, what it reads, its shape and attributes."""
    memory, shape = tensor.axes, tensor.layer.shape
    places = [memory.index(axis) for axis in order]
    if len(shape) == 4 and places[-2:] == [len(memory) - 1, len(memory) - 2] and places[:-2] == list(range(len(memory) - 2)) \
            and memory[-1].size * memory[-2].size == shape[3]:
        return "channel_shuffle", tensor.layer, shape, {"groups": memory[-2].size}
    runs = []
    for axis, place in zip(order[1:], places[1:]):
        if runs and place == memory.index(runs[-1][-1]) + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    by_memory = sorted(runs, key=lambda run: memory.index(run[0]))
    if len(runs) <= MOST_PERMUTED:
        source = walk.reshaped(tensor.layer, [walk.batch] + [size_of(run) for run in by_memory])
        return "permute", source, [walk.batch] + [size_of(run) for run in runs], {"axes": [by_memory.index(run) + 1 for run in runs]}
    return pixels(walk, by_memory, runs, tensor)


def pixels(walk, memory, runs, tensor):
    """Patches of pixels as channels, and back: five runs that change places."""
    places, size = [memory.index(run) for run in runs], [size_of(run) for run in memory]
    known = {(0, 2, 3, 1, 4): "patch_merging", (0, 2, 4, 1, 3): "pixel_unshuffle", (0, 3, 1, 4, 2): "pixel_shuffle"}
    kind = known.get(tuple(places))
    if kind is None:
        raise Unsupported("a permute of more than %d dimensions" % MOST_PERMUTED, "a permute of fewer at a time")
    down, right = (size[3], size[4]) if kind == "pixel_shuffle" else (size[1], size[3])
    if kind == "pixel_shuffle":
        source = walk.reshaped(tensor.layer, [walk.batch, size[0], size[1], size[2] * down * right])
        return kind, source, [walk.batch, size[0] * down, size[1] * right, size[2]], {"size": short([down, right])}
    source = walk.reshaped(tensor.layer, [walk.batch, size[0] * down, size[2] * right, size[4]])
    return kind, source, [walk.batch, size[0], size[2], size[4] * down * right], {"size": short([down, right])}


class Noise:
    """Random factors of 0 and `factor`, which they are with probability `keep`; None where it is not known."""

    def __init__(self, keep=None, factor=None):
        self.keep, self.factor = keep, factor


# ---- the walk through the graph ---------------------------------------------------------------------------------

HANDLERS = {}


def takes(*names):
    def keep(function):
        for name in names:
            HANDLERS[name] = function
        return function
    return keep


class Walk:
    def __init__(self, program, module, batch):
        self.program, self.module, self.batch = program, module, batch
        self.problems, self.notes, self.layers, self.names = {}, [], [], {}
        self.node = None
        self.env = {}
        self.names_of = {id(p): n for n, p in module.named_parameters()}
        self.sizes = {n: p.numel() for n, p in module.named_parameters()}
        self.concats, self.taken = {}, {}
        self.loss = None  # what was asked for

    # ---- naming and problems

    def module_path(self):
        stack = self.node.meta.get("nn_module_stack") or {}
        path, kind = list(stack.values())[-1] if stack else ("", "")
        return path, kind if isinstance(kind, str) else kind.__module__ + "." + kind.__qualname__

    def word_for(self, kind, params):
        """The path of the module whose parameters these are, or that is one of PyTorch's own; otherwise, what in it."""
        path, of = self.module_path()
        if kind in ("position_embedding", "class_token", "layer_scale", "relative_bias"):
            return params[0].removesuffix(".weight")
        own = path and of.startswith("torch.nn.") and kind not in ("zero_pad", "slice", "permute") and \
            not list(self.module.get_submodule(path).children())
        whole = path and params and params[0] == path + ".weight"
        own = own or path.rpartition(".")[2] == kind == "stochastic_depth"
        return path if own or whole else (path + "." if path else "") + kind

    def unique(self, word):
        word = re.sub(r"[^A-Za-z0-9_.-]", "_", word).lstrip("-")[-60:]
        word += "_layer" if word in ("input", "before", "previous", "labels", "probs", "loss", "correct") else ""
        count = self.names[word] = self.names.get(word, -1) + 1
        return word if count == 0 else self.unique("%s_%d" % (word, count))

    def where(self):
        path, _ = self.module_path()
        lines = re.findall(r'File "([^"]*)", line (\d+), in [^\n]*\n *([^\n]*)', self.node.meta.get("stack_trace") or "")
        own = [line for line in lines if os.sep + "torch" + os.sep not in line[0]] or lines
        at = " (%s:%s: %s)" % (os.path.basename(own[-1][0]), own[-1][1], own[-1][2].strip()) if own else ""
        return "%s%s" % ("in `%s`" % path if path else "in the module itself", at)

    def refuse(self, why, instead=None):
        word = str(self.node.target).replace("aten.", "").split(".")[0] if self.node.op == "call_function" else self.node.op
        places = self.problems.setdefault((word.rstrip("_"), why, instead), [])
        if self.where() not in places:
            places.append(self.where())
        return self.stand_in(self.node.meta.get("val"))

    def stand_in(self, value):
        """What a refused operation would give, so that what follows is looked at too."""
        if isinstance(value, (list, tuple)):
            return [self.stand_in(one) for one in value]
        if not isinstance(value, torch.Tensor):
            return value
        order = [0, 3, 1, 2] if value.dim() == 4 else list(range(value.dim()))
        back = [order.index(k) for k in range(len(order))]
        layer = Layer("refused", "", [], [value.shape[k] for k in back])
        layer.made_of = value.dtype
        return plain(layer, order)

    def complain(self, sentence):
        self.problems[(sentence, None, None)] = []

    def sentences(self):
        """One for each operator and reason, with the first place where it stands."""
        out = []
        for (word, why, instead), places in self.problems.items():
            more = len(places) - 1
            sentence = "%s %s" % (word, places[0]) if places else word
            sentence += " and in %d more place%s" % (more, "s" if more > 1 else "") if more > 0 else ""
            out.append(sentence + (": " + why if why else "") + ("; try: " + instead if instead else ""))
        return out

    def note(self, sentence):
        if sentence not in self.notes:
            self.notes.append(sentence)

    # ---- layers

    def emit(self, kind, inputs, shape, attrs=None, params=()):
        layer = Layer(kind, self.word_for(kind, params), inputs, shape, attrs, params)
        layer.module = self.module_path()
        self.layers.append(layer)
        return layer

    def reshaped(self, layer, shape):
        shape = tuple(shape)
        if layer.shape == shape:
            return layer
        while layer.kind in ("reshape", "flatten"):
            layer = layer.inputs[0]
        if layer.shape == shape:
            return layer
        kind = "flatten" if len(shape) == 2 and len(layer.shape) > 2 else "reshape"
        made = next((r for r in self.layers if r.kind == kind and r.inputs == [layer] and r.shape == shape), None)
        return made or self.emit(kind, [layer], shape, {} if kind == "flatten" else {"shape": list(shape[1:])})

    def moved(self, tensor, order):
        """The tensor with its axes in this order in memory."""
        self.must_be_closed(tensor)
        if list(order) == tensor.axes:
            return tensor
        if is_expanded(tensor):
            raise Unsupported("works on an expanded tensor, which headroom's layers would have to copy")
        if order[0] is not tensor.axes[0] or order[0].size != self.batch:
            raise Unsupported("a tensor without the batch as its first dimension", "give the example a batch dimension")
        kind, source, shape, attrs = regrouped(self, tensor, list(order))
        made = next((x for x in self.layers if (x.kind, x.inputs, x.shape, x.attrs) == (kind, [source], tuple(shape), attrs)), None)
        return Tensor(made or self.emit(kind, [source], shape, attrs), order, tensor.dims)

    def last(self, tensor, features):
        """The tensor with these axes last in memory, whatever their order among themselves."""
        features = list(features)
        if not features or set(tensor.axes[-len(features):]) == set(features):
            return tensor
        return self.moved(tensor, [axis for axis in tensor.axes if axis not in features] + features)

    def whole(self, tensor, dim):
        """The tensor with one axis for this dimension."""
        own = tensor.dims[dim]
        if len(own) < 2 or not set(own) <= set(tensor.axes):
            return tensor
        at = tensor.axes.index(own[0])
        if tuple(tensor.axes[at:at + len(own)]) != own:
            by_place = sorted(tensor.dims, key=lambda d: min([tensor.axes.index(axis) for axis in d], default=0))
            tensor = self.moved(tensor, [axis for d in by_place for axis in d])
            at = tensor.axes.index(own[0])
        joined = Axis(size_of(own))
        axes = tensor.axes[:at] + [joined] + tensor.axes[at + len(own):]
        return Tensor(tensor.layer, axes, [(joined,) if k == dim else d for k, d in enumerate(tensor.dims)])

    def arrange(self, tensor, groups):
        """The layer whose output has the groups of axes as its dimensions, the batch first."""
        self.must_be_closed(tensor)
        flat = [axis for group in groups for axis in group]
        if any(axis.copied for axis in flat):
            raise Unsupported("an expanded tensor, which headroom's layers would have to copy")
        tensor = self.moved(tensor, flat)
        if not groups[0] or groups[0][0].size != self.batch or len(groups[0]) != 1:
            raise Unsupported("a tensor without the batch as its first dimension", "give the example a batch dimension")
        return self.reshaped(tensor.layer, [size_of(group) for group in groups])

    def image(self, tensor):
        if len(tensor.dims) != 4:
            raise Unsupported("needs [batch, channels, height, width], had %s" % tensor.shape)
        n, c, h, w = tensor.dims
        return self.arrange(tensor, [n, h, w, c])

    def rows(self, tensor, features):
        """The layer whose last dimension are these axes (of any order among themselves), and the axes before them."""
        self.must_be_closed(tensor)
        head = tensor.axes[:len(tensor.axes) - len(features)]
        if is_expanded(tensor):
            raise Unsupported("works on an expanded tensor, which headroom's layers would have to copy")
        if set(tensor.axes[len(head):]) != set(features):
            raise Unsupported("its features do not lie next to each other")
        if not head or head[0].size != self.batch:
            raise Unsupported("a tensor without the batch as its first dimension", "give the example a batch dimension")
        size = size_of(features)
        flat = len(tensor.layer.shape) <= len(tensor.dims) or 1 not in tensor.layer.shape[1:-1]
        if tensor.layer.shape[-1] == size and flat:
            return tensor.layer, head
        shape = [axis.size for axis in head] + [size]
        shape = shape if len(shape) <= 5 else [shape[0], math.prod(shape[1:-1]), size]
        return self.reshaped(tensor.layer, shape), head

    def must_be_closed(self, tensor):
        if tensor.layer.kind == "input" and not tensor.layer.made_of.is_floating_point:
            raise Unsupported("computes with ids, which only an embedding reads")
        if tensor.layer.kind in OPEN:
            raise Unsupported("reads %s" % OPEN[tensor.layer.kind], tensor.layer.attrs.get("instead"))

    def alike(self, kind, tensor, attrs=None, params=()):
        """A layer that changes neither shape nor order."""
        self.must_be_closed(tensor)
        if is_expanded(tensor):
            raise Unsupported("works on an expanded tensor, which headroom's layers would have to copy")
        return Tensor(self.emit(kind, [tensor.layer], tensor.layer.shape, attrs, params), tensor.axes, tensor.dims)

    # ---- values of the graph

    def value(self, argument):
        if isinstance(argument, torch.fx.Node):
            return self.env[argument]
        if isinstance(argument, (list, tuple)):
            return type(argument)(self.value(a) for a in argument) if not isinstance(argument, torch.Size) else argument
        return argument

    def run(self, node):
        self.node = node
        args, kwargs = self.value(node.args), {k: self.value(v) for k, v in node.kwargs.items()}
        leaves = list(every([args, list(kwargs.values())]))
        if node.target is operator.getitem:
            return args[0][args[1]]
        inner = next((k for k, leaf in enumerate(args) if isinstance(leaf, torch.fx.GraphModule)), None)
        if inner is not None:
            return self.inlined(node, args, inner)
        missing = next((leaf for leaf in leaves if isinstance(leaf, Missing)), None)
        if missing:
            return self.refuse(missing.why, missing.instead)
        name = str(node.target).replace("aten.", "")
        name = name[:-len(".default")] if name.endswith(".default") else name
        try:
            if not any(isinstance(leaf, Tensor) for leaf in leaves):
                return self.folded(node, args, kwargs)
            self.check_in_place(node)
            handler = HANDLERS.get(name) or HANDLERS.get(name.split(".")[0]) or HANDLERS.get(name.split(".")[0].rstrip("_"))
            if handler is None:
                raise NotHeld("no layer of headroom does this")
            if handler not in (cast, constant_like, nothing):
                self.check_types(node)
            return handler(self, *args, **kwargs)
        except Unsupported as problem:
            if not isinstance(problem, NotHeld) and any(isinstance(x, Tensor) and x.layer.refused for x in leaves):
                return self.stand_in(node.meta.get("val"))
            return self.refuse(str(problem), problem.instead)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:  # operands of a kind not thought of
            return self.refuse("in a form that this script does not know (%s: %s)" % (type(error).__name__, error))

    def inlined(self, node, args, inner):
        """What stands under no_grad or autocast is a graph of its own."""
        words, operands = args[:inner], args[inner + 1:]
        changes = any(isinstance(value, Tensor) for value in operands)
        if "set_grad_enabled" not in str(node.target) and "autocast" not in str(node.target):
            return self.refuse("a branch or a loop of the graph", "leave it out of forward")
        if changes and words[:1] == (False,):
            return self.refuse("stops the gradient (torch.no_grad)", "let the gradient through")
        if changes and "autocast" in str(node.target) and words[2]:
            return self.refuse("autocast inside the module", "leave it to headroom's precision.policy")
        return self.steps(args[inner], iter(operands))

    def steps(self, graph_module, operands):
        """Runs the nodes of a graph; returns what it gives."""
        for node in graph_module.graph.nodes:
            if node.op == "placeholder" and operands is not None:
                self.env[node] = next(operands)
            elif node.op == "get_attr":
                self.env[node] = operator.attrgetter(node.target)(graph_module)
            elif node.op == "call_function":
                self.env[node] = self.run(node)
            elif node.op == "output":
                self.node = node
                return self.value(node.args[0])
        return []

    def folded(self, node, args, kwargs):
        """What depends on no input: masks, positions. Random numbers are none of these."""
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.numel() > 1 << 26:
            raise Unsupported("a constant of %d elements" % value.numel())
        word = str(node.target).replace("aten.", "").split(".")[0].rstrip("_")
        noise = next((leaf for leaf in every([args, kwargs]) if isinstance(leaf, Noise)), None)
        if word == "bernoulli":
            keep = args[1] if noise is None and len(args) > 1 and isinstance(args[1], float) else None
            return Noise(keep, 1.0)
        if noise is not None:
            divisor = args[1] if word == "div" and noise is args[0] and isinstance(args[1], float) else None
            return Noise(noise.keep, noise.factor / divisor if divisor and noise.factor else None)
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise NotHeld("random numbers outside dropout", "take the noise out for the export")
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        return node.target(*args, **kwargs)

    def check_types(self, node):
        """One number type in all of a layer: dtype=, out_dtype, view(dtype) and mixed operands change it on the way."""
        results = [r for r in every(node.meta.get("val")) if isinstance(r, torch.Tensor)]
        read = {x.meta["val"].dtype for x in node.all_input_nodes
                if isinstance(self.env[x], Tensor) and x.meta["val"].is_floating_point()}
        if read and (len(read) > 1 or results[:1] and results[0].dtype not in read):
            types = sorted(str(t).replace("torch.", "") for t in read | {r.dtype for r in results[:1]})
            raise Unsupported("changes or mixes number types (%s)" % ", ".join(types),
                              "export the module in float32: headroom's precision.policy casts")

    def check_in_place(self, node):
        """An operation that changes a view changes what it is a view of, which the graph does not say."""
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.name.endswith("_") or not isinstance(node.args[0], torch.fx.Node):
            return
        order = {n: k for k, n in enumerate(self.program.graph.nodes)}
        base = node.args[0]
        while base.op == "call_function" and is_view(base.target):
            base = base.args[0]
            if not isinstance(base, torch.fx.Node):
                return
            if any(order[user] > order[node] for user in base.users):
                raise Unsupported("changes a view in place, and what it is a view of is read later",
                                  "write it without the in-place operation")

    # ---- inputs and outputs

    def placeholders(self):
        signature = self.program.graph_signature
        state, constants = self.program.state_dict, self.program.constants
        buffers = dict(signature.inputs_to_buffers)
        lifted = dict(getattr(signature, "inputs_to_lifted_tensor_constants", {}))
        for node in self.program.graph.nodes:
            if node.op != "placeholder":
                continue
            self.node = node
            if node.name in signature.inputs_to_parameters:
                parameter = state[signature.inputs_to_parameters[node.name]]
                name = self.names_of.get(id(parameter), signature.inputs_to_parameters[node.name])
                layer = Layer("parameter", name, [], parameter.shape, params=[name])
                layer.made_of = parameter
                self.env[node] = plain(layer)
            elif node.name in buffers:
                held = state.get(buffers[node.name], constants.get(buffers[node.name]))
                self.env[node] = held.detach().clone()
            elif node.name in lifted:
                self.env[node] = constants[lifted[node.name]].detach().clone()
            elif isinstance(node.meta.get("val"), torch.Tensor):
                self.env[node] = self.model_input(node)
            else:
                self.env[node] = node.meta.get("val")

    def model_input(self, node):
        value = node.meta["val"]
        if value.dim() < 2 or value.shape[0] != self.batch:
            return self.refuse("an input of shape %s" % list(value.shape), "inputs whose first dimension is the batch")
        order = [0] + list(range(2, value.dim())) + [1] if value.is_floating_point() and wants_channels_last(node) else None
        shape = [value.shape[k] for k in order] if order else list(value.shape)
        layer = Layer("input", node.name, [], shape)
        layer.made_of = value.dtype
        layer.attrs["classes"] = 0
        self.layers.append(layer)
        back = [order.index(k) for k in range(len(order))] if order else None
        return plain(layer, back)

    def walk(self):
        self.placeholders()
        return self.outputs(list(every(self.steps(self.program.graph_module, None))))

    def outputs(self, found):
        """The first tensor is what the loss judges, and so are others of its shape (auxiliary heads)."""
        tensors = [value for value in found if isinstance(value, Tensor) and value.layer.kind != "parameter"]
        for tensor in tensors[:1]:
            if tensor.layer.kind in OPEN:
                self.refuse("gives %s" % OPEN[tensor.layer.kind])
            elif tensor.layer.kind == "input":
                self.refuse("gives an input as it is")
        return [t for t in tensors if t.layer.kind not in OPEN and t.shape == tensors[0].shape]


def is_view(target):
    """Does it give other names to the bytes of its first argument?"""
    schema = getattr(target, "_schema", None)
    return target is operator.getitem or (schema is not None and not schema.name.endswith("_") and
                                          any(result.alias_info for result in schema.returns))


def is_expanded(tensor):
    return any(axis.copied for dim in tensor.dims for axis in dim)


def every(value):
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from every(one)
    elif isinstance(value, dict):
        yield from every(list(value.values()))
    else:
        yield value


def wants_channels_last(node, depth=0):
    """Does a convolution or a pooling see the input as it is? A permute before it says that the input has its own order."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dim() < 3 or depth > 40:
        return False
    for user in node.users:
        name = str(user.target)
        if re.search(r"aten\.(conv|max_pool|avg_pool|adaptive|batch_norm|upsample|group_norm)", name):
            return True
        if isinstance(user.meta.get("val"), torch.Tensor) and user.meta["val"].shape == value.shape \
                and "permute" not in name and "transpose" not in name and wants_channels_last(user, depth + 1):
            return True
    return value.dim() == 4 and not any("permute" in str(user.target) for user in node.users)


# ---- views: nothing is written for them -------------------------------------------------------------------------

def dim_of(tensor, dim, more=0):
    return dim + len(tensor.dims) + more if dim < 0 else dim


@takes("contiguous", "clone", "alias", "lift_fresh_copy")
def same(walk, x, *_, **__):
    return x


@takes("to", "_to_copy", "type_as", "float")
def cast(walk, x, *args, **kwargs):
    wanted = walk.node.meta["val"].dtype
    if not wanted.is_floating_point or walk.node.args[0].meta["val"].dtype != wanted:
        raise NotHeld("a cast to %s" % str(wanted).replace("torch.", ""),
                          "export the module in float32: headroom's precision.policy casts")
    return x


@takes("_assert_tensor_metadata")
def nothing(*_, **__):
    return None


@takes("view", "reshape", "flatten", "unflatten", "_unsafe_view", "view_as", "reshape_as")
def view(walk, x, *_, **__):
    return pieces(x, list(walk.node.meta["val"].shape))


@takes("permute", "transpose", "t", "swapaxes", "movedim", "numpy_T", "mT", "swapdims")
def permute(walk, x, *args):
    name = str(walk.node.target)
    order = list(range(len(x.dims)))
    if "permute" in name:
        order = [dim_of(x, dim) for dim in args[0]]
    elif "movedim" in name:
        order.insert(dim_of(x, args[1]), order.pop(dim_of(x, args[0])))
    else:
        a, b = [dim_of(x, dim) for dim in args] if len(args) == 2 else (len(order) - 2, len(order) - 1)
        order[a], order[b] = order[b], order[a]
    return Tensor(x.layer, x.axes, [x.dims[k] for k in order])


@takes("unsqueeze", "squeeze")
def squeeze(walk, x, *_):
    return pieces(x, list(walk.node.meta["val"].shape))


@takes("expand", "expand_as", "broadcast_to")
def expand(walk, x, *_, **__):
    shape = list(walk.node.meta["val"].shape)
    dims = [()] * (len(shape) - len(x.dims)) + x.dims
    dims = [dim if size_of(dim) == size else (Axis(size, copied=True),) for dim, size in zip(dims, shape)]
    return Tensor(x.layer, x.axes, dims)


# ---- pieces of an axis ------------------------------------------------------------------------------------------

def piece(walk, x, dim, start, count):
    """Places start … start + count - 1 of a dimension."""
    dim = dim_of(x, dim)
    if count == x.shape[dim]:
        return x
    if x.layer.kind == "parameter":
        raise Unsupported("a piece of a parameter", "give the example as many places as the parameter has rows")
    x = walk.whole(x, dim)
    if len(x.dims[dim]) != 1 or x.dims[dim][0] not in x.axes:
        raise Unsupported("a piece of an expanded dimension")
    axis = x.dims[dim][0]
    at = x.axes.index(axis)
    if at == 0:
        raise Unsupported("a piece of the batch")
    before, behind = x.axes[1:at], x.axes[at + 1:]
    if axis.size in x.layer.shape[1:] and list(x.layer.shape) == [a.size for a in x.axes]:
        layer, place = x.layer, at
    else:
        layer = walk.arrange(x, [x.axes[:1]] + ([before] if before else []) + [[axis]] + ([behind] if behind else []))
        place = 2 if before else 1
    shape = list(layer.shape)
    shape[place] = count
    out = walk.emit("slice", [layer], shape, {"axis": place, "from": start, "count": count})
    kept = Axis(count)
    dims = [tuple(kept if a is axis else a for a in d if a is not axis or count > 1) for d in x.dims]
    return Tensor(out, [kept if a is axis else a for a in x.axes if a is not axis or count > 1], dims)


@takes("select")
def select(walk, x, dim, index):
    dim = dim_of(x, dim)
    index = index + x.shape[dim] if index < 0 else index
    out = piece(walk, x, dim, index, 1)
    return Tensor(out.layer, out.axes, out.dims[:dim] + out.dims[dim + 1:])


@takes("slice")
def cut(walk, x, dim=0, start=None, end=None, step=1):
    size = x.shape[dim_of(x, dim)]
    first, last, step = slice(start, end, step).indices(size)
    if step != 1 and last - first > step:
        return every_nth(walk, x, dim_of(x, dim), first, last, step)
    return piece(walk, x, dim, first, last - first)


def every_nth(walk, x, dim, first, last, step):
    """A dimension as [places, step], of which one row is taken; of an image that is joined again, see merged_patches."""
    if last != x.shape[dim] or last % step or first >= step:
        raise NotHeld("every %d-th place of %d from %d on" % (step, x.shape[dim], first))
    shape = x.shape
    out = select(walk, pieces(x, shape[:dim] + [last // step, step] + shape[dim + 1:]), dim + 1, first)
    source, taken = taken_of(walk, x)
    source, taken = (x, {}) if dim in taken else (source, taken)
    walk.taken[out.layer] = source, {**taken, dim: (first, step)}, view_of(out)
    return out


def view_of(x):
    """How a tensor lies in its layer's output: the places of each dimension's axes in memory, and their sizes."""
    return tuple(tuple((x.axes.index(a), a.size) if a in x.axes else (-1, a.size) for a in d) for d in x.dims)


def taken_of(walk, x):
    """The tensor that x has every n-th row and column of, and which: {dimension: (first, step)}; x itself where it has all."""
    source, taken, view = walk.taken.get(x.layer, (x, {}, view_of(x)))
    return (source, taken) if view == view_of(x) else (x, {})


def merged_patches(walk, tensors, dim):
    """cat of every size-th pixel, column by column, along the channels of [batch, height, width, channels]; None for another."""
    found = [taken_of(walk, x) for x in tensors]
    if dim != 3 or any(source is not found[0][0] or set(taken) != {1, 2} for source, taken in found):
        return None
    size = found[0][1][1][1]
    wanted = [{1: (i, size), 2: (j, size)} for j in range(size) for i in range(size)]
    if [taken for _, taken in found] != wanted:
        return None
    image = walk.arrange(found[0][0], found[0][0].dims)
    n, h, w, c = image.shape
    return plain(walk.emit("patch_merging", [image], [n, h // size, w // size, c * size * size], {"size": size}))


@takes("narrow")
def narrow(walk, x, dim, start, length):
    return piece(walk, x, dim, start, length)


@takes("chunk", "split", "split_with_sizes", "unbind", "tensor_split")
def split(walk, x, sizes=0, dim=0):
    name, out, at = str(walk.node.target), [], 0
    dim = dim_of(x, sizes if "unbind" in name else dim)
    for value in walk.node.meta["val"]:
        count = 1 if "unbind" in name else value.shape[dim]
        one = piece(walk, x, dim, at, count)
        out.append(Tensor(one.layer, one.axes, one.dims[:dim] + one.dims[dim + 1:]) if "unbind" in name else one)
        at += count
    return out


@takes("cat", "concat")
def cat(walk, tensors, dim=0):
    tensors = list(tensors)
    if any(not isinstance(x, Tensor) for x in tensors):
        raise Unsupported("a concatenation with a constant")
    dim = dim_of(tensors[0], dim)
    halves = turned_halves(walk, tensors) if dim == len(tensors[0].dims) - 1 else None
    halves = halves or merged_patches(walk, tensors, dim)
    if halves:
        return halves
    while len(tensors) > 1 and tensors[-2].layer.kind == "parameter":
        tensors[-2:] = [class_token(walk, tensors[-2], tensors[-1], dim)]
    wanted = concat_key(tensors, dim)
    known = max((n for n in range(2, len(tensors)) if concat_key(tensors[:n], dim) in walk.concats), default=0)
    if known:  # DenseNet: what was joined before is joined with what is new
        tensors = [walk.concats[concat_key(tensors[:known], dim)]] + tensors[known:]
    while len(tensors) > MAX_INPUTS:
        tensors[:MAX_INPUTS] = [join(walk, tensors[:MAX_INPUTS], dim)]
    walk.concats[wanted] = join(walk, tensors, dim) if len(tensors) > 1 else tensors[0]
    return walk.concats[wanted]


def concat_key(tensors, dim):
    return tuple((id(x.layer), view_of(x)) for x in tensors) + (dim,)


def in_one_order(walk, tensors, dim):
    """All as the first of them lies, where each dimension of all has one axis."""
    tensors = [walk.whole(x, dim) for x in tensors]
    orders = [[k for axis in x.axes for k, d in enumerate(x.dims) if axis in d] for x in tensors]
    if all(order == orders[0] for order in orders) or any(len(d) != 1 for x in tensors for d in x.dims):
        return tensors
    return [walk.moved(x, [x.dims[k][0] for k in orders[0]]) for x in tensors]


def join(walk, tensors, dim):
    tensors = in_one_order(walk, tensors, dim)
    layers, first = [], tensors[0]
    for x in tensors:
        for k, (a, b) in enumerate(zip(first.dims, x.dims)):
            if k != dim and size_of(a) != size_of(b):
                raise Unsupported("a concatenation of %s and %s" % (first.shape, x.shape))
        own = x.dims[dim]
        at = x.axes.index(own[0]) if own else None
        if own and tuple(x.axes[at:at + len(own)]) != own:
            x = walk.whole(x, dim)
            own, at = x.dims[dim], x.axes.index(x.dims[dim][0])
        if not own:
            raise Unsupported("a concatenation along a dimension of size 1")
        before, behind = x.axes[1:at], x.axes[at + len(own):]
        if at == 0:
            raise Unsupported("a concatenation along the batch")
        shape = x.layer.shape
        if len(shape) != len(first.layer.shape) or size_of(own) not in shape[1:] or \
                list(shape) != [a.size for a in x.axes[:at]] + [size_of(own)] + [a.size for a in behind]:
            groups = [x.axes[:1]] + ([before] if before else []) + [list(own)] + ([behind] if behind else [])
            layers.append((walk.arrange(x, groups), 2 if before else 1, (size_of(before), size_of(behind))))
        else:
            walk.must_be_closed(x)
            layers.append((x.layer, at, (size_of(before), size_of(behind))))
    if len({(len(layer.shape), place, around) for layer, place, around in layers}) != 1:
        raise Unsupported("a concatenation of tensors that lie in different orders")
    place = layers[0][1]
    shape = list(layers[0][0].shape)
    shape[place] = sum(layer.shape[place] for layer, _, _ in layers)
    layer = walk.emit("concat", [layer for layer, _, _ in layers], shape, {"axis": place})
    own, joined = first.dims[dim], Axis(shape[place])
    axes = [joined if own and a is own[0] else a for a in first.axes if not own or a not in own[1:]]
    dims = [(joined,) if k == dim else d for k, d in enumerate(first.dims)]
    return Tensor(layer, axes, dims)


def class_token(walk, token, x, dim):
    """One learned row before the first place: cat([token.expand(batch, 1, features), x], 1)."""
    row = [axis for d in token.dims for axis in d if not axis.copied]
    if len(x.dims) != 3 or dim != 1 or token.shape[1] != 1 or size_of(row) != x.shape[2]:
        raise Unsupported("a parameter joined with a tensor", "[batch, 1, features] in front of a sequence is class_token")
    if not x.dims[1]:
        raise Unsupported("a class token before a sequence of one place")
    layer = walk.arrange(x, x.dims)
    shape = (layer.shape[0], layer.shape[1] + 1, layer.shape[2])
    return plain(walk.emit("class_token", [layer], shape, {}, token.layer.params))


# ---- one tensor -------------------------------------------------------------------------------------------------

WORDS = {"hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid"}


@takes("relu", "relu6", "silu", "tanh", "sigmoid", "hardswish", "hardsigmoid", "mish")
def activation(walk, x):
    word = str(walk.node.target).replace("aten.", "").split(".")[0].rstrip("_")
    return walk.alike(WORDS.get(word, word), x)


@takes("leaky_relu")
def leaky_relu(walk, x, slope=0.01):
    return walk.alike("leaky_relu", x, {"slope": float(slope)})


@takes("softplus")
def softplus(walk, x, beta=1, threshold=20):
    if beta != 1:
        raise NotHeld("a softplus with beta %g" % beta)
    if threshold < 20:
        raise NotHeld("a softplus that is linear from %g on" % threshold)
    return walk.alike("softplus", x)


@takes("hardtanh")
def hardtanh(walk, x, low=-1.0, high=1.0):
    if (low, high) != (0, 6):
        raise NotHeld("a hardtanh from %g to %g" % (low, high), "ReLU6")
    return walk.alike("relu6", x)


@takes("gelu")
def gelu(walk, x, approximate="none"):
    return walk.alike("gelu", x, {"approximate": True} if approximate == "tanh" else {})


def in_place(walk):
    """x += y, dropout(x, inplace=True): under execution.as=pytorch the result lies over x."""
    return {"in_place": True} if str(walk.node.target).replace("aten.", "").split(".")[0].endswith("_") else {}


@takes("dropout")
def dropout(walk, x, p, train):
    if not train or p == 0:
        return x
    if x.layer.kind == "scores":
        return scores_with(x, dropout=p)
    return walk.alike("dropout", x, {"rate": p, **in_place(walk)})


def marked(walk, kind, x, **attrs):
    """x on its way to something that is one layer here; whoever else reads it is refused."""
    layer = walk.emit(kind, [x.layer], x.layer.shape, attrs)
    return Tensor(layer, x.axes, x.dims)


@takes("neg")
def neg(walk, x):
    return marked(walk, "negated", x)


@takes("pow")
def power(walk, x, exponent):
    if exponent != 2:
        raise NotHeld("a power of %s" % exponent)
    return marked(walk, "square", x, of=x, epsilon=0.0)


@takes("rsqrt")
def rsqrt(walk, x):
    if x.layer.kind != "square" or not x.layer.attrs.get("mean"):
        raise NotHeld("no layer of headroom does this")
    return marked(walk, "rstd", x, **x.layer.attrs)


def normed(walk, x, y):
    """x * rsqrt(mean(x * x) + epsilon), then times a weight: a root mean square norm that is written out."""
    for a, b in ((x, y), (y, x)):
        if b.layer.kind == "rstd" and b.layer.attrs["of"].layer is a.layer:
            return marked(walk, "normed", a, epsilon=b.layer.attrs["epsilon"])
        if a.layer.kind == "parameter" and b.layer.kind == "normed" and a.shape == b.shape[-1:]:
            source = Tensor(b.layer.inputs[0], b.axes, b.dims)
            layer, _ = walk.rows(source, b.dims[-1])
            out = walk.emit("rms_norm", [layer], layer.shape, {"epsilon": b.layer.attrs["epsilon"]}, a.layer.params)
            return Tensor(out, b.axes, b.dims)
    return None


def turned_halves(walk, tensors):
    """cat((-x[half:], x[:half]), -1) of the heads x, None for another concatenation."""
    if len(tensors) != 2 or tensors[0].layer.kind != "negated" or tensors[1].layer.kind != "slice":
        return None
    second, first = tensors[0].layer.inputs[0], tensors[1].layer
    if second.kind != "slice" or second.inputs != first.inputs or first.attrs["from"] != 0 or \
            second.attrs["from"] != first.attrs["count"] or second.attrs["count"] != first.attrs["count"]:
        return None
    x = tensors[1]
    whole = Axis(2 * first.attrs["count"])
    axes = [whole if axis is x.dims[-1][0] else axis for axis in x.axes]
    layer = walk.emit("half_turned", [first.inputs[0]], first.inputs[0].shape)
    return Tensor(layer, axes, x.dims[:-1] + [(whole,)])


def base_of(cosines, sines, head_dim):
    """The base of the rotary positions that the tables hold, places by features."""
    cosines, sines = (t.reshape(-1, *t.shape[-2:])[0].double() for t in (cosines, sines))
    places, half = cosines.shape[0], head_dim // 2
    if cosines.shape[1] != head_dim or places < 2 or head_dim < 4:
        raise Unsupported("rotary positions of a head of %d features over %d places" % (head_dim, places))
    angle = math.atan2(sines[1, 1].item(), cosines[1, 1].item())
    exact = angle ** -half if angle > 0 else 0.0
    for digits in (2, 3, 4, 5, 6):  # 10000, not 9999.98: the tables are float32
        base = float("%.*g" % (digits, exact))
        turns = torch.arange(places).double()[:, None] * max(base, 1.0) ** (-torch.arange(half).double() / half)
        turns = torch.cat([turns, turns], -1)
        if base > 1 and (turns.cos() - cosines).abs().max() < 1e-2 and (turns.sin() - sines).abs().max() < 1e-2:
            return base
    raise Unsupported("rotary positions other than place * base ** (-2i / features)")


def rotary(walk, x, y):
    """x * cos + turned(x) * sin with tables of both, None for another sum."""
    for a, b in ((x, y), (y, x)):
        if a.layer.kind == b.layer.kind == "times_table" and b.layer.inputs[0].kind == "half_turned":
            source, turned = a.layer.inputs[0], b.layer.inputs[0].inputs[0]
            same = source is turned or (turned.kind == "reshape" and turned.inputs[0] is source)
            if not same:
                return None
            base = base_of(a.layer.attrs["table"], b.layer.attrs["table"], a.shape[-1])
            return marked(walk, "rotary", Tensor(source, a.axes, a.dims), base=base)
    return None


@takes("softmax")
def softmax(walk, x, dim, dtype=None):
    if dim_of(x, dim) != len(x.dims) - 1 or dtype not in (None, torch.float32):
        raise Unsupported("a softmax over another dimension than the last")
    if x.layer.kind == "scores":
        return scores_with(x, softmax=True)
    x = walk.last(x, x.dims[-1])
    if tuple(x.axes[-len(x.dims[-1]):]) != x.dims[-1]:
        raise Unsupported("a softmax over dimensions in another order than in memory")
    return walk.alike("softmax", x)


@takes("log_softmax")
def log_softmax(walk, x, *_):
    if all(user.op == "output" for user in walk.node.users):
        walk.note("the last log_softmax is left out: headroom's cross entropy has its own")
        return x
    raise Unsupported("a log-softmax inside the network")


@takes("layer_norm", "rms_norm")
def norm(walk, x, shape, weight=None, bias=None, eps=None, *_):
    kind = str(walk.node.target).replace("aten.", "").split(".")[0]
    features = [axis for dim in x.dims[len(x.dims) - len(shape):] for axis in dim]
    if weight is None or (kind == "layer_norm" and bias is None):
        raise NotHeld("a norm without a weight%s" % ("" if kind == "rms_norm" else " and a bias"))
    x = walk.last(x, features)
    if kind == "rms_norm":
        eps = bias if eps is None else eps
        eps = torch.finfo(torch.float32).eps if eps is None else eps
    layer, head = walk.rows(x, features)
    params = weight.layer.params + (bias.layer.params if kind == "layer_norm" else [])
    out = walk.emit(kind, [layer], layer.shape, {"epsilon": eps}, params)
    return Tensor(out, x.axes, x.dims)


@takes("batch_norm")
def batch_norm(walk, x, weight, bias, mean, variance, training, momentum, eps, *_):
    if not isinstance(weight, Tensor) or not isinstance(bias, Tensor) or mean is None:
        raise NotHeld("a batch norm without weight, bias or running statistics", "affine=True, track_running_stats=True")
    if not training:
        raise NotHeld("a batch norm with frozen statistics", "module.train()")
    x = walk.last(x, x.dims[1])
    layer, _ = walk.rows(x, x.dims[1])
    out = walk.emit("batch_norm", [layer], layer.shape, {"epsilon": eps, "momentum": momentum},
                    weight.layer.params + bias.layer.params)
    return Tensor(out, x.axes, x.dims)


def grouped(walk, x, groups, weight, bias, eps):
    if not isinstance(weight, Tensor) or not isinstance(bias, Tensor):
        raise NotHeld("a norm without a weight and a bias", "affine=True")
    x = walk.last(x, x.dims[1])
    layer, _ = walk.rows(x, x.dims[1])
    out = walk.emit("group_norm", [layer], layer.shape, {"groups": groups, "epsilon": eps},
                    weight.layer.params + bias.layer.params)
    return Tensor(out, x.axes, x.dims)


@takes("group_norm")
def group_norm(walk, x, groups, weight=None, bias=None, eps=1e-5, *_):
    return grouped(walk, x, groups, weight, bias, eps)


@takes("instance_norm")
def instance_norm(walk, x, weight, bias, mean, variance, own, momentum, eps, *_):
    if mean is not None or not own:
        raise NotHeld("an instance norm with running statistics", "track_running_stats=False")
    return grouped(walk, x, walk.node.args[0].meta["val"].shape[1], weight, bias, eps)


# ---- images -----------------------------------------------------------------------------------------------------

def pair(value, default=None):
    value = [default, default] if value is None or value == [] else value
    return [value, value] if isinstance(value, int) else list(value) if len(value) == 2 else [value[0], value[0]]


def short(values):
    return values[0] if values[0] == values[1] else list(values)


def same_padding(size, kernel, stride, outputs):
    """What `padding: same` puts before and behind, if it gives as many outputs; None otherwise."""
    if outputs != -(-size // stride):
        return None
    total = max((outputs - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def padded(walk, layer, kernel, stride, padding, out):
    """padding's attribute for windows that begin padding before the image, and the layer, with zeros around it if need be."""
    behind = [(out[k] - 1) * stride[k] + kernel[k] - layer.shape[1 + k] - padding[k] for k in (0, 1)]
    same = [same_padding(layer.shape[1 + k], kernel[k], stride[k], out[k]) for k in (0, 1)]
    if padding[0] == padding[1] and all(padding[0] - stride[k] < behind[k] <= padding[0] for k in (0, 1)):
        return ({"padding": padding[0]} if padding[0] else {}), layer
    if all(pads and pads[0] == padding[k] and pads[1] == max(behind[k], 0) for k, pads in enumerate(same)):
        return {"padding": "same"}, layer
    behind = [max(amount, 0) for amount in behind]
    shape = [layer.shape[0]] + [layer.shape[1 + k] + padding[k] + behind[k] for k in (0, 1)] + [layer.shape[3]]
    walk.note("a padding that differs by side is a zero_pad layer of its own, which copies the image: %s" % walk.where())
    return {}, walk.emit("zero_pad", [layer], shape, {"padding": [padding[0], behind[0], padding[1], behind[1]]})


def made_image(layer):
    return plain(layer, [0, 3, 1, 2])


def output_size(walk):
    value = walk.node.meta["val"]
    value = value[0] if isinstance(value, (list, tuple)) else value
    return list(value.shape[2:])


@takes("conv2d")
def conv2d(walk, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    filters, depth, *kernel = weight.shape
    stride, dilation = pair(stride), pair(dilation)
    dilation = [d if k > 1 else 1 for d, k in zip(dilation, kernel)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    if isinstance(padding, str):
        padding = [0, 0] if padding == "valid" else [(r - 1) // 2 for r in reach]
    out = output_size(walk)
    layer = walk.image(x)
    attrs, layer = padded(walk, layer, reach, stride, pair(padding), out)
    attrs = {"kernel": short(kernel), "stride": short(stride), **({"dilation": short(dilation)} if dilation != [1, 1] else {}),
             **attrs, "bias": bias is not None}
    channels = layer.shape[3]
    if groups == channels and groups > 1:
        attrs["multiplier"] = filters // channels
    else:
        attrs = {"filters": filters, **attrs, "groups": groups}
    params = weight.layer.params + (bias.layer.params if bias is not None else [])
    kind = "depthwise_conv2d" if "multiplier" in attrs else "conv2d"
    return made_image(walk.emit(kind, [layer], [layer.shape[0], *out, filters], attrs, params))


# ---- sequences of features, which Conv1d and its kin have in front --------------------------------------------

def one(value, default=None):
    return default if value is None or value == [] else value[0] if isinstance(value, (list, tuple)) else value


def steps(walk, x):
    """The layer of x [batch, features, places], places before features."""
    if len(x.dims) != 3:
        raise Unsupported("needs [batch, channels, length], had %s" % x.shape)
    n, c, length = x.dims
    return walk.arrange(x, [n, length, c])


def ends(walk, size, reach, stride, padding, out):
    """padding's attribute of windows that begin padding places before the first."""
    behind = (out - 1) * stride + reach - size - padding
    if padding - stride < behind <= padding:
        return {"padding": padding} if padding else {}
    same = same_padding(size, reach, stride, out)
    if same and same[0] == padding and same[1] == max(behind, 0):
        return {"padding": "same"}
    raise Unsupported("windows that reach further behind the sequence than its padding", "ceil_mode=False, an odd kernel")


def made_steps(layer):
    return plain(layer, [0, 2, 1])


@takes("conv1d")
def conv1d(walk, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    filters, _, kernel = weight.shape
    stride, dilation = one(stride), one(dilation) if kernel > 1 else 1
    reach, out = (kernel - 1) * dilation + 1, output_size(walk)[0]
    padding = padding if isinstance(padding, str) else one(padding)
    padding = {"valid": 0, "same": (reach - 1) // 2}.get(padding, padding)
    layer = steps(walk, x)
    attrs = {"filters": filters, "kernel": kernel, "stride": stride, **({"dilation": dilation} if dilation > 1 else {}),
             **ends(walk, layer.shape[1], reach, stride, padding, out), "bias": bias is not None, "groups": groups}
    params = weight.layer.params + (bias.layer.params if bias is not None else [])
    return made_steps(walk.emit("conv1d", [layer], [layer.shape[0], out, filters], attrs, params))


def pool1d(walk, kind, x, size, stride, padding, attrs):
    size, padding, out = one(size), one(padding), output_size(walk)[0]
    stride, layer = one(stride) or size, steps(walk, x)
    own = ends(walk, layer.shape[1], size, stride, padding, out)
    if (attrs or own.get("padding") == "same") and (out - 1) * stride + size - layer.shape[1] - padding > padding:
        raise Unsupported("windows that reach further behind the sequence than its padding", "ceil_mode=False")
    attrs = {"size": size, **({"stride": stride} if stride != size else {}), **own, **attrs}
    return made_steps(walk.emit(kind, [layer], [layer.shape[0], out, layer.shape[2]], attrs))


@takes("max_pool1d", "max_pool1d_with_indices")
def max_pool1d(walk, x, size, stride=None, padding=0, dilation=1, ceil=False):
    if one(dilation) != 1:
        raise NotHeld("a dilation of %s" % one(dilation))
    out = pool1d(walk, "max_pool1d", x, size, stride, padding, {})
    return [out, Missing("the places of the maxima")] if "with_indices" in str(walk.node.target) else out


@takes("avg_pool1d")
def avg_pool1d(walk, x, size, stride=None, padding=0, ceil=False, count=True):
    return pool1d(walk, "avg_pool1d", x, size, stride, padding, {"count_padding": True} if count and one(padding) else {})


@takes("conv_transpose2d")
def conv_transpose2d(walk, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    _, filters, *kernel = weight.shape
    stride, padding, more = pair(stride), pair(padding), pair(output_padding)
    if groups != 1 or pair(dilation) != [1, 1]:
        raise NotHeld("a transposed convolution in groups or dilated")
    attrs = {"filters": filters, "kernel": short(kernel), "stride": short(stride), "bias": bias is not None}
    total = [kernel[k] - stride[k] for k in (0, 1)]
    before = [max(amount, 0) // 2 for amount in total]
    if more == [0, 0] and padding[0] == padding[1]:
        attrs["padding"] = padding[0]
    elif before == padding and all(padding[k] - more[k] == total[k] - before[k] for k in (0, 1)):
        attrs["padding"] = "same"
    else:
        raise Unsupported("a transposed convolution with padding %s and output_padding %s" % (padding, more),
                          "kernel 2 and stride 2, or kernel 4, stride 2 and padding 1")
    layer = walk.image(x)
    params = weight.layer.params + (bias.layer.params if bias is not None else [])
    shape = [layer.shape[0], *output_size(walk), filters]
    return made_image(walk.emit("conv2d_transpose", [layer], shape, attrs, params))


def pool(walk, kind, x, size, stride, padding, attrs=None):
    size, padding = pair(size), pair(padding)
    stride, out = pair(stride, 0), output_size(walk)
    stride = size if stride == [0, 0] else stride
    layer = walk.image(x)
    ends = [(out[k] - 1) * stride[k] + size[k] - layer.shape[1 + k] - padding[k] for k in (0, 1)]
    own, with_zeros = padded(walk, layer, size, stride, padding, out)
    counted = (attrs or {}).get("count_padding") and any(end > pad for end, pad in zip(ends, padding))
    if with_zeros is not layer or counted:  # zeros would be maxima, or would count in the mean
        raise Unsupported("windows that reach further behind the image than its padding", "ceil_mode=False, padding alike on all sides")
    attrs = {"size": short(size), "stride": short(stride), **own, **(attrs or {})}
    attrs = {key: value for key, value in attrs.items() if key != "stride" or stride != size}
    return made_image(walk.emit(kind, [layer], [layer.shape[0], *out, layer.shape[3]], attrs))


@takes("max_pool2d", "max_pool2d_with_indices")
def max_pool2d(walk, x, size, stride=None, padding=0, dilation=1, ceil=False):
    if pair(dilation) != [1, 1]:
        raise NotHeld("a dilation of %s" % short(pair(dilation)))
    out = pool(walk, "max_pool", x, size, stride, padding)
    return [out, Missing("the places of the maxima")] if "with_indices" in str(walk.node.target) else out


@takes("avg_pool2d")
def avg_pool2d(walk, x, size, stride=None, padding=0, ceil=False, count=True, divisor=None):
    if divisor is not None:
        raise NotHeld("a divisor of its own")
    counted = {"count_padding": True} if count and pair(padding) != [0, 0] else {}
    return pool(walk, "avg_pool", x, size, stride, padding, counted)


@takes("adaptive_avg_pool2d")
def adaptive_avg_pool2d(walk, x, size):
    have, want = x.shape[2:], output_size(walk)
    if want == [1, 1]:
        return mean(walk, x, [2, 3], True)
    if have == want:
        return pool(walk, "avg_pool", x, [1, 1], None, 0)  # what autograd keeps of it is kept
    if any(h % w for h, w in zip(have, want)):
        layer = walk.image(x)
        return made_image(walk.emit("avg_pool", [layer], [layer.shape[0], *want, layer.shape[3]], {"to": short(want)}))
    return pool(walk, "avg_pool", x, [h // w for h, w in zip(have, want)], None, 0)


@takes("mean", "adaptive_avg_pool1d", "sum")
def mean(walk, x, dims=None, keep=False, dtype=None):  # check_types has looked at dtype
    name = str(walk.node.target)
    dims = list(range(len(x.dims))) if dims is None else [len(x.dims) - 1] if "pool1d" in name else dims
    dims = sorted(dim_of(x, dim) for dim in ([dims] if isinstance(dims, int) else dims))
    keep = keep or "pool1d" in name
    gone = [axis for dim in dims for axis in x.dims[dim]]
    if x.layer.kind == "square" and dims == [len(x.dims) - 1] and keep and "mean" in name:
        return Tensor(marked(walk, "square", x, **{**x.layer.attrs, "mean": True}).layer, x.axes, x.dims)
    if dims[0] == 0 or walk.node.meta["val"].dim() == 0:
        raise Unsupported("a mean or sum over the batch", "return the predictions: headroom has the losses")
    if not gone:
        layer = x.layer
    elif len(x.dims) == 4 and dims == [2, 3] and "sum" not in name and x.axes == [a for k in (0, 2, 3, 1) for a in x.dims[k]]:
        image = walk.image(x)
        layer = walk.emit("global_avg_pool", [image], [image.shape[0], image.shape[3]])
    else:
        at = x.axes.index(gone[0])
        if x.axes[at:at + len(gone)] != gone or len(x.axes) == len(gone) + 1:
            raise Unsupported("a mean or sum over dimensions that do not lie next to each other")
        before, behind = x.axes[1:at], x.axes[at + len(gone):]
        inner = walk.arrange(x, [x.axes[:1]] + ([before] if before else []) + [gone] + ([behind] if behind else []))
        place = 2 if before else 1
        shape = [size for k, size in enumerate(inner.shape) if k != place]
        layer = walk.emit("reduce", [inner], shape, {"axis": place, "of": "sum" if "sum" in name else "mean"})
    left = [() if k in dims else d for k, d in enumerate(x.dims) if keep or k not in dims]
    return Tensor(layer, [axis for axis in x.axes if axis not in gone], left)


@takes("upsample_nearest2d")
def upsample(walk, x, size, *scales):
    have, want = x.shape[2:], output_size(walk)
    if any(w % h for h, w in zip(have, want)):
        raise Unsupported("an upsampling from %s to %s, which is no whole multiple" % (have, want))
    given = [scale for scale in every(list(scales)) if scale is not None]
    if given and any(h * scale != w for h, w, scale in zip(have, want, given)):
        raise Unsupported("an upsampling by %s, which is no whole multiple" % given)
    layer = walk.image(x)
    factors = short([w // h for h, w in zip(have, want)])
    return made_image(walk.emit("upsample", [layer], [layer.shape[0], *want, layer.shape[3]], {"size": factors}))


@takes("upsample_bilinear2d")
def resize(walk, x, size, corners, *scales):
    have, want = x.shape[2:], output_size(walk)
    given = [scale for scale in every(list(scales)) if scale is not None]
    if not corners and given and any(h * scale != w for h, w, scale in zip(have, want, given)):
        raise Unsupported("an upsampling by %s of %s, which gives no whole number of pixels" % (given, have),
                          "recompute_scale_factor=True, or the size of the result instead of a factor")
    layer, whole = walk.image(x), not any(w % h for h, w in zip(have, want))
    by = {"size": short([w // h for h, w in zip(have, want)])} if whole else {"to": short(want)}
    attrs = {**by, "mode": "bilinear", **({"align_corners": True} if corners else {})}
    return made_image(walk.emit("upsample", [layer], [layer.shape[0], *want, layer.shape[3]], attrs))


@takes("pad", "constant_pad_nd")
def pad(walk, x, amounts, mode="constant", value=0):
    mode, value = ("constant", mode) if not isinstance(mode, str) else (mode, value or 0)
    if all(amount == 0 for amount in amounts):
        return x
    if mode != "constant" or value != 0 or len(amounts) not in (2, 4) or min(amounts) < 0:
        raise Unsupported("a padding other than zeros around an image")
    left, right, top, bottom = (list(amounts) + [0, 0])[:4]
    layer = walk.image(x)
    n, h, w, c = layer.shape
    return made_image(walk.emit("zero_pad", [layer], [n, h + top + bottom, w + left + right, c],
                                {"padding": [top, bottom, left, right]}))


def image_or_rows(walk, x, dims):
    """An image's layer, whose height and width are these dimensions, and what makes a tensor of a layer like it."""
    if len(x.dims) == 4 and sorted(dims) == [2, 3]:
        return walk.image(x), made_image
    if len(x.dims) == 4 and sorted(dims) == [1, 2]:
        return walk.arrange(x, x.dims), plain
    raise Unsupported("over other dimensions than an image's height and width")


@takes("roll")
def roll(walk, x, shifts, dims=()):
    shifts, dims = [list(every(value)) for value in (shifts, dims)]
    dims = [dim_of(x, dim) for dim in dims]
    if len(dims) == 1:
        if dims[0] == 0:
            raise Unsupported("a roll of the batch")
        other = {1: 2, 2: 1 if x.axes == in_dims(x) else 3, 3: 2}[dims[0]]
        shifts, dims = shifts + [0], dims + [other]
    layer, made = image_or_rows(walk, x, dims)
    by_place = [shift for _, shift in sorted(zip(dims, shifts))]
    return made(walk.emit("roll", [layer], layer.shape, {"shift": short(by_place)}))


@takes("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
def pixel_shuffle(walk, x, factor):
    kind = str(walk.node.target).replace("aten.", "").split(".")[0]
    layer, value = walk.image(x), walk.node.meta["val"]
    attrs = {"groups": factor} if kind == "channel_shuffle" else {"size": factor}
    return made_image(walk.emit(kind, [layer], [value.shape[k] for k in (0, 2, 3, 1)], attrs))


# ---- two tensors ------------------------------------------------------------------------------------------------

def constant_of(y):
    """The number that y is everywhere, None when it is a tensor or differs."""
    if isinstance(y, torch.Tensor) and y.device.type != "meta" and y.numel() > 0 and bool((y == y.flatten()[0]).all()):
        return y.flatten()[0].item()
    return y if isinstance(y, (int, float)) else None


def both(walk, kind, x, y):
    if kind == "multiply" and isinstance(y, Tensor) and "parameter" in (x.layer.kind, y.layer.kind):
        return channel_scale(walk, *((x, y) if y.layer.kind == "parameter" else (y, x)))
    if not isinstance(y, Tensor):
        raise Unsupported("a constant tensor in %s" % ("a sum" if kind == "add" else "a product"))
    if kind == "multiply" and x.shape != y.shape:
        return gated(walk, *((x, y) if math.prod(x.shape) > math.prod(y.shape) else (y, x)))
    if x.shape != y.shape:
        raise NotHeld("needs two tensors of one shape, had %s and %s" % (x.shape, y.shape))
    walk.must_be_closed(x)
    walk.must_be_closed(y)
    if is_expanded(x) or is_expanded(y):
        raise Unsupported("works on an expanded tensor, which headroom's layers would have to copy")
    x, y = aligned(walk, x, y)
    attrs = in_place(walk) if kind == "add" else {}
    layer = walk.emit(kind, [x.layer, walk.reshaped(y.layer, x.layer.shape)], x.layer.shape, attrs)
    return Tensor(layer, x.axes, x.dims)


def gated(walk, x, gate):
    """Squeeze and excite: a factor for each channel of each sample, [batch, channels] against the last axis in memory."""
    if len(x.dims) != len(gate.dims) or len(x.dims) < 3 or gate.layer.kind == "parameter":
        raise NotHeld("a product of %s and %s" % (x.shape, gate.shape))
    walk.must_be_closed(x)
    walk.must_be_closed(gate)
    channels = next((k for k, dim in enumerate(x.dims) if dim and list(dim) == x.axes[-len(dim):]), None)
    if not channels or [size for size in gate.shape if size > 1] != [x.shape[0], x.shape[channels]] or \
            gate.shape[channels] != x.shape[channels] or x.layer.shape[-1] != x.shape[channels]:
        raise NotHeld("a product of %s and %s, which is no factor for each channel" % (x.shape, gate.shape))
    factors = gate.layer
    if factors.shape[-1] != x.shape[channels] or math.prod(factors.shape[1:]) != factors.shape[-1]:
        factors = walk.arrange(gate, [gate.dims[0], gate.dims[channels]])
    layer = walk.emit("multiply", [x.layer, factors], x.layer.shape)
    return Tensor(layer, x.axes, x.dims)


def channel_scale(walk, x, scale):
    """A learned factor for each channel."""
    dims = [()] * (len(x.dims) - len(scale.dims)) + scale.dims
    channels = next((k for k, dim in enumerate(dims) if dim), None)
    if scale.layer.kind != "parameter" or len(scale.axes) != 1 or len(dims) != len(x.dims) or not channels or \
            dims[channels] != tuple(scale.axes) or size_of(x.dims[channels]) != scale.axes[0].size or \
            list(x.dims[channels]) != x.axes[-len(x.dims[channels]):]:
        raise Unsupported("a product with a parameter other than a factor for each channel")
    layer, _ = walk.rows(x, x.dims[channels])
    return Tensor(walk.emit("layer_scale", [layer], layer.shape, {}, scale.layer.params), x.axes, x.dims)


@takes("add")
def add(walk, x, y, alpha=1):
    x, y = (x, y) if isinstance(x, Tensor) else (y, x)
    if alpha != 1:
        raise NotHeld("a sum with alpha %g" % alpha)
    if constant_of(y) == 0:
        return x
    if isinstance(y, Tensor) and {x.layer.kind, y.layer.kind} == {"scores", "biases"}:
        return biased(*((x, y) if y.layer.kind == "biases" else (y, x)))
    if x.layer.kind == "biases" and isinstance(y, torch.Tensor):
        return hidden(x, places_seen(y))
    if x.layer.kind == "scores" and isinstance(y, torch.Tensor) and "window" in (x.layer.attrs["bias"] or x.layer).attrs:
        return masked_windows(x, y)
    if x.layer.kind == "scores":
        return masked(x, places_seen(y))
    if x.layer.kind == "square" and constant_of(y) is not None:
        return marked(walk, "square", x, **{**x.layer.attrs, "epsilon": constant_of(y)})
    turned = rotary(walk, x, y) if isinstance(y, Tensor) else None
    if turned:
        return turned
    if constant_of(y) is not None:
        raise Unsupported("a sum with the number %g" % constant_of(y))
    if isinstance(y, Tensor) and "parameter" in (x.layer.kind, y.layer.kind):
        return position_embedding(walk, *((x, y) if y.layer.kind == "parameter" else (y, x)))
    return both(walk, "add", x, y)


def position_embedding(walk, x, table):
    """x + table, a row for each place of a sequence."""
    rows = [axis for dim in table.dims for axis in dim if not axis.copied]
    if table.layer.kind != "parameter" or len(table.axes) != 2 or rows != table.axes or \
            [size_of(dim) for dim in x.dims[1:]] != [axis.size for axis in rows]:
        raise Unsupported("a sum with a parameter", "[1, places, features] of as many places as the example is position_embedding")
    layer = walk.arrange(x, x.dims)
    return Tensor(walk.emit("position_embedding", [layer], layer.shape, {}, table.layer.params), x.axes, x.dims)


@takes("mul", "div")
def multiply(walk, x, y, rounding_mode=None):
    if rounding_mode is not None:
        raise NotHeld("a quotient with rounding_mode=%r" % rounding_mode)
    x, y = (x, y) if isinstance(x, Tensor) else (y, x)
    divides = str(walk.node.target).startswith("aten.div")
    factor = constant_of(y)
    if isinstance(y, Noise) and not divides:
        return without_noise(walk, x, y)
    if isinstance(y, Tensor) and y.layer is x.layer and not divides:
        return marked(walk, "square", x, of=x, epsilon=0.0)
    norm_of = normed(walk, x, y) if isinstance(y, Tensor) and not divides else None
    if norm_of:
        return norm_of
    if isinstance(y, torch.Tensor) and factor is None and not divides and len(x.dims) == 4 and y.dim() >= 2:
        return marked(walk, "times_table", x, table=y)
    if factor is None and not divides:
        return both(walk, "multiply", x, y)
    if not factor or (divides and not isinstance(walk.value(walk.node.args[0]), Tensor)):
        raise Unsupported("a quotient" if divides else "a product with 0")
    factor = 1 / factor if divides else factor
    if x.layer.kind == "scores":
        if x.layer.attrs["bias"]:
            raise Unsupported("scores that are multiplied behind their bias", "the factor before it")
        return scores_with(x, scale=x.layer.attrs["scale"] * factor)
    return x if factor == 1 else walk.alike("scale", x, {"factor": factor})


def without_noise(walk, x, noise):
    """Stochastic depth: each sample's branch by 0 or 1 / keep. Left out are factors of another kind, which no layer draws."""
    shape = next(a.meta["val"].shape for a in walk.node.args if walk.value(a) is noise)
    if list(shape[:1]) != [walk.batch] or math.prod(shape) != walk.batch or len(shape) != len(x.dims):
        raise Unsupported("random factors other than one for each sample", "take the noise out for the export")
    if noise.keep and noise.factor and math.isclose(noise.keep * noise.factor, 1.0):
        rate = float("%.10g" % (1 - noise.keep))
        return walk.alike("stochastic_depth", x, {"rate": rate}) if rate > 0 else x
    walk.note("random factors of samples are left out: branches that PyTorch drops at random always count")
    return x


@takes("new_empty", "new_zeros", "new_ones", "new_full", "empty_like", "zeros_like", "ones_like", "full_like")
def constant_like(walk, x, *args, **kwargs):
    shape = list(walk.node.meta["val"].shape)
    if math.prod(shape) > 1 << 26:
        raise Unsupported("a constant of %d elements" % math.prod(shape))
    example = torch.empty(shape, dtype=walk.node.meta["val"].dtype)
    if "full" in str(walk.node.target):
        return example.fill_(args[-1])
    return example.fill_(1 if "ones" in str(walk.node.target) else 0)


# ---- dense, embeddings, recurrence ------------------------------------------------------------------------------

@takes("linear")
def linear(walk, x, weight, bias=None):
    return dense(walk, x, permute_last(weight), bias)


def permute_last(x):
    return Tensor(x.layer, x.axes, x.dims[:-2] + [x.dims[-1], x.dims[-2]])


def dense(walk, x, weight, bias):
    """weight: [features, units]"""
    if not isinstance(x, Tensor) or weight.layer.kind != "parameter" or (bias is not None and bias.layer.kind != "parameter"):
        raise Unsupported("a dense layer of a constant, or of a weight that is no parameter as it is")
    params = weight.layer.params + (bias.layer.params if bias is not None else [])
    units = weight.shape[1]
    if x.layer.kind == "heads" and "window" in x.layer.attrs:
        return window_attention(walk, x, units, params, bias is not None)
    if x.layer.kind == "heads":
        return attention(walk, x, units, params, bias is not None)
    x = walk.last(x, x.dims[-1])
    layer, head = walk.rows(x, x.dims[-1])
    out = walk.emit("dense", [layer], (*layer.shape[:-1], units), {"units": units, "bias": bias is not None}, params)
    out.made_of = weight.dims[0] == tuple(weight.axes[1:])  # stored [units, features], as nn.Linear has it
    out.places = [x.dims[-1].index(axis) for axis in x.axes[len(head):]], [axis.size for axis in x.dims[-1]]
    features = [Axis(units)] if units > 1 else []
    return Tensor(out, head + features, x.dims[:-1] + [features])


@takes("addmm")
def addmm(walk, bias, x, weight, beta=1, alpha=1):
    if (beta, alpha) != (1, 1):
        raise NotHeld("a dense layer with beta %g and alpha %g" % (beta, alpha))
    return dense(walk, x, weight, bias)


@takes("embedding")
def embedding(walk, weight, ids, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if scale_grad_by_freq or sparse:
        raise NotHeld("an embedding with %s" % " and ".join(
            word + "=True" for word, on in (("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse)) if on))
    if weight.layer.kind != "parameter":
        raise Unsupported("a table that is not a parameter as it is")
    if not isinstance(ids, Tensor):
        return biases_of(weight, ids) or rows_in_order(weight, ids)
    if ids.layer.kind != "input":
        raise Unsupported("ids that are no input of the model")
    if padding_idx >= 0:
        walk.note("row %d of `%s` (padding_idx) gets no gradient in PyTorch, and does here" % (padding_idx, weight.layer.name))
    ids.layer.attrs["classes"] = max(ids.layer.attrs["classes"], weight.shape[0])
    units = Axis(weight.shape[1])
    layer = walk.emit("embedding", [ids.layer], (*ids.layer.shape, units.size),
                      {"units": units.size, "vocabulary": weight.shape[0]}, weight.layer.params)
    return Tensor(layer, ids.axes + [units], ids.dims + [(units,)])


def buckets_of(distance, rows, most, causal):
    """T5's row for each distance of key less query (Raffel et al. 2020)."""
    behind, row = distance.clamp(max=0).neg(), torch.zeros_like(distance)
    if not causal:
        rows //= 2
        behind, row = distance.abs(), (distance > 0) * rows
    exact = rows // 2
    far = exact + (torch.log(behind.clamp(min=1).float() / exact) / math.log(most / exact) * (rows - exact)).long()
    return row + torch.where(behind < exact, behind, far.clamp(max=rows - 1))


def biases_of(weight, ids):
    """[queries, keys, heads], where rows are looked up by the distances of two sequences' places; None where they are not."""
    rows, heads = weight.shape
    if ids.device.type == "meta" or ids.dim() < 2 or math.prod(ids.shape[:-2]) != 1 or rows < 4:
        return None
    found = ids.reshape(ids.shape[-2:])
    queries, keys = found.shape
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    for causal in (False, True):
        half = (rows if causal else rows // 2) // 2
        for most in [128, *range(half + 1, 1025)]:
            if most > half and bool((buckets_of(distance, rows, most, causal) == found).all()):
                layer = Layer("biases", None, [], (), {"heads": heads, "buckets": rows, "distance": most, "causal": causal,
                                                       "params": weight.layer.params, "places": (queries, keys), "hides": False})
                q, k, h = [(axis,) if axis.size > 1 else () for axis in map(Axis, (queries, keys, heads))]
                return Tensor(layer, [*h, *q, *k], [()] * (ids.dim() - 2) + [q, k, h])
    return None


def window_rows(height, width):
    """Swin's row for each pair of a window's pixels (Liu et al. 2021)."""
    down, right = torch.arange(height), torch.arange(width)
    down = down[:, None, None, None] - down[None, None, :, None] + height - 1
    right = right[None, :, None, None] - right[None, None, None, :] + width - 1
    return (down * (2 * width - 1) + right).reshape(height * width, height * width)


@takes("index")
def index(walk, table, indices):
    """Rows of a table by the distances of a window's pixels, as [pairs, heads] or [queries, keys, heads]."""
    ids = indices[0] if len(indices) == 1 else None
    if table.layer.kind != "parameter" or len(table.dims) != 2 or not isinstance(ids, torch.Tensor) or ids.device.type == "meta":
        raise NotHeld("no layer of headroom does this")
    area, (rows, heads) = math.isqrt(ids.numel()), table.shape
    for height in range(1, area + 1):
        width = area // height
        if height * width == area and (2 * height - 1) * (2 * width - 1) == rows and area * area == ids.numel() and \
                bool((window_rows(height, width).reshape(ids.shape) == ids).all()):
            layer = Layer("biases", None, [], (), {"heads": heads, "window": [height, width], "params": table.layer.params,
                                                   "places": (area, area), "hides": False})
            q, k, h = [(axis,) if axis.size > 1 else () for axis in map(Axis, (area, area, heads))]
            return Tensor(layer, [*h, *q, *k], [q + k, h] if ids.dim() == 1 else [q, k, h])
    raise NotHeld("a look-up of rows that are no distances of a window's pixels")


def rows_in_order(weight, ids):
    """The table itself, where the places of a sequence are looked up."""
    if ids.device.type == "meta":
        raise Unsupported("a look-up of ids without values", "build the module on the CPU")
    flat = ids.reshape(-1, ids.shape[-1])
    if not bool((flat == torch.arange(ids.shape[-1])).all()):
        raise Unsupported("a look-up of ids that are no input and do not count 0, 1, …", "make them an input of forward")
    if ids.shape[-1] != weight.shape[0]:
        raise Unsupported("positions up to %d of a table of %d" % (ids.shape[-1], weight.shape[0]),
                          "give an example of %d places" % weight.shape[0])
    lead = [(Axis(size, copied=True),) if size > 1 else () for size in ids.shape[:-1]]
    return Tensor(weight.layer, weight.axes, lead + weight.dims)


@takes("lstm")
def lstm(walk, x, states, weights, biases, count, rate, train, both_ways, batch_first):
    if both_ways or not biases or len(weights) != 4 * count:
        raise NotHeld("an LSTM that runs both ways, has no biases or has projections", "nn.LSTM(features, units, batch_first=True)")
    if any(isinstance(state, Tensor) or constant_of(state) != 0 for state in states):
        raise Unsupported("a carried state of an LSTM", "leave the state out of the call")
    places, batch = (1, 0) if batch_first else (0, 1)
    layer = walk.arrange(x, [x.dims[batch], x.dims[places], x.dims[2]])
    for k in range(count):
        units = weights[4 * k + 1].shape[1]
        params = [name for weight in weights[4 * k:4 * k + 4] for name in weight.layer.params]
        layer = walk.emit("lstm", [layer], (*layer.shape[:2], units), {"units": units}, params)
        layer.attrs["left_out"] = 4 * units
        if rate > 0 and train and k < count - 1:
            layer = walk.emit("dropout", [layer], layer.shape, {"rate": rate})
    walk.note("an LSTM here has one bias of 4 * units where PyTorch has two: %d parameters fewer" % (4 * units * count))
    out = plain(layer, [0, 1, 2] if batch_first else [1, 0, 2])
    if count > 1:
        states = Missing("the last states of an LSTM of several layers", "out[:, -1]")
    else:
        last = select(walk, out, places, -1)
        states = Tensor(last.layer, last.axes, [()] + last.dims)
    return [out, states, Missing("the last cells of an LSTM")]


@takes("gru")
def gru(walk, x, state, weights, biases, count, rate, train, both_ways, batch_first):
    if both_ways or not biases or len(weights) != 4 * count:
        raise NotHeld("a GRU that runs both ways or has no biases", "nn.GRU(features, units, batch_first=True)")
    if isinstance(state, Tensor) or constant_of(state) != 0:
        raise Unsupported("a carried state of a GRU", "leave the state out of the call")
    places, batch = (1, 0) if batch_first else (0, 1)
    layer = walk.arrange(x, [x.dims[batch], x.dims[places], x.dims[2]])
    for k in range(count):
        units = weights[4 * k + 1].shape[1]
        params = [name for weight in weights[4 * k:4 * k + 4] for name in weight.layer.params]
        layer = walk.emit("gru", [layer], (*layer.shape[:2], units), {"units": units}, params)
        if rate > 0 and train and k < count - 1:
            layer = walk.emit("dropout", [layer], layer.shape, {"rate": rate})
    out = plain(layer, [0, 1, 2] if batch_first else [1, 0, 2])
    if count > 1:
        return [out, Missing("the last states of a GRU of several layers", "out[:, -1]")]
    last = select(walk, out, places, -1)
    return [out, Tensor(last.layer, last.axes, [()] + last.dims)]


# ---- attention --------------------------------------------------------------------------------------------------

@takes("scaled_dot_product_attention")
def sdpa(walk, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if isinstance(attn_mask, Tensor) and attn_mask.layer.kind == "biases":
        walk.note("attention with a bias by relative position is held with its scores")
        of = in_order(attn_mask)
        return attend(walk, q, k, v, {"causal": is_causal or of.attrs["hides"], "dropout": dropout_p, "scale": scale,
                                      "form": "materialised", "bias": of})
    if attn_mask is not None and not isinstance(attn_mask, torch.Tensor):
        raise Unsupported("a mask that is no constant", "leave padding masks out: every place counts")
    if attn_mask is not None:
        is_causal = is_causal or mask_is_causal(places_seen(attn_mask))
    return attend(walk, q, k, v, {"causal": is_causal, "dropout": dropout_p, "scale": scale, "packed": is_packed(walk)})


def is_packed(walk):
    """Copies around its products, as PyTorch's own module of attention has them."""
    stack = walk.node.meta.get("nn_module_stack") or {}
    return any("MultiheadAttention" in str(kind) and "torch" in str(kind) for _, kind in stack.values())


def places_seen(mask):
    """Of booleans, or of what is added to scores: 0 where a place counts, a large negative number where it does not."""
    if not isinstance(mask, torch.Tensor) or mask.device.type == "meta" or mask.dtype == torch.bool:
        return mask
    seen = mask == 0
    if not bool((seen | (mask <= -1e4)).all()):
        raise Unsupported("scores with a bias of their own, as ALiBi adds it")
    return seen


def mask_is_causal(seen):
    """What each place may see, as booleans; all: no mask."""
    if not isinstance(seen, torch.Tensor) or seen.device.type == "meta" or seen.dim() < 2:
        raise Unsupported("a mask that is no constant", "leave padding masks out: every place counts")
    rows, columns = seen.shape[-2:]
    if bool(seen.all()):
        return False
    lower = torch.ones(rows, columns, dtype=torch.bool).tril()
    if rows != columns or not bool((seen == lower).all()):
        raise Unsupported("a mask that is neither causal nor empty")
    return True


def by_head(walk, x):
    """[batch, heads, places, features], also where batch and heads are one dimension."""
    if len(x.dims) == 3 and len(x.dims[0]) > 1 and x.axes and x.dims[0][0] is x.axes[0]:
        return Tensor(x.layer, x.axes, [x.dims[0][:1], x.dims[0][1:], *x.dims[1:]])
    if len(x.dims) != 4:
        raise Unsupported("needs [batch, heads, places, features], had %s" % x.shape)
    return x


def in_windows(x, window):
    """Axes of [windows, heads, places, features] as an image has them, and how many rows of windows there are."""
    (n, *grid), _, places, _ = x.dims
    high = list(places[:1] if window[0] > 1 else [])
    wide = list(places[len(high):])
    by_place = sorted((axis for axis in (*grid, *places) if axis in x.axes), key=x.axes.index)
    for count in range(len(grid) + 1):
        if by_place == [*grid[:count], *high, *grid[count:], *wide] and len(grid) <= 2 and max(count, len(grid) - count) <= 1 and \
                [axis.size for axis in places] == [size for size in window if size > 1]:
            return [n, *by_place], size_of(grid[:count])
    raise Unsupported("windows in another order than Swin's",
                      "windows row by row, and the places of each row by row, of the size that the table of biases is for")


def projection(walk, x, window=None):
    """The dense layer whose features the heads are, how many, and what was done to them on the way."""
    n, heads, places, features = x.dims
    own = [axis for axis in heads if not axis.copied]
    if x.axes != [*(in_windows(x, window)[0] if window else [*n, *places]), *own, *features] or list(heads)[:len(own)] != own:
        raise Unsupported("heads that are no part of a dense layer's features")
    layer, found = x.layer, {"factor": 1.0, "rotary": 0.0, "norm": None, "heads": size_of(own)}
    while layer.kind in ("slice", "reshape", "scale", "rotary", "rms_norm"):
        found["factor"] *= layer.attrs.get("factor", 1.0)
        found["rotary"] = layer.attrs.get("base", found["rotary"])
        if layer.kind == "rms_norm":
            found["norm"] = layer
        layer = layer.inputs[0]
    if layer.kind != "dense":
        raise Unsupported("queries, keys or values that a %s layer gives" % layer.kind,
                          "attention with its projections next to it: a dense layer before, one behind")
    if found["norm"] and found["norm"].shape[-1] != size_of(features):
        raise Unsupported("a norm over all heads", "a norm of each head")
    return {**found, "dense": layer}


def norm_and_rotary(found):
    """Attributes, and the parameters of the norms; queries and keys have both, values neither."""
    q, k, v = found
    if q["rotary"] != k["rotary"] or v["rotary"] or v["norm"] or bool(q["norm"]) != bool(k["norm"]):
        raise Unsupported("rotary positions or norms of some of queries, keys and values")
    attrs = {"rotary": q["rotary"]} if q["rotary"] else {}
    if q["norm"]:
        if q["norm"].attrs["epsilon"] != k["norm"].attrs["epsilon"]:
            raise Unsupported("norms of queries and keys with different epsilons")
        attrs["qk_norm_epsilon"] = q["norm"].attrs["epsilon"]
    return attrs, [name for one in (q, k) if one["norm"] for name in one["norm"].params]


def attend(walk, q, k, v, attrs):
    q, k, v = (by_head(walk, x) for x in (q, k, v))
    head_dim = q.shape[3]
    window = (attrs["bias"].attrs if attrs.get("bias") else {}).get("window")
    found = [projection(walk, x, window) for x in (q, k, v)]
    layers = [one["dense"] for one in found]
    heads, kv_heads = found[0]["heads"], found[1]["heads"]
    scale = (attrs["scale"] or 1 / math.sqrt(head_dim)) * found[0]["factor"] * found[1]["factor"]
    if scale <= 0 or found[2]["factor"] != 1:
        raise Unsupported("scores multiplied by %g, values by %g" % (scale, found[2]["factor"]))
    usual = math.isclose(scale, 1 / math.sqrt(head_dim), rel_tol=1e-5)
    bias = attrs.get("bias")
    if bias and (bias.attrs["heads"] != heads or bias.attrs["places"] != (q.shape[2], k.shape[2])):
        raise Unsupported("a bias of other heads or places than its scores")
    units = sum(layer.attrs["units"] for layer in dict.fromkeys(layers))
    if units != (heads + 2 * kv_heads) * head_dim or found[2]["heads"] != kv_heads or v.shape[3] != head_dim:
        raise Unsupported("projections of %d features for %d heads of %d" % (units, heads, head_dim))
    more, params = norm_and_rotary(found)
    own = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "causal": attrs["causal"], "dropout": attrs["dropout"],
           "form": attrs.get("form", "streaming"), "packed": attrs.get("packed") or ("views" if len(set(layers)) == 1 else False), **more,
           **({} if usual else {"scale": scale}), "layers": layers, "sources": [q.layer, k.layer, v.layer], "biases": bias}
    if window:
        return attend_windows(walk, q, own, attrs["torn"])
    batch, places = q.shape[0], q.shape[2]
    made = walk.emit("heads", [], (batch, places, heads * head_dim), own, params)
    axes = [Axis(batch), Axis(places), Axis(heads), Axis(head_dim)]
    n, p, h, f = [(axis,) if axis.size > 1 else () for axis in axes]
    return Tensor(made, [axis for axis in axes if axis.size > 1], [n, h, p, f])


def attend_windows(walk, q, own, torn_apart):
    """Heads of windows, as they lie in their image; torn_apart: the mask of an image that was rolled, None for another."""
    layers, window = own["layers"], own["biases"].attrs["window"]
    (grid, rows), image = in_windows(q, window), layers[0].inputs[0].shape
    shift = [0, 0] if torn_apart is None else rolled_by(window, rows, torn_apart)
    plain_heads = own["kv_heads"] == own["heads"] and not own["causal"] and not {"rotary", "qk_norm_epsilon", "scale"} & set(own)
    if len(image) != 4 or not plain_heads or own["head_dim"] * own["heads"] != image[3] or \
            any(layer.inputs[0] is not layers[0].inputs[0] for layer in layers):
        raise Unsupported("attention within windows other than Swin's")
    size = {"heads": own["heads"], "size": short(window), "shift": short(shift), "dropout": own["dropout"]}
    made = walk.emit("heads", [], (*image[:3], image[3]), {**size, "window": True, "layers": layers, "sources": own["sources"],
                                                                   "biases": own["biases"]})
    heads, features = Axis(own["heads"]), Axis(own["head_dim"])
    h, f = [(axis,) if axis.size > 1 else () for axis in (heads, features)]
    return Tensor(made, [*grid, *h, *f], [q.dims[0], h, q.dims[2], f])


def window_attention(walk, x, units, params, bias):
    """Heads of windows and the dense layer behind them are one layer."""
    attrs, shape = dict(x.layer.attrs), x.layer.shape
    layers, sources, biases = attrs.pop("layers"), attrs.pop("sources"), attrs.pop("biases")
    del attrs["window"]
    if list(x.dims[-1]) != x.axes[-len(x.dims[-1]):] or size_of(x.dims[-1]) != shape[3] or units != shape[3]:
        raise Unsupported("a dense layer over a part of the heads, or of another width than the image")
    if any(layer.attrs["bias"] != bias for layer in layers):
        raise Unsupported("biases in some of the four projections", "all with a bias, or none")
    own = [name for layer in dict.fromkeys(layers) for name in layer.params] + biases.attrs["params"]
    out = Layer("window_attention", x.layer.module[0] or "window_attention", [layers[0].inputs[0]], shape, {**attrs, "bias": bias},
                own + params)
    out.made_of = sources
    walk.layers.append(out)
    features = Axis(units)
    return Tensor(out, [a for a in x.axes if a not in x.dims[-1]] + [features], x.dims[:-1] + [(features,)])


def attention(walk, x, units, params, bias):
    """Heads and the dense layer behind them are one layer."""
    attrs = dict(x.layer.attrs)
    layers, sources_of, biases = attrs.pop("layers"), attrs.pop("sources"), attrs.pop("biases")
    batch, places, features = x.layer.shape
    if x.axes[-len(x.dims[-1]):] != list(x.dims[-1]) or size_of(x.dims[-1]) != features:
        raise Unsupported("a dense layer over a part of the heads, or over heads in another order")
    sources = []
    for layer in (layers[0], layers[1]):
        source = layer.inputs[0]
        sources.append(source if len(source.shape) == 3 else
                       walk.reshaped(source, [source.shape[0], math.prod(source.shape[1:-1]), source.shape[-1]]))
    width = sources[0].shape[-1]
    if layers[2].inputs[0] is not layers[1].inputs[0]:
        raise Unsupported("keys and values of different tensors")
    if units != width:
        raise Unsupported("an output of %d features for an input of %d" % (units, width))
    if layers[0].attrs["bias"] != bias or layers[2].attrs["bias"] != bias or (layers[1].attrs["bias"] and not bias):
        raise Unsupported("biases in some of the four projections", "all with a bias, none, or all but the keys")
    if layers[1].attrs["bias"] != bias:
        attrs["key_bias"] = False
    if attrs["kv_heads"] == attrs["heads"]:
        del attrs["kv_heads"]
    if attrs["head_dim"] * attrs["heads"] == width:
        del attrs["head_dim"]
    attrs["bias"] = bias
    own = [name for layer in dict.fromkeys(layers) for name in layer.params] + x.layer.params
    inputs = sources[:1] if sources[0] is sources[1] else sources
    inputs = inputs + ([relative_bias(walk, biases, inputs)] if biases else [])
    out = Layer("attention", x.layer.module[0] or "attention", inputs, (batch, places, width), attrs, own + params)
    out.made_of = sources_of
    walk.layers.append(out)
    kept = [axis for axis in x.axes if axis not in x.dims[-1]]
    features = Axis(width)
    return Tensor(out, kept + [features], x.dims[:-1] + [(features,)])


def relative_bias(walk, biases, sources):
    """The layer of a table, which all attentions over as many places read."""
    attrs = {key: biases.attrs[key] for key in ("heads", "buckets", "distance", "causal")}
    params, shape = biases.attrs["params"], (attrs["heads"], *biases.attrs["places"])
    made = next((layer for layer in walk.layers if layer.kind == "relative_bias" and layer.params == params
                 and layer.shape == shape and layer.attrs == attrs), None)
    return made or walk.emit("relative_bias", sources, shape, attrs, params)


@takes("matmul", "bmm", "mm")
def matmul(walk, x, y):
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise Unsupported("a product with a constant")
    if y.layer.kind == "parameter" and len(y.dims) == 2:
        return dense(walk, x, y, None)
    if x.layer.kind == "scores":
        attrs = x.layer.attrs
        if not attrs["softmax"]:
            raise Unsupported("a product of three tensors without a softmax")
        if attrs["pair"] is None:
            raise Unsupported("scores that were changed otherwise than by a scale, a causal mask, softmax and dropout")
        own = {key: attrs[key] for key in ("causal", "dropout", "scale", "bias", "torn")}
        q, k = attrs["pair"]
        out = attend(walk, q, k, y, {**own, "form": "materialised"})
        return out if len(walk.node.meta["val"].shape) == 4 else pieces(out, list(walk.node.meta["val"].shape))
    q, k = by_head(walk, x), by_head(walk, permute_last(y))
    layer = walk.emit("scores", [], (), {"pair": (q, k), "scale": 1.0, "causal": False, "softmax": False, "dropout": 0.0, "bias": None, "torn": None,
                                         "instead": "scaled_dot_product_attention, between dense projections"})
    axes = [Axis(size) for size in walk.node.meta["val"].shape]
    return Tensor(layer, axes, [(axis,) for axis in axes])


def scores_with(x, **changes):
    layer = Layer("scores", None, [], (), {**x.layer.attrs, **changes})
    return Tensor(layer, x.axes, x.dims)


def in_order(biases):
    """Its layer, where a head's biases lie [queries, keys] and the batch has none of its own."""
    lead = [axis for dim in biases.dims[:-3] for axis in dim if not axis.copied]
    if len(biases.dims) < 3 or lead or [axis for dim in biases.dims[-3:] for axis in dim] != biases.axes:
        raise Unsupported("biases in another order than [heads, queries, keys]", "permute(2, 0, 1) behind the look-up")
    return biases.layer


def hidden(biases, seen):
    """The biases, and a mask with them."""
    hides = biases.layer.attrs["hides"] or mask_is_causal(seen)
    return Tensor(Layer("biases", None, [], (), {**biases.layer.attrs, "hides": hides}), biases.axes, biases.dims)


def biased(x, biases):
    if x.layer.attrs["softmax"] or x.layer.attrs["bias"]:
        raise Unsupported("a bias behind a softmax, or a second one")
    of = in_order(biases)
    return scores_with(x, bias=of, causal=x.layer.attrs["causal"] or of.attrs["hides"])


HIDDEN = -100  # is added to the scores of pixels that were no neighbours before an image was rolled, here and in Swin


def rolled_by(window, rows, mask):
    """How far an image went up and to the left whose windows, `rows` of them below each other, are hidden so:
    [.., windows, .., places, places], 0 or negative."""
    (height, width), area = window, mask.shape[-1]
    hidden, windows = mask.reshape(-1, area, area) != 0, mask.numel() // area**2
    for down in range(height):
        for right in range(width):
            if bool((torn(height, width, rows, windows // rows, down, right) == hidden).all()):
                return [down, right]
    raise Unsupported("a mask of windows that no roll explains")


def torn(height, width, rows, columns, down, right):
    """Pairs of pixels of each window that were no neighbours before the image was rolled."""
    image = torch.zeros(rows * height, columns * width, dtype=torch.long)
    image[:down] += 1
    image[:, :right] += 2
    regions = image.roll((-down, -right), (0, 1)).reshape(rows, height, columns, width).transpose(1, 2).reshape(rows * columns, -1)
    return regions[:, :, None] != regions[:, None, :]


def masked_windows(x, mask):
    """Scores whose window's pixels were torn apart: [batch, windows, heads, places, places] + [1, windows, 1, places, places]."""
    window = x.layer.attrs["bias"].attrs["window"]
    if mask.device.type == "meta" or mask.dim() != 5 or mask.shape[-1] != window[0] * window[1] or \
            math.prod(mask.shape) != mask.shape[1] * mask.shape[-1]**2 or bool((mask > 0).any()):
        raise Unsupported("a mask of windows in another form than [1, windows, 1, places, places]")
    if bool((mask[mask != 0] > HIDDEN).any()):
        raise Unsupported("a mask of windows that hides by less than %g" % HIDDEN)
    return scores_with(x, torn=mask)


def masked(x, seen):
    return scores_with(x, causal=x.layer.attrs["causal"] or mask_is_causal(seen))


@takes("masked_fill")
def masked_fill(walk, x, mask, value):
    if x.layer.kind != "scores" or not isinstance(mask, torch.Tensor) or constant_of(value) is None or value > -1e4:
        raise Unsupported("a mask outside attention")
    return masked(x, ~mask)


@takes("where")
def where(walk, seen, x, y):
    if not isinstance(x, Tensor) or x.layer.kind not in ("scores", "biases") or constant_of(y) is None or constant_of(y) > -1e4:
        raise Unsupported("a choice between tensors")
    return masked(x, seen) if x.layer.kind == "scores" else hidden(x, seen)


# ---- the file ---------------------------------------------------------------------------------------------------

# What headroom takes where an attribute is not written.
OTHERWISE = {"stride": 1, "padding": 0, "groups": 1, "multiplier": 1, "bias": True, "dropout": 0.0, "causal": False,
             "packed": False, "form": "streaming", "from": 0, "epsilon": 1e-3, "momentum": 0.01, "of": "sum", "slope": 0.01,
             "buckets": 32, "distance": 128, "shift": 0}


MOVES = {"reshape", "flatten", "permute", "slice", "concat", "roll", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "upsample"}


def moves(layer):
    return layer.kind in MOVES and layer.attrs.get("mode") != "bilinear"


def without_sigmoid(walk, layer, known):
    """What a sigmoid before the layer reads, moved as the layer moves its numbers; the layer itself where there is none."""
    if layer not in known and layer.kind == "sigmoid":
        known[layer] = layer.inputs[0]
    elif layer not in known:
        sources = [without_sigmoid(walk, source, known) for source in layer.inputs] if moves(layer) else []
        known[layer] = layer
        if sources != list(layer.inputs) and any(a is b for a, b in zip(sources, layer.inputs)):
            walk.complain("the output joins probabilities of a sigmoid with other numbers, and %s takes logits; "
                          "try: return the logits" % walk.loss)
        elif sources and sources != list(layer.inputs):  # whoever else reads the probabilities still does
            known[layer] = copy.copy(layer)
            known[layer].inputs = sources
            walk.layers.insert(walk.layers.index(layer) + 1, known[layer])
    return known[layer]


def judge_logits(walk, outputs):
    """Binary losses take logits: the sigmoids that only moves part from the outputs are the loss's."""
    known = {}
    for tensor in outputs:
        logits = without_sigmoid(walk, tensor.layer, known)
        if logits is not tensor.layer:
            walk.note("the last sigmoid is left out: headroom's %s has its own" % walk.loss)
        while moves(logits):
            logits = logits.inputs[0]
        if logits.kind == "softmax":
            walk.note("the outputs are of a softmax, and headroom's %s takes them as logits" % walk.loss)
        tensor.layer = known[tensor.layer]


def tell_of_probabilities(walk, outputs):
    """Nobody said for which loss the outputs are."""
    for tensor in outputs:
        layer = tensor.layer
        while layer.kind in MOVES:
            layer = layer.inputs[0]
        if layer.kind == "sigmoid":
            walk.note("the outputs are of a sigmoid: where they are probabilities of labels 0 and 1, add --loss binary_cross_entropy")
            return


def alive(walk, outputs):
    """The layers that reach an output, in order, and their readers."""
    readers, todo = {}, [tensor.layer for tensor in outputs]
    seen = set(todo)
    while todo:
        layer = todo.pop()
        for source in layer.inputs:
            readers.setdefault(source, []).append(layer)
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return [layer for layer in walk.layers if layer in seen], readers


def with_activations(layers, readers, outputs):
    """A layer that only an activation reads takes it as its own; returns those that are left."""
    gone = {}
    given = {tensor.layer for tensor in outputs}
    for layer in layers:
        if layer.kind in ACTIVATIONS and layer.inputs[0] not in given:
            before = gone.get(layer.inputs[0], layer.inputs[0])
            if before.kind in TAKE_ACTIVATION and "activation" not in before.attrs and len(readers[layer.inputs[0]]) == 1:
                before.attrs["activation"] = "gelu_tanh" if layer.attrs.get("approximate") else layer.kind
                gone[layer] = before
    for layer in layers:
        layer.inputs = [gone.get(source, source) for source in layer.inputs]
    for tensor in outputs:
        tensor.layer = gone.get(tensor.layer, tensor.layer)
    return [layer for layer in layers if layer not in gone]


def share_weights(walk, layers):
    """Parameters that an earlier layer has are shared with it; returns the names of all that are held."""
    owner = {}
    for layer in layers:
        owners = {owner.get(name) for name in layer.params}
        if owners == {None} or not layer.params:
            owner.update((name, layer) for name in layer.params)
        elif len(owners) == 1:
            other = owners.pop()
            plain_table = other.kind == "embedding" or (other.kind == "dense" and not other.made_of)
            if layer.kind == "dense" and other.kind in ("dense", "embedding"):
                layer.attrs["transpose"] = layer.made_of == plain_table
            elif layer.kind != other.kind:
                walk.complain("`%s` shares the weights of `%s`, which is no layer of its kind" % (layer.name, other.name))
            layer.attrs["share"] = other.name
        else:
            walk.complain("`%s` shares some of its weights with `%s` and has others of its own; try: all, or none"
                                 % (layer.name, next(o.name for o in owners if o)))
    return set(owner)


def scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return re.sub(r"e-0(\d)", r"e-\1", "%.10g" % value)
    return "[%s]" % ", ".join(scalar(v) for v in value) if isinstance(value, (list, tuple)) else str(value)


def written(layer):
    """The layer's attributes that differ from what headroom takes anyway."""
    attrs = {key: value for key, value in layer.attrs.items() if key != "left_out" and
             (OTHERWISE.get(key) != value or (key == "stride" and layer.kind.endswith("_pool")) or
              (key == "groups" and layer.kind in ("group_norm", "channel_shuffle")))}
    if layer.kind == "embedding" and layer.attrs["vocabulary"] == layer.inputs[0].attrs["classes"]:
        del attrs["vocabulary"]
    if attrs.get("transpose") is False:
        del attrs["transpose"]
    return attrs


def defaults_of(layers):
    """What all layers of a kind have in common, where there are several."""
    common = {}
    for kind in dict.fromkeys(layer.kind for layer in layers):
        of = [written(layer) for layer in layers if layer.kind == kind]
        names = [key for key in of[0] if key not in ("share", "activation", "transpose", "units", "vocabulary")]
        same_in_all = {key: of[0][key] for key in names if all(one.get(key) == of[0][key] for one in of)}
        if len(of) > 1 and same_in_all and kind not in ("reshape", "slice", "concat", "zero_pad", "permute", "roll"):
            common[kind] = same_in_all
    return common


def mapping(pairs):
    return "{%s}" % ", ".join("%s: %s" % pair for pair in pairs)


def layer_lines(layers, common, first_input):
    lines, above = [], first_input
    for layer in layers:
        words = [("name", layer.name), ("kind", layer.kind)]
        if len(layer.inputs) > 1:
            words.append(("inputs", "[%s]" % ", ".join(source.name for source in layer.inputs)))
        elif layer.inputs[0] is not above:
            words.append(("input", layer.inputs[0].name))
        words += [(key, scalar(value)) for key, value in written(layer).items()
                  if key not in common.get(layer.kind, {})]
        lines.append("    - " + mapping(words))
        above = layer
    return lines


def input_lines(inputs):
    forms = []
    for layer in inputs:
        words = [("name", layer.name)] if len(inputs) > 1 else []
        words += [] if layer.made_of.is_floating_point else [("type", "int32"), ("classes", layer.attrs["classes"])]
        forms.append(mapping(words + [("shape", scalar(layer.shape[1:]))]))
    return ["  input: " + forms[0]] if len(forms) == 1 else ["  inputs:"] + ["    - " + form for form in forms]


def loss_lines(walk, outputs, classes, loss):
    """The labels and losses: one for each output."""
    last = [tensor.layer.shape[-1] for tensor in outputs]
    kind = loss or ("softmax_cross_entropy" if min(last) > 1 else "mean_squared_error")
    if kind == "softmax_cross_entropy" and classes is not None and set(last) != {classes}:
        walk.complain("the output has %d classes, and classes=%d was asked for" % (last[0], classes))
    places = len(outputs[0].layer.shape) > 3
    if len(outputs) == 1 and not places:
        return (["  classes: %d" % last[0]] if kind == "softmax_cross_entropy" else []) + ["  loss: " + kind]
    label = "{type: int32, classes: %d}" % last[0] if kind == "softmax_cross_entropy" else "{type: float32}"
    if len(outputs) == 1:
        return ["  labels: " + label, "  loss: " + kind]
    walk.note("%d outputs of one shape: each has a loss of weight 1 (see `losses:` in the file)" % len(outputs))
    return ["  labels: " + label, "  losses:"] + \
        ["    - {kind: %s, prediction: %s}" % (kind, tensor.layer.name) for tensor in outputs]


def check_held(walk, layers, held):
    for layer in layers:
        if layer.kind in OPEN:
            walk.complain("`%s` is %s; try: %s" % (layer.module[0] or "the module", OPEN[layer.kind],
                                                          layer.attrs.get("instead", "a dense layer behind it")))
    lost = [name for name in walk.sizes if name not in held]
    if lost:
        walk.note("%d parameters do not reach the output and are left out: %s"
                  % (sum(walk.sizes[name] for name in lost), ", ".join(lost[:4]) + (" …" if len(lost) > 4 else "")))
    frozen = [name for name, parameter in walk.module.named_parameters() if not parameter.requires_grad and name in held]
    if frozen:
        walk.note("%d parameters do not train in PyTorch, and do here: %s"
                  % (sum(walk.sizes[name] for name in frozen), ", ".join(frozen[:4]) + (" …" if len(frozen) > 4 else "")))


def precision_lines(walk, held):
    """The policy of a module whose parameters are all bfloat16 or float16."""
    types = sorted({str(p.dtype).replace("torch.", "") for n, p in walk.module.named_parameters() if n in held})
    if types in (["bfloat16"], ["float16"]):
        return ["precision: {policy: %s}" % types[0]]
    if types not in ([], ["float32"]):
        walk.note("the module's parameters are %s; the file is in float32 (precision.policy)" % " and ".join(types))
    return []


def document(walk, outputs, name, classes, loss, batch):
    """The file's text and the number of its parameters; walk.problems says why not."""
    if loss in BINARY:
        judge_logits(walk, outputs)
    elif loss is None:
        tell_of_probabilities(walk, outputs)
    layers, readers = alive(walk, outputs)
    inputs = [layer for layer in layers if layer.kind == "input"]
    layers = with_activations([layer for layer in layers if layer.kind != "input"], readers, outputs)
    for layer in layers:
        layer.name = walk.unique(layer.inputs[0].name + "." + layer.kind if layer.kind in ("reshape", "flatten") else layer.name)
    for layer in inputs:
        layer.name = "input" if len(inputs) == 1 else walk.unique(layer.name + ("_input" if layer.name in walk.names else ""))
    held = share_weights(walk, layers)
    check_held(walk, layers, held)
    walk.layers = layers
    losses = loss_lines(walk, outputs, classes, loss)
    count = sum(walk.sizes[name] for name in held) - sum(layer.attrs.get("left_out", 0) for layer in layers)
    common = defaults_of(layers)
    of = type(walk.module)
    lines = ["%s: %s, %d parameters." % (HEAD, of.__module__ + "." + of.__qualname__, count)]
    lines += ["title: %s, exported from PyTorch" % of.__qualname__, "model:", "  name: " + name] + input_lines(inputs) + losses
    if common:
        lines += ["  defaults:"] + ["    %s: %s" % (kind, mapping((k, scalar(v)) for k, v in attrs.items()))
                                    for kind, attrs in common.items()]
    lines += ["  layers:"] + layer_lines(layers, common, inputs[0] if inputs else None)
    lines += ["batch: {size: %d}" % batch] if batch > 1 else []
    lines += precision_lines(walk, held)
    return "\n".join(lines) + "\n", count


# ---- from outside -----------------------------------------------------------------------------------------------

@contextlib.contextmanager
def in_training(module, walk_notes):
    """A module that was put into evaluation as a whole is traced as it trains."""
    modes = {one: one.training for one in module.modules()}
    if not any(modes.values()):
        walk_notes.append("the module was in evaluation mode; it is written as it trains")
        module.train()
    try:
        yield
    finally:
        for one, mode in modes.items():
            one.training = mode


def enlarged(value):
    """An example of one sample as two: a batch of one cannot be told from a dimension of one."""
    if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == 1:
        return value.new_zeros((2, *value.shape[1:]))
    return value


def apart(value, seen):
    """One tensor given twice would be traced as one input."""
    if isinstance(value, torch.Tensor) and id(value) in seen:
        return value.clone()
    seen.add(id(value))
    return value


DEBUG = "HEADROOM_EXPORT_DEBUG"  # set: PyTorch's own words and tracebacks, too


@contextlib.contextmanager
def quiet():
    """Without what PyTorch logs and prints of a trace that fails; the exception says it."""
    if os.environ.get(DEBUG):
        yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), \
                contextlib.redirect_stderr(nowhere):
            yield
    finally:
        logging.disable(before)


def traced(module, examples, keywords, name):
    firsts = [value.shape[0] for value in every([examples, keywords]) if isinstance(value, torch.Tensor) and value.dim() > 0]
    if not firsts:
        raise CannotExport(name, ["no example has a batch dimension; try: (torch.zeros(8, 3, 224, 224),)"])
    if firsts[0] == 1:
        examples = tuple(enlarged(value) for value in examples)
        keywords = {key: enlarged(value) for key, value in keywords.items()}
    seen = set()
    examples = tuple(apart(value, seen) for value in examples)
    keywords = {key: apart(value, seen) for key, value in keywords.items()}
    try:
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")
            return torch.export.export(module, examples, keywords, strict=False), max(firsts[0], 2), firsts[0]
    except Exception as error:  # whatever the user's forward raises
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CannotExport(name, ["torch.export cannot trace it with this example: %s: %s"
                                  % (type(error).__name__, reason[0])]) from error


def model_file(module, examples, keywords=None, name=None, classes=None, loss=None):
    """The text of the file, its number of parameters, and the walk with its layers and notes; raises CannotExport."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", name or type(module).__name__).lstrip("-")[:64] or "model"
    notes = []
    with in_training(module, notes):
        program, batch, own = traced(module, tuple(examples), dict(keywords or {}), name)
    walk = Walk(program, module, batch)
    walk.notes, walk.loss = notes, loss
    outputs = walk.walk()
    if not outputs and not walk.problems:
        walk.complain("it returns no tensor that a loss could judge")
    text, count = document(walk, outputs, name, classes, loss, own) if not walk.problems else ("", 0)
    if walk.problems:
        raise CannotExport(name, walk.sentences())
    return text, count, walk


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


def to_headroom(module, examples, path, keywords=None, name=None, classes=None, loss=None):
    """Writes the model file of a module that takes `examples` (a tuple of batches). Returns its number of parameters.

    classes: how many the output must have (otherwise they are counted); loss: one of LOSSES.
    Raises CannotExport with everything that headroom's layers cannot hold; nothing is written then.
    """
    stem = os.path.splitext(os.path.basename(path))[0]
    text, count, walk = model_file(module, examples, keywords, name or stem, classes, loss)
    write_file(path, text)
    for note in walk.notes:
        print("torch_to_headroom: note: " + note, file=sys.stderr)
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


@contextlib.contextmanager
def without_initial_values():
    """A module's weights are not looked at: what would fill them does nothing, and their memory is never touched."""
    kept = {name: f for name, f in vars(torch.nn.init).items() if name.endswith("_") and callable(f) and name[0] != "_"}
    try:
        for word in kept:
            setattr(torch.nn.init, word, lambda tensor, *_, **__: tensor)
        yield
    finally:
        for word, function in kept.items():
            setattr(torch.nn.init, word, function)


@contextlib.contextmanager
def one_sentence(model):
    """Whatever the user's module raises, ends the program with a sentence; HEADROOM_EXPORT_DEBUG shows where it came from."""
    try:
        yield
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        if isinstance(error, (CannotExport, OSError)):
            sys.exit("torch_to_headroom: %s" % error)
        reason = str(error).strip().splitlines() or ["no reason was given"]
        sys.exit("torch_to_headroom: %s: %s: %s" % (model, type(error).__name__, reason[0]))


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def arguments():
    parser = argparse.ArgumentParser(description="Writes headroom's model file of a PyTorch module.",
                                     epilog="example: torch_to_headroom.py torchvision.models:resnet50 --shape 3,224,224 "
                                            "--output resnet50.yaml")
    parser.add_argument("model", metavar="MODULE:NAME", help="a class or function that makes the module, or the module; "
                                                             "FILE.py:NAME for a file")
    parser.add_argument("--shape", metavar="A,B,…", type=numbers, action="append", default=[],
                        help="an input of real numbers, without the batch: 3,224,224; again for another input")
    parser.add_argument("--ids", metavar="A,…", type=numbers, action="append", default=[],
                        help="an input of ids, without the batch: 128; again for another input")
    parser.add_argument("--arguments", metavar="JSON", type=json.loads, default={}, help="what the module is made with")
    parser.add_argument("--batch", type=int, default=1, help="written as batch.size when it is more than 1")
    parser.add_argument("--classes", type=int, help="how many the output must have")
    parser.add_argument("--loss", choices=LOSSES)
    parser.add_argument("--output", metavar="FILE.yaml", required=True)
    return parser.parse_args()


def main():
    options = arguments()
    if not options.shape and not options.ids:
        sys.exit("torch_to_headroom: what does it take? try: --shape 3,224,224 for images, --ids 128 for tokens")
    with one_sentence(options.model), without_initial_values():
        module = found(options.model)
        module = module if isinstance(module, torch.nn.Module) else module(**options.arguments)
    with one_sentence(options.model):
        real = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
        examples = [torch.zeros(options.batch, *shape, dtype=real) for shape in options.shape]
        examples += [torch.zeros(options.batch, *shape, dtype=torch.long) for shape in options.ids]
        count = to_headroom(module, tuple(examples), options.output, classes=options.classes, loss=options.loss)
    print("%s: %d parameters; see: headroom plan %s" % (options.output, count, options.output))


if __name__ == "__main__":
    main()
