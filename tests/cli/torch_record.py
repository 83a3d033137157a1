#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Promises of scripts/record/torch_record.py: torch_record.py LIBRARY HEADROOM. Without PyTorch: what it says when something
is not there, and which card it puts beneath a PyTorch (a small package that stands in for it). With HEADROOM_PEER_PYTHON, a
Python that has PyTorch with CUDA 13: a step is recorded, and replayed to the byte.
"""
import json
import os
import pickle
import py_compile
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, HEADROOM = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/record/torch_record.py")
# As much of PyTorch as torch_record touches. Its card is the one of the library, asked as PyTorch asks.
STAND_IN = '''
import ctypes, json, os
__version__ = "2.99"
class version: cuda = os.environ.get("STAND_IN_CUDA", "13.0") or None
class memory:
    def _record_memory_history(stacks, max_entries): print("records", max_entries)
    def _snapshot(): return {"segments": [], "device_traces": [[{}] * 7]}
class cuda:
    memory = memory
    waiting = []
    def _lazy_call(call): cuda.waiting.append(call)
    def init():
        for call in cuda.waiting: call()
        library, free, total = ctypes.CDLL(None), ctypes.c_size_t(), ctypes.c_size_t()
        print("answers", library.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)), free.value, total.value)
    def max_memory_allocated(): return 1
    def max_memory_reserved(): return 2
    def get_device_name(n): return "stand-in"
    def get_device_properties(n): return type("p", (), {"total_memory": 3})
'''
STEP = '''
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.LazyLinear(10)).cuda()
x, y = torch.randn(64, 3, 32, 32, device="cuda"), torch.randint(0, 10, (64,), device="cuda")
optimizer = torch.optim.AdamW(model.parameters()) if model(x) is not None else None
for _ in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
assert loss.item() == 0
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
'''


class TorchRecord(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name, words):
        path = os.path.join(self.at, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(words)
        return path

    def run_it(self, *words, python=sys.executable, cuda="13.0", **more):
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        environment.update({"PYTHONPATH": self.at, "STAND_IN_CUDA": cuda, "XDG_DATA_HOME": self.at, **more})
        # A sanitizer's own library has to come first where ours needs it.
        return subprocess.run([python, RECORD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.at,
                              env=environment, check=False)

    def stand_in(self):
        self.file("torch/__init__.py", STAND_IN)

    def refused(self, run, sentence, code=4):
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertIn(sentence, run.stderr)
        self.assertIn("\n  try: ", run.stderr)
        self.assertNotIn("Traceback", run.stderr)

    def test_it_compiles_and_helps_without_torch(self):
        py_compile.compile(RECORD, cfile=os.path.join(self.at, "compiled"), doraise=True)
        run = self.run_it("--help")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("--card NAME", run.stdout)

    def test_what_is_not_there_is_named(self):
        script = self.file("train.py", "print('never')\n")
        self.refused(self.run_it("--card", "rtx4090-24g", "nowhere.py"), "nowhere.py: no such script")
        self.file("sitecustomize.py", "import sys; sys.modules['torch'] = None\n")
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", LIBRARY, script), "needs PyTorch with CUDA 13")
        os.unlink(os.path.join(self.at, "sitecustomize.py"))
        self.stand_in()
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", "nowhere.so", script),
                     "needs libheadroom_numbers.so, found none at nowhere.so")
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", RECORD, script), "cannot be loaded")
        alone = shutil.copy(LIBRARY, self.at)
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", alone, script), "_nvml.so cannot be loaded")
        self.refused(self.run_it("--card", "rtx9999", "--library", LIBRARY, script), "--card rtx9999: no such file")
        self.refused(self.run_it("--card", self.file("card.json", "[1]"), "--library", LIBRARY, script), "no object")
        self.refused(self.run_it("--card", self.file("card.json", "{"), "--library", LIBRARY, script), "is no file of")

    def test_bytes_are_counted_or_refused(self):
        for words in ("24XiB", "GiB", "-1", "1e400", ""):
            run = self.run_it("--card", "rtx4090-24g", "--memory=" + words, "train.py")
            self.assertEqual(run.returncode, 2, words)
            self.assertIn("needs bytes, like 24GiB, had", run.stderr)

    def test_another_cuda_is_refused(self):
        script = self.file("train.py", "import torch\nprint('never')\n")
        self.stand_in()
        run = self.run_it("--card", "rtx4090-24g", "--library", LIBRARY, script, cuda="12.8")
        self.refused(run, "is built for CUDA 12.8, a card of numbers is of CUDA 13")
        self.assertEqual(run.stdout, "")
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", LIBRARY, script, cuda=""), "the processor alone")

    def test_the_card_lies_beneath_torch_and_the_script_gets_its_arguments(self):
        script = self.file("train.py", "import sys, torch\ntorch.cuda.init()\nprint(sys.argv[1:], __name__)\n")
        self.stand_in()
        run = self.run_it("--card", "rtx4090-24g", "--memory", "1.5GiB", "--context", "0.5 GiB", "--output", "out", "--entries",
                          "7", "--library", LIBRARY, script, "--epochs", "2")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.splitlines(), ["records 7", "answers 0 %d %d" % (1 << 30, 3 << 29),
                                                   "['--epochs', '2'] __main__"])
        self.assertIn("out: at most 1 bytes allocated, 2 reserved, of stand-in with 3", run.stderr)
        with open(os.path.join(self.at, "out"), "rb") as file:
            self.assertEqual(pickle.load(file), {"segments": [], "device_traces": [[{}] * 7]})
        self.assertIn("full with 7 entries, earlier requests are lost\n  try: --entries 70", run.stderr)

    def test_the_output_is_checked_before_the_run_and_meant_from_where_it_began(self):
        self.stand_in()
        os.mkdir(os.path.join(self.at, "aside"))
        script = self.file("train.py", "import os, torch\nos.chdir('aside')\ntorch.cuda.init()\n")
        card = ("--card", "rtx4090-24g", "--library", LIBRARY)
        for output, sentence in (("nowhere/out", "there is no folder"), ("aside", "cannot be written"),
                                 ("train.py", "is there, and no snapshot")):
            self.refused(self.run_it(*card, "--output", output, script), sentence, 2)
        for _ in range(2):  # new, over its own kind
            run = self.run_it(*card, "--output", "out", script)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotIn("are lost", run.stderr)
            with open(os.path.join(self.at, "out"), "rb") as file:
                self.assertIn("segments", pickle.load(file))
        self.file("out", "words")
        self.refused(self.run_it(*card, "--output", "out", script), "is there, and no snapshot", 2)
        run = self.run_it(*card, "--output", "out", "--force", script)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_card_is_found_by_path_and_has_what_is_asked_of_it(self):
        self.stand_in()
        script = self.file("train.py", "import torch\ntorch.cuda.init()\n")
        presets = os.path.join(os.path.dirname(RECORD), "../../presets/cards/rtx4090-24g.json")
        shutil.copy(presets, os.path.join(self.at, "mine"))
        shutil.copy(presets, os.path.join(self.at, "other.json"))
        for name in "mine", "other", os.path.join(self.at, "mine"):
            run = self.run_it("--card", name, "--library", LIBRARY, script)
            self.assertEqual(run.returncode, 0, run.stderr)
        card = ("--card", "mine", "--library", LIBRARY)
        self.refused(self.run_it(*card, "--memory", "1GiB", "--context", "2GiB", script), "is larger than the card", 2)
        self.refused(self.run_it(*card, "--memory", "65TiB", script), "is larger than can be recorded", 2)
        for words in "0", "-1", "x":
            run = self.run_it(*card, "--entries=" + words, script)
            self.assertEqual(run.returncode, 2)
            self.assertIn("needs a positive count", run.stderr)

    def test_a_script_that_fails_is_recorded_and_one_without_cuda_is_told(self):
        self.stand_in()
        failing = self.file("train.py", "import torch\ntorch.cuda.init()\nraise MemoryError('too much')\n")
        run = self.run_it("--card", "rtx4090-24g", "--output", "out", "--library", LIBRARY, failing)
        self.assertEqual(run.returncode, 1)
        self.assertIn("MemoryError: too much", run.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.at, "out")))
        idle = self.file("train.py", "import torch\n")
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", LIBRARY, idle), "has not used CUDA")
        ending = self.file("train.py", "import sys, torch\ntorch.cuda.init()\nsys.exit(7)\n")
        run = self.run_it("--card", "rtx4090-24g", "--output", "other", "--library", LIBRARY, ending)
        self.assertEqual(run.returncode, 7)
        self.assertTrue(os.path.exists(os.path.join(self.at, "other")))
        idle = self.file("train.py", "import sys, torch\nsys.exit()\n")
        self.refused(self.run_it("--card", "rtx4090-24g", "--library", LIBRARY, idle), "has not used CUDA")

    @unittest.skipUnless(os.environ.get("HEADROOM_PEER_PYTHON"), "HEADROOM_PEER_PYTHON names no Python with PyTorch")
    def test_a_step_of_pytorch_is_recorded_and_replayed_to_the_byte(self):
        script = self.file("train.py", STEP)
        run = self.run_it("--card", "rtx4090-24g", "--output", "step.pickle", "--library", LIBRARY, script,
                          python=os.environ["HEADROOM_PEER_PYTHON"], PYTHONPATH="")
        self.assertEqual(run.returncode, 0, run.stderr)
        allocated, reserved = map(int, run.stdout.split())
        replay = subprocess.run([HEADROOM, "replay", os.path.join(self.at, "step.pickle"), "--allocator", "caching", "--json"],
                                stdout=subprocess.PIPE, check=True)
        memory = json.loads(replay.stdout)["allocators"][0]["memory"]
        self.assertEqual((memory["peak_in_use_bytes"], memory["peak_pool_bytes"]), (allocated, reserved))


if __name__ == "__main__":
    unittest.main()
