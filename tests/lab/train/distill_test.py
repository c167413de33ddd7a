#!/usr/bin/env python3
"""Tests of tools/lab/train/distill, which CTest does not run, since it needs PyTorch:

  pip install -r tools/lab/train/distill/requirements.txt
  BIN=build/ci/bin tests/lab/train/distill_test.py      # with tier-tokenize and tierd in BIN
"""
import argparse
import contextlib
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tools/lab/train/distill"
sys.path.insert(0, str(SCRIPTS))

import safetensors.torch
import torch

import distill
import model_folder
from distiller import Distiller, fake_quantized, judged, masked
from windows import PROGRAMS, Batches, Random, Refused, split

torch.set_num_threads(1)
GOLDEN = ROOT / "tests/golden/models"
DEMO = ROOT / "configs/models/demo"
DENSE = "llama2 llama3 llama-linear llama-tied-8-heads llama-odd-sizes mistral qwen2 qwen25-untied opt opt-bf16 phi phi-gelu".split()


def distiller(name, **changed):
    options = dict(model=name, sparsity=0.5, fake_quant="none", loss="teacher", mask_gradient="straight-through", clip=1,
                   weight_decay=0)
    return Distiller(model_folder.load(GOLDEN / name), argparse.Namespace(**{**options, **changed}))


def windows(vocabulary=96):
    random = Random(5)
    return [[random.below(vocabulary) for _ in range(24)] for _ in range(4)]


class Mask(unittest.TestCase):
    def test_leaves_out_the_least_magnitudes_of_each_token(self):
        x = torch.tensor([[3.0, -1, 2, -4], [0.5, 1, -0.25, 0]])
        self.assertEqual(masked(x, 0.5, True).tolist(), [[3, 0, 0, -4], [0.5, 1, 0, 0]])
        self.assertEqual(masked(x, 0.0, True).tolist(), x.tolist())
        self.assertEqual(masked(torch.ones(1, 4), 0.5, True).tolist(), [[1, 1, 1, 1]], "equals on the border stay")
        self.assertEqual(masked(torch.arange(1.0, 6), 0.5, True).tolist(), [0, 0, 0, 4, 5], "2.5 of 5 is rounded to 3")

    def test_gradient_passes_only_straight_through(self):
        for straight_through, expected in ((True, [1, 1, 1, 1]), (False, [1, 0, 0, 1])):
            x = torch.tensor([3.0, -1, 2, -4], requires_grad=True)
            masked(x, 0.5, straight_through).sum().backward()
            self.assertEqual(x.grad.tolist(), expected)


def q4_0(block):
    """The definition in plain code: 32 values, a scale in f16, levels from -8 to 7."""
    largest = max(block, key=abs)
    scale = float(torch.tensor(largest / -8).half())
    if scale == 0:
        return [0.0] * len(block)
    return [min(7, max(-8, round(value / scale))) * scale for value in block]


class FakeQuant(unittest.TestCase):
    def test_is_what_q4_0_keeps(self):
        torch.manual_seed(1)
        weight = torch.randn(64, 96)
        weight[:32, 0:32] = 0
        by_rows = [sum((q4_0(row[at : at + 32]) for at in range(0, 96, 32)), []) for row in weight.tolist()]
        by_columns = [sum((q4_0(row[at : at + 32]) for at in range(0, 64, 32)), []) for row in weight.t().tolist()]
        torch.testing.assert_close(fake_quantized(weight, "q4_0"), torch.tensor(by_rows), atol=1e-6, rtol=0)
        torch.testing.assert_close(fake_quantized(weight, "q4_0-channels"), torch.tensor(by_columns).t(), atol=1e-6, rtol=0)

    def test_gradient_is_that_of_the_weight(self):
        weight = torch.randn(32, 32, requires_grad=True)
        fake_quantized(weight, "q4_0").sum().backward()
        self.assertEqual(weight.grad.tolist(), torch.ones(32, 32).tolist())

    def test_widths_that_blocks_do_not_divide_are_refused(self):
        with self.assertRaisesRegex(Refused, "--fake-quant: .* blocks of 32 do not divide it"):
            distiller("llama-odd-sizes", fake_quant="q4_0")


class Distilling(unittest.TestCase):
    def test_teacher_and_dense_student_are_the_model(self):
        for name in DENSE:
            with self.subTest(name):
                golden = safetensors.torch.load_file(GOLDEN / name / "golden.safetensors")
                made = distiller(name)
                expected, tokens = golden["logits"], golden["tokens"].tolist()
                torch.testing.assert_close(made.teacher_logits(tokens), expected, atol=1e-4 * expected.abs().max(), rtol=0)
                self.assertTrue(made.student_logits(tokens, 0).equal(made.teacher_logits(tokens)))

    def test_every_operator_of_the_layers_is_masked(self):
        for name in ("opt", "llama3", "qwen2"):
            made = distiller(name)
            inputs = {}
            for operator, module in made.operators.items():
                module.register_forward_hook(lambda _, given, __, operator=operator: inputs.update({operator: given[0]}))
            made.student_logits(windows()[0], 0.5)
            self.assertEqual(len(inputs), 2 * (6 if name == "opt" else 7), name)
            for operator, given in inputs.items():
                self.assertGreaterEqual((given == 0).float().mean(), 0.45, f"{name} {operator}")

    def test_steps_bring_the_student_nearer_and_leave_the_teacher(self):
        for name in ("opt", "llama3", "qwen2"):
            for how in ("none", "q4_0"):
                with self.subTest(name, how=how):
                    made = distiller(name, sparsity=0.6, fake_quant=how)
                    teacher = made.teacher_logits(windows()[0])
                    losses = [made.step(windows(), 3e-3) for _ in range(20)]
                    self.assertGreater(losses[0], 0)
                    self.assertLess(losses[-1], losses[0] * 0.7)
                    self.assertTrue(made.teacher_logits(windows()[0]).equal(teacher))

    def test_loss_is_the_mean_divergence_a_token(self):
        made = distiller("opt")
        given = windows()
        given[1] = given[1][:7]
        total = 0.0
        for window in given:
            teacher, student = (logits.double().log_softmax(-1) for logits in
                                (made.teacher_logits(window), made.student_logits(window, 0.5)))
            total += (teacher.exp() * (teacher - student)).sum().item()
        self.assertAlmostEqual(made.step(given, 1e-9), total / sum(map(len, given)), places=5)

    def test_without_a_teacher_the_loss_is_the_texts_own(self):
        made = distiller("llama3", loss="text")
        expected = judged(made, windows(), 0.5)
        first = made.step(windows(), 3e-3)
        self.assertAlmostEqual(first, math.log(expected.perplexity()), places=5)
        self.assertLess([made.step(windows(), 3e-3) for _ in range(10)][-1], first)

    # A gain so small that its channel is masked for every token: it can change only if gradients pass the mask.
    def test_a_masked_input_learns_only_straight_through(self):
        for mask_gradient in ("straight-through", "zero"):
            for loss in ("teacher", "text"):
                made = distiller("llama3", mask_gradient=mask_gradient, loss=loss)
                gains = made.student.model.layers[0].input_layernorm.weight
                with torch.no_grad():
                    gains[3], gains[5] = 1e-8, 8
                before = gains.tolist()
                made.step(windows(), 1e-3)
                self.assertNotEqual(gains[5].item(), before[5])
                self.assertEqual(gains[3].item() != before[3], mask_gradient == "straight-through")

    def test_bos_learns_though_it_is_the_padding_token(self):
        made = Distiller(model_folder.load(DEMO), distiller("opt").options)
        weight = made.student.get_input_embeddings().weight
        made.step([[0, 5, 9]], 1e-3)
        self.assertGreater(weight.grad[0].norm().item(), 1e-3 * weight.grad[5].norm().item())

    def test_a_loss_that_is_no_number_is_named(self):
        made = distiller("opt")
        with torch.no_grad():
            made.student.get_input_embeddings().weight[0, 0] = math.nan
        with self.assertRaisesRegex(Refused, "--learning-rate"):
            made.step([[0, 1, 2]], 1e-3)


class Order(unittest.TestCase):
    def test_random_has_the_numbers_of_core_base_random(self):
        random = Random(1)
        self.assertEqual([random.below(1000) for _ in range(6)], [811, 747, 100, 746, 184, 590])

    def test_every_window_once_an_epoch(self):
        batches = Batches([[i] for i in range(10)], 4, 1)
        epochs = [[batches.next() for _ in range(batches.per_epoch)] for _ in range(2)]
        for epoch in epochs:
            self.assertEqual(sorted(sum(sum(epoch, []), [])), list(range(10)))
            self.assertEqual([len(batch) for batch in epoch], [3, 3, 4])
        self.assertNotEqual(*epochs)

    def test_the_last_windows_are_held_out(self):
        self.assertEqual(split(list(range(10)), 0.11, "text", 4), (list(range(8)), [8, 9]))

    def test_rate_rises_then_falls_to_nothing(self):
        rates = [distill.learning_rate_at(step, 100, 0.1, 2) for step in range(100)]
        self.assertAlmostEqual(rates[0], 0.2)
        self.assertAlmostEqual(rates[9], 2)
        self.assertEqual(rates[9:], sorted(rates[9:], reverse=True))
        self.assertTrue(0 < rates[99] < 0.01)
        self.assertGreater(distill.learning_rate_at(0, 1, 0, 2), 0, "a single step learns, too")


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text.txt"
        self.text.write_bytes((ROOT / "LICENSE").read_bytes()[:600])  # some 200 tokens
        self.out = self.folder / "out"

    def run_script(self, *arguments):
        out, err, status = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                distill.main(list(map(str, arguments)))
            except SystemExit as ended:
                status = ended.code
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def distill(self, *more):
        done = self.run_script(DEMO, self.text, "-o", self.out, "--steps", 2, "--batch", 2, "--sequence", 24, "-t", 1, "--sparsity",
                               0.6, "--learning-rate", 1e-3, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def weights(self, *more):
        self.assertEqual(self.distill("-q", *more).stdout, "")
        made = (self.out / "model.safetensors").read_bytes()
        self.out.rename(self.folder / f"out-{len(list(self.folder.iterdir()))}")
        return made

    def refused(self, *arguments):
        done = self.run_script(*arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertTrue(done.stderr.startswith("distill.py: "), done.stderr)
        self.assertFalse(self.out.exists())
        return done.stderr

    def test_makes_a_model_that_runs(self):
        done = self.distill()
        self.assertIn("step 2 of 2: 100%, loss 0.", done.stderr)
        self.assertIn("as it came, sparsity 0.6", done.stdout)
        self.assertIn("distilled, dense", done.stdout)
        made = json.loads((self.out / "distillation.json").read_text())
        self.assertEqual([made[key] for key in ("sparsity", "steps", "seed", "loss", "mask_gradient")],
                         [0.6, 2, 1, "teacher", "straight-through"])
        self.assertGreater(made["held_out"]["before"]["divergence"], 0)
        before, after = (safetensors.torch.load_file(folder / "model.safetensors") for folder in (DEMO, self.out))
        self.assertEqual({name: (value.dtype, value.shape) for name, value in before.items()},
                         {name: (value.dtype, value.shape) for name, value in after.items()})
        self.assertFalse(all(value.equal(after[name]) for name, value in before.items()))
        self.assertEqual((self.out / "config.json").read_bytes(), (DEMO / "config.json").read_bytes())
        said = subprocess.run([PROGRAMS / "tierd", "-m", self.out, "-p", "First Citizen:", "-n", "4", "--temp", "0", "-t", "1", "-q"],
                              capture_output=True, text=True, env={**os.environ, "TIERD_CACHE": str(self.folder)})
        self.assertEqual(said.returncode, 0, said.stderr)

    def test_the_seed_and_the_ablations_decide_the_weights(self):
        first = self.weights("--fake-quant", "q4_0-channels")
        self.assertEqual(first, self.weights("--fake-quant", "q4_0-channels"))
        others = [("--seed", 2), (), ("--loss", "text"), ("--mask-gradient", "zero")]
        self.assertEqual(len({first, *(self.weights(*more) for more in others)}), 5)

    def test_shards_become_one_file_under_their_names(self):
        folder = model_folder.ModelFolder(GOLDEN / "llama3", self.out)
        model = model_folder.load(GOLDEN / "llama3")
        folder.write(model, {"made_by": "a test"})
        again = model_folder.load(self.out)
        for name, value in model.state_dict().items():
            self.assertTrue(value.equal(again.state_dict()[name]), name)

    def test_values_that_do_not_fit_leave_no_folder(self):
        folder = model_folder.ModelFolder(GOLDEN / "opt-f16", self.out)
        model = model_folder.load(GOLDEN / "opt-f16")
        with torch.no_grad():
            model.get_input_embeddings().weight[0, 0] = 1e6
        with self.assertRaisesRegex(Refused, "does not fit F16"):
            folder.write(model, {})
        self.assertFalse(self.out.exists())

    def test_what_cannot_be_distilled(self):
        brief = self.folder / "brief.txt"
        brief.write_text("First Citizen: speak.")
        usual = (DEMO, self.text, "-o", self.out)
        for line, arguments in (
            ("--sequence: 257 tokens, the model has a context of 256", (*usual, "--sequence", 257)),
            ("1 windows of 256 tokens, of which 1 are to be held out: none is left to train on", (DEMO, brief, "-o", self.out)),
            ("--sparsity", (*usual, "--sparsity", 1)),
            ("--learning-rate", (*usual, "--learning-rate", 0)),
            ("--held-out", (*usual, "--held-out", "nan")),
            ("--fake-quant", (*usual, "--fake-quant", "q5")),
            ("--device", (*usual, "--device", "tpu")),
            ("not allowed with", (*usual, "--steps", 3, "--epochs", 2)),
            ("/nowhere: there is no such folder", ("/nowhere", self.text, "-o", self.out)),
            ("/nowhere/text", (DEMO, "/nowhere/text", "-o", self.out)),
            ("is no Hugging Face folder", (GOLDEN / "gguf-llama-f16/model.gguf", self.text, "-o", self.out)),
            ("a mixture of experts", (GOLDEN / "olmoe", self.text, "-o", self.out)),
            ("transformers cannot load it", (GOLDEN / "llama-fatrelu", self.text, "-o", self.out)),
            ("tokenizer", (GOLDEN / "opt", self.text, "-o", self.out, "--sequence", 8)),
            ("/nowhere/out.partial: No such file", (DEMO, self.text, "-o", "/nowhere/out", "--sequence", 24)),
            ("is there already", (DEMO, self.text, "-o", DEMO, "--sequence", 24)),
        ):
            with self.subTest(line):
                self.assertIn(line, self.refused(*arguments))


if __name__ == "__main__":
    unittest.main()
