# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over the operation tests: out-of-bounds and misaligned accesses, races in shared memory, reads of
what nobody wrote. A planted error comes first: a tool that does not find it is not believed elsewhere. Looked into are our own
kernels by name; NVIDIA's are not ours to mend, and take most of the time."""
import os
import re

from build import kernels_of_all
from machine import CUT, LATE, TOP, Skip, find_tool, why

TOOLS = ("memcheck", "racecheck", "initcheck")
PLANTED_SECONDS = 40
SECONDS = 145
TESTS = ("test_ops_cuda", "test_cuda_products", "test_cuda_loss")

# One process, one trial of each: a sanitizer slows a launch down a hundredfold.
ENVIRONMENT = {"CK_FORK": "no", "HEADROOM_TRIALS": "1", "OMP_WAIT_POLICY": "passive"}
FOUND = r"^========= (?:Invalid |Uninitialized |Error: |Warning: Race|Race reported|Program hit |Misaligned )"


def errors_of(text, status):
    """What the summary counts; of a run that did not end, the reports that it wrote. None where nothing can be said."""
    summary = re.findall(r"ERROR SUMMARY: (\d+)|RACECHECK SUMMARY: (\d+)", text)
    if summary:
        return sum(int(a or b) for a, b in summary)
    return len(re.findall(FOUND, text, re.MULTILINE)) if status in (LATE, CUT) else None


def run(machine, sanitizer, name, words, kernels, seconds):
    log = "%s_%s" % (name, os.path.basename(words[0]))
    chosen = [word for kernel in kernels for word in ("--kernel-name", "kernel_substring=" + kernel)]
    status = machine.run([sanitizer, "--tool", name, "--error-exitcode", "99", *chosen, *words], log, seconds, **ENVIRONMENT)
    with open(machine.log(log), encoding="utf-8", errors="replace") as file:
        text = file.read()
    row = {"tool": name, "test": os.path.basename(words[0]), "exit": status, "errors": errors_of(text, status),
           "complete": status not in (LATE, CUT), "by_name": bool(kernels)}
    if row["errors"] != 0 or status not in (0, LATE, CUT):
        row["head"], row["tail"] = text[:6000], text[-2000:]
    print("%-10s %-24s exit %d, %s errors%s" % (name, row["test"], row["exit"], row["errors"],
                                                "" if row["complete"] else ", not to its end"), flush=True)
    return row


def stems_of(kernels):
    """What their names begin with: a kernel has one for each type, and some begin with another's whole name."""
    stems = sorted({re.sub(r"(_(f32|f16|bf16|i32|u8))+$", "", name) for name in kernels}, key=len)
    kept = []
    for stem in stems:
        if not any(other in stem for other in kept):
            kept.append(stem)
    return sorted(kept)


# ---- the planted error ----------------------------------------------------------------------------------------

def planted_program(machine):
    """Carried, or compiled here; None and why not."""
    carried = os.path.join(machine.build_folder, "tests/planted")
    nvcc = find_tool("nvcc")
    if os.path.exists(carried):
        return carried, None
    if nvcc is None:
        return None, "nvcc is not here to compile it"
    os.makedirs(machine.logs, exist_ok=True)
    made = os.path.join(machine.logs, "..", "planted")
    status = machine.run([nvcc, "-arch=sm_" + machine.architecture(), os.path.join(TOP, "tests/cuda/planted.cu"), "-o", made],
                         "planted_build", PLANTED_SECONDS)
    return (made, None) if status == 0 else (None, machine.tail_of("planted_build"))


def find_planted(machine, sanitizer, name, program):
    """By the kernel's name, and if that finds nothing, by none: whether it is found, and whether names may be given."""
    for kernels in (["planted_"], []):
        row = run(machine, sanitizer, name, [program, name], kernels, PLANTED_SECONDS)
        if row["errors"]:
            return True, bool(kernels)
    return False, False


# ---------------------------------------------------------------------------------------------------------------

def check(machine, sanitizer, name, body, tally, program, kernels):
    by_name = False
    if program is not None:
        found, by_name = find_planted(machine, sanitizer, name, program)
        body["planted"][name] = {"found": found, "by_name": by_name}
        if not found:
            tally.note("%s does not find the planted error" % name, CUT if machine.left(SECONDS) < 2 else 1, "its word is worth "
                       "nothing here")
            return
    for test in TESTS:
        path = os.path.join(machine.build_folder, "tests", test)
        if not os.path.exists(path):
            tally.skip("%s over %s" % (name, test), "not built")
            continue
        row = run(machine, sanitizer, name, [path], kernels if by_name else [], SECONDS)
        body["runs"].append(row)
        if row["exit"] == CUT and not row["errors"]:
            tally.note("%s over %s" % (name, test), CUT, why(CUT, "", ""))
        elif "head" in row:
            tally.failed.append("%s over %s" % (name, test))


def measure(machine, options, body, tally):
    sanitizer = find_tool("compute-sanitizer")
    if options.rehearse:
        body["rehearsed"] = True
        return tally.skip("compute-sanitizer", "it looks into real cards only; tests/cuda/test_run.py plays it")
    if sanitizer is None:
        raise Skip("compute-sanitizer is not installed")
    if not machine.tests("test_ops_cuda*"):
        raise Skip("the operation tests are not built: tests/cuda/run build")
    program, reason = planted_program(machine)
    if program is None:
        tally.skip("the planted error", reason)
    kernels = stems_of(name for family in kernels_of_all(machine).values() for name in family)
    body.update(planted={}, kernels=kernels, runs=[])
    for name in TOOLS[:1] if options.quick else TOOLS:
        check(machine, sanitizer, name, body, tally, program, kernels)
    return None
