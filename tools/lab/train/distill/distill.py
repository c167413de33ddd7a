#!/usr/bin/env python3
"""Teaches a model to bear masked inputs (predictor top-k): top-K sparsity-aware self-distillation as in "ActiveFlow",
section 5. README.md beside this file describes it. Needs requirements.txt, and tier-tokenize in BIN (build/release/bin).

  distill.py qwen2.5-0.5b text.txt -o qwen2.5-0.5b-top60 --sparsity 0.6

Exit status: 0; 2 if nothing could be made, with one line on standard error that says why."""
import argparse
import math
import sys
import time

from windows import Batches, Refused, split, text_windows

EPOCHS = 2  # no default of the option: argparse lets a default go with --steps, even when it is given


def number(kind, least, most):
    def parse(text):
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
        return value

    parse.__name__ = kind.__name__  # for argparse's own message
    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(message)


def parse(arguments):
    to = Parser(prog="distill.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    to.add_argument("model", metavar="MODEL", help="a Hugging Face folder: the teacher, and the student's first weights")
    to.add_argument("text", metavar="TEXT", help="a text file to learn on, of the kind that the model is for")
    to.add_argument("-o", "--output", metavar="OUT", required=True, help="the folder to make, which tierd and transformers load")
    to.add_argument("--tokenizer", metavar="FILE", help="a tokenizer to use instead of the model's own; not copied")
    to.add_argument("--sparsity", type=number(float, 0, 0.99), default=0.5, metavar="SHARE",
                    help="share of the inputs of every operator of the layers that is masked; one distillation serves others (0.5)")
    to.add_argument("--learning-rate", type=number(float, 1e-9, 1), default=1e-4, metavar="X",
                    help="of AdamW, at its highest. The larger the model the lower: 1e-6 for 8 billion parameters (1e-4)")
    to.add_argument("--warmup", type=number(float, 0, 0.9), default=0.05, metavar="SHARE",
                    help="share of the steps in which the rate rises; then it falls to 0 as a cosine (0.05)")
    length = to.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=number(int, 1, 1000), metavar="N",
                        help="how often every window of TEXT is trained on (2)")
    length.add_argument("--steps", type=number(int, 1, 1 << 30), metavar="N", help="so many steps instead")
    to.add_argument("--batch", type=number(int, 1, 65536), default=8, metavar="N", help="windows a step (8)")
    to.add_argument("--sequence", type=number(int, 2, 1 << 20), default=256, metavar="N",
                    help="tokens of a window; at most the model's context (256)")
    to.add_argument("--held-out", type=number(float, 0.001, 0.9), default=0.05, metavar="SHARE",
                    help="the last share of TEXT, which is judged by and not trained on (0.05)")
    to.add_argument("--clip", type=number(float, 0, 1e6), default=1.0, metavar="X",
                    help="the gradient's norm is at most this; 0: no limit (1)")
    to.add_argument("--weight-decay", type=number(float, 0, 1), default=0.0, metavar="X", help="of AdamW (0)")
    to.add_argument("--fake-quant", choices=["none", "q4_0", "q4_0-channels"], default="none",
                    help="learn for weights in 4 bits: q4_0, in blocks along rows as in GGUF; q4_0-channels, along columns as "
                    "layout channel-group encodes them. OUT is not quantized")
    to.add_argument("--loss", choices=["teacher", "text"], default="teacher",
                    help="teacher: KL divergence from the teacher; text: cross-entropy with TEXT itself, without a teacher")
    to.add_argument("--mask-gradient", choices=["straight-through", "zero"], default="straight-through",
                    help="gradients of masked inputs: as if they were not masked, or none")
    to.add_argument("--seed", type=int, default=1, metavar="N", help="decides the order of the windows (1)")
    to.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    to.add_argument("-t", "--threads", type=number(int, 1, 1024), metavar="N", help="threads that compute (default: torch's)")
    to.add_argument("-q", "--quiet", action="store_true", help="no progress and no table")
    return to.parse_args(arguments)


def learning_rate_at(step, steps, warmup, highest):
    """The rate of step 0, 1, …: a straight line up, then half a cosine down to 0."""
    rising = warmup * steps
    if step + 1 <= rising:
        return highest * (step + 1) / rising
    share = (step + 1 - rising) / (steps - rising + 1)
    return highest * 0.5 * (1 + math.cos(math.pi * share))


def train(distiller, windows, options):
    """Returns the loss at each step."""
    batches = Batches(windows, options.batch, options.seed)
    steps = options.steps or (options.epochs or EPOCHS) * batches.per_epoch
    losses, tokens = [], 0
    began = shown = time.monotonic()
    for step in range(steps):
        batch = batches.next()
        losses.append(distiller.step(batch, learning_rate_at(step, steps, options.warmup, options.learning_rate)))
        tokens += sum(map(len, batch))
        now = time.monotonic()
        if not options.quiet and (now - shown >= 30 or step + 1 == steps):
            shown = now
            print(f"step {step + 1} of {steps}: {(step + 1) / steps:4.0%}, loss {losses[-1]:.4f}, "
                  f"{tokens / (now - began):.0f} tokens/s", file=sys.stderr, flush=True)
    return losses


def table(sparsity, before, after, dense):
    as_it_came = after.reference_perplexity()
    lines = [f"{after.tokens} tokens held out{'perplexity':>17}{'':>10}{'KL, nats a token':>22}",
             f"{'as it came, dense':<34}{as_it_came:>11.3f}"]
    for title, loss in ((f"as it came, sparsity {sparsity:g}", before), (f"distilled, sparsity {sparsity:g}", after),
                        ("distilled, dense", dense)):
        lines.append(f"{title:<34}{loss.perplexity():>11.3f}{100 * (loss.perplexity() / as_it_came - 1):>+8.2f} %"
                     f"{loss.mean_divergence():>22.4f}")
    return "\n".join(lines)


def provenance(options, losses, before, after, dense):
    tenth = len(losses) // 10 + 1
    of = lambda loss: {"perplexity": loss.perplexity(), "divergence": loss.mean_divergence()}
    mean = lambda values: sum(values) / len(values)
    kept = ("model text sparsity fake_quant loss mask_gradient batch sequence learning_rate warmup weight_decay clip seed").split()
    return {
        "made_by": "distill.py",
        **{key: getattr(options, key) for key in kept},
        "steps": len(losses),
        "first_loss": mean(losses[:tenth]),
        "last_loss": mean(losses[-tenth:]),
        "held_out": {"share": options.held_out, "tokens": after.tokens, "teacher_perplexity": after.reference_perplexity(),
                     "before": of(before), "after": of(after), "dense": of(dense)},
    }


def distill(options):
    # Here, since these take seconds to load, and wrong arguments are refused before.
    import torch

    from distiller import Distiller, judged
    from model_folder import ModelFolder, load

    if options.threads:
        torch.set_num_threads(options.threads)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise Refused("--device: cuda: torch sees no such device; cpu works")
    model = load(options.model).to(options.device)
    context = model.config.max_position_embeddings
    if options.sequence > context:
        raise Refused(f"--sequence: {options.sequence} tokens, the model has a context of {context}")
    windows = text_windows(options.tokenizer or options.model, options.text, options.sequence)
    trained, held_out = split(windows, options.held_out, options.text, options.sequence)
    if max(map(max, windows)) >= model.config.vocab_size:
        raise Refused(f"--tokenizer: token {max(map(max, windows))}, the model has {model.config.vocab_size}")
    folder = ModelFolder(options.model, options.output)
    distiller = Distiller(model, options)
    before = judged(distiller, held_out, options.sparsity)
    losses = train(distiller, trained, options)
    after, dense = judged(distiller, held_out, options.sparsity), judged(distiller, held_out, 0)
    folder.write(model, provenance(options, losses, before, after, dense))
    if not options.quiet:
        print(table(options.sparsity, before, after, dense))


def main(arguments):
    try:
        distill(parse(arguments))
    except Refused as refused:
        print(f"distill.py: {refused}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
