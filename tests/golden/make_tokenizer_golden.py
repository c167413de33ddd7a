#!/usr/bin/env python3
"""Trains tiny tokenizers and writes them with the ids that their own libraries give.

Development only; the tests read what is committed. Run from anywhere:
    pip install sentencepiece tokenizers
    python tests/golden/make_tokenizer_golden.py
Writes tests/golden/tokenizer/: the tokenizer files, and golden.json with texts and ids.
"""

import io
import json
import pathlib

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

OUT = pathlib.Path(__file__).parent / "tokenizer"

CORPUS = [
    "The lighthouse keeper counted the ships that passed in the night, and wrote their number in a book.",
    "She said she'd come back; they're waiting, I've heard, but we'll see whether he's there.",
    "There were 12 boats in 1987, 345 in 1999 and 2024 of them in the end: 3.5 a day, or 1,000 a year.",
    "for (int i = 0; i < n; ++i) {\n    total += values[i] * 2;\n}\nreturn total;\n",
    "Der Leuchtturmwärter zählte die Schiffe, die nachts vorüberfuhren. Übermäßig schön!",
    "Le gardien du phare comptait les navires qui passaient la nuit; c'était déjà l'été.",
    "Смотритель маяка считал корабли, проходившие ночью, и записывал их число.",
    "灯台守は夜に通る船を数えて、その数を本に書いた。",
    "the the the ships ships passed passed the night night and the end the end of the book",
    "    indented    text\twith\ttabs\n\n\nand blank lines   ",
]

TEXTS = [
    "",
    " ",
    "  ",
    "   leading and trailing   ",
    "The ships passed in the night.",
    "They're here, I'VE seen; we'll see 'tis",
    "1 12 123 1234 12345 and 3.14159",
    "a\nb\n\nc\r\n\r\nd \n e  \n  f\t\tg",
    "for (int i = 0; i < n; ++i) {\n    total += values[i];\n}",
    "Übermäßig schön, l'été",
    "Смотритель маяка",
    "灯台守は夜に",
    "emoji 🚢🌊 and 👩‍🚀 and ½ ² Ⅷ ١٢٣",
    "NUL \x00 and control \x01\x1f\x7f",
    "no-break\u00a0space, em\u2003space, zero\u200bwidth, vowel\u180eseparator, next\u0085line",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "the the thethethe theend endend",
    "<s> </s> <unk> <0x41> <|end|>",
    "[KEEP] this[KEEP][KEEP]and [KEEP2] that",
    "!!!???...---===***   !!!\n\n\n",
    "combining e\u0301 and \u1112\u1161\u11ab",
    "\u2581 already marked",
]

USER_DEFINED = ["[KEEP]", "[KEEP2]"]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def train_sentencepiece(name, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type="bpe", character_coverage=0.98,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2, **options)
    (OUT / name).write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def ids_of_sentencepiece(name, **options):
    processor = train_sentencepiece(name, **options)
    return {"file": name, "ids": [processor.encode(text) for text in TEXTS]}


def llama_json(processor, name, pair_merges, metaspace):
    """The same sentencepiece model as tokenizer.json, the way Llama's is made."""
    vocab = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    whole = {p for p, i in vocab.items()
             if not (processor.is_byte(i) or processor.is_control(i) or processor.is_unknown(i))}
    merges = []
    for piece in sorted(whole, key=lambda p: vocab[p]):
        merges += [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in whole and piece[i:] in whole]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", vocab["<s>"])])
    write_json(tokenizer, name, pair_merges)
    # Metaspace adds no mark before a text that begins with one; sentencepiece, and so tierd, always does.
    ids = [None if metaspace and text[:1] in (" ", "▁") else tokenizer.encode(text, add_special_tokens=False).ids
           for text in TEXTS]
    return {"file": name, "ids": ids}


def write_json(tokenizer, name, pair_merges):
    root = json.loads(tokenizer.to_str())
    if not pair_merges:
        root["model"]["merges"] = [" ".join(pair) for pair in root["model"]["merges"]]
    (OUT / name).write_text(json.dumps(root, ensure_ascii=False, separators=(",", ":")))


def byte_level(name, split, ignore_merges, pair_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if split is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(split), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in USER_DEFINED])
    write_json(tokenizer, name, pair_merges)
    # The text's control tokens are recognised, because this library always does so.
    return {"file": name, "parse_special": True,
            "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]}


def main():
    OUT.mkdir(exist_ok=True)
    cases = [
        ids_of_sentencepiece("bytes.model", vocab_size=540, byte_fallback=True, user_defined_symbols=USER_DEFINED),
        ids_of_sentencepiece("unknown.model", vocab_size=260),
        ids_of_sentencepiece("no_prefix.model", vocab_size=520, byte_fallback=True, add_dummy_prefix=False),
    ]
    plain = train_sentencepiece("plain.model", vocab_size=520, byte_fallback=True)
    cases.append({"file": "plain.model", "ids": [plain.encode(text) for text in TEXTS]})
    cases.append(llama_json(plain, "llama.json", pair_merges=False, metaspace=False))
    cases.append(llama_json(plain, "llama_metaspace.json", pair_merges=True, metaspace=True))
    cases.append(byte_level("gpt2.json", None, False, pair_merges=False))
    cases.append(byte_level("llama3.json", LLAMA3, True, pair_merges=True))
    cases.append(byte_level("qwen2.json", QWEN2, False, pair_merges=True))
    golden = {
        "made_by": "tests/golden/make_tokenizer_golden.py",
        "versions": {"sentencepiece": sentencepiece.__version__, "tokenizers": tokenizers.__version__},
        "texts": TEXTS,
        "cases": cases,
    }
    (OUT / "golden.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
