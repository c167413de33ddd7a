"""A model that learns to say with masked inputs what it says without (ActiveFlow, section 5)."""
import copy
import math
import re

import torch

from windows import Refused

QUANT_BLOCK = 32


def masked(x, sparsity, straight_through):
    """Leaves out the share `sparsity` of each token's inputs that has the least magnitude, as predictor top-k does: of
    equals on the border all stay. With straight_through the gradient is that of x (equation 12)."""
    n = x.shape[-1]
    left_out = math.floor(sparsity * n + 0.5)
    if left_out == 0:
        return x
    fixed = x.detach()
    magnitude = fixed.abs()
    kept = torch.zeros_like(fixed, dtype=torch.bool)
    if left_out < n:
        kept = magnitude >= magnitude.kthvalue(left_out + 1, -1, True).values
    return x + (fixed * kept - fixed) if straight_through else x * kept


def fake_quantized(weight, how):
    """`weight` [rows x cols] encoded to Q4_0 and decoded again (core/model/layout/codec.h), in blocks of 32 along rows (q4_0) or
    columns (q4_0-channels); the gradient is that of `weight`."""
    fixed = weight.detach() if how == "q4_0" else weight.detach().t()
    blocks = fixed.reshape(-1, QUANT_BLOCK)
    largest = blocks.gather(1, blocks.abs().argmax(1, True))
    scale = (largest / -8).half().float()
    levels = (blocks / scale).round().clamp(-8, 7)
    rounded = torch.where(scale == 0, 0, levels * scale).view(fixed.shape)
    return weight + ((rounded if how == "q4_0" else rounded.t()) - weight.detach())


class Distiller:
    """The teacher is the model as it came, dense. The student has the same weights at first, and a mask before every
    operator of its layers."""

    def __init__(self, model, options):
        self.options = options
        self.teacher = copy.deepcopy(model).eval().requires_grad_(False)
        self.student = model.eval()
        self.sparsity = 0.0
        self.last = (None, None)  # operators that share an input share its mask
        self.operators = {
            name: module
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear) and re.search(r"\.(layers|h|blocks)\.\d+\.", name)
        }
        if not self.operators:
            raise Refused(f"{options.model}: no layer with operators was found")
        for name, module in self.operators.items():
            module.register_forward_pre_hook(self._mask)
            rows, cols = module.weight.shape
            if options.fake_quant != "none" and (cols if options.fake_quant == "q4_0" else rows) % QUANT_BLOCK != 0:
                raise Refused(f"--fake-quant: {name} is {rows} x {cols}, blocks of {QUANT_BLOCK} do not divide it")
        self.adam = torch.optim.AdamW(model.parameters(), weight_decay=options.weight_decay)

    def step(self, windows, rate):
        """One step of AdamW on KL(teacher || student) over these windows; without a teacher, on the student's cross-entropy
        with the tokens that follow. Returns the loss before the step, in nats a token."""
        teaches = self.options.loss == "teacher"
        tokens = sum(len(window) - (0 if teaches else 1) for window in windows)  # the first token follows none
        self.adam.zero_grad()
        seen = self._seen()
        total = 0.0
        for window in windows:
            logits = self._forward(window, self.options.sparsity, seen).log_softmax(-1)
            if teaches:
                expected = self.teacher_logits(window).log_softmax(-1)
                loss = torch.nn.functional.kl_div(logits, expected, reduction="sum", log_target=True)
            else:
                loss = torch.nn.functional.nll_loss(logits[:-1], self._ids(window)[1:], reduction="sum")
            (loss / tokens).backward()
            total += loss.item() / tokens
        norm = torch.nn.utils.clip_grad_norm_(self.student.parameters(), self.options.clip or math.inf).item()
        if not (math.isfinite(total) and math.isfinite(norm)):
            raise Refused("--learning-rate: the loss or its gradient is no number any more; a lower rate is needed")
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        return total

    @torch.no_grad()
    def teacher_logits(self, window):
        """[tokens x vocab]"""
        return self.teacher(self._ids(window)[None], use_cache=False).logits[0]

    @torch.no_grad()
    def student_logits(self, window, sparsity):
        """[tokens x vocab] at any sparsity, with weights rounded as in training"""
        return self._forward(window, sparsity, self._seen())

    def _seen(self):
        """The weights of the operators as the layers compute with them, where they are rounded."""
        how = self.options.fake_quant
        if how == "none":
            return {}
        return {f"{name}.weight": fake_quantized(module.weight, how) for name, module in self.operators.items()}

    def _forward(self, window, sparsity, seen):
        self.sparsity = sparsity
        ids = self._ids(window)[None]
        made = torch.func.functional_call(self.student, seen, (ids,), {"use_cache": False})
        self.last = (None, None)
        return made.logits[0]

    def _mask(self, _, inputs):
        if self.last[0] is not inputs[0]:
            self.last = (inputs[0], masked(inputs[0], self.sparsity, self.options.mask_gradient == "straight-through"))
        return (self.last[1], *inputs[1:])

    def _ids(self, window):
        return torch.tensor(window, device=self.student.device)


class Loss:
    """The loss of one model on a text against another, as tools/evaluation/loss.h has it."""

    def __init__(self):
        self.tokens = 0
        self.reference_nats = self.subject_nats = self.divergence = 0.0

    def add(self, expected, found, window):
        """Logits [tokens x vocab] of both models; the last token has none that follows."""
        reference, subject = (logits[:-1].double().log_softmax(-1) for logits in (expected, found))
        following = torch.tensor(window[1:], device=reference.device)[:, None]
        self.tokens += len(window) - 1
        self.reference_nats -= reference.gather(1, following).sum().item()
        self.subject_nats -= subject.gather(1, following).sum().item()
        self.divergence += (reference.exp() * (reference - subject)).sum().item()

    def reference_perplexity(self):
        return math.exp(self.reference_nats / self.tokens)

    def perplexity(self):
        return math.exp(self.subject_nats / self.tokens)

    def mean_divergence(self):
        return self.divergence / self.tokens


def judged(distiller, windows, sparsity):
    loss = Loss()
    for window in windows:
        loss.add(distiller.teacher_logits(window), distiller.student_logits(window, sparsity), window)
    return loss
