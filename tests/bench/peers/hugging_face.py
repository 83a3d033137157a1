#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what headroom reads out of a config.json against the network that transformers builds of it.

  tests/bench/peers/hugging_face.py     a Python with PyTorch, transformers and safetensors; writes
                                        tests/bench/results/hugging_face.json

`files`: trainable parameters of every file of tests/data/hf, on PyTorch's meta device and as `headroom plan` has them.
`losses`: a tiny decoder of each architecture, its weights drawn by headroom and given to transformers, and the loss of one
sample on both sides (float32, the cpu device). Nothing of a model is downloaded. Exit 1: one of them differs.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import safetensors.torch
import torch
import transformers

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
HEADROOM = os.path.join(TOP, "build/release/headroom")
RESULT = os.path.join(TOP, "tests/bench/results/hugging_face.json")
PLACES = 16
SAMPLE = bytes((i * 37 + 11) % 256 for i in range(PLACES))
TOLERANCE = 1e-5  # of the loss: float32 sums in another order

LLAMA = dict(vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=PLACES, initializer_range=0.3, pad_token_id=0,
             bos_token_id=0, eos_token_id=0)
GPT = dict(vocab_size=256, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3, resid_pdrop=0, attn_pdrop=0,
           embd_pdrop=0)
TINY = {
    "LlamaForCausalLM": dict(model_type="llama", attention_bias=True, mlp_bias=True, **LLAMA),
    "MistralForCausalLM": dict(model_type="mistral", **LLAMA),
    "Qwen2ForCausalLM": dict(model_type="qwen2", tie_word_embeddings=True, **LLAMA),
    "Qwen3ForCausalLM": dict(model_type="qwen3", head_dim=10, **LLAMA),
    "GemmaForCausalLM": dict(model_type="gemma", head_dim=8, **LLAMA),
    "Gemma2ForCausalLM": dict(model_type="gemma2", head_dim=8, query_pre_attn_scalar=8, attn_logit_softcapping=None,
                              **LLAMA),
    "Phi3ForCausalLM": dict(model_type="phi3", **LLAMA),
    "Starcoder2ForCausalLM": dict(model_type="starcoder2", **LLAMA),
    "SeedOssForCausalLM": dict(model_type="seed_oss", head_dim=8, attention_dropout=0.0, residual_dropout=0.0, **LLAMA),
    "GraniteForCausalLM": dict(model_type="granite", embedding_multiplier=3.0, residual_multiplier=0.4,
                               logits_scaling=2.0, attention_multiplier=8**-0.5, **LLAMA),
    "GPT2LMHeadModel": dict(model_type="gpt2", n_positions=PLACES, **GPT),
    "GPTBigCodeForCausalLM": dict(model_type="gpt_bigcode", n_positions=PLACES + 7, **GPT),
    "OPTForCausalLM": dict(model_type="opt", vocab_size=256, hidden_size=32, word_embed_proj_dim=32, ffn_dim=48,
                           num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=PLACES, init_std=0.3,
                           dropout=0.0),
}
# What a module of a block is called here, where it is not called the same.
NORMS = {"input_layernorm": "input_norm", "post_attention_layernorm": "post_norm",
         "self_attn_layer_norm": "attn_norm", "final_layer_norm": "final_norm"}
NORMS_OF_GEMMA2 = {"input_layernorm": "input_norm", "post_attention_layernorm": "post_attn_norm",
                   "pre_feedforward_layernorm": "post_norm", "post_feedforward_layernorm": "post_mlp_norm"}
PROJECTIONS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "output", "out_proj": "output"}
OUTSIDE = {"wte": "wte", "embed_tokens": "embed_tokens", "wpe": "wpe", "embed_positions": "embed_positions",
           "ln_f": "ln_f", "norm": "norm", "final_layer_norm": "final_norm", "lm_head": "lm_head"}


def run_headroom(*words):
    done = subprocess.run([HEADROOM, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"headroom {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def built(config):
    """The module; Gemma's files name their activation under a key of their own."""
    words = {key: value for key, value in config.items() if key != "architectures"}
    if words["model_type"] == "gemma":
        words["hidden_act"] = "gelu_pytorch_tanh"
    if "id2label" in words:
        words["id2label"] = {int(key): value for key, value in words["id2label"].items()}
    made = transformers.CONFIG_MAPPING[words["model_type"]].from_dict(words)
    made._attn_implementation = "eager"
    return getattr(transformers, config["architectures"][0])(made)


# ---- parameters ---------------------------------------------------------------------------------------------------------


def count(path):
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    with torch.device("meta"):
        module = built(config)
        module.tie_weights()
    ours = run_headroom("plan", path, "--json")["model"]["trainable_parameters"]
    return {"file": os.path.basename(path), "architecture": config["architectures"][0],
            "transformers": sum(p.numel() for p in module.parameters()), "headroom": ours}


# ---- losses -------------------------------------------------------------------------------------------------------------


def of_attention(ours, prefix, name, kind):
    """Queries, keys and values, which some modules hold as one."""
    if "c_attn" in name or "qkv_proj" in name:
        return torch.cat([ours[f"{prefix}attn/{part}_{kind}"] for part in ("query", "key", "value")], -1)
    part = "output" if "attn.c_proj" in name else next(PROJECTIONS[p] for p in PROJECTIONS if p + "." in name)
    return ours[f"{prefix}attn/{part}_{kind}"]


def of_block(ours, prefix, name, architecture):
    words = name.split(".")
    kind = "weights" if words[-1] == "weight" else "bias"
    module = words[-2]
    norms = NORMS_OF_GEMMA2 if architecture == "Gemma2ForCausalLM" else NORMS
    if module in ("q_norm", "k_norm"):
        return ours[f"{prefix}attn/{'query' if module[0] == 'q' else 'key'}_gamma"]
    if module in norms or module.startswith("ln_"):
        return ours[f"{prefix}{norms.get(module, module)}/{'gamma' if kind == 'weights' else 'beta'}"]
    if "attn" in name:
        return of_attention(ours, prefix, name, kind)
    layer = {"c_fc": "mlp_fc", "c_proj": "mlp_proj"}.get(module, module) if prefix[0] == "h" else module
    return ours[f"{prefix}{layer}/{kind}"]


def value_of(ours, name, architecture):
    words = name.split(".")
    for blocks, prefix in (("layers", "layers_{}_"), ("h", "h{}_")):
        if blocks in words:
            return of_block(ours, prefix.format(words[words.index(blocks) + 1]), name, architecture)
    layer = OUTSIDE[words[-2]]
    norm = f"{layer}/{'gamma' if words[-1] == 'weight' else 'beta'}"
    return ours[norm] if norm in ours else ours[f"{layer}/weights"]


def give_weights(module, ours, architecture):
    values = {}
    for name, there in module.state_dict().items():
        if name == "lm_head.weight" and module.config.tie_word_embeddings:
            continue
        value = value_of(ours, name, architecture)
        # A product's weights lie the other way round in torch.nn.Linear; Gemma's gains stand around 0.
        product = value.dim() == 2 and not any(word in name for word in ("embed", "wte", "wpe"))
        value = value.T.contiguous() if product and architecture != "GPT2LMHeadModel" else value
        value = value - 1 if "norm" in name and architecture.startswith("Gemma") else value
        if value.shape != there.shape:
            sys.exit(f"{architecture}: {name} is {list(there.shape)}, ours {list(value.shape)}")
        values[name] = value
    module.load_state_dict(values, strict=False)
    module.tie_weights()


def compare_loss(architecture, config, folder):
    path, save, text = (os.path.join(folder, leaf) for leaf in (f"{architecture}.json", f"{architecture}.save", "text"))
    config = dict(config, architectures=[architecture])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(text, "wb") as file:
        file.write(SAMPLE * 4000)
    settings = ["device.kind=cpu", "device.vram=256MiB", "batch.size=1", "optimizer.kind=sgd", "optimizer.weight_decay=0",
                "optimizer.learning_rate=1e-30", "pipeline.source=text", f"pipeline.path={text}",
                f"model.sequence={PLACES}", f"train.save={save}"]
    report = run_headroom("run", path, "--json", "--steps", "1", *(word for s in settings for word in ("-s", s)))
    module = built(config).float().eval()
    give_weights(module, safetensors.torch.load_file(save), architecture)
    labels = torch.tensor(list(SAMPLE[1:] + SAMPLE[:1]))
    with torch.no_grad():
        logits = module(input_ids=torch.tensor([list(SAMPLE)])).logits
        theirs = torch.nn.functional.cross_entropy(logits[0], labels).item()
    return {"architecture": architecture, "transformers": theirs, "headroom": report["train"]["loss_first"]}


def main():
    files = [count(path) for path in sorted(glob.glob(os.path.join(TOP, "tests/data/hf/*.json")))]
    with tempfile.TemporaryDirectory() as folder:
        losses = [compare_loss(name, config, folder) for name, config in TINY.items()]
    result = {"transformers": transformers.__version__, "PyTorch": torch.__version__, "files": files, "losses": losses}
    with open(RESULT, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    different = [f["file"] for f in files if f["transformers"] != f["headroom"]]
    different += [x["architecture"] for x in losses
                  if abs(x["transformers"] - x["headroom"]) > TOLERANCE * x["transformers"]]
    print(f"{len(files)} files, {len(losses)} losses; different: {', '.join(different) or 'none'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
