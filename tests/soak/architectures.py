# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels for every architecture that headroom ships, and PTX, in an order of the seed, until the time is over.

usage: architectures.py --seconds S --seed N
Fails when one does not compile or warns. A long run has them all; the result says which architectures an image really holds.
"""
import argparse
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
KERNELS = os.path.join(TOP, "engine/device/cuda/kernels")


def architectures():
    with open(os.path.join(TOP, "cmake/cuda.cmake"), encoding="utf-8") as file:
        return re.search(r'set\(hr_cuda_all "([0-9;]+)"', file.read())[1].split(";")


def tool(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def compile_one(nvcc, path, wanted, image):
    words = ["-gencode=arch=compute_%s,code=sm_%s" % (a, a) for a in wanted]
    words.append("-gencode=arch=compute_%s,code=compute_%s" % (wanted[-1], wanted[-1]))
    return subprocess.run([nvcc, "-std=c++17", "-O3", *words, "-Werror", "all-warnings", "-fatbin", "-o", image, path],
                          capture_output=True, text=True, check=False)


def inside(image):
    """Architectures of the machine code in a fat binary; None where cuobjdump is not installed to say so."""
    if tool("cuobjdump") is None:
        return None
    text = subprocess.run([tool("cuobjdump"), "--list-elf", image], capture_output=True, text=True, check=False).stdout
    return sorted(set(re.findall(r"sm_(\d+)", text)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    nvcc, wanted = tool("nvcc"), architectures()
    if nvcc is None:
        print(json.dumps({"skipped": "nvcc is not installed"}))
        return 0
    files = sorted(glob.glob(os.path.join(KERNELS, "*.cu")))
    random.Random(options.seed).shuffle(files)
    begin, done, failed = time.time(), {}, []
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            if done and time.time() - begin > options.seconds:
                break
            name, image = os.path.basename(path), os.path.join(folder, "image.fatbin")
            began = time.time()
            result = compile_one(nvcc, path, wanted, image)
            if result.returncode != 0 or inside(image) not in (None, wanted):
                failed.append(name)
                print(result.stderr, file=sys.stderr)
            done[name] = round(time.time() - began, 1)
    print(json.dumps({"seed": options.seed, "architectures": wanted, "files": len(files), "compiled": len(done),
                      "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
