#!/usr/bin/env python3
"""Trains the embedded model and its sibling. Development only: nothing in the build, the tests or the program runs this.

`--shape demo` is the embedded model, an OPT of 5 million parameters that writes Shakespeare. An L1 term on what leaves
each ReLU, steered per layer, makes most feed-forward activations exactly zero, so that a model of 10 MB has the
activation sparsity that the large ReLU models have. `--shape silu` is a Llama of 11 million parameters on the same text:
SiLU, RMS norms and rotary positions, no exact zeros, as the models of ActiveFlow have them. Everything is fixed by the
seed; one CPU thread, about half a second a step (silu: twice that).

  train.py tokenizer --text FILE --out DIR                                   BPE from the training part of the text
  train.py train     --text FILE --out DIR [--shape silu] [--no-l1]          DIR/config.json, model.safetensors (F16)
  train.py measure   --text FILE --out DIR                                   held-out loss and exact zeros of that

The first 90 % of the text (by characters) trains, the rest is held out.
"""

import argparse
import json
import math
import time
from pathlib import Path

import tokenizers
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, LlamaForCausalLM, OPTConfig, OPTForCausalLM

VOCAB = 1536
CONTEXT = 256
BOS = "</s>"  # as in OPT: one token begins and ends a document
BOS_ID = 0

SEED = 1
STEPS = 1800
BATCH = 4  # sequences of CONTEXT tokens a step
BOS_SHARE = 0.25  # sequences that start with BOS at the beginning of a speech
LEARNING_RATE = {"demo": 1.5e-3, "silu": 1e-3}
WEIGHT_DECAY = {"demo": 0.05, "silu": 0.1}
WARMUP = 60
ZERO_GOAL = 0.92  # the goal of exact zeros in each layer
ZERO_GOAL_FROM = 0.35  # share of the run after which the full goal applies


def split(path):
    text = Path(path).read_text(encoding="utf-8")
    cut = int(len(text) * 0.9)
    return text[:cut], text[cut:]


def make_tokenizer(text, out):
    """GPT-2's byte alphabet and splitting rule, with merges of our own."""
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=[BOS],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tok.train_from_iterator([text], trainer)
    assert tok.get_vocab_size() == VOCAB and tok.token_to_id(BOS) == BOS_ID
    # A prompt starts a document: BOS goes before it.
    tok.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, BOS_ID)]
    )
    tok.save(str(out / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "add_bos_token": True,
        "bos_token": BOS,
        "eos_token": BOS,
        "pad_token": BOS,
        "clean_up_tokenization_spaces": False,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def encode(out, text):
    tok = tokenizers.Tokenizer.from_file(str(Path(out) / "tokenizer.json"))
    ids = tok.encode(text, add_special_tokens=False).ids
    assert tok.decode(ids) == text
    newline = tok.encode("\n", add_special_tokens=False).ids
    assert len(newline) == 1
    return torch.tensor(ids), newline[0]


def new_opt():
    torch.manual_seed(SEED)
    config = OPTConfig(
        vocab_size=VOCAB, hidden_size=256, word_embed_proj_dim=256, num_hidden_layers=6,
        num_attention_heads=4, ffn_dim=1024, max_position_embeddings=CONTEXT, dropout=0.0,
        attention_dropout=0.0, layerdrop=0.0, activation_function="relu", do_layer_norm_before=True,
        init_std=0.02, bos_token_id=BOS_ID, eos_token_id=BOS_ID, pad_token_id=BOS_ID,
        tie_word_embeddings=True)  # fmt: skip
    model = OPTForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.decoder.layers:
            for linear in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj, layer.fc1):
                linear.weight.mul_(1.5)
            for linear in (layer.self_attn.out_proj, layer.fc2):  # their outputs are added to the residual stream
                linear.weight.mul_(1.5 / math.sqrt(2 * config.num_hidden_layers))
    return model


def new_llama():
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=320, intermediate_size=896, num_hidden_layers=8, num_attention_heads=5,
        num_key_value_heads=5, max_position_embeddings=CONTEXT, hidden_act="silu", rms_norm_eps=1e-5,
        initializer_range=0.02, bos_token_id=BOS_ID, eos_token_id=BOS_ID, pad_token_id=BOS_ID,
        tie_word_embeddings=True)  # fmt: skip
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            for linear in (layer.self_attn.o_proj, layer.mlp.down_proj):  # their outputs are added to the residual stream
                linear.weight.div_(math.sqrt(2 * config.num_hidden_layers))
    return model


class Activations:
    """What left each layer's activation in the last forward pass: [tokens x ffn] tensors, first layer first."""

    def __init__(self, model):
        layers = model.model.decoder.layers if model.config.model_type == "opt" else model.model.layers
        self.of_layer = [None] * len(layers)
        for i, layer in enumerate(layers):
            activation = layer.activation_fn if hasattr(layer, "activation_fn") else layer.mlp.act_fn
            activation.register_forward_hook(lambda _m, _x, y, i=i: self.of_layer.__setitem__(i, y))

    def zeros(self):
        with torch.no_grad():
            return [(a == 0).float().mean().item() for a in self.of_layer]


class Steering:
    """One L1 coefficient a layer, raised while the layer has fewer zeros than the goal, else lowered."""

    def __init__(self, n_layers):
        self.coefficient = [0.1] * n_layers
        self.zeros = [0.5] * n_layers  # share of zeros a layer, smoothed over steps

    def penalty(self, activations):
        return sum(c * a.mean() for c, a in zip(self.coefficient, activations.of_layer))

    def update(self, zeros, progress):
        goal = 0.5 + (ZERO_GOAL - 0.5) * min(1.0, progress / ZERO_GOAL_FROM)
        for i, z in enumerate(zeros):
            self.zeros[i] = 0.6 * self.zeros[i] + 0.4 * z
            factor = 1.06 if self.zeros[i] < goal else 1 / 1.06
            self.coefficient[i] = min(20.0, max(0.003, self.coefficient[i] * factor))


def draw_batch(ids, speech_starts, rng):
    """[BATCH x CONTEXT + 1] token ids."""
    rows = []
    for _ in range(BATCH):
        if torch.rand((), generator=rng) < BOS_SHARE:
            at = speech_starts[torch.randint(len(speech_starts), (), generator=rng)]
            rows.append(torch.cat([torch.tensor([BOS_ID]), ids[at : at + CONTEXT]]))
        else:
            at = torch.randint(len(ids) - CONTEXT, (), generator=rng)
            rows.append(ids[at : at + CONTEXT + 1])
    return torch.stack(rows)


@torch.no_grad()
def held_out(model, activations, ids, windows=None):
    """(nats a token, exact zeros per layer): windows of CONTEXT inputs, side by side, without BOS."""
    windows = windows or (len(ids) - 1) // CONTEXT
    loss, zeros = 0.0, torch.zeros(len(activations.of_layer))
    for i in range(windows):
        x = ids[i * CONTEXT : (i + 1) * CONTEXT + 1]
        logits = model(x[None, :-1]).logits[0].float()
        loss += F.cross_entropy(logits, x[1:]).item() / windows
        zeros += torch.tensor(activations.zeros()) / windows
    return loss, [round(z, 4) for z in zeros.tolist()]


def train(text, out, shape, l1, learning_rate):
    ids, newline = encode(out, text[0])
    held = encode(out, text[1])[0]
    ends = (ids[1:] == newline) & (ids[:-1] == newline)  # an empty line separates speeches
    speech_starts = torch.cat([torch.tensor([0]), ends.nonzero()[:, 0] + 2])
    speech_starts = speech_starts[speech_starts < len(ids) - CONTEXT]

    model = new_opt() if shape == "demo" else new_llama()
    activations = Activations(model)
    steering = Steering(len(activations.of_layer))
    decayed = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.dim() != 2 or "embed" in n]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY[shape]}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98))
    rng = torch.Generator().manual_seed(SEED)
    began = time.time()
    for step in range(STEPS):
        progress = step / STEPS
        rate = learning_rate * min(1, (step + 1) / WARMUP) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = draw_batch(ids, speech_starts, rng)
        logits = model(batch[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        total = loss + steering.penalty(activations) if l1 else loss
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 5 == 0:
            steering.update(activations.zeros(), progress)
        if (step + 1) % 100 == 0:
            nats, zeros = held_out(model, activations, held, 8)
            print(f"{step + 1}/{STEPS} {time.time() - began:.0f} s train {loss.item():.3f} "
                  f"held out {nats:.3f} zeros {zeros}", flush=True)  # fmt: skip

    model.half().save_pretrained(out)
    GenerationConfig(bos_token_id=BOS_ID, eos_token_id=BOS_ID, pad_token_id=BOS_ID).save_pretrained(out)
    return time.time() - began


def measure(text, out):
    """Of the F16 file, computed in float32."""
    ids = encode(out, text[1])[0]
    model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).eval()
    nats, zeros = held_out(model, Activations(model), ids)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "held_out_tokens": (len(ids) - 1) // CONTEXT * CONTEXT,
        "loss": round(nats, 4),
        "perplexity": round(math.exp(nats), 2),
        "zeros": zeros,
        "mean_zeros": round(sum(zeros) / len(zeros), 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["tokenizer", "train", "measure"])
    parser.add_argument("--text", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--shape", choices=["demo", "silu"], default="demo", help="default %(default)s")
    parser.add_argument("--no-l1", action="store_true", help="the demo's control: the same run without the L1 term")
    parser.add_argument("--learning-rate", type=float, help=f"its peak; default {LEARNING_RATE}")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    text = split(args.text)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.action == "tokenizer":
        make_tokenizer(text[0], args.out)
        return
    if args.action == "train":
        l1 = args.shape == "demo" and not args.no_l1  # SiLU has no zeros
        rate = args.learning_rate or LEARNING_RATE[args.shape]
        print(f"{train(text, args.out, args.shape, l1, rate):.0f} s", flush=True)
    print(json.dumps(measure(text, args.out)))


if __name__ == "__main__":
    main()
