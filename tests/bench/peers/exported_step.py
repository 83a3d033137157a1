#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One step of exported modules here and in PyTorch, from the same weights on the same batch: loss and every gradient.

  tests/bench/peers/exported_step.py [NAME…]    a PyTorch with torchvision; without names all of them, and
                                                tests/bench/results/exported_step.json is written
  tests/bench/peers/exported_step.py --onnx     six of them through an ONNX file instead, which wants onnx as well; its layers
                                                are the exporter's, kind by kind in their order, under names of its own, and
                                                tests/bench/results/onnx_step.json is written

headroom starts from its seed and saves its weights before and behind one step of plain gradient descent at a rate so high
that their difference is the gradient; the module in PyTorch is given the weights of before. Dropout is off on both sides.
`loss` and `gradient` are the largest differences from PyTorch in float64, relative to the loss and to the largest element of each
gradient (of those that are not 0 but for rounding); `torch_gradient` is the same of PyTorch's own float32: deep
networks under batch norm magnify a rounding.
"""
import argparse
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../scripts/export"), os.path.join(HERE, "../../cli")]

import numpy
import torch
import torchvision
from torch.nn import functional as F

import exported_modules
import measure
from torch_to_headroom import model_file

RESULTS = os.path.join(measure.TOP, "tests/bench/results/%s.json")
THROUGH_ONNX = ("residual", "dense", "resnet18", "mobilenet_v2", "densenet121", "vision_transformer")
BATCH, RATE = 8, 1e3
NAMES = {"conv2d": ["weights", "bias"], "depthwise_conv2d": ["weights", "bias"], "conv2d_transpose": ["weights", "bias"],
         "dense": ["weights", "bias"], "batch_norm": ["gamma", "beta"], "layer_norm": ["gamma", "beta"], "rms_norm": ["gamma"],
         "embedding": ["weights"], "position_embedding": ["weights"], "class_token": ["weights"], "layer_scale": ["gamma"],
         "lstm": ["weights", "recurrent_weights", "bias"]}


def cases():
    images = torch.zeros(BATCH, 3, 64, 64)
    found = {name: (lambda of=of: of(), examples) for name, (of, examples) in exported_modules.MODULES.items()
             if name not in ("translate", "inverted")}  # of two inputs; with random branches
    for name in ("resnet18", "mobilenet_v2", "mnasnet1_0", "regnet_x_400mf", "densenet121", "mobilenet_v3_small"):
        found[name] = (lambda name=name: torchvision.models.get_model(name, num_classes=10), (images,))
    vit = {"image_size": 64, "patch_size": 16, "num_layers": 2, "num_heads": 2, "hidden_dim": 32, "mlp_dim": 64, "num_classes": 10}
    found["vision_transformer"] = (lambda: torchvision.models.VisionTransformer(**vit), (images,))
    return found


def without_dropout(module):
    F.dropout = lambda x, *_, **__: x
    for one in module.modules():
        if isinstance(one, torch.nn.Dropout):
            one.p = 0.0
        if isinstance(one, (torch.nn.MultiheadAttention, torch.nn.LSTM)):
            one.dropout = 0.0
    return module


# ---- weights of a layer here as PyTorch's -----------------------------------------------------------------------

def from_dense(weights, layer):
    """[features, units] in the order of memory to [units, features] in PyTorch's."""
    weights = weights if layer.attrs.get("transpose") else weights.T
    order, sizes = layer.places
    if order != sorted(order):
        memory = weights.reshape(weights.shape[0], *[sizes[k] for k in order])
        weights = memory.permute(0, *[1 + order.index(k) for k in range(len(order))]).reshape(weights.shape[0], -1)
    return weights if layer.made_of else weights.T


def units_of(layer):
    """Which units of its dense layer a query, key or value is made of."""
    if layer.kind == "dense":
        return numpy.broadcast_to(numpy.arange(layer.attrs["units"]), layer.shape)
    inner = units_of(layer.inputs[0])
    if layer.kind == "slice":
        first = layer.attrs["from"]
        return inner.take(range(first, first + layer.attrs["count"]), axis=layer.attrs["axis"])
    return inner.reshape(layer.shape)


def from_attention(saved, layer, tensors):
    """Into what the module calls them: one matrix for all three, or one each; the output."""
    own = [name for name in layer.params]
    for word, source in zip(("query", "key", "value"), layer.made_of):
        units = units_of(source)[0, 0].reshape(-1).copy()
        dense = source
        while dense.kind != "dense":
            dense = dense.inputs[0]
        for suffix, name in zip(("weights", "bias"), dense.params):
            value = saved["%s/%s_%s" % (layer.name, word, suffix)]
            tensors[name][units] = value.T if suffix == "weights" else value
    last = own[-2:] if layer.attrs["bias"] else own[-1:]
    if "qk_norm_epsilon" in layer.attrs:
        for word, name in zip(("query", "key"), own[-len(last) - 2:-len(last)]):
            tensors[name][:] = saved["%s/%s_gamma" % (layer.name, word)]
    if layer.kind == "window_attention":
        tensors[own[-len(last) - 1]][:] = saved[layer.name + "/bias_table"]
    for suffix, name in zip(("weights", "bias"), last):
        value = saved["%s/output_%s" % (layer.name, suffix)]
        tensors[name][:] = value.T if suffix == "weights" else value


def as_torch(saved, layers, parameters):
    """The module's parameters of a save's tensors, by PyTorch's names."""
    tensors = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    for layer in layers:
        if layer.kind in ("attention", "window_attention"):
            from_attention(saved, layer, tensors)
            continue
        if "share" in layer.attrs:
            continue
        for suffix, name in zip(NAMES.get(layer.kind, []), layer.params):
            value = saved["%s/%s" % (layer.name, suffix)]
            if layer.kind == "dense" and suffix == "weights":
                value = from_dense(value, layer)
            elif value.dim() == 4:
                value = value.permute(3, 2, 0, 1)
            elif layer.kind == "lstm" and suffix != "bias":
                value = value.T
            tensors[name][:] = value.reshape(tensors[name].shape)
    return tensors


# ---- the two steps ----------------------------------------------------------------------------------------------

def read_save(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        body = file.read()
    out = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            first, last = about["data_offsets"]
            out[name] = torch.from_numpy(numpy.frombuffer(body[first:last], "<f4").reshape(about["shape"]).copy())
    return out


def batch_of(example, outputs, classes, generator):
    """What the module takes, and labels for its first output."""
    if example.dtype == torch.long:
        x = torch.randint(0, classes, example.shape, generator=generator)
    else:
        x = torch.randn(example.shape, generator=generator)
    if classes is None:
        return x, torch.randn(outputs.shape, generator=generator)
    shape = outputs.shape[:1] + outputs.shape[2:] if outputs.dim() > 2 else outputs.shape[:1]
    return x, torch.randint(0, classes, shape, generator=generator)


def save_arrays(folder, x, y, places):
    """As headroom reads them: images with their channels last, ids as int32."""
    x = x.permute(0, 2, 3, 1) if x.dim() == 4 else x
    y = y.reshape(BATCH, places) if places else y
    kinds = {torch.int64: numpy.int32, torch.float32: numpy.float32}
    for which in ("train", "test"):
        numpy.save(os.path.join(folder, "x_%s.npy" % which), x.numpy().astype(kinds[x.dtype]))
        numpy.save(os.path.join(folder, "y_%s.npy" % which), y.numpy().astype(kinds[y.dtype]))


def headroom_step(folder, path, rate):
    saved = os.path.join(folder, "weights-%g.safetensors" % rate)
    knobs = ["device.kind=cpu", "pipeline.source=npy", "pipeline.path=" + folder, "pipeline.shuffle=0", "batch.size=%d" % BATCH,
             "optimizer.kind=sgd", "optimizer.learning_rate=%g" % rate, "train.save=" + saved]
    done = subprocess.run([measure.headroom_program(), "run", path, "--steps", "1", "--json", "--trust",
                           *measure.knob_words(knobs)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-600:])
    return read_save(saved), json.loads(done.stdout)["train"]["loss_first"]


def torch_step(module, x, y, weights):
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(weights[name])
    outputs = module(x)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    loss = sum(F.mse_loss(o, y) if y.is_floating_point() else F.cross_entropy(o, y) for o in outputs)
    loss.backward()
    return loss.item(), {name: parameter.grad.clone() for name, parameter in module.named_parameters()}


def learned_layers(path):
    words = [measure.headroom_program(), "plan", path, "-s", "device.kind=plan", "-s", "batch.size=%d" % BATCH, "--json"]
    return [layer for layer in measure.json_of(words)[0]["model"]["layers"] if layer["parameters"] > 0]


def onnx_of(make, examples, path):
    """Exported for inference, as people do it; weights all differ, since an exporter writes equal ones once."""
    module, generator = make().eval(), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for tensor in [*module.parameters(), *(b for n, b in module.named_buffers() if n.endswith(("running_mean", "running_var")))]:
            tensor.uniform_(0.5, 1.0, generator=generator)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, warnings.catch_warnings(), contextlib.redirect_stdout(nowhere):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        torch.onnx.export(module, tuple(examples), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})


def names_of(path, reference):
    """What a layer of one file is called in the other."""
    own, other = learned_layers(path), learned_layers(reference)
    if [(layer["kind"], layer["parameters"]) for layer in own] != [(layer["kind"], layer["parameters"]) for layer in other]:
        raise RuntimeError("%s has other layers than %s" % (path, reference))
    return {layer["name"]: beside["name"] for layer, beside in zip(own, other)}


def renamed(saved, names):
    return {"/".join([names.get(key.rsplit("/", 1)[0], key.rsplit("/", 1)[0]), key.rsplit("/", 1)[1]]) if "/" in key else key: value
            for key, value in saved.items()}


def row_of(name, make, examples, folder, by_onnx=False):
    generator = torch.Generator().manual_seed(5)
    module = without_dropout(make()).train()
    loss = "mean_squared_error" if name == "autoencoder" else None
    text, _, walk = model_file(module, examples, name=name, loss=loss)
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    names = {}
    if by_onnx:
        reference, path = path, os.path.join(folder, name + ".onnx")
        onnx_of(make, examples, path)
        names = names_of(path, reference)
    first = module(*examples)
    first = first[0] if isinstance(first, tuple) else first
    classes = None if loss else first.shape[-1] if first.dim() != 4 else first.shape[1]
    if first.dim() == 3:  # PyTorch's cross entropy wants the classes second
        forward = module.forward
        module.forward = lambda *words: forward(*words).flatten(0, 1)
        first = module(*examples)
    places = first.shape[0] // BATCH if first.shape[0] != BATCH else 0
    x, y = batch_of(examples[0], first, classes, generator)
    save_arrays(folder, x, y, places)
    before, loss_here = headroom_step(folder, path, 0)
    behind, _ = headroom_step(folder, path, RATE)
    before, behind = renamed(before, names), renamed(behind, names)
    parameters = dict(module.named_parameters())
    weights = as_torch(before, walk.layers, parameters)
    made = as_torch({key: (before[key].double() - behind[key].double()) / RATE for key in before}, walk.layers,
                    {key: value.detach().double() for key, value in parameters.items()})
    single = torch_step(module, x, y, weights)[1]
    module.zero_grad()
    loss_there, gradients = torch_step(module.double(), x.double() if x.is_floating_point() else x,
                                       y.double() if y.is_floating_point() else y, {k: v.double() for k, v in weights.items()})
    least = 1e-5 * max(gradient.abs().max() for gradient in gradients.values())
    worst = {key: distance(made[key], gradients[key]) for key, gradient in gradients.items()
             if gradient.abs().max() > least and not key.startswith("lstm.bias_hh")}
    key = max(worst, key=worst.get)
    return {"name": name, "parameters": sum(p.numel() for p in parameters.values()), "loss_headroom": loss_here,
            "loss_torch": loss_there, "loss": abs(loss_here / loss_there - 1), "gradient": worst[key], "worst": key,
            "torch_gradient": max(distance(single[one].double(), gradients[one]) for one in worst)}


def distance(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


def measure_steps(options):
    rows = []
    for name, (make, examples) in cases().items():
        if (options.names and name not in options.names) or (options.onnx and not options.names and name not in THROUGH_ONNX):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = row_of(name, make, examples, folder, options.onnx)
        rows.append(row)
        print("%-20s loss %.7f, PyTorch %.7f (%.1e)  gradients %.1e, PyTorch in float32 %.1e (%s)" % (
            row["name"], row["loss_headroom"], row["loss_torch"], row["loss"], row["gradient"], row["torch_gradient"],
            row["worst"]), flush=True)
    return {"versions": {"torch": torch.__version__, "torchvision": torchvision.__version__}, "batch": BATCH, "rate": RATE,
            "rows": rows, "loss": max(row["loss"] for row in rows), "gradient": max(row["gradient"] for row in rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--onnx", action="store_true", help="through an ONNX file")
    options = parser.parse_args()
    torch.manual_seed(3)
    name = "onnx_step" if options.onnx else "exported_step"
    result = measure.result_of(name, measure_steps, options)
    if not options.names:
        with open(RESULTS % name + ".part", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        os.replace(RESULTS % name + ".part", RESULTS % name)


if __name__ == "__main__":
    main()
