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
import build
import first
import machine
import sanitize
import timed
import truth

HOSTILE = {"hang": "sleep 300", "crash": "echo so it goes >&2; kill -SEGV $$", "refuse": "echo no memory >&2; exit 5",
           "rubbish": "echo '{\"half\":'"}
SMI = """case "$1" in *name*) echo NVIDIA H200;; *compute_cap*) echo 9.0;; *) echo 143771;; esac"""
REPORT = {"memory": {"peak_in_use_bytes": 1000, "peak_pool_bytes": 2000, "heap_hash": "ab"},
          "driver": {"outside_bytes": 10, "process_bytes": 2010, "others_bytes": 0}, "transfer": {"h2d_bytes_per_step": 0}, "step": {"seconds": 0.5, "prepared": [], "capture": {"replays": 4, "refusal": None},
          "search": {"graphs_known": 2, "graphs_measured": 2, "graphs_unmeasured": 0, "seconds": 0.1, "refusal": None}},
          "train": {"loss_first": 2.0, "loss_last": 1.0, "examples_per_second": 4.0, "data": "generated"}}
ROW = ('3,forward,"a/dense",product,bfloat16,"cublaslt",0,bfloat16 4x8,bfloat16 4x8; bfloat16 8x8,512,64,1024,3,5000,'
       "4000,3000")
TABLE = """while test $# -gt 0; do if test "$1" = --times; then cat >$2 <<'END'
instr,phase,name,family,dtype,implementation,behind,results,operands,flops,bytes_moved,workspace_bytes,steps,took_ns,least_ns,estimated_ns
%s
END
fi; shift; done""" % ROW
LISTING = """; W 128 B  w[bfloat16 8x8]
    3  forward      1.0 KiB  cublaslt                   a/dense  y[bfloat16 4x8] <- w, w
"""
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
        self.patch(machine.Machine, use_binaries=lambda _self: None)
        self.patch(first, RUN_SECONDS=2, SMOKE_SECONDS=2, RUNS=[("demo", []), ("mlp", []), ("resnet50", [])], tests_of_card=lambda: [],
                   PLANS=[("resnet50", []), ("gpt2_124m", [])], SMOKE=[], CAPTURED=[])
        self.patch(bench, RUN_SECONDS=2, FIRST_SECONDS=2, ANSWER_SECONDS=2, ROUNDS=2)
        self.patch(sanitize, SECONDS=2, PLANTED_SECONDS=2, TESTS=("test_ops_cuda",))
        self.patch(truth, PEER_SECONDS=2, RUN_SECONDS=2, MODELS=[("mlp", 4, "adam"), ("unet", 4, "adam")])
        self.patch(timed, RUN_SECONDS=2, MODELS=[("mlp", [])], QUESTIONS={}, ENGINES=[("resnet50", [])], ENGINES_SECONDS=2)
        self.options = types.SimpleNamespace(out=os.path.join(self.folder.name, "out"), quick=False, only=None, rehearse=False)
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
        """Answers every `plan` and `run`, and writes the table that --times names, but first does what `special` says."""
        self.script("build/headroom", "%s\n%s\ncat <<'END'\n%s\nEND" % (special, TABLE, json.dumps(REPORT)))

    def peer(self, special):
        with open(os.path.join(self.folder.name, "peer.py"), "w", encoding="utf-8") as file:
            file.write(PEER % special)
        return self.script("peer", 'exec %s %s "$@"' % (sys.executable, file.name))

    def measure(self, part, seconds=400):
        body, self.tally = {}, machine.Tally()
        began = time.monotonic()
        part.measure(machine.Machine("part", seconds), self.options, body, self.tally)
        self.assertLess(time.monotonic() - began, 60)
        return json.loads(json.dumps(body)), self.tally.failed

    def of_card(self, **does):
        """Tests of that name, each at most two seconds."""
        for name, what in does.items():
            self.script("build/tests/" + name, what)
        self.patch(first, tests_of_card=lambda: [(name, 2) for name in does])

    def test_all_is_well(self):
        self.headroom()
        self.of_card(test_ops_cuda='test "$CK_FORK" = no', test_cuda_runtime="exit 77")
        with open(os.path.join(machine.TOP, "presets/cards/h200-141g.json"), encoding="utf-8") as file:
            self.script("build/tests/card_facts", "cat >$1 <<'END'\n%s\nEND" % file.read())
        body, failed = self.measure(first)
        self.assertEqual(failed, [])
        self.assertEqual(sorted(row["exit"] for row in body["tests"]), [0, machine.SKIPPED])
        self.assertEqual([row["differing"] for row in body["plan_and_run"]], [[], [], []])
        self.assertEqual(body["card"]["differing"], {})
        self.assertEqual([row["differing"] for row in body["plan_with_own_properties"]], [[], []])
        self.options.quick = True
        self.assertEqual(len(self.measure(first)[0]["plan_with_own_properties"]), 1)
        self.options.only = "mlp"
        body, failed = self.measure(first)
        self.assertEqual((body["tests"], len(body["plan_and_run"]), failed), ([], 1, []))

    def test_what_fails_loses_nothing_of_the_rest(self):
        self.of_card(**{"test_cuda_" + name: does for name, does in HOSTILE.items()}, test_cuda_well="true")
        self.script("build/tests/card_facts", "echo '{\"deviceName\": \"other\"}' >$1; echo refused >&2; exit 1")
        for name, does in HOSTILE.items():
            self.headroom('if test "$2" = mlp && test $1 = run; then %s; exit; fi' % does)
            body, failed = self.measure(first)
            self.assertEqual(sum(row["exit"] == 0 for row in body["tests"]), 2)  # rubbish is no failure of a test
            self.assertEqual(["error" in row for row in body["plan_and_run"]], [False, True, False], name)
            self.assertTrue(body["card"]["differing"]["deviceName"])
            self.assertEqual(len(failed), 5)
            self.script("build/tests/test_cuda_hang", "exit 1")  # once is enough

    def test_what_ran_to_its_end_runs_once(self):
        count = os.path.join(self.folder.name, "count")
        self.headroom()
        self.of_card(test_cuda_wrong="echo x >>%s; echo '50%%: Checks: 2, Failures: 1, Errors: 0'; exit 1" % count)
        body, failed = self.measure(first)
        self.assertEqual((body["tests"][0]["exit"], "in_one_process" in body["tests"][0]), (1, False))
        self.assertTrue(any("test_cuda_wrong" in line for line in failed))
        with open(count, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_only_takes_words(self):
        self.headroom()
        self.of_card(test_cuda_one="true", test_cuda_two="true", test_cuda_three="true")
        self.options.only = "cuda_one,cuda_two,mlp"
        body, _ = self.measure(first)
        self.assertEqual(([row["test"] for row in body["tests"]], [row["name"] for row in body["plan_and_run"]]),
                         (["test_cuda_one", "test_cuda_two"], ["mlp"]))

    def test_differences_are_told(self):
        self.headroom()
        other = json.dumps({**REPORT, "memory": {**REPORT["memory"], "heap_hash": "cd"}})
        self.script("build/headroom", 'test $1 = run && echo \'%s\' || echo \'%s\'' % (json.dumps(REPORT), other))
        body, failed = self.measure(first)
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
            self.assertEqual([body["cases"][0]["ratios"][key] for key in ("speed_of_eager", "speed_resident_of_eager")],
                             [2.0, 2.0])
            self.assertEqual(failed, [])

    def test_bench_ends_in_time(self):
        self.headroom("sleep 1")
        self.patch(bench, PEER_PYTHON=self.peer("time.sleep(0.4)"), ROUNDS=50)
        began = time.monotonic()
        body, _ = self.measure(bench, 24)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(len(body["cases"]), len(bench.CASES))
        self.assertTrue(all(case["rounds"] >= 1 for case in body["cases"]))

    def sanitizers(self, planted, by_name=True):
        """Of a tool that finds what is planted, with the kernel's name or without one alone, or does not."""
        self.script("build/tests/planted", "true")
        self.script("build/tests/test_ops_cuda", "true")
        with open(os.path.join(self.build, "kernels.json"), "w", encoding="utf-8") as file:
            json.dump({"adam": {"adam_f32": {}, "adam_bf16": {}}}, file)
        names = "true" if by_name else '[[ "$*" != *kernel_substring* ]]'
        says = {"memcheck": "echo ========= ERROR SUMMARY: 0 errors",
                "racecheck": "echo '========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)'; exit 99",
                "initcheck": "echo '========= Uninitialized __global__ memory read'; sleep 300"}
        self.script("bin/compute-sanitizer", "if [[ $* == */planted* ]]; then %s && echo ========= ERROR SUMMARY: %d errors; exit 0; fi\n"
                    "echo \"$*\" >>%s/words\ncase $2 in %s esac" % (names, planted, self.folder.name,
                                                                  " ".join("%s) %s;;" % row for row in says.items())))

    def test_sanitizers(self):
        self.sanitizers(planted=1)
        body, failed = self.measure(sanitize)
        self.assertEqual([row["errors"] for row in body["runs"]], [0, 2, 1])
        self.assertEqual([row["complete"] for row in body["runs"]], [True, True, False])
        self.assertEqual(len(failed), 2)
        self.assertEqual({tuple(row.values()) for row in body["planted"].values()}, {(True, True)})
        with open(os.path.join(self.folder.name, "words"), encoding="utf-8") as file:
            self.assertTrue(all("kernel_substring=adam " in line for line in file))

    def test_sanitizers_that_take_no_names(self):
        self.sanitizers(planted=1, by_name=False)
        body, _ = self.measure(sanitize)
        self.assertEqual({tuple(row.values()) for row in body["planted"].values()}, {(True, False)})
        self.assertEqual([row["by_name"] for row in body["runs"]], [False] * 3)

    def test_a_sanitizer_that_finds_nothing_is_not_believed(self):
        self.sanitizers(planted=0)
        body, failed = self.measure(sanitize)
        self.assertEqual((body["runs"], len(failed)), ([], 3))

    def test_what_lies_behind_the_deadline_is_skipped(self):
        self.headroom("sleep 1")
        self.of_card(test_cuda_one="sleep 60", test_cuda_two="true")
        body, failed = self.measure(first, 6)
        self.assertEqual([line.split(":")[0] for line in failed], ["the card's own properties"])  # there is no card_facts
        self.assertGreaterEqual(len(self.tally.skipped), 4)
        self.assertEqual({row["exit"] for row in body["tests"]}, {machine.CUT})

    def test_a_smoke_says_who_computed(self):
        self.headroom()
        self.patch(first, SMOKE=[("products", "mlp", [])], CAPTURED=[("mlp", [])])
        body, failed = self.measure(first)
        self.assertEqual(body["smoke"][0]["who"], {"cublaslt": [1, 1024]})
        self.assertEqual((body["captured"][0]["equal"], failed), (True, ["the card's own properties: " + failed[0].split(": ", 1)[1]]))
        report = {**REPORT, "train": {**REPORT["train"], "loss_last": 1.5}}
        self.headroom('if [[ "$*" == *cuda_graph=on* ]]; then echo \'%s\'; exit; fi' % json.dumps(report))
        body, failed = self.measure(first)
        self.assertFalse(body["captured"][0]["equal"])
        self.assertTrue(any("1.5 captured" in line for line in failed))

    def test_what_is_not_as_planned_fails(self):
        told = {"prepared": [{"first": "a/attention", "planned": "cudnn eng9", "implementation": "own", "instructions": 1,
                              "reason": "not supported"}], "capture": {"replays": 0, "refusal": "invalid"}}
        self.script("build/headroom", "echo '%s'" % json.dumps({**REPORT, "step": {**REPORT["step"], **told}}))
        self.patch(first, RUNS=[("demo", []), ("demo", ["execution.cuda_graph=on"])])
        _, failed = self.measure(first)
        self.assertEqual((sum("cudnn eng9" in line for line in failed), sum("0 steps were replayed" in line for line in failed)),
                         (2, 1))

    def test_a_profile_has_the_floor_beside_it(self):
        rates = "\n".join("%s: %s" % pair for pair in (("float32_flops", "6.0e+13"), ("bfloat16_flops", "9.0e+14"),
                                                        ("memory_bytes_per_second", "4.8e+12")))
        self.headroom("if test $1 = cards; then echo '%s'; exit; fi\nif [[ \"$*\" == *--listing* ]]; then cat <<'END'\n%sEND\nexit; fi"
                      % (rates, LISTING))
        body, failed = self.measure(timed)
        self.assertEqual((body["engines"][0]["searched_ms"], body["engines"][0]["plan_equals_run"]), (500, True))
        self.assertEqual(failed, [])
        group = body["models"][0]["groups"][0]
        self.assertEqual((group["group"], group["ms"]), ("product", 0.005))
        self.assertEqual(body["models"][0]["families"][0]["took_of_estimated"], 5 / 3)
        self.assertAlmostEqual(group["floor_ms"], timed.floor.LAUNCH_SECONDS * 1e3)

    def test_truth_has_both_sides(self):
        self.headroom()
        peer = self.peer('if line.split()[1:3] == ["8", "bfloat16"]: sys.exit(1)')
        self.patch(bench, PEER_PYTHON=peer)
        body, failed = self.measure(truth)
        self.assertEqual((len(body["models"]), failed), (6, []))
        self.assertEqual([row.get("peak_of_pytorch") for row in body["models"]], [0.5, 0.5, None] * 2)

    def test_every_test_of_the_card_runs_or_is_left_out(self):
        mock.patch.stopall()
        there = {name[:-2] for folder in ("numeric", "unit") for name in os.listdir(os.path.join(machine.TOP, "tests", folder))
                 if "cud" in name and name.endswith(".c")}
        run = [name for name, _ in first.tests_of_card()]
        self.assertEqual(set(run) | set(first.LEFT_OUT), there)
        self.assertEqual((len(run), run[-1]), (len(set(run)), "test_ops_cuda"))
        self.assertTrue({"headroom", *run} <= set(build.targets()))

    def test_the_program_writes_what_it_has(self):
        begun = os.path.join(self.folder.name, "begun")
        self.headroom("test $1 = --version && exit; touch %s; sleep 300" % begun)
        process = subprocess.Popen([sys.executable, os.path.join(HERE, "run"), "first", "--quick", "--out",
                                    self.options.out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(begun) and process.poll() is None:
            time.sleep(0.1)
        process.terminate()
        self.assertNotEqual(process.wait(timeout=20), 0)
        with open(os.path.join(self.options.out, "cuda_first.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["machine"]["card"], "NVIDIA H200")
        self.assertTrue(result["failed"])

    def test_what_was_carried_is_used_where_it_starts(self):
        mock.patch.stopall()
        for does, starts in (("echo headroom 0.1.0", True), ("echo GLIBC_2.99 not found >&2; exit 1", False)):
            with tempfile.TemporaryDirectory() as top:
                carried = os.path.join(top, "binaries")
                os.makedirs(os.path.join(carried, "tests"))
                os.makedirs(os.path.join(top, "build"))
                for name, text in (("headroom", "#!/bin/bash\n%s\n" % does), ("carried.json", "[]")):
                    with open(os.path.join(carried, name), "w", encoding="utf-8") as file:
                        file.write(text)
                    os.chmod(file.name, 0o755)
                subprocess.run(["tar", "cJf", "build/binaries.tar.xz", "binaries"], cwd=top, check=True)
                with mock.patch.object(machine, "TOP", top), mock.patch.dict(os.environ, HEADROOM_BUILD="build/cuda"):
                    here = machine.Machine()
                    self.assertEqual(here.binaries is not None, starts)
                    self.assertEqual(here.headroom, os.path.join(top, "build", "binaries" if starts else "cuda", "headroom"))
                    if not starts:
                        self.assertIn("GLIBC_2.99", here.binaries_error)

    def test_no_card(self):
        self.script("bin/nvidia-smi", "exit 9")
        for part in ("first", "profile", "truth", "bench", "sanitize"):
            done = subprocess.run([sys.executable, os.path.join(HERE, "run"), part, "--out", self.options.out],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout[:8]), (machine.SKIPPED, "skipped:"))


if __name__ == "__main__":
    unittest.main()
