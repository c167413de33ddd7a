#!/usr/bin/env python3
"""Draws tokenizer.json files over the fields that core/model/text reads, and records what the tokenizers package makes of
them: the ids of a few texts, or that it refuses the file.

Development only; the test (tests/formats/tokenizer/tokenizer_fields_test.cc) reads what is committed.
    pip install tokenizers==0.23.3
    python tests/golden/make_tokenizer_fields.py
Writes tests/golden/tokenizer/fields.json: three whole files ("bases"), the texts, and for each case its base, the
fields that differ (JSON pointer to the number of a value of "values"), the added tokens as [id, content, flags], where
the letters of FLAGS say which are true, and the ids of each text, or null.
"""

import copy
import json
import pathlib
import random

from tokenizers import Tokenizer

OUT = pathlib.Path(__file__).parent / "tokenizer" / "fields.json"
CASES = 500
SEED = 1
FLAGS = {"special": "s", "normalized": "n", "lstrip": "l", "rstrip": "r", "single_word": "w"}
TEXTS = ["hi hi", " ab[A] hi", "hi[A]hab", "<t> ab<t>\nhé", "▁hi  [A][A]x hi<s>"]

WORDS = {"▁ h": 1, "h i": 2, "▁h i": 3, "▁ hi": 4, "a b": 5, "▁ a": 6, "▁a b": 7, "▁ ab": 8, "▁ ▁": 9}


def marked_vocab(with_bytes):
    pieces = ["<unk>", "<s>", "</s>"]
    if with_bytes:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += ["▁", "h", "i", "a", "b", "x", "[", "]", "A", "▁h", "hi", "▁hi", "ab", "▁a", "▁ab", "▁▁"]
    return {piece: number for number, piece in enumerate(pieces)}


def byte_characters():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    return [chr(byte) for byte in kept] + [chr(256 + n) for n in range(len(moved))]


def base(model, normalizer, pre_tokenizer):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "byte_fallback": False, "ignore_merges": False} | model,
    }


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
MARKS = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREFIX = {"type": "Prepend", "prepend": "▁"}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
AS_BYTES = BYTES | {"use_regex": False}


def bases():
    marked = {"unk_token": "<unk>", "fuse_unk": True, "merges": [key.split() for key in WORDS]}
    pieces = ["<unk>", "<s>", "</s>", *byte_characters(), "hi", "Ġhi", "ab"]
    in_bytes = {"unk_token": None, "fuse_unk": False, "vocab": {piece: n for n, piece in enumerate(pieces)},
                "merges": [["h", "i"], ["Ġ", "hi"], ["a", "b"]]}
    return {
        "metaspace": base(marked | {"vocab": marked_vocab(False)}, None, METASPACE),
        "normalizer": base(marked | {"vocab": marked_vocab(True), "byte_fallback": True},
                           {"type": "Sequence", "normalizers": [PREFIX, MARKS]}, None),
        "bytes": base(in_bytes, None, BYTES),
    }


def chance(one_in):
    return random.randrange(one_in) == 0


def added_tokens(vocab):
    tokens = [(0, "<unk>"), (1, "<s>")] if not chance(4) else []
    contents = random.sample(["[A]", "hi", "<t>", "x", " h", "ab[", "h"], random.randrange(4))
    out = []
    new = [content for content in contents if content not in vocab]
    tokens += [(vocab.get(content), content) for content in contents if content in vocab]
    tokens += [(len(vocab) + n, content) for n, content in enumerate(new)]
    for number, content in tokens:
        special = number < 2 or chance(2)
        out.append({"id": number, "content": content, "special": special,
                    "normalized": not special if not chance(4) else special,
                    "lstrip": chance(4), "rstrip": chance(4), "single_word": chance(4)})
    return out


def template(before, after):
    item = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    single = [item(name) for name in before] + [{"Sequence": {"id": "A", "type_id": 0}}] + [item(n) for n in after]
    ids = {"<s>": 1, "</s>": 2}
    return {"type": "TemplateProcessing", "single": single,
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [n], "tokens": [name]} for name, n in ids.items()}}


def metaspace():
    step = copy.deepcopy(METASPACE)
    step["prepend_scheme"] = random.choice(["first", "always", "never"])
    if chance(4):
        step["add_prefix_space"] = random.choice([True, step["prepend_scheme"] != "never"])
    if chance(4):
        del step["prepend_scheme"]
    step["split"] = random.choice([True, False])
    if chance(6):
        del step["split"]
    if chance(20):
        step["replacement"] = "_"
    return {"type": "Sequence", "pretokenizers": [step]} if chance(3) else step


def byte_steps():
    splits = {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False}
    digits = {"type": "Digits", "individual_digits": not chance(4)}
    known = [[BYTES], [splits, AS_BYTES], [digits, BYTES]]
    steps = random.choice([*known, *known, *known, [BYTES, digits],
                           [splits | {"behavior": "Removed"}, AS_BYTES], [splits | {"invert": True}, AS_BYTES],
                           [BYTES | {"add_prefix_space": True}], [{"type": "Punctuation"}, BYTES], [AS_BYTES],
                           [splits | {"pattern": {"String": "i"}}, AS_BYTES]])
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}


def changes_of(name):
    all_bases = bases()
    out = {}
    for key, steps in (("metaspace", metaspace), ("bytes", byte_steps)):
        if name == key and not chance(4):
            out["/pre_tokenizer"] = steps()
    if name == "normalizer" and not chance(3):
        out["/normalizer"] = random.choice([
            {"type": "Sequence", "normalizers": [MARKS, PREFIX]}, MARKS, MARKS, MARKS,
            {"type": "Sequence", "normalizers": [MARKS]},
            {"type": "Sequence", "normalizers": [{"type": "NFKC"}, PREFIX, MARKS]},
            {"type": "Sequence", "normalizers": [PREFIX, PREFIX, MARKS]}, PREFIX,
            {"type": "Sequence", "normalizers": [PREFIX, MARKS, {"type": "Lowercase"}]}])
    elif chance(30):
        out["/normalizer"] = random.choice([{"type": "NFC"}, {"type": "Lowercase"}, {"type": "Strip"}, PREFIX, MARKS])
        if out["/normalizer"]["type"] == "Strip":
            out["/normalizer"] |= {"strip_left": True, "strip_right": True}
    if not chance(3):
        out["/added_tokens"] = added_tokens(all_bases[name]["model"]["vocab"])
    for key, values in (("ignore_merges", [True]), ("fuse_unk", [True, False]), ("byte_fallback", [True, False]),
                        ("dropout", [0.0, 1.0]), ("continuing_subword_prefix", ["", "##"]),
                        ("end_of_word_suffix", ["", "</w>"]), ("unk_token", [None, "<unk>"])):
        if chance(40):
            out["/model/" + key] = random.choice(values)
    if chance(3):
        out["/post_processor"] = random.choice([
            template(["<s>"], []), template(["<s>"], []), template(["<s>"], ["</s>"]), template([], ["</s>"]),
            template([], []), template(["<s>", "</s>"], []), BYTES,
            {"type": "Sequence", "processors": [BYTES, template(["<s>"], [])]},
            {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True,
             "add_prefix_space": False}])
    if chance(30):
        out["/decoder"] = random.choice([BYTES, METASPACE, {"type": "Fuse"}, {"type": "WordPiece", "prefix": "##",
                                                                              "cleanup": True}])
    if chance(30):
        out["/truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    return out


def with_changes(root, changes):
    root = copy.deepcopy(root)
    for pointer, value in changes.items():
        *path, last = pointer.split("/")[1:]
        inner = root
        for key in path:
            inner = inner[key]
        inner[last] = value
    return root


def main():
    random.seed(SEED)
    cases, values = [], []

    def number_of(value):
        text = json.dumps(value)  # since 1.0 == True
        if text not in values:
            values.append(text)
        return values.index(text)

    for _ in range(CASES):
        name = random.choice(list(bases()))
        changes = changes_of(name)
        try:
            tokenizer = Tokenizer.from_str(json.dumps(with_changes(bases()[name], changes)))
            ids = [tokenizer.encode(text).ids for text in TEXTS]
        except BaseException:  # the package panics on some
            ids = None
        added = changes.pop("/added_tokens", None)
        case = {"base": name, "changes": {key: number_of(value) for key, value in changes.items()}, "ids": ids}
        if added is not None:
            letters = lambda token: "".join(letter for flag, letter in FLAGS.items() if token[flag])
            case["added"] = [[token["id"], token["content"], letters(token)] for token in added]
        cases.append(case)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    head = json.dumps({"texts": TEXTS, "bases": bases(), "values": [json.loads(text) for text in values]}, ensure_ascii=False, separators=(",", ":"))
    OUT.write_text(f"{head[:-1]},\n\"cases\":[\n{lines}]}}\n")


main()
