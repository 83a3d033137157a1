# SPDX-License-Identifier: Apache-2.0
"""What is measured side by side with PyTorch: the seven models of `speed` and `memory`, and the larger ones."""
import os

from measure import TOP

BENCH_PRESETS = "tests/bench/presets"
IMAGE_LAYOUTS = ["plain", "nhwc"]
GRAPH, EAGER = ["execution.mode=graph"], ["execution.mode=eager"]
RESIDENT = ["pipeline.resident=on"]

# steps: of one run. layouts: of the peer. ours: knobs of each subject and how many times the speed of PyTorch, as it is
# installed, it should reach; the first of a case that counts enters the geometric mean.
CASES = [
    {"name": "separable CNN, batch 128, Adam", "preset": "cifar10_separable_cnn", "batch": 128, "optimizer": "adam",
     "steps": 41, "layouts": IMAGE_LAYOUTS, "ours": [(GRAPH, 3.0), (EAGER, 3.0), (GRAPH + RESIDENT, 3.0)],
     "counts": True},
    {"name": "separable CNN, batch 16, Adam", "preset": "cifar10_separable_cnn", "batch": 16, "optimizer": "adam",
     "steps": 101, "layouts": IMAGE_LAYOUTS, "ours": [(GRAPH, 5.0), (EAGER, 5.0), (GRAPH + RESIDENT, 5.0)],
     "counts": False},
    {"name": "MLP, batch 128, Adam", "preset": "mlp", "batch": 128, "optimizer": "adam",
     "steps": 17, "layouts": ["plain"], "ours": [(GRAPH, 1.5), (EAGER, 1.5)], "counts": True},
    {"name": "ResNet-18 32x32, batch 32, momentum", "preset": "resnet18_cifar", "batch": 32, "optimizer": "momentum",
     "steps": 3, "layouts": IMAGE_LAYOUTS, "ours": [(GRAPH, 1.4)], "counts": True},
    {"name": "ResNet-50 64x64, batch 16, momentum", "preset": "resnet50_64", "batch": 16, "optimizer": "momentum",
     "steps": 5, "layouts": IMAGE_LAYOUTS, "ours": [(GRAPH, 1.0)], "counts": True},
    {"name": "MobileNetV2 64x64, batch 16, momentum", "preset": "mobilenet_v2_64", "batch": 16,
     "optimizer": "momentum", "steps": 9, "layouts": IMAGE_LAYOUTS, "ours": [(GRAPH, 1.0)], "counts": True},
    {"name": "GPT-2 4x256, batch 8x128, AdamW", "preset": "gpt2_4x256", "batch": 8, "optimizer": "adamw",
     "steps": 5, "layouts": ["plain"], "ours": [(GRAPH, 1.0)], "counts": True},
    {"name": "LSTM 2x650, batch 20x35, SGD", "preset": "lstm_lm_medium", "batch": 20, "optimizer": "sgd",
     "steps": 3, "layouts": ["plain"], "ours": [(GRAPH, 1.4)], "counts": True},
]

# Of the larger models only the memory: ours by a plan on the cpu device, PyTorch's by two steps.
LARGE = [
    {"preset": "resnet18", "batch": 8, "optimizer": "momentum", "layouts": IMAGE_LAYOUTS},
    {"preset": "resnet50", "batch": 4, "optimizer": "momentum", "layouts": IMAGE_LAYOUTS},
    {"preset": "mobilenet_v2", "batch": 8, "optimizer": "momentum", "layouts": IMAGE_LAYOUTS},
    {"preset": "vgg16", "batch": 2, "optimizer": "momentum", "layouts": IMAGE_LAYOUTS},
    {"preset": "unet", "batch": 1, "optimizer": "adam", "layouts": IMAGE_LAYOUTS},
    {"preset": "vit_b16", "batch": 4, "optimizer": "adamw", "layouts": ["plain"]},
    {"preset": "bert_base", "batch": 1, "optimizer": "adamw", "layouts": ["plain"]},
    {"preset": "gpt2_124m", "batch": 1, "optimizer": "adamw", "layouts": ["plain"]},
]


def preset_path(name):
    """The preset as the program takes it: a name, or the path of one that only the benches have."""
    path = os.path.join(BENCH_PRESETS, name + ".yaml")
    return path if os.path.exists(os.path.join(TOP, path)) else name


def knobs_of(case, more, threads):
    """Those of a case, which every subject of it has, and its own."""
    return ["batch.size=%d" % case["batch"], "optimizer.kind=" + case["optimizer"], "threads.count=%d" % threads, *more]
