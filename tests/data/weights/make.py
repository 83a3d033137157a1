#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the small GGUF and safetensors files of this folder, with Python alone: headers as the formats' specifications have
them (docs/gguf.md of ggml-org/ggml, README of huggingface/safetensors) and zeros behind them. Prints what is in each.

    python3 tests/data/weights/make.py [FOLDER]
"""
import json
import os
import struct
import sys

BLOCKS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2), "Q8_0": (8, 32, 34), "Q4_0": (2, 32, 18), "I32": (26, 1, 4)}


class Gguf:
    """The header of one file, of either byte order."""

    def __init__(self, order="<", version=3):
        self.order, self.version, self.keys, self.tensors = order, version, [], []

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def text(self, words):
        data = words.encode()
        return self.pack("Q", len(data)) + data

    def value(self, value):
        if isinstance(value, bool):
            return self.pack("IB", 7, value)
        if isinstance(value, int):
            return self.pack("II", 4, value)
        if isinstance(value, float):
            return self.pack("If", 6, value)
        if isinstance(value, str):
            return self.pack("I", 8) + self.text(value)
        one = value[0]
        code, form = (8, None) if isinstance(one, str) else (5, "i") if isinstance(one, int) else (6, "f")
        items = b"".join(self.text(v) if form is None else self.pack(form, v) for v in value)
        return self.pack("IIQ", 9, code, len(value)) + items

    def key(self, name, value):
        self.keys.append(self.text(name) + self.value(value))

    def tensor(self, name, shape, kind):
        self.tensors.append((name, shape, kind))  # PyTorch's order: rows first

    def write(self, path):
        head = b"GGUF" + self.pack("IQQ", self.version, len(self.tensors), len(self.keys)) + b"".join(self.keys)
        at, parameters = 0, 0
        for name, shape, kind in self.tensors:
            number, block, size = BLOCKS[kind]
            elements = 1
            for side in shape:
                elements *= side
            head += self.text(name) + self.pack("I", len(shape))
            head += b"".join(self.pack("Q", side) for side in reversed(shape))
            head += self.pack("IQ", number, at)
            at += (elements // block * size + 31) // 32 * 32
            parameters += elements if not name.startswith("rope_freqs") else 0
        head += b"\0" * (-len(head) % 32)
        with open(path, "wb") as out:
            out.write(head + b"\0" * at)
        print(f"{os.path.basename(path)}: {len(self.tensors)} tensors, {parameters} parameters")


def network(g, name, big, small, *, hidden=32, inner=64, layers=2, heads=4, kv_heads=2, vocab=64, experts=0, bias=False,
            head=True, norms=False, width=0):
    g.key("general.architecture", name)
    g.key("general.name", "a tiny one")
    g.key(f"{name}.context_length", 128)
    g.key(f"{name}.embedding_length", hidden)
    g.key(f"{name}.block_count", layers)
    g.key(f"{name}.feed_forward_length", [inner] * layers)
    g.key(f"{name}.attention.head_count", heads)
    g.key(f"{name}.attention.head_count_kv", kv_heads)
    g.key(f"{name}.attention.layer_norm_rms_epsilon", 1e-5)
    g.key(f"{name}.rope.freq_base", 500000.0)
    if width:
        g.key(f"{name}.attention.key_length", width)
        g.key(f"{name}.attention.value_length", width)
    width = width or hidden // heads
    g.key(f"{name}.rope.dimension_count", width)
    if experts:
        g.key(f"{name}.expert_count", experts)
        g.key(f"{name}.expert_used_count", 2)
    g.key("tokenizer.ggml.tokens", [f"word{k}" for k in range(vocab)])
    g.key("tokenizer.ggml.scores", [0.5] * vocab)
    g.key("general.quantization_version", 2)
    kv, queries = width * kv_heads, width * heads
    g.tensor("token_embd.weight", (vocab, hidden), big)
    g.tensor("rope_freqs.weight", (width // 2,), "F32")
    for k in range(layers):
        b = f"blk.{k}."
        g.tensor(b + "attn_norm.weight", (hidden,), small)
        for part, rows in (("q", queries), ("k", kv), ("v", kv)):
            g.tensor(f"{b}attn_{part}.weight", (rows, hidden), big)
            if bias:
                g.tensor(f"{b}attn_{part}.bias", (rows,), small)
        g.tensor(b + "attn_output.weight", (hidden, queries), big)
        if norms:
            g.tensor(b + "attn_q_norm.weight", (width,), small)
            g.tensor(b + "attn_k_norm.weight", (width,), small)
        g.tensor(b + "ffn_norm.weight", (hidden,), small)
        if experts:
            g.tensor(b + "ffn_gate_inp.weight", (experts, hidden), small)
        for part, shape in (("gate", (inner, hidden)), ("up", (inner, hidden)), ("down", (hidden, inner))):
            g.tensor(f"{b}ffn_{part}{'_exps' if experts else ''}.weight", ((experts,) if experts else ()) + shape, big)
    g.tensor("output_norm.weight", (hidden,), small)
    if head:
        g.tensor("output.weight", (vocab, hidden), big)


def safetensors(path, tensors, metadata=None):
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, kind, shape, width in tensors:
        elements = 1
        for side in shape:
            elements *= side
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + elements * width]}
        at += elements * width
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(words)) + words + b"\0" * at)
    print(f"{os.path.basename(path)}: {len(tensors)} tensors, {at} bytes")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    files = {
        "llama_q4_0.gguf": (Gguf(), "llama", "Q4_0", "F32", {}),
        "llama_big_endian.gguf": (Gguf(">"), "llama", "Q4_0", "F32", {}),
        "qwen2_f16.gguf": (Gguf(version=2), "qwen2", "F16", "F32", {"bias": True, "head": False}),
        "qwen3_bf16.gguf": (Gguf(), "qwen3", "BF16", "F32", {"head": False, "norms": True, "width": 16}),
        "experts_q8_0.gguf": (Gguf(), "llama", "Q8_0", "F32", {"experts": 4, "inner": 32}),
        "unknown_q4_0.gguf": (Gguf(), "deepseek2", "Q4_0", "F32", {"layers": 1}),
    }
    for name, (g, architecture, big, small, more) in files.items():
        network(g, architecture, big, small, **more)
        g.write(os.path.join(folder, name))
    safetensors(os.path.join(folder, "mixed.safetensors"),
                [("embed.weight", "BF16", (64, 32), 2), ("norm.weight", "F32", (32,), 4), ("scalar", "F32", (), 4),
                 ("position_ids", "I64", (1, 16), 8), ("empty", "F16", (0, 7), 2), ("eight", "F8_E4M3", (8, 8), 1)],
                {"format": "pt", "a \"quoted\" key": "and a \\ value"})


if __name__ == "__main__":
    main()
