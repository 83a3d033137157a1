#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF files of every type in both byte orders with the gguf package, and a safetensors file of NumPy's types with the
safetensors package, and holds what headroom reads in their headers against what the packages say of them.

  tests/bench/peers/weights_headers.py        a Python with gguf, safetensors and numpy; writes
                                              tests/bench/results/weights_headers.json
"""
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "..")]

import gguf
import numpy
from safetensors.numpy import save_file

import measure

RESULT = os.path.join(measure.TOP, "tests/bench/results/weights_headers.json")
ELEMENTS = 3 * 1024
NUMPY = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool")


def read(path):
    done = subprocess.run([measure.headroom_program(), "plan", path, "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"refused": done.stderr}


def write_gguf(path, kind, order):
    block, size = gguf.constants.GGML_QUANT_SIZES[kind]
    writer = gguf.GGUFWriter(path, "nothing", endianess=order)
    writer.add_array("list", [1, 2, 3])
    writer.add_array("words", ["a", "b"])
    writer.add_float32("real", 0.1)
    writer.add_tensor("a", numpy.zeros((3, ELEMENTS // 3 // block * size), dtype=numpy.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def measure_headers(_options):
    differing = {}
    kinds = list(gguf.constants.GGMLQuantizationType)
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for order in gguf.GGUFEndian:
                path = os.path.join(folder, "a.gguf")
                write_gguf(path, kind, order)
                said = read(path)
                there = sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors)
                if said.get("bytes") != there or said.get("types", [{}])[0].get("elements") != ELEMENTS:
                    differing["%s %s" % (kind.name, order.name)] = {"headroom": said.get("bytes", said), "gguf": there}
        path = os.path.join(folder, "a.safetensors")
        arrays = {"t%d" % k: numpy.zeros((3, k + 1), dtype=kind) for k, kind in enumerate(NUMPY)}
        arrays |= {"scalar": numpy.zeros((), dtype="float32"), "empty": numpy.zeros((0, 3), dtype="float32")}
        save_file(arrays, path, metadata={"a \"key\"": "a \\ value \u0001 ключ"})
        said = read(path)
        if (said.get("tensors"), said.get("bytes")) != (len(arrays), sum(array.nbytes for array in arrays.values())):
            differing["safetensors"] = said
    versions = {name: importlib.metadata.version(name) for name in ("gguf", "safetensors", "numpy")}
    return {"versions": versions, "gguf_types": len(kinds), "byte_orders": 2, "safetensors_types": len(NUMPY), "differing": differing}


def main():
    result = measure.result_of("weights_headers", measure_headers, None)
    with open(RESULT, "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    print(json.dumps({key: result[key] for key in ("gguf_types", "byte_orders", "safetensors_types", "differing")}))


if __name__ == "__main__":
    main()
