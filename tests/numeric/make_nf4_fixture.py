#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes fixtures/nf4.json: what bitsandbytes' quantize_4bit (nf4, blocks of 64, on the processor) makes of some values.

Made with bitsandbytes 0.50.2 and torch 2.15.0. Run in this folder: python3 make_nf4_fixture.py
"""
import json

import torch
from bitsandbytes import functional

generator = torch.Generator().manual_seed(3)
values = torch.cat([
    torch.randn(4 * 64, generator=generator),
    torch.rand(64, generator=generator) * 1e-3,
    torch.zeros(64),
    torch.randn(22, generator=generator) * 30,
])
q, state = functional.quantize_4bit(values, blocksize=64, quant_type="nf4")
back = functional.dequantize_4bit(q, state)
with open("fixtures/nf4.json", "w", encoding="ascii") as out:
    json.dump({
        "levels": [x.hex() for x in state.code.tolist()],
        "values": [x.hex() for x in values.tolist()],
        "q": q.flatten().tolist(),
        "scale": [x.hex() for x in state.absmax.tolist()],
        "back": [x.hex() for x in back.flatten().tolist()],
    }, out, indent=0)
    out.write("\n")
