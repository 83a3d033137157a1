#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every fuzz target of tests/fuzz for its share of the time, two at once, and prints one line of JSON.

  tests/soak/fuzz.py --seconds S --seed N [--only NAME,…]
                                              S is the whole time; an hour for each of 8 targets is 4 hours

With clang the targets are built (preset fuzz) with libFuzzer and the address and undefined sanitizers; without it
the release build's own driver changes the corpus. What a run finds is copied to build/fuzz-findings/, and the exit
code is 1. The corpus is only read: new inputs live and die in a temporary folder.
"""
import argparse
import concurrent.futures
import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

CORPUS = "tests/fuzz/corpus"
FINDINGS = "build/fuzz-findings"
AT_ONCE = 2
LONGEST_INPUT = 1 << 16


def targets(only):
    names = sorted(os.path.basename(path) for path in glob.glob(CORPUS + "/*"))
    unknown = set(only) - set(names)
    if unknown:
        sys.exit("tests/soak/fuzz.py: needed targets of tests/fuzz/corpus, had %s" % ", ".join(sorted(unknown)))
    return only or names


def built_with_libfuzzer(names):
    """Where the fuzzers are, or None where clang or its runtime is missing."""
    if shutil.which("clang") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        probe = ["clang", "-fsanitize=fuzzer,address", "-x", "c", "-", "-o", folder + "/probe"]
        source = b"int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n > 0; }"
        if subprocess.run(probe, input=source, capture_output=True, check=False).returncode != 0:
            return None
    os.makedirs("build", exist_ok=True)
    with open("build/fuzz.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # soaks that run side by side have targets in common: one build at a time
        build = ["cmake", "--build", "--preset", "fuzz", "--target", *["fuzz_" + name for name in names]]
        for step in (["cmake", "--preset", "fuzz"], build):
            done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                sys.exit("tests/soak/fuzz.py: %s failed:\n%s" % (" ".join(step), done.stdout[-3000:]))
    return "build/fuzz/tests"


def fuzz(programs, name, seconds, seed):
    """Runs one target; the executions, and what it found: file names below FINDINGS."""
    corpus = os.path.realpath(os.path.join(CORPUS, name))
    program = os.path.realpath(os.path.join(programs, "fuzz_" + name))
    with tempfile.TemporaryDirectory() as folder:
        if programs == "build/fuzz/tests":
            os.mkdir(folder + "/new")
            words = "tests/fuzz/%s.dict" % name
            argv = [program, "-max_total_time=%d" % seconds, "-seed=%d" % seed, "-max_len=%d" % LONGEST_INPUT,
                    "-print_final_stats=1", "-rss_limit_mb=2048", "-malloc_limit_mb=256", "-timeout=10",
                    *(["-dict=" + os.path.realpath(words)] if os.path.exists(words) else []), "new", corpus]
        else:
            argv = [program, corpus, "--seconds", str(seconds), "--seed", str(seed)]
        run = subprocess.run(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", check=False)
        counted = re.search(r'(?:number_of_executed_units: |"executions": )(\d+)', run.stdout)
        found = []
        for path in sorted(glob.glob(folder + "/*-*")):
            os.makedirs(FINDINGS, exist_ok=True)
            found.append("%s/%s-%s" % (FINDINGS, name, os.path.basename(path)))
            shutil.copy(path, found[-1])
        if run.returncode != 0:
            print(run.stdout[-4000:], file=sys.stderr)
            found = found or ["exit code %d" % run.returncode]
    return {"executions": int(counted.group(1)) if counted else None, "findings": found}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    names = targets([name for name in args.only.split(",") if name])
    libfuzzer = built_with_libfuzzer(names)
    each = max(1, args.seconds * AT_ONCE // len(names))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {name: pool.submit(fuzz, libfuzzer or "build/release/tests", name, each, args.seed) for name in names}
    results = {name: run.result() for name, run in runs.items()}
    findings = sum(len(result["findings"]) for result in results.values())
    print(json.dumps({"name": "fuzz", "engine": "libFuzzer" if libfuzzer else "plain", "seed": args.seed,
                      "minutes_each": round(each / 60, 2), "targets": results, "findings": findings}))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
