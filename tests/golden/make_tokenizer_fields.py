#!/usr/bin/env python3
"""Draws tokenizer.json files over all fields, and records what the tokenizers package makes of them: the ids of a few
texts and the text of these ids, or that it refuses the file.

Development only; the test (tests/formats/tokenizer/tokenizer_fields_test.cc) reads what is committed, or the file that
TIERD_TOKENIZER_CASES names.
    pip install tokenizers==0.23.3
    python tests/golden/make_tokenizer_fields.py [CASES [FILE]]      # default: 200, tests/golden/tokenizer/fields.json
Writes a few whole files ("bases"), the texts, and for each case its base, the fields that differ (JSON pointer to the
number of a value of "values"), the added tokens as [id, content, flags], where the letters of FLAGS say which are true,
and for each text its ids and their text with and without special tokens (numbers of "strings"); null if it is refused,
or if the package's text has special tokens although they are skipped.
"""

import copy
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer

OUT = pathlib.Path(__file__).parent / "tokenizer" / "fields.json"
SEED = 3
FLAGS = {"special": "s", "normalized": "n", "lstrip": "l", "rstrip": "r", "single_word": "w"}
TEXTS = ["hi hi", " ab[A] hi", "hi[A]hab", "<t> ab<t>\nhé", "▁hi  [A][A]x hi<s>", "Hi!  it's 12345 1\n\n ab.b",
         "e\u0301é ﬁＡ ½²x\u00a0hi\t", "_a-b__HI, x\u3000«ab»[A]\u2009", "İA\u0301 ΣΑΣ 👍🏽 漢字か 가 \u1100\u1161 x",
         "\n \n<s>ab </s> [A] hi", ""]

MERGES = ["▁ h", "h i", "▁h i", "▁ hi", "a b", "▁ a", "▁a b", "▁ ab", "▁ ▁", "1 2", "e \u0301", "H i", "_ _"]


def marked_vocab(with_bytes):
    pieces = ["<unk>", "<s>", "</s>"]
    if with_bytes:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += [*"▁hiabx[]A12.,'!_-eHIst", "é", "\u0301", "か"]
    pieces += ["".join(merge.split()) for merge in MERGES]
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def byte_characters():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    return [chr(byte) for byte in kept] + [chr(256 + n) for n in range(len(moved))]


def base(model, normalizer, pre_tokenizer, decoder):
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "byte_fallback": False, "ignore_merges": False} | model,
    }


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
MARKS = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
SPACES = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
PREFIX = {"type": "Prepend", "prepend": "▁"}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
EXPRESSIONS = [LLAMA3, r"\s+$", r"(?=(\d{3})+(?!\d))", r"\d{1,3}(?=(?:\d{3})*\b)", r"\w+", r"\W", r"\bhi\b", "x*",
               r"[\p{Han}\p{Hiragana}]+", r"[^(\s|[.,!])]+", r"[a-b]|\p{Lu}", r"(?<=i) ", r"^ ?", r"\x{301}|\u00e9",
               r"\p{M}", r"(?i)HI", "[^\n]+|[\n]+", r"[\p{L}&&[^\p{Han}]]+", r"\h", r"(?<n>a)", "a{,2}", r"\p{Punct}"]
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
AS_BYTES = BYTES | {"use_regex": False}
BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
TO_SPACES = {"type": "Sequence", "decoders": [SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}]}
TO_TEXT = {"type": "Sequence", "decoders": [SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP]}


def sequence(key, steps):
    return steps[0] if len(steps) == 1 else {"type": "Sequence", key: steps}


def bases():
    marked = {"unk_token": "<unk>", "fuse_unk": True, "merges": [key.split() for key in MERGES]}
    pieces = ["<unk>", "<s>", "</s>", *byte_characters(), "hi", "Ġhi", "ab", "12"]
    in_bytes = {"unk_token": None, "fuse_unk": False, "vocab": {piece: n for n, piece in enumerate(pieces)},
                "merges": [["h", "i"], ["Ġ", "hi"], ["a", "b"], ["1", "2"]]}
    some = [piece for piece in pieces if piece not in "Ġx!"]
    characters = marked | {"vocab": marked_vocab(False)}
    with_bytes = marked | {"vocab": marked_vocab(True), "byte_fallback": True}
    gemma = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    return {
        "metaspace": base(characters, None, METASPACE, METASPACE),
        "llama": base(with_bytes, sequence("normalizers", [PREFIX, MARKS]), None, TO_TEXT),
        "llama5": base(with_bytes, None, METASPACE | {"prepend_scheme": "first"}, TO_TEXT),
        "gemma": base(with_bytes, MARKS, gemma, TO_SPACES),
        "bytes": base(in_bytes, None, BYTES, BYTES),
        "lacking": base(in_bytes | {"vocab": {piece: n for n, piece in enumerate(some)}, "unk_token": "<unk>",
                                    "merges": [["h", "i"], ["a", "b"]]}, None, BYTES, BYTES),
        "words": base(characters, None, {"type": "Whitespace"}, {"type": "Fuse"}),
    }


def chance(one_in):
    return random.randrange(one_in) == 0


def added_tokens(vocab):
    tokens = [(0, "<unk>"), (1, "<s>")] if not chance(4) else []
    contents = random.sample(["[A]", "hi", "<t>", "x", " h", "ab[", "h", "A b", "_", "é"], random.randrange(4))
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


def pattern():
    if chance(2):
        return {"String": random.choice([" ", "i", "ab", "▁", "", "[", "\n"])}
    return {"Regex": random.choice(EXPRESSIONS)}


def metaspace(replacements=("▁", "▁", "▁", "_")):
    step = copy.deepcopy(METASPACE)
    step["replacement"] = random.choice(replacements)
    step["prepend_scheme"] = random.choice(["first", "always", "never"])
    if chance(6):
        step["add_prefix_space"] = random.choice([True, step["prepend_scheme"] != "never"])
    if chance(6):
        del step["prepend_scheme"]
    step["split"] = chance(2)
    if chance(6):
        del step["split"]
    return step


def normalizer():
    return random.choice([
        {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"},
        {"type": "StripAccents"}, {"type": "Strip", "strip_left": chance(2), "strip_right": chance(2)},
        {"type": "Prepend", "prepend": random.choice(["▁", "x", "hi "])}, MARKS,
        {"type": "Replace", "pattern": pattern(), "content": random.choice(["", "▁", " ", "ab"])},
        random.choice([{"type": "Nmt"}, {"type": "ByteLevel"},
                       {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                        "strip_accents": None, "lowercase": True}])])


def pre_tokenizer():
    return random.choice([
        metaspace(), metaspace(), {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
        {"type": "Digits", "individual_digits": chance(2)},
        {"type": "Punctuation", "behavior": random.choice(BEHAVIORS)}, {"type": "Punctuation"},
        {"type": "CharDelimiterSplit", "delimiter": random.choice(["_", " ", "▁"])},
        {"type": "Split", "pattern": pattern(), "behavior": random.choice(BEHAVIORS), "invert": chance(3)},
        {"type": "Split", "pattern": pattern(), "behavior": random.choice(BEHAVIORS), "invert": chance(3)},
        {"type": "Split", "pattern": pattern(), "behavior": random.choice(BEHAVIORS), "invert": chance(3)},
        random.choice([{"type": "BertPreTokenizer"}, {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": 2}])])


def steps_of(step, key):
    return sequence(key, [step() for _ in range(random.choice([1, 1, 2, 3]))])


def byte_steps():
    steps = [pre_tokenizer() for _ in range(random.choice([0, 0, 1, 1, 2]))]
    steps.append(BYTES | {"use_regex": chance(2), "add_prefix_space": chance(4)})
    if chance(8):
        steps.append(pre_tokenizer())
    return sequence("pretokenizers", steps)


def decoder():
    one = lambda: random.choice([
        SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}, BYTES, metaspace(),
        {"type": "Strip", "content": random.choice([" ", "i"]), "start": random.randrange(3), "stop": random.randrange(2)},
        {"type": "Replace", "pattern": pattern(), "content": random.choice(["", " ", "ab"])},
        random.choice([{"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "BPEDecoder", "suffix": "</w>"},
                       {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}])])
    return random.choice([TO_TEXT, TO_SPACES, BYTES, METASPACE, None, one(), steps_of(one, "decoders")])


def changes_of(name):
    out = {}
    in_bytes = name in ("bytes", "lacking")
    if not chance(3):
        out["/pre_tokenizer"] = byte_steps() if in_bytes else steps_of(pre_tokenizer, "pretokenizers")
    if not chance(3 if not in_bytes else 2):
        out["/normalizer"] = steps_of(normalizer, "normalizers")
    if not chance(3):
        out["/added_tokens"] = added_tokens(bases()[name]["model"]["vocab"])
    for key, values in (("ignore_merges", [True]), ("fuse_unk", [True, False]), ("byte_fallback", [True, False]),
                        ("dropout", [0.0, 1.0]), ("continuing_subword_prefix", ["", "##"]),
                        ("end_of_word_suffix", ["", "</w>"]), ("unk_token", [None, "<unk>", "<none>"]),
                        ("merges", [["h i", "a b", "h i"], [["▁", "h"], ["a b", "x"]]])):
        if chance(20 if key in ("ignore_merges", "fuse_unk") else 40):
            out["/model/" + key] = random.choice(values)
    if chance(4):
        out["/post_processor"] = random.choice([
            template(["<s>"], []), template(["<s>"], []), template(["<s>"], ["</s>"]), template([], ["</s>"]),
            template([], []), template(["<s>", "</s>"], []), BYTES,
            {"type": "Sequence", "processors": [BYTES, template(["<s>"], [])]},
            {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True,
             "add_prefix_space": False}])
    if chance(6):
        out["/decoder"] = decoder()
    if chance(40):
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


class Numbers:
    """Numbers the distinct values that it is given."""

    def __init__(self):
        self.texts = {}

    def of(self, value):
        return self.texts.setdefault(json.dumps(value), len(self.texts))  # texts, since 1.0 == True

    def values(self):
        return [json.loads(text) for text in self.texts]


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else OUT
    random.seed(SEED)
    cases, values, strings = [], Numbers(), Numbers()
    for _ in range(count):
        name = random.choice(list(bases()))
        changes = changes_of(name)
        try:
            tokenizer = Tokenizer.from_str(json.dumps(with_changes(bases()[name], changes)))
            ids = [tokenizer.encode(text).ids for text in TEXTS]
            # The package compares the normalized text of a token with the texts of special tokens, and so does not skip
            # special tokens that normalizers change.
            skips = not any(token["special"] and token["normalized"] for token in changes.get("/added_tokens", []))
            texts = [[strings.of(tokenizer.decode(one, skip_special_tokens=skip)) if skips or not skip else None
                      for skip in (False, True)] for one in ids]
        except BaseException:  # the package panics on some
            ids = texts = None
        added = changes.pop("/added_tokens", None)
        case = {"base": name, "changes": {key: values.of(value) for key, value in changes.items()}, "ids": ids,
                "texts": texts}
        if added is not None:
            letters = lambda token: "".join(letter for flag, letter in FLAGS.items() if token[flag])
            case["added"] = [[token["id"], token["content"], letters(token)] for token in added]
        cases.append(case)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    head = json.dumps({"texts": TEXTS, "bases": bases(), "values": values.values(), "strings": strings.values()},
                      ensure_ascii=False, separators=(",", ":"))
    out.write_text(f"{head[:-1]},\n\"cases\":[\n{lines}]}}\n")


main()
