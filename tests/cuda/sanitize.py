# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over the operation tests: out-of-bounds and misaligned accesses, races in shared memory, reads of
what nobody wrote."""
import os
import re

from machine import Skip, find_tool

TOOLS = ("memcheck", "racecheck", "initcheck")
SECONDS = 140


def measure(machine, options):
    tool = find_tool("compute-sanitizer")
    if tool is None:
        raise Skip("compute-sanitizer is not installed")
    tests = [path for path in machine.tests("test_ops_cuda*") if (options.only or "") in path]
    if not tests:
        raise Skip("the operation tests are not built: tests/cuda/run build")
    os.makedirs(options.out, exist_ok=True)
    found, failed = [], []
    for name in TOOLS[:1] if options.quick else TOOLS:
        for test in tests:
            log = os.path.join(options.out, "%s_%s.log" % (name, os.path.basename(test)))
            # One process, one trial of each: a sanitizer slows a launch down a hundredfold.
            status = machine.run([tool, "--tool", name, "--error-exitcode", "99", test], log, SECONDS, CK_FORK="no",
                                 HEADROOM_TRIALS="1")
            with open(log, encoding="utf-8", errors="replace") as file:
                text = file.read()
            summary = re.findall(r"ERROR SUMMARY: (\d+)|RACECHECK SUMMARY: (\d+)", text)
            errors = sum(int(a or b) for a, b in summary) if summary else None
            found.append({"tool": name, "test": os.path.basename(test), "exit": status, "errors": errors,
                          "complete": status != 124})
            print("%-10s %-24s exit %d, %s errors" % (name, os.path.basename(test), status, errors))
            if errors is None or errors > 0 or status not in (0, 124):
                failed.append("%s over %s" % (name, os.path.basename(test)))
    return {"runs": found}, failed
