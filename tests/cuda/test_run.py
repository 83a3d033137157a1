#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/cuda/run without a card: programs beside them are made up, and crash, hang and talk nonsense. What is
asked: that one of them loses nothing of the others, that nothing outlives its time, that the result is there and whole.
Half a minute, run by hand where the parts were changed: it waits for limits of a few seconds, so ctest does without."""
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

import bench
import check
import machine
import sanitize

HOSTILE = {"hang": "sleep 300", "crash": "echo so it goes >&2; kill -SEGV $$", "refuse": "echo no memory >&2; exit 5",
           "rubbish": "echo '{\"half\":'"}
SMI = """case "$1" in *name*) echo NVIDIA H200;; *compute_cap*) echo 9.0;; *) echo 143771;; esac"""
REPORT = {"memory": {"peak_in_use_bytes": 1000, "peak_pool_bytes": 2000, "heap_hash": "ab"},
          "driver": {"outside_bytes": 10, "process_bytes": 2010, "others_bytes": 0}, "step": {"seconds": 0.5},
          "train": {"loss_first": 2.0, "loss_last": 1.0, "examples_per_second": 4.0, "data": "generated"}}
PEER = """import json, sys, time
print("warning\\n" * 20000, file=sys.stderr)  # more than a pipe holds
for line in sys.stdin:
    %s
    print(json.dumps({"step_seconds": 1.0, "loss_first": 2.0, "loss_last": 1.0, "peak_allocated_bytes": 2000,
                      "peak_reserved_bytes": 4000}), flush=True)
"""


class Parts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(machine.end_all)
        self.build, self.bin = (os.path.join(self.folder.name, name) for name in ("build", "bin"))
        self.script("bin/nvidia-smi", SMI)
        self.patch(os.environ, PATH=self.bin + ":" + os.environ["PATH"], HEADROOM_BUILD=self.build)
        self.patch(machine.Machine, use_bundle=lambda _self: None)
        self.patch(check, TEST_SECONDS=2, RUN_SECONDS=2, RUNS=[("demo", []), ("mlp", []), ("resnet50", [])],
                   PLANS=[("resnet50", []), ("gpt2_124m", [])])
        self.patch(bench, RUN_SECONDS=2, FIRST_SECONDS=2, ANSWER_SECONDS=2, ROUNDS=2)
        self.patch(sanitize, SECONDS=2)
        self.options = types.SimpleNamespace(out=os.path.join(self.folder.name, "out"), quick=False, only=None)
        os.makedirs(self.options.out)

    def patch(self, where, **values):
        change = mock.patch.dict(where, values) if where is os.environ else mock.patch.multiple(where, **values)
        change.start()
        self.addCleanup(change.stop)

    def script(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n%s\n" % text)
        os.chmod(path, 0o755)
        return path

    def headroom(self, special=""):
        """Answers every `plan` and `run`, but first does what `special` says."""
        self.script("build/headroom", "%s\ncat <<'END'\n%s\nEND" % (special, json.dumps(REPORT)))

    def peer(self, special):
        with open(os.path.join(self.folder.name, "peer.py"), "w", encoding="utf-8") as file:
            file.write(PEER % special)
        return self.script("peer", 'exec %s %s "$@"' % (sys.executable, file.name))

    def measure(self, part):
        body, failed = {}, []
        began = time.monotonic()
        part.measure(machine.Machine(), self.options, body, failed)
        self.assertLess(time.monotonic() - began, 60)
        return json.loads(json.dumps(body)), failed

    def test_all_is_well(self):
        self.headroom()
        self.script("build/tests/test_ops_cuda", 'test "$CK_FORK" = no')
        self.script("build/tests/test_cuda_runtime", "exit 77")
        with open(os.path.join(machine.TOP, "presets/cards/h200-141g.json"), encoding="utf-8") as file:
            self.script("build/tests/card_facts", "cat >$1 <<'END'\n%s\nEND" % file.read())
        body, failed = self.measure(check)
        self.assertEqual(failed, [])
        self.assertEqual(sorted(row["exit"] for row in body["tests"]), [0, machine.SKIPPED])
        self.assertEqual([row["differing"] for row in body["plan_and_run"]], [[], [], []])
        self.assertEqual(body["card"]["differing"], {})
        self.assertEqual([row["differing"] for row in body["plan_with_own_properties"]], [[], []])
        self.options.quick = True
        self.assertEqual(len(self.measure(check)[0]["plan_with_own_properties"]), 1)
        self.options.only = "mlp"
        body, failed = self.measure(check)
        self.assertEqual((body["tests"], len(body["plan_and_run"]), failed), ([], 1, []))

    def test_what_fails_loses_nothing_of_the_rest(self):
        for name, does in HOSTILE.items():
            self.script("build/tests/test_cuda_" + name, does)
        self.script("build/tests/test_cuda_well", "true")
        self.script("build/tests/card_facts", "echo '{\"deviceName\": \"other\"}' >$1; echo refused >&2; exit 1")
        for name, does in HOSTILE.items():
            self.headroom('if test "$2" = mlp && test $1 = run; then %s; exit; fi' % does)
            body, failed = self.measure(check)
            self.assertEqual(sum(row["exit"] == 0 for row in body["tests"]), 2)  # rubbish is no failure of a test
            self.assertEqual(["error" in row for row in body["plan_and_run"]], [False, True, False], name)
            self.assertTrue(body["card"]["differing"]["deviceName"])
            self.assertEqual(len(failed), 5)
            self.script("build/tests/test_cuda_hang", "exit 1")  # once is enough

    def test_differences_are_told(self):
        self.headroom()
        other = json.dumps({**REPORT, "memory": {**REPORT["memory"], "heap_hash": "cd"}})
        self.script("build/headroom", 'test $1 = run && echo \'%s\' || echo \'%s\'' % (json.dumps(REPORT), other))
        body, failed = self.measure(check)
        self.assertEqual(body["plan_and_run"][0]["differing"], ["heap_hash"])
        self.assertEqual(len([line for line in failed if "differ in heap_hash" in line]), 3)

    def test_bench_with_subjects_that_fail(self):
        for name, does in [("well", ""), *HOSTILE.items()]:
            self.headroom('if [[ "$*" == *selective* ]]; then %s; fi' % (does + "; exit" if does else ":"))
            special = {"well": "pass", "hang": "time.sleep(300)", "crash": "sys.exit('died')", "refuse": "sys.exit(1)",
                       "rubbish": "print('{', flush=True)"}[name]
            peer = self.peer(special if name == "well" else 'if sys.argv[-1] == "compile": ' + special)
            self.patch(bench, PEER_PYTHON=peer, CASES=bench.CASES[:1])
            body, failed = self.measure(bench)
            rows = {row["name"]: row for row in body["cases"][0]["subjects"]}
            broken = {key for key, row in rows.items() if "error" in row}
            self.assertEqual(broken, set() if name == "well" else {"headroom selective", "pytorch compile"}, name)
            self.assertEqual(rows["pytorch eager"]["all"], [1.0, 1.0])
            self.assertEqual(body["cases"][0]["ratios"]["speed_of_eager"], 2.0)
            self.assertEqual(failed, [])

    def test_bench_ends_in_time(self):
        self.headroom("sleep 1")
        self.patch(bench, PEER_PYTHON=self.peer("time.sleep(0.4)"), ROUNDS=50)
        self.patch(machine, PART_SECONDS=16)
        began = time.monotonic()
        body, _ = self.measure(bench)
        self.assertLess(time.monotonic() - began, 22)
        self.assertEqual(len(body["cases"]), len(bench.CASES))
        self.assertTrue(all(case["rounds"] >= 1 for case in body["cases"]))

    def test_sanitizers(self):
        self.script("build/tests/test_ops_cuda", "true")
        says = {"memcheck": "echo ========= ERROR SUMMARY: 0 errors",
                "racecheck": "echo '========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)'; exit 99",
                "initcheck": "echo '========= Uninitialized __global__ memory read'; sleep 300"}
        self.script("bin/compute-sanitizer", "case $2 in %s esac" % " ".join("%s) %s;;" % row for row in says.items()))
        body, failed = self.measure(sanitize)
        self.assertEqual([row["errors"] for row in body["runs"]], [0, 2, 1])
        self.assertEqual([row["complete"] for row in body["runs"]], [True, True, False])
        self.assertEqual(len(failed), 2)

    def test_the_program_writes_what_it_has(self):
        begun = os.path.join(self.folder.name, "begun")
        self.headroom("test $1 = --version && exit; touch %s; sleep 300" % begun)
        process = subprocess.Popen([sys.executable, os.path.join(HERE, "run"), "test", "--quick", "--out",
                                    self.options.out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(begun) and process.poll() is None:
            time.sleep(0.1)
        process.terminate()
        self.assertNotEqual(process.wait(timeout=20), 0)
        with open(os.path.join(self.options.out, "cuda_test.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["machine"]["card"], "NVIDIA H200")
        self.assertTrue(result["failed"])

    def test_no_card(self):
        self.script("bin/nvidia-smi", "exit 9")
        for part in ("test", "bench", "sanitize"):
            done = subprocess.run([sys.executable, os.path.join(HERE, "run"), part, "--out", self.options.out],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout[:8]), (machine.SKIPPED, "skipped:"))


if __name__ == "__main__":
    unittest.main()
