#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what PEFT trains in transformers' models of published sizes, without weights: they are built on the meta device.

    python3 tests/bench/peers/peft_counts.py >tests/bench/results/peft_counts.json
"""
import json
import sys

import peft
import torch
import transformers

ROWS = [
    ("gpt2_124m", transformers.GPT2Config(), ["c_attn"]),
    ("bert_base", transformers.BertConfig(), ["query", "value"]),
    ("llama3_1_8b", transformers.LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336,
                                             num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8),
     ["q_proj", "v_proj"]),
]


def count(config, targets, rank):
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
        adapted = peft.get_peft_model(model, peft.LoraConfig(r=rank, lora_alpha=rank, target_modules=targets))
    return adapted.get_nb_trainable_parameters()


json.dump({
    "peft": peft.__version__, "transformers": transformers.__version__, "torch": torch.__version__,
    "rows": [{"model": name, "targets": targets, "rank": rank, "trainable": count(config, targets, rank)[0]}
             for name, config, targets in ROWS for rank in (8, 16, 32)],
}, sys.stdout, indent=1)
print()
