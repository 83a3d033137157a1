# SPDX-License-Identifier: Apache-2.0
"""Whether what is promised of memory is so: ten models in three settings, planned, run, and beside PyTorch's own counters on
the same card: peak allocated and reserved, and what the driver says each process has. A plan under PyTorch's rules
(execution.as) stands beside the counters; every request of a step of PyTorch's lies in the logs."""
import os
import threading

from bench import Pytorch
from first import BF16, differences, report_of
from machine import MIB, Skip, matches

RUN_SECONDS = 45
PEER_SECONDS = 60  # until its first answer; it imports for seconds
STEPS = 4
MODELS = [  # preset, batch, optimizer: as the preset has it
    ("mlp", 128, "adam"), ("cifar10_separable_cnn", 128, "adam"), ("lstm_lm_medium", 20, "sgd"), ("resnet18", 128, "momentum"),
    ("mobilenet_v2", 64, "momentum"), ("resnet50", 64, "momentum"), ("vit_b16", 32, "adamw"), ("bert_base", 8, "adamw"),
    ("gpt2_124m", 8, "adamw"), ("unet", 4, "adam"),
]
MODELS_REHEARSED = [("mlp_tiny", 4, "adam"), ("gpt2_124m_tiny", 1, "adamw")]
AS_PYTORCH = ["execution.as=pytorch", "execution.mode=eager", "allocator.kind=caching", "optimizer.implementation=fused",
              "execution.answer=dropped"]  # as models.py trains
IMAGES = ("cifar10_separable_cnn", "resnet18", "resnet50", "mobilenet_v2", "vgg16", "unet")  # that are channels_last in peer.py


def as_cudnn_is_asked(preset):
    """What a plan has to be told for PyTorch's workspaces to be those of peer.py."""
    return ["device.kind=cuda", "pipeline.device_prefetch=0", "execution.cudnn_tf32=off",
            "execution.memory_format=" + ("channels_last" if preset in IMAGES else "contiguous")]


# Name, our knobs, PyTorch's precision, and by how much the batch is larger.
SETTINGS = [
    ("float32, eager", ["execution.mode=eager", "allocator.kind=caching"], "float32", 1),
    ("bfloat16", ["execution.mode=graph", "allocator.kind=static", BF16], "bfloat16", 1),
    ("bfloat16, twice the batch", ["execution.mode=graph", "allocator.kind=static", BF16], "bfloat16", 2),
]


class Peers:
    """PyTorch's side, a process a model, beside ours: what is counted is bytes, and the card has room for both."""

    def __init__(self, machine, rows):
        self.machine, self.rows, self.answers = machine, rows, {}
        os.makedirs(machine.logs, exist_ok=True)
        self.thread = threading.Thread(target=self.ask_all, daemon=True)
        self.thread.start()

    def ask_all(self):
        for preset, batch, optimizer in self.rows:
            peer = Pytorch({"preset": preset, "batch": batch, "optimizer": optimizer, "precision": "-"}, "memory")
            for name, _, precision, times in SETTINGS:
                seconds = self.machine.left(PEER_SECONDS)
                if peer.error is None and seconds > 1:
                    file = os.path.join(self.machine.logs, "requests_%s_%d_%s.json" % (preset, batch * times, precision))
                    peer.ask("%d %d %s %s" % (STEPS, batch * times, precision, file), seconds)
                self.answers[preset, name] = peer.answer or {"error": peer.error or "the part's time was over"}
                peer.answer = None
            peer.stop()

    def wait(self):
        self.thread.join(max(0.0, self.machine.left(PEER_SECONDS)))


def planned_as_pytorch(machine, preset, words, precision):
    """The peak by PyTorch's own rules; what they do not hold yet is refused with a sentence."""
    own = [word for word in words if word.split("=")[0] not in ("device.card", "execution.mode", "allocator.kind", "device.kind", "precision.policy")]
    more = AS_PYTORCH + as_cudnn_is_asked(preset) + ["device.card=" + (machine.card() or ""), "precision.policy=" + ("float32" if precision == "float32" else "mixed_bfloat16")]
    _, planned, error = report_of(machine, "plan", preset, own + more, STEPS, seconds=RUN_SECONDS)
    if error is not None:
        return {"planned_as_pytorch_error": error}
    return {"planned_as_pytorch_bytes": planned["memory"]["peak_in_use_bytes"],
            "planned_as_pytorch_pool_bytes": planned["memory"]["peak_pool_bytes"]}


def measure_one(machine, preset, optimizer, batch, setting, tally):
    name, knobs, precision, times = setting
    words = machine.knobs() + knobs + ["batch.size=%d" % (batch * times), "optimizer.kind=" + optimizer]
    row = {"preset": preset, "setting": name, "batch": batch * times, "precision": precision}
    status, planned, error = report_of(machine, "plan", preset, words, STEPS, seconds=RUN_SECONDS)
    if error is None:
        status, ran, error = report_of(machine, "run", preset, words, STEPS, seconds=RUN_SECONDS)
    if error is not None:
        tally.note("%s, %s" % (preset, name), status, error)
        return {**row, "error": error}
    row.update(planned_peak_bytes=planned["memory"]["peak_in_use_bytes"], planned_pool_bytes=planned["memory"]["peak_pool_bytes"],
               peak_bytes=ran["memory"]["peak_in_use_bytes"], pool_bytes=ran["memory"]["peak_pool_bytes"],
               differing=differences(planned, ran), **ran["driver"],
               **planned_as_pytorch(machine, preset, words, precision))
    if row["differing"]:
        tally.failed.append("%s, %s: plan and run differ in %s" % (preset, name, ", ".join(row["differing"])))
    return row


def say(row):
    peer = row["pytorch"]
    ours = row.get("error") or "planned %8.1f, run %8.1f, as PyTorch %8.1f MiB" % (
        row["planned_peak_bytes"] / MIB, row["peak_bytes"] / MIB, row.get("planned_as_pytorch_bytes", 0) / MIB)
    theirs = peer.get("error") or "PyTorch %8.1f, reserved %8.1f MiB" % (peer["peak_allocated_bytes"] / MIB,
                                                                        peer["peak_reserved_bytes"] / MIB)
    print("%-22s %-26s %s; %s" % (row["preset"], row["setting"], ours, theirs.splitlines()[-1]), flush=True)


def measure(machine, options, body, tally):
    if not os.path.exists(machine.headroom):
        raise Skip("nothing is built: scripts/dev/bundle --binaries where there is a compiler, or tests/cuda/run build")
    rows = MODELS_REHEARSED if options.rehearse else MODELS[:2] if options.quick else MODELS
    rows = [row for row in rows if matches(options, row[0])]
    body["models"] = []
    peers = None if options.rehearse else Peers(machine, rows)
    if peers is None:
        tally.skip("PyTorch's counters", "PyTorch does not run on the emulated card")
    for preset, batch, optimizer in rows:
        for setting in SETTINGS:
            body["models"].append(measure_one(machine, preset, optimizer, batch, setting, tally))
    if peers is not None:
        peers.wait()
    for row in body["models"]:
        row["pytorch"] = (peers.answers if peers else {}).get((row["preset"], row["setting"]), {"error": "not asked"})
        if "error" not in row and "error" not in row["pytorch"]:
            row["peak_of_pytorch"] = row["peak_bytes"] / row["pytorch"]["peak_allocated_bytes"]
            if "planned_as_pytorch_bytes" in row:
                row["planned_of_pytorch"] = row["planned_as_pytorch_bytes"] / row["pytorch"]["peak_allocated_bytes"]
        say(row)
