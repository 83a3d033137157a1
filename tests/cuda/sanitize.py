# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over the operation tests: out-of-bounds and misaligned accesses, races in shared memory, reads of
what nobody wrote."""
import os
import re

from machine import LATE, Skip, find_tool

TOOLS = ("memcheck", "racecheck", "initcheck")
SECONDS = 145

# One process, one trial of each: a sanitizer slows a launch down a hundredfold.
ENVIRONMENT = {"CK_FORK": "no", "HEADROOM_TRIALS": "1", "OMP_WAIT_POLICY": "passive"}
FOUND = r"^========= (?:Invalid |Uninitialized |Error: |Warning: Race|Race reported|Program hit |Misaligned )"


def errors_of(text, status):
    """What the summary counts; of a run that did not end, the reports that it wrote. None where nothing can be said."""
    summary = re.findall(r"ERROR SUMMARY: (\d+)|RACECHECK SUMMARY: (\d+)", text)
    if summary:
        return sum(int(a or b) for a, b in summary)
    return len(re.findall(FOUND, text, re.MULTILINE)) if status == LATE else None


def check(machine, tool, name, test):
    log = "%s_%s" % (name, os.path.basename(test))
    status = machine.run([tool, "--tool", name, "--error-exitcode", "99", test], log, SECONDS, **ENVIRONMENT)
    with open(machine.log(log), encoding="utf-8", errors="replace") as file:
        text = file.read()
    row = {"tool": name, "test": os.path.basename(test), "exit": status, "errors": errors_of(text, status),
           "complete": status != LATE}
    if row["errors"] != 0 or status not in (0, LATE):
        row["head"] = text[:6000]
        row["tail"] = text[-2000:]
    return row


def measure(machine, options, body, failed):
    tool = find_tool("compute-sanitizer")
    if tool is None:
        raise Skip("compute-sanitizer is not installed")
    tests = [path for path in machine.tests("test_ops_cuda*") if (options.only or "") in path]
    if not tests:
        raise Skip("the operation tests are not built: tests/cuda/run build")
    body["runs"] = []
    for name in TOOLS[:1] if options.quick else TOOLS:
        for test in tests:
            row = check(machine, tool, name, test)
            body["runs"].append(row)
            print("%-10s %-24s exit %d, %s errors%s" % (name, row["test"], row["exit"], row["errors"],
                                                        "" if row["complete"] else ", not to its end"), flush=True)
            if "head" in row:
                failed.append("%s over %s" % (name, row["test"]))
