# SPDX-License-Identifier: Apache-2.0
"""Configures, compiles and links; and what the compiler made of every kernel: registers, stack, shared memory."""
import glob
import os
import re
import subprocess
import time

from machine import find_tool, tail_of

COMPILE_SECONDS = 420


def configure(machine, log):
    if os.path.exists(os.path.join(machine.build_folder, "CMakeCache.txt")):
        return 0  # somebody's folder: built as it was configured
    cmake = ["cmake", "-S", ".", "-B", machine.build_folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DHEADROOM_CUDA=ON", "-DHEADROOM_CUDA_ARCHITECTURES=" + machine.architecture(), "-DHEADROOM_WERROR=OFF"]
    status = machine.run(cmake, log, COMPILE_SECONDS)
    if status == 0:
        return status
    # Without a screen library engine and card tests are built alone.
    return machine.run([*cmake, "-DHEADROOM_APP=OFF"], log, COMPILE_SECONDS)


def kernels_of(image):
    """{kernel: registers, stack and shared bytes} of one fat binary."""
    cuobjdump = find_tool("cuobjdump")
    if cuobjdump is None:
        return {}
    text = subprocess.run([cuobjdump, "--dump-resource-usage", image], capture_output=True, text=True, check=False).stdout
    found = {}
    for name, usage in re.findall(r"Function (\w+):\s*\n?\s*(REG:.*)", text):
        numbers = dict(re.findall(r"([A-Z]+(?:\[\d+\])?):(\d+)", usage))
        found[name] = {"registers": int(numbers.get("REG", 0)), "stack_bytes": int(numbers.get("STACK", 0)),
                       "shared_bytes": int(numbers.get("SHARED", 0)), "local_bytes": int(numbers.get("LOCAL", 0))}
    return found


def measure(machine, options):
    os.makedirs(machine.build_folder, exist_ok=True)
    os.makedirs(options.out, exist_ok=True)
    log = os.path.join(options.out, "build.log")
    began = time.time()
    if configure(machine, log) != 0:
        print(tail_of(log))
        return {"configured": False}, ["configuring: see build.log"]
    if machine.run(["cmake", "--build", machine.build_folder], log, COMPILE_SECONDS) != 0:
        print(tail_of(log))
        return {"configured": True, "built": False}, ["building: see build.log"]
    kernels = {}
    for image in sorted(glob.glob(os.path.join(machine.build_folder, "cuda", "*.fatbin"))):
        kernels[os.path.basename(image)[:-len(".fatbin")]] = kernels_of(image)
    spilling = [name for family in kernels.values() for name, use in family.items() if use["local_bytes"]]
    count = sum(len(family) for family in kernels.values())
    print("built in %.0f s: %d kernels in %d files, %d of them use local memory" %
          (time.time() - began, count, len(kernels), len(spilling)))
    return {"configured": True, "built": True, "kernels": kernels, "with_local_memory": spilling}, []
