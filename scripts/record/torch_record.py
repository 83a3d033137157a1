# SPDX-License-Identifier: Apache-2.0
"""Run a PyTorch training script without a card, and record what it asks of one.

  python3 torch_record.py --card rtx4090-24g --output step.pickle train.py --epochs 1
  headroom replay step.pickle -s device.vram=16GiB

PyTorch's own CUDA build runs the script unchanged, over a card of numbers (libheadroom_numbers.so): modules, autograd,
optimizers, autocast and the caching allocator are the real ones and make their real requests; cuDNN answers with the
workspaces that it would take on that card. Kernels do nothing and what comes back from the card are zeros, so that a
step costs milliseconds, losses are 0, and a script that branches on computed values takes the branch of zeros.

The snapshot is PyTorch's own (torch.cuda.memory._snapshot, pickled); pytorch.org/memory_viz shows it, too.
"""
import argparse
import ctypes
import glob
import importlib.abc
import importlib.util
import json
import os
import pickle
import runpy
import sys

LIBRARY = "libheadroom_numbers.so"
HERE = os.path.dirname(os.path.realpath(__file__))
SIZES = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
         "KB": 10 ** 3, "MB": 10 ** 6, "GB": 10 ** 9, "TB": 10 ** 12}
MOST_MEMORY = 1 << 46  # bytes for which the library has addresses
USAGE, CANNOT = 2, 4  # exit codes: a wrong option; something that this needs is not there


def stop(sentence, remedy, code=CANNOT):
    print("torch_record: %s\n  try: %s" % (sentence, remedy), file=sys.stderr)
    sys.exit(code)


def byte_count(words):
    number = words.rstrip("BKMGTIbkmgti ")
    try:
        count = float(number) * SIZES[words[len(number):].strip().upper()]
        if not 0 <= count < 1 << 62:
            raise ValueError
    except (KeyError, ValueError, OverflowError):
        raise argparse.ArgumentTypeError("needs bytes, like 24GiB, had %r" % words) from None
    return int(count)


def entry_count(words):
    if not words.isdecimal() or not 0 < int(words) < 1 << 62:
        raise argparse.ArgumentTypeError("needs a positive count, had %r" % words)
    return int(words)


def checked_output(path, force):
    """Its absolute path, for a script may change the folder. What is overwritten is a snapshot."""
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        stop("--output %s: there is no folder %s" % (path, folder), "mkdir -p " + folder, USAGE)
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        stop("--output %s: cannot be written" % path, "another path", USAGE)
    if os.path.isfile(path) and not force:
        try:
            with open(path, "rb") as file:
                begin = file.read(64)
        except OSError as error:
            stop("--output %s: %s" % (path, error.strerror), "another path", USAGE)
        if not begin.startswith(b"\x80") or b"segments" not in begin:
            stop("--output %s: is there, and no snapshot" % path, "another path, or --force to overwrite it", USAGE)
    return path


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--card", required=True, metavar="NAME", help="a file of presets/cards, by name or path")
    parser.add_argument("--memory", type=byte_count, metavar="BYTES", help="memory of the card, if not the file's")
    parser.add_argument("--context", type=byte_count, default=0, metavar="BYTES",
                        help="of it, what the driver and the context keep (0)")
    parser.add_argument("--output", default="step.pickle", metavar="FILE", help="the snapshot (step.pickle)")
    parser.add_argument("--force", action="store_true", help="overwrite --output even if it is no snapshot")
    parser.add_argument("--entries", type=entry_count, default=1000000, metavar="N",
                        help="events that are kept, the last ones (1000000)")
    parser.add_argument("--library", metavar="FILE", help="%s, if it is not found" % LIBRARY)
    parser.add_argument("script", help="the training script")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    return parser.parse_args()


def library_path(given):
    places = [given] if given else [
        os.path.join(HERE, LIBRARY), *sorted(glob.glob(os.path.join(HERE, "../../build/*/record", LIBRARY))),
        os.path.join(HERE, "../../../lib/headroom/record", LIBRARY)]
    for place in places:
        if os.path.isfile(place):
            return place
    return stop("needs %s, found none%s" % (LIBRARY, " at " + given if given else ""),
                "cmake --build build/release --target headroom_numbers")


def card_folders():
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return [os.path.join(data, "headroom/presets/cards"), os.path.join(HERE, "../../presets/cards"),
            os.path.join(HERE, "../presets/cards")]


def card_properties(name):
    """The text of a card's file, as a dictionary."""
    paths = [name] if name.endswith(".json") else [*(os.path.join(f, name + ".json") for f in card_folders()),
                                                   name, name + ".json"]
    found = [path for path in paths if os.path.isfile(path)]
    if not found:
        known = sorted({os.path.basename(path)[:-5] for folder in card_folders()
                        for path in glob.glob(os.path.join(folder, "*.json")) if ".engines." not in path})
        stop("--card %s: no such file of properties" % name, "--card " + (", ".join(known) or "a path"))
    try:
        with open(found[0], encoding="utf-8") as file:
            properties = json.load(file)
        if not isinstance(properties, dict):
            raise ValueError("no object")
        return properties
    except (OSError, ValueError) as error:
        return stop("%s is no file of a card's properties: %s" % (found[0], error), "headroom devices writes one")


def load_card(options):
    """Everything that PyTorch loads finds the card of numbers first."""
    properties = card_properties(options.card)
    if options.memory is not None:
        properties["totalGlobalMem"] = options.memory
    memory = properties.get("totalGlobalMem")
    if isinstance(memory, int) and memory > MOST_MEMORY:
        stop("a card of %d bytes is larger than can be recorded" % memory, "--memory 64TiB or less", USAGE)
    if isinstance(memory, int) and options.context > memory:
        stop("--context of %d bytes is larger than the card, %d" % (options.context, memory), "a smaller --context", USAGE)
    os.environ["HEADROOM_NUMBERS"] = json.dumps(properties)
    os.environ["HEADROOM_NUMBERS_CONTEXT"] = str(options.context)
    path = library_path(options.library)
    for library in path, path.replace(".so", "_nvml.so"):
        try:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            stop("%s cannot be loaded: %s" % (library, error), "build it on this machine")


class Torch(importlib.abc.MetaPathFinder):
    """Starts the recording when the script imports torch, so that what it sets before that still counts."""

    def __init__(self, entries):
        self.entries, self.module, self.recording = entries, None, False

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.imported(module)

        spec.loader.exec_module = exec_module
        return spec

    def imported(self, torch):
        self.module = torch
        cuda = torch.version.cuda
        if cuda is None or cuda.split(".")[0] != "13":
            stop("this PyTorch %s is built for %s, a card of numbers is of CUDA 13"
                 % (torch.__version__, "CUDA " + cuda if cuda else "the processor alone"),
                 "pip install --index-url https://download.pytorch.org/whl/cu130 torch")
        torch.cuda._lazy_call(self.start)

    def start(self):
        self.recording = True
        self.module.cuda.memory._record_memory_history(stacks="python", max_entries=self.entries)

    def save(self, path):
        """Whether there is anything to save."""
        if not self.recording:
            return False
        cuda = self.module.cuda
        snapshot = cuda.memory._snapshot()
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        if any(len(trace) >= self.entries for trace in snapshot["device_traces"]):
            print("torch_record: the trace is full with %d entries, earlier requests are lost\n  try: --entries %d"
                  % (self.entries, 10 * self.entries), file=sys.stderr)
        print("torch_record: %s: at most %d bytes allocated, %d reserved, of %s with %d"
              % (path, cuda.max_memory_allocated(), cuda.max_memory_reserved(), cuda.get_device_name(0),
                 cuda.get_device_properties(0).total_memory), file=sys.stderr)
        return True


def main():
    options = arguments()
    if not os.path.isfile(options.script):
        stop("%s: no such script" % options.script, "the path of a Python file")
    options.output = checked_output(options.output, options.force)
    if importlib.util.find_spec("torch") is None:
        stop("needs PyTorch with CUDA 13, this Python (%s) has none" % sys.executable, "pip install torch")
    load_card(options)
    torch = Torch(options.entries)
    sys.meta_path.insert(0, torch)
    sys.argv = [options.script, *options.rest]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    status = 0
    try:
        runpy.run_path(options.script, run_name="__main__")
    except SystemExit as end:
        status = end.code
    except BaseException:  # what ran out of memory is worth a look, too
        torch.save(options.output)
        raise
    if not torch.save(options.output) and not status:
        stop("%s has not used CUDA" % options.script, "device = 'cuda' in it, as it would run on the card")
    sys.exit(status)


if __name__ == "__main__":
    main()
