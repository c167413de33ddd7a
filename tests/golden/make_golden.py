#!/usr/bin/env python3
"""Writes the golden models: tiny random models of every architecture variant, and what they must compute.

Development only; see README.md beside this file for the command. Each folder of models/ holds one model (a
Hugging Face folder or GGUF) and golden.safetensors with
    tokens  I32 [n]         the input
    logits  F32 [n x vocab] transformers' answer, in float32 over the weights as the files have them
The weights come from a seed of the folder's name. All logits are computed from the files as read back.
"""

import argparse
import json
import shutil
import zlib
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (AutoModelForCausalLM, FalconConfig, Gemma2Config, Gemma3TextConfig, Glm4MoeConfig,
                          GptOssConfig, GraniteConfig, LlamaConfig, Ministral3Config, MistralConfig,
                          MixtralConfig, Olmo2Config, OlmoeConfig, OPTConfig, PersimmonConfig, Phi3Config,
                          PhiConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config, Qwen3MoeConfig, SmolLM3Config,
                          Starcoder2Config)
from transformers.activations import ACT2FN

N_TOKENS = 24
MAX_LOGIT = 8.0  # the last norm is scaled to make this max|logit|, so that predictions are far from uniform

COMMON = {"initializer_range": 0.02, "use_cache": True, "bos_token_id": 1, "eos_token_id": 2}


def llama(**changes):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128, "hidden_size": 32,
        "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
        "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
        **COMMON, **changes,
    }  # fmt: skip


def opt(**changes):
    return {
        "architectures": ["OPTForCausalLM"], "model_type": "opt", "vocab_size": 128, "hidden_size": 32,
        "word_embed_proj_dim": 32, "ffn_dim": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 64, "activation_function": "relu", "do_layer_norm_before": True,
        "dropout": 0.0, "pad_token_id": 1, "tie_word_embeddings": True, **COMMON, **changes,
    }  # fmt: skip


def falcon(**changes):
    return {
        "architectures": ["FalconForCausalLM"], "model_type": "falcon", "vocab_size": 128, "hidden_size": 32,
        "ffn_hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "multi_query": True,
        "parallel_attn": True, "new_decoder_architecture": False, "alibi": False, "bias": False,
        "layer_norm_epsilon": 1e-5, "activation": "relu", "max_position_embeddings": 64, "rope_theta": 10000.0,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "tie_word_embeddings": True, **COMMON, **changes,
    }  # fmt: skip


def persimmon(**changes):
    return {
        "architectures": ["PersimmonForCausalLM"], "model_type": "persimmon", "vocab_size": 128,
        "hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 64, "hidden_act": "relu2", "layer_norm_eps": 1e-5, "qk_layernorm": True,
        "partial_rotary_factor": 0.5, "rope_theta": 25000.0, "tie_word_embeddings": False, **COMMON, **changes,
    }  # fmt: skip


def phi(**changes):
    return {
        "architectures": ["PhiForCausalLM"], "model_type": "phi", "vocab_size": 128, "hidden_size": 32,
        "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "hidden_act": "relu", "layer_norm_eps": 1e-5, "qk_layernorm": False,
        "partial_rotary_factor": 0.5, "rope_theta": 10000.0, "tie_word_embeddings": False, **COMMON, **changes,
    }  # fmt: skip


# Not in transformers: models with it bring their own code. x where x > threshold, else 0.
FATRELU_THRESHOLD = 0.25
ACT2FN["fatrelu"] = (torch.nn.Threshold, {"threshold": FATRELU_THRESHOLD, "value": 0.0})

# Wavelengths of theta 500000 over 8 pairs are on both sides of, and between, llama3's two bounds (16 and 64).
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}  # fmt: skip
LLAMA3 = {"rope_theta": 500000.0, "rope_scaling": LLAMA3_ROPE, "max_position_embeddings": 512}
QWEN2 = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "rope_theta": 1000000.0,
         "rms_norm_eps": 1e-6, "use_sliding_window": False, "max_window_layers": 2}  # fmt: skip
QWEN2_WINDOW = {"use_sliding_window": False, "sliding_window": None, "max_window_layers": 2}
LLAMA2_CONFIG = llama(num_key_value_heads=4)

# name: config.json as of models on the hub. "sliding_window" of qwen2 has no effect, and must have none.
HUGGING_FACE = {
    "llama2": LLAMA2_CONFIG,
    "llama2-f16": LLAMA2_CONFIG,
    "llama2-bf16": LLAMA2_CONFIG,
    "llama3": llama(head_dim=16, **LLAMA3),  # q has 64 rows, twice hidden_size
    "llama-linear": llama(rope_scaling={"type": "linear", "factor": 4.0}),
    "llama-tied-8-heads": llama(num_attention_heads=8, num_key_value_heads=1, tie_word_embeddings=True),
    "llama-odd-sizes": llama(hidden_size=40, num_attention_heads=5, num_key_value_heads=5,
                             intermediate_size=172, vocab_size=105),
    "mistral": llama(architectures=["MistralForCausalLM"], model_type="mistral", sliding_window=7,
                     num_hidden_layers=3),
    "qwen2": llama(**QWEN2, tie_word_embeddings=True, sliding_window=7),
    "qwen25-untied": llama(**QWEN2, sliding_window=None),
    "opt": opt(),
    "opt-f16": opt(),
    "opt-bf16": opt(),
    "llama-fatrelu": llama(hidden_act="fatrelu", hidden_act_param=FATRELU_THRESHOLD),
    "falcon": falcon(),
    "falcon-bf16": falcon(),
    "falcon-grouped": falcon(new_decoder_architecture=True, num_kv_heads=2, num_attention_heads=8, bias=True,
                             activation="gelu", tie_word_embeddings=False),
    "falcon-serial": falcon(multi_query=False, parallel_attn=False),
    "persimmon": persimmon(),
    "persimmon-f16": persimmon(),
    "phi": phi(),
    "mixtral": llama(architectures=["MixtralForCausalLM"], model_type="mixtral", num_local_experts=4,
                     num_experts_per_tok=2, intermediate_size=48, sliding_window=None),
    "mixtral-bf16": llama(architectures=["MixtralForCausalLM"], model_type="mixtral", num_local_experts=4,
                          num_experts_per_tok=2, intermediate_size=48, sliding_window=None),
    "qwen3-moe": llama(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_experts=8,
                       num_experts_per_tok=3, moe_intermediate_size=24, decoder_sparse_step=1, mlp_only_layers=[],
                       norm_topk_prob=True, head_dim=16, **{**QWEN2_WINDOW, "rope_theta": 1000000.0}),
    "olmoe": llama(architectures=["OlmoeForCausalLM"], model_type="olmoe", num_experts=8, num_experts_per_tok=3,
                   intermediate_size=24, norm_topk_prob=False, clip_qkv=0.75, num_key_value_heads=4),
    "phi-gelu": phi(hidden_act="gelu_new", qk_layernorm=True, partial_rotary_factor=0.25),
}  # fmt: skip
SHARDED = {"llama3"}
# config.json as transformers 5 writes it: "rope_parameters" in place of rope_theta and rope_scaling, "dtype"
WRITTEN_BY_TRANSFORMERS = {"qwen25-untied"}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}

GGUF_ENCODINGS = ["F32", "F16", "BF16", "Q8_0", "Q4_0"]
GGUF_CONFIGS = {
    "llama": llama(hidden_size=64, intermediate_size=64, **LLAMA3),
    "qwen2": llama(**QWEN2, tie_word_embeddings=True, sliding_window=None),
}
GGUF_MIXTURE_CONFIGS = {
    name: {**HUGGING_FACE[name], "vocab_size": 128, **changes}
    for name, changes in [("mixtral", {"intermediate_size": 32}),
                          ("qwen3-moe", {"moe_intermediate_size": 32}),
                          ("olmoe", {"intermediate_size": 32, "clip_qkv": None})]
}
# Each has what its architecture adds; windows are shorter than the tokens. Keys of GGUF that follow from its values
# are in GGUF_KEYS.
GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "intermediate_size": 96, "head_dim": 32,
         "query_pre_attn_scalar": 32, "rms_norm_eps": 1e-6, "sliding_window": 7, "tie_word_embeddings": True}
# Contexts are around the length of the tokens: longrope has one list of divisors below, another one above.
def longrope(original):
    return {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
            "original_max_position_embeddings": original,
            "short_factor": [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0],
            "long_factor": [4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0]}  # fmt: skip


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 16,
        "beta_fast": 4.0, "beta_slow": 1.0}  # fmt: skip
GGUF_FAMILY_CONFIGS = {
    "phi3": llama(model_type="phi3", hidden_size=128, head_dim=32, rope_parameters=longrope(32), pad_token_id=None,
                  original_max_position_embeddings=32, sliding_window=None, max_position_embeddings=128),
    "phi3-long": llama(model_type="phi3", hidden_size=128, head_dim=32, rope_parameters=longrope(16),
                       pad_token_id=None, original_max_position_embeddings=16, sliding_window=None,
                       max_position_embeddings=128),
    "smollm3": llama(model_type="smollm3", hidden_size=64, num_hidden_layers=4, rope_theta=2000000.0,
                     pad_token_id=None, tie_word_embeddings=True),
    "mistral3": llama(model_type="ministral3", hidden_size=64, head_dim=32, max_position_embeddings=128,
                      pad_token_id=None,
                      rope_parameters={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5}),
    "qwen2-yarn": llama(**QWEN2, hidden_size=64, max_position_embeddings=128, sliding_window=None,
                        rope_parameters={**YARN, "rope_theta": 1000000.0}),
    "qwen2-moe": llama(model_type="qwen2_moe", hidden_size=64, num_hidden_layers=2, num_experts=8,
                       num_experts_per_tok=3, moe_intermediate_size=32, shared_expert_intermediate_size=64,
                       norm_topk_prob=False, use_sliding_window=False, sliding_window=None),
    "glm4-moe": llama(model_type="glm4_moe", hidden_size=64, head_dim=32, num_hidden_layers=3, n_routed_experts=8,
                      num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=2, first_k_dense_replace=1,
                      norm_topk_prob=True, routed_scaling_factor=1.5, use_qk_norm=True, attention_bias=True,
                      num_nextn_predict_layers=0,
                      rope_parameters={"rope_type": "default", "rope_theta": 1000000.0,
                                       "partial_rotary_factor": 0.5}),
    "gpt-oss": llama(model_type="gpt_oss", hidden_size=64, head_dim=32, num_hidden_layers=3, num_local_experts=8,
                     num_experts_per_tok=3, intermediate_size=64, sliding_window=7, attention_bias=True,
                     max_position_embeddings=128,
                     layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                     rope_parameters={**YARN, "rope_theta": 150000.0, "truncate": False}),
    "gemma2": llama(model_type="gemma2", num_hidden_layers=3, attn_logit_softcapping=2.0, final_logit_softcapping=6.0,
                    layer_types=["sliding_attention", "full_attention", "sliding_attention"], **GEMMA),
    "gemma3": llama(model_type="gemma3_text", num_hidden_layers=7, attn_logit_softcapping=None,
                    final_logit_softcapping=None,
                    rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                                     "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
                    layer_types=["sliding_attention"] * 5 + ["full_attention", "sliding_attention"], **GEMMA),
    "qwen3": llama(model_type="qwen3", hidden_size=64, head_dim=32, rms_norm_eps=1e-6, rope_theta=1000000.0,
                   use_sliding_window=False, sliding_window=None, max_window_layers=2),
    "granite": llama(model_type="granite", hidden_size=64, embedding_multiplier=6.0, residual_multiplier=0.25,
                     attention_multiplier=0.125, logits_scaling=4.0, tie_word_embeddings=True),
    "olmo2": llama(model_type="olmo2", hidden_size=64, rms_norm_eps=1e-6, rope_theta=500000.0),
    "starcoder2": llama(model_type="starcoder2", hidden_size=64, hidden_act="gelu_pytorch_tanh", norm_epsilon=1e-5,
                        use_bias=True, sliding_window=None, rope_theta=100000.0, tie_word_embeddings=True),
}  # fmt: skip
# Variants of a family: one file each, in F32, shows what they add to it.
GGUF_ONCE = {"phi3-long", "qwen2-yarn"}
GGUF_KEYS = {
    "phi3": {"rope.dimension_count": 24, "attention.sliding_window": 0},
    "mistral3": {"attention.temperature_scale": 0.5, "rope.scaling.yarn_log_multiplier": 1.0},
    "qwen2moe": {"expert_shared_feed_forward_length": 64},
    "glm4moe": {"rope.dimension_count": 16, "expert_shared_count": 2, "leading_dense_block_count": 1,
                "expert_weights_scale": 1.5, "expert_weights_norm": True, "expert_gating_func": 2,
                "nextn_predict_layers": 0},
    "gpt-oss": {"attention.sliding_window": 7},
    "gemma2": {"attention.sliding_window": 7, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 6.0},
    "gemma3": {"attention.sliding_window": 7, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    "granite": {"embedding_scale": 6.0, "residual_scale": 0.25, "attention.scale": 0.125, "logit_scale": 4.0},
    "starcoder2": {"attention.layer_norm_epsilon": 1e-5},
}
# GGUF's architecture of a mixture; its files have a layer's experts in one tensor.
GGUF_MIXTURES = {"mixtral": "llama", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "olmoe": "olmoe",
                 "glm4_moe": "glm4moe", "gpt_oss": "gpt-oss"}  # fmt: skip
GGUF_NAMES = {**GGUF_MIXTURES, "gemma3_text": "gemma3", "ministral3": "mistral3"}
GGUF_SPLIT = {"gguf-llama-q8_0"}

CONFIG_CLASSES = {"llama": LlamaConfig, "mistral": MistralConfig, "qwen2": Qwen2Config, "opt": OPTConfig,
                  "falcon": FalconConfig, "persimmon": PersimmonConfig, "phi": PhiConfig, "mixtral": MixtralConfig,
                  "qwen3_moe": Qwen3MoeConfig, "olmoe": OlmoeConfig, "gemma2": Gemma2Config,
                  "gemma3_text": Gemma3TextConfig, "qwen3": Qwen3Config, "granite": GraniteConfig,
                  "olmo2": Olmo2Config, "starcoder2": Starcoder2Config, "phi3": Phi3Config,
                  "smollm3": SmolLM3Config, "ministral3": Ministral3Config, "qwen2_moe": Qwen2MoeConfig,
                  "glm4_moe": Glm4MoeConfig, "gpt_oss": GptOssConfig}  # fmt: skip
LAST_NORMS = {"opt": "model.decoder.final_layer_norm", "falcon": "transformer.ln_f",
              "persimmon": "model.final_layernorm", "phi": "model.final_layernorm"}  # fmt: skip


def seed_of(name):
    """Variants of one model in several encodings share their weights."""
    base = name
    for suffix in ["-f16", "-bf16"] + ["-" + e.lower() for e in GGUF_ENCODINGS + ["Q5_1"]]:
        base = base.removesuffix(suffix)
    return zlib.crc32(base.encode())


def new_model(config, rng):
    """Weights that make the activations of each operator about one, biases and norms that matter."""
    settings = dict(config)
    kind = settings.pop("model_type")
    model = AutoModelForCausalLM.from_config(CONFIG_CLASSES[kind](**settings), attn_implementation="eager")
    model = model.float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = rng.standard_normal(parameter.shape).astype(np.float32)
            if ("norm" in name or ".ln_" in name) and name.endswith("weight"):
                values = 1 - norm_offset(kind) + 0.2 * values
            elif parameter.dim() == 1:
                values = 0.3 * values
            elif "embed" not in name:
                values *= 1.2 / np.sqrt(parameter.shape[-1])  # fused experts have three dimensions
            parameter.copy_(torch.from_numpy(values))
        for name, buffer in corrections(model).items():
            buffer.copy_(torch.from_numpy(0.3 * rng.standard_normal(buffer.shape).astype(np.float32)))
        tokens = draw_tokens(config, rng)
        scale = MAX_LOGIT / model(tokens).logits.abs().max()
        for parameter in model.get_submodule(LAST_NORMS.get(kind, "model.norm")).parameters():
            parameter.add_(norm_offset(kind)).mul_(scale).sub_(norm_offset(kind))
        if model.lm_head.bias is not None:
            model.lm_head.bias.mul_(scale)
    return model, tokens


def corrections(model):
    """The tensors of a model that are no parameters: what routers add for the choice of experts alone."""
    return {name: buffer for name, buffer in model.named_buffers() if name.endswith("correction_bias")}


def norm_offset(kind):
    """Gemma multiplies by 1 more than a norm's weight; GGUF's weights include it."""
    return 1 if kind.startswith("gemma") else 0


def draw_tokens(config, rng):
    return torch.from_numpy(rng.integers(0, config["vocab_size"], (1, N_TOKENS)))


def write_golden(folder, model, tokens):
    with torch.no_grad():
        logits = model(tokens).logits[0].float()
    save_file(
        {"tokens": tokens[0].to(torch.int32), "logits": logits.contiguous()}, folder / "golden.safetensors"
    )
    spread = torch.distributions.Categorical(logits=logits).entropy().mean()
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{folder.name:20} {size / 1024:6.0f} KiB  max|logit| {logits.abs().max():.2f}  entropy {spread:.2f}")


def write_hugging_face(name, config, folder):
    rng = np.random.default_rng(seed_of(name))
    model, tokens = new_model(config, rng)
    suffix = name.rsplit("-", 1)[-1]
    model = model.to(DTYPES.get(suffix, torch.float32))
    model.save_pretrained(folder, max_shard_size="64KB" if name in SHARDED else "5GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    if name not in WRITTEN_BY_TRANSFORMERS and name.removesuffix("-bf16") not in GGUF_FAMILY_CONFIGS:
        names = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}
        text = json.dumps({**config, "torch_dtype": names[model.dtype]}, indent=2)
        (folder / "config.json").write_text(text + "\n")
    for file in folder.iterdir():
        file.chmod(0o644)
    read_back = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    write_golden(folder, read_back.eval(), tokens)


def split_mxfp4(values):
    """[experts x out x in] as gpt-oss is published: the codes, two values a byte in their order, and the scales."""
    packed = gguf.quants.quantize(np.ascontiguousarray(values), gguf.GGMLQuantizationType.MXFP4)
    blocks = packed.reshape(*values.shape[:2], values.shape[2] // 32, 17)
    scales, bytes_ = blocks[..., 0], blocks[..., 1:]
    codes = np.concatenate([bytes_ & 0x0F, bytes_ >> 4], axis=-1)  # in the order of values
    read_back = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.MXFP4).reshape(values.shape)
    return codes[..., ::2] | (codes[..., 1::2] << 4), np.ascontiguousarray(scales), read_back


def write_published_gpt_oss(name, config, folder):
    """A Hugging Face folder with the experts in MXFP4, as openai/gpt-oss-20b has them; the rest is bf16."""
    model, tokens = new_model(config, np.random.default_rng(seed_of(name)))
    folder.mkdir(parents=True)
    tensors = {}
    with torch.no_grad():
        for tensor, parameter in model.named_parameters():
            if not tensor.endswith(("experts.gate_up_proj", "experts.down_proj")):
                tensors[tensor] = parameter.to(torch.bfloat16).contiguous()
                parameter.copy_(tensors[tensor].float())
                continue
            codes, scales, read_back = split_mxfp4(parameter.transpose(1, 2).numpy())
            tensors[f"{tensor}_blocks"] = torch.from_numpy(codes)
            tensors[f"{tensor}_scales"] = torch.from_numpy(scales)
            parameter.copy_(torch.from_numpy(read_back).transpose(1, 2))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    published = {**model.config.to_diff_dict(), "architectures": ["GptOssForCausalLM"], "dtype": "bfloat16",
                 "quantization_config": {"quant_method": "mxfp4"}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(published, indent=2, sort_keys=True) + "\n")
    (folder / "model.safetensors").chmod(0o644)
    write_golden(folder, model, tokens)


def pieces(n):
    """A sentencepiece vocabulary of n pieces: control tokens, line feed, characters, then merges by rank."""
    characters = ["▁"] + list("etaoinshrdlucmfwypvbgkjqxz" "TAISHW" ".,'!?-")
    merges = ["▁t", "he", "▁the", "▁a", "in", "er", "▁s", "on", "re", "▁w", "nd", "▁and", "ou", "▁h", "ing",
              "▁to", "▁o", "▁of", "▁b", "at", "is", "en", "or", "it", "an", "▁m", "▁he", "▁f", "▁in", "ar",
              "ed", "es", "▁d", "▁c", "▁p", "▁l", "▁y", "▁you", "st", "▁T", "▁A", "▁I", "ll", "▁n", "le", "al",
              "ve", "▁g", "om", "ow", "▁th", "▁be", "ea", "▁wh", "as", "us", "▁that", "▁is", "el", "ee", "ch",
              "▁e", "ot", "▁it", "ti", "ur", "il", "ly", "▁no", "ir", "id", "se", "ut", "im", "gh", "▁my",
              "▁r", "et", "ri", "▁for", "ay", "de", "ro", "ld", "▁S", "▁H", "la", "▁W", "ke"]  # fmt: skip
    assert len(set(merges)) == len(merges)
    kind = gguf.TokenType
    all_pieces = [("<unk>", 0.0, kind.UNKNOWN), ("<s>", 0.0, kind.CONTROL), ("</s>", 0.0, kind.CONTROL),
                  ("<0x0A>", 0.0, kind.BYTE)]  # fmt: skip
    merges = merges[: n - len(all_pieces) - len(characters)]
    all_pieces += [(m, float(-i), kind.NORMAL) for i, m in enumerate(merges)]
    all_pieces += [(c, float(-len(merges) - i), kind.NORMAL) for i, c in enumerate(characters)]
    assert len(all_pieces) == n
    return all_pieces


GGUF_LAYER_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down", "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "mlp.router": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
# Where results are normed, this name means another norm.
GGUF_POST_NORMS = {"post_attention_layernorm": "post_attention_norm"}


def gguf_name(name, kind=""):
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "model.norm.bias": "output_norm.bias", "lm_head.weight": "output.weight"}  # fmt: skip
    if name in fixed:
        return fixed[name]
    _, _, layer, rest = name.split(".", 3)
    if rest == "self_attn.sinks":
        return f"blk.{layer}.attn_sinks.weight"
    if rest == "mlp.gate.e_score_correction_bias":
        return f"blk.{layer}.exp_probs_b.bias"
    if rest.startswith("mlp.experts."):
        operator, _, bias = rest.split(".")[-1].partition("_proj")
        return f"blk.{layer}.ffn_{operator}_exps.{'bias' if bias else 'weight'}"
    operator, ending = rest.rsplit(".", 1)
    names = GGUF_LAYER_NAMES
    if kind.startswith("gemma") or kind in ("olmo2", "glm4_moe", "gpt_oss"):
        names = {**names, **GGUF_POST_NORMS}
    return f"blk.{layer}.{names[operator]}.{ending}"


def rope_heads(name, config):
    """How many heads' rows GGUF's "llama" reorders in this tensor: pairs (i, i + d/2) become (2i, 2i + 1)."""
    if config["model_type"] not in ("llama", "mixtral", "granite", "smollm3", "ministral3"):
        return 0
    return {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(
        name.split(".")[-2], 0
    )


def interleave(rows, n_heads):
    half = rows.shape[0] // n_heads // 2
    return rows.reshape(n_heads, 2, half, -1).swapaxes(1, 2).reshape(rows.shape)


def deinterleave(rows, n_heads):
    half = rows.shape[0] // n_heads // 2
    return rows.reshape(n_heads, half, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def llama3_rope_divisors(config):
    """rope_freqs.weight: by what each pair's frequency is divided (as convert_hf_to_gguf.py does)."""
    scaling = config["rope_scaling"]
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    low = scaling["original_max_position_embeddings"] / scaling["low_freq_factor"]
    high = scaling["original_max_position_embeddings"] / scaling["high_freq_factor"]
    divisors = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * np.pi * config["rope_theta"] ** (i / head_dim)
        if wavelength < high:
            divisors.append(1.0)
        elif wavelength > low:
            divisors.append(scaling["factor"])
        else:
            smooth = (low / wavelength - 1) * scaling["low_freq_factor"]
            smooth /= scaling["high_freq_factor"] - scaling["low_freq_factor"]
            divisors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(divisors, dtype=np.float32)


def split_gate_up(model):
    """Parameters by name; where experts' gate and up are one, they are two views."""
    parameters = corrections(model)
    for name, parameter in model.named_parameters():
        if model.config.model_type == "gpt_oss" and ".experts." in name:  # [experts x in x out], gate and up in turn
            if "_bias" not in name:
                parameter = parameter.transpose(1, 2)
            if "gate_up" in name:
                parameters[name.replace("gate_up", "gate")] = parameter[:, ::2]
                parameters[name.replace("gate_up", "up")] = parameter[:, 1::2]
            else:
                parameters[name] = parameter
            continue
        if not name.endswith("experts.gate_up_proj"):
            parameters[name] = parameter
            continue
        half = parameter.shape[1] // 2
        parameters[name.replace("gate_up", "gate")] = parameter[:, :half]
        parameters[name.replace("gate_up", "up")] = parameter[:, half:]
    return parameters


def write_rope_scaling(w, rope, context):
    """As convert_hf_to_gguf.py does."""
    kind = rope.get("rope_type")
    original = rope.get("original_max_position_embeddings")
    if kind == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(original)
        w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        w.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if kind == "longrope":
        w.add_rope_scaling_orig_ctx_len(original)
        w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(context / original) / np.log(original))))
        for name in ("long", "short"):
            w.add_tensor(f"rope_factors_{name}.weight", np.array(rope[f"{name}_factor"], dtype=np.float32))


def write_gguf_file(path, model, config, encoding, split):
    model_type = config["model_type"]
    arch = GGUF_NAMES.get(model_type, model_type)
    kind = gguf.GGMLQuantizationType[encoding]
    file_type = "ALL_F32" if encoding == "F32" else f"MOSTLY_{encoding}"
    state = {n: p.detach().numpy() for n, p in split_gate_up(model).items()}
    w = gguf.GGUFWriter(path, arch, split_max_tensors=12 if split else 0)
    w.add_name(path.parent.name)
    w.add_file_type(gguf.LlamaFileType[file_type])
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    if model_type == "gpt_oss":
        w.add_expert_feed_forward_length(config["intermediate_size"])
    if model_type != "starcoder2":
        w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    rope = config.get("rope_parameters", config)
    rope = rope.get("full_attention", rope)
    w.add_rope_freq_base(rope["rope_theta"])
    write_rope_scaling(w, rope, config["max_position_embeddings"])
    for key, value in GGUF_KEYS.get(arch, {}).items():
        write = {int: w.add_uint32, float: w.add_float32, str: w.add_string, bool: w.add_bool}[type(value)]
        write(f"{arch}.{key}", value)
    w.add_vocab_size(config["vocab_size"])
    if config["model_type"] in GGUF_MIXTURES:
        w.add_expert_count(next(config[key] for key in ("num_local_experts", "num_experts", "n_routed_experts")
                                if key in config))
        w.add_expert_used_count(config["num_experts_per_tok"])
        w.add_key_length(config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]))
        if "head_dim" in config:
            w.add_value_length(config["head_dim"])
        if "moe_intermediate_size" in config:
            w.add_expert_feed_forward_length(config["moe_intermediate_size"])
    elif "head_dim" in config:
        w.add_key_length(config["head_dim"])
        w.add_value_length(config["head_dim"])
    if arch == "llama":
        w.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    tokens, scores, types = zip(*pieces(config["vocab_size"]))
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list(list(tokens))
    w.add_token_scores(list(scores))
    w.add_token_types([int(t) for t in types])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    if config["rope_scaling"]:
        w.add_tensor("rope_freqs.weight", llama3_rope_divisors(config))
    for name, values in state.items():
        heads = rope_heads(name, config)
        values = np.ascontiguousarray(interleave(values, heads) if heads else values)
        theirs = gguf_name(name, model_type)
        if theirs.endswith("norm.weight"):
            values = values + np.float32(norm_offset(model_type))
        is_matrix = values.ndim >= 2 and "ffn_gate_inp" not in theirs and not theirs.endswith(".bias")
        own = kind if is_matrix else gguf.GGMLQuantizationType.F32
        values = values[0] if "gate_inp_shexp" in theirs else values
        packed = values if own == gguf.GGMLQuantizationType.F32 else gguf.quants.quantize(values, own)
        w.add_tensor(theirs, packed, raw_dtype=own)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def read_gguf(folder, model, config):
    """Puts the dequantized values of the files into `model`."""
    found = {}
    for file in sorted(folder.glob("*.gguf")):
        for tensor in gguf.GGUFReader(file).tensors:
            found[tensor.name] = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    with torch.no_grad():
        for name, parameter in split_gate_up(model).items():
            theirs = gguf_name(name, config["model_type"])
            values = found.pop(theirs).astype(np.float32).reshape(parameter.shape)
            if theirs.endswith("norm.weight"):
                values = values - np.float32(norm_offset(config["model_type"]))
            heads = rope_heads(name, config)
            values = deinterleave(values, heads) if heads else values
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
    assert set(found) <= {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}


def write_gguf(name, config, encoding, folder):
    folder.mkdir(parents=True)
    model, tokens = new_model(config, np.random.default_rng(seed_of(name)))
    write_gguf_file(folder / "model.gguf", model, config, encoding, name in GGUF_SPLIT)
    read_gguf(folder, model, config)
    write_golden(folder, model, tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "models")
    parser.add_argument("models", nargs="*", help="only these (default: all)")
    arguments = parser.parse_args()
    out, only = arguments.out, arguments.models
    torch.set_num_threads(1)

    def make(name, write, *what):
        if only and name not in only:
            return
        shutil.rmtree(out / name, ignore_errors=True)
        write(name, *what, out / name)

    for name, config in HUGGING_FACE.items():
        make(name, write_hugging_face, config)
    for name, config in GGUF_FAMILY_CONFIGS.items():
        if name not in GGUF_ONCE:
            make(f"{name}-bf16", write_hugging_face, config)
    make("gpt-oss-mxfp4", write_published_gpt_oss, GGUF_FAMILY_CONFIGS["gpt-oss"])
    for arch, config in GGUF_CONFIGS.items():
        for encoding in GGUF_ENCODINGS:
            make(f"gguf-{arch}-{encoding.lower()}", write_gguf, config, encoding)
    for name, config in GGUF_FAMILY_CONFIGS.items():
        for encoding in ["F32"] if name in GGUF_ONCE else ["F32", "Q5_1"]:
            make(f"gguf-{name}-{encoding.lower()}", write_gguf, config, encoding)
    for name, config in GGUF_MIXTURE_CONFIGS.items():
        for encoding in ["F32", "Q8_0"]:
            make(f"gguf-{name}-{encoding.lower()}", write_gguf, config, encoding)


if __name__ == "__main__":
    main()
