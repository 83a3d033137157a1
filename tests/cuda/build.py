# SPDX-License-Identifier: Apache-2.0
"""Configures, compiles and links; and what the compiler made of every kernel: registers, stack, shared memory.

`build.py --targets` and `build.py --kernels` print what is built, a line each, and the kernels of HEADROOM_BUILD as JSON:
scripts/dev/bundle --binaries asks."""
import glob
import json
import os
import re
import sys
import time

import first
from machine import Machine, Skip, find_tool

COMPILE_SECONDS = 420
DUMP_SECONDS = 20


def configure(machine):
    """None where that worked, else the log that says why not."""
    if os.path.exists(os.path.join(machine.build_folder, "CMakeCache.txt")):
        return None  # somebody's folder: built as it was configured
    cmake = ["cmake", "-S", ".", "-B", machine.build_folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DHEADROOM_CUDA=ON", "-DHEADROOM_CUDA_ARCHITECTURES=" + machine.architecture(), "-DHEADROOM_WERROR=OFF",
             "-DHEADROOM_EMULATED_CARD=OFF"]
    if machine.bundle_libraries is not None:  # found without its environment too, and by what is opened later
        cmake += ["-DCMAKE_BUILD_RPATH=" + machine.bundle_libraries,
                  "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags"]
    # Without a screen library engine and card tests are built alone.
    for log, more in (("configure", []), ("configure_engine", ["-DHEADROOM_APP=OFF"])):
        if machine.run([*cmake, *more], log, COMPILE_SECONDS) == 0:
            return None
        for made in ("CMakeCache.txt", "build.ninja"):
            if os.path.exists(os.path.join(machine.build_folder, made)):
                os.remove(os.path.join(machine.build_folder, made))
    return log


def kernels_of(machine, image):
    """{kernel: registers, stack and shared bytes} of one fat binary; without cuobjdump the names alone, which are those of
    sections."""
    cuobjdump = find_tool("cuobjdump")
    if cuobjdump is None:
        with open(image, "rb") as file:
            return {name.decode(): {} for name in re.findall(rb"\0\.text\.(\w+)(?=\0)", file.read())}
    _, text, _ = machine.ask([cuobjdump, "--dump-resource-usage", image], DUMP_SECONDS)
    found = {}
    for name, usage in re.findall(r"Function (\w+):\s*\n?\s*(REG:.*)", text):
        numbers = dict(re.findall(r"([A-Z]+(?:\[\d+\])?):(\d+)", usage))
        found[name] = {"registers": int(numbers.get("REG", 0)), "stack_bytes": int(numbers.get("STACK", 0)),
                       "shared_bytes": int(numbers.get("SHARED", 0)), "local_bytes": int(numbers.get("LOCAL", 0))}
    return found


def kernels_of_all(machine):
    """{file: {kernel: …}}: as they were packed with binaries, or of the fat binaries of a build."""
    packed = os.path.join(machine.build_folder, "kernels.json")
    if os.path.exists(packed):
        with open(packed, encoding="utf-8") as file:
            return json.load(file)
    images = sorted(glob.glob(os.path.join(machine.build_folder, "cuda", "*.fatbin")))
    return {os.path.basename(image)[:-len(".fatbin")]: kernels_of(machine, image) for image in images}


def targets():
    """What the parts start, and nothing else: the program first, then what a part would miss soonest."""
    return ["headroom", "card_facts", *(name for name, _ in first.tests_of_card()), "bench_pipeline"]


def compile_all(machine):
    # What does not compile takes nothing else with it.
    ninja = os.path.exists(os.path.join(machine.build_folder, "build.ninja"))
    keep_going = ["-k", "0"] if ninja else ["-k", "-j%d" % machine.cores()]
    return machine.run(["cmake", "--build", machine.build_folder, "--target", *targets(), "--", *keep_going], "build",
                       COMPILE_SECONDS)


def measure(machine, options, body, tally):
    if machine.binaries is not None:
        raise Skip("what was carried starts: %s" % machine.binaries["said"].splitlines()[0])
    if options.rehearse:
        raise Skip("a rehearsal needs what was built already")
    began = time.monotonic()
    broken = configure(machine)
    body["configured"] = broken is None
    if broken is not None:
        body["log"] = machine.tail_of(broken)
        tally.failed.append("configuring:\n" + body["log"])
        return
    status = compile_all(machine)
    body.update(built=status == 0, compile_seconds=round(time.monotonic() - began, 1),
                program=os.path.exists(machine.headroom), tests=len(machine.tests("test_*")))
    if status != 0:
        body["log"] = machine.tail_of("build", 60)
        tally.note("building", status, "exit %d:\n%s" % (status, body["log"]))
    kernels = body["kernels"] = kernels_of_all(machine)
    body["with_local_memory"] = [name for family in kernels.values() for name, use in family.items()
                                 if use.get("local_bytes") or use.get("stack_bytes")]
    print("built in %.0f s: %d kernels in %d files, %d of them use local memory" %
          (body["compile_seconds"], sum(map(len, kernels.values())), len(kernels), len(body["with_local_memory"])))


if __name__ == "__main__":
    if sys.argv[1:] == ["--kernels"]:
        json.dump(kernels_of_all(Machine()), sys.stdout)
    else:
        print("\n".join(targets()))
