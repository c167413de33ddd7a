#!/usr/bin/env python3
"""Records how the tokenizers package cuts difficult texts with the published expressions of each rule of GGUF's
tokenizer.ggml.pre, for tests/model/text/pre_tokenizer_test.cc. Development only.
    pip install tokenizers==0.23.3
    python tests/golden/make_pre_tokenizer_golden.py
Writes tests/golden/tokenizer/pre_tokenizers.json: the texts, for each rule the bytes of the words of each text, and for
each other name its rule.
"""

import json
import pathlib
import random

from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).parent / "tokenizer" / "pre_tokenizers.json"
SEED = 1

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"


def o200k(short, numbers, upper=UPPER, lower=LOWER, after="/"):
    return (f"{BEFORE}{upper}*{lower}+{short}|{BEFORE}{upper}+{lower}*{short}|{numbers}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n{after}]*|{SPACES}")


GPT4O = o200k(SHORT + "?", r"\p{N}{1,3}")
NOT_HAN = r"&&[^\p{Han}]]"
KIMI = r"[\p{Han}]+|" + o200k(SHORT + "?", r"\p{N}{1,3}", UPPER[:-1] + NOT_HAN, LOWER[:-1] + NOT_HAN, "")
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES)
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗ"
    "ὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭ"
    "Ꚁ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
IDEOGRAPHS = "[一-龥ࠀ-一가-퟿]+"
NUMBER = r"\p{N}"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"

RULES = {
    "gpt-2": [GPT2],
    "llama-bpe": [LLAMA3],
    "qwen2": [QWEN2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "starcoder": [NUMBER, GPT2],
    "dbrx": [LLAMA3],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", IDEOGRAPHS, NUMBER],
    "deepseek-llm": ["[\r\n]", DEEPSEEK_LETTERS, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", IDEOGRAPHS, r"\p{N}+"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK3],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+",
              o200k(SHORT + "?", NUMBER)],
    "jais-2": [LLAMA3.replace(r"\s+(?!\S)|\s+", "|".join(rf"\s{{{2 ** n}}}(?!\S)" for n in range(9, 1, -1))
                              + r"|\s{1,2}(?!\S)|\s{1}")],
    "qwen35": [QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")],
    "bloom": [BLOOM],
    "viking": [BLOOM, NUMBER],
    "tekken": [o200k("", NUMBER)],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\t\n]|    |  )", NUMBER,
                  r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "gpt-4o": [GPT4O],
    "granite-embed-multi-97m": [GPT4O],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O],
    "kimi-k2": [KIMI],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
                   r"|\s+(?!\S)|\s+"],
    "seed-coder": [SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + SPACES],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
              "[一-鿿㐀-䶿\uf900-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff"
              "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff가-\ud7afᄀ-ᇿ]+", DEEPSEEK3],
    "laguna": [r"[^\n]+|[\n]+", QWEN2],
    "exaone-moe": [SHORT + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
                   r"|\s*[\r\n]|\s+(?!\S)|\s+"],
    "minicpm5": [r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}

NAMES = {
    "gpt-2": "phi-2 mpt olmo jais jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat "
             "a.x-4.0 mellum modern-bert exaone4 trillion granite-docling",
    "llama-bpe": "llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    "qwen2": "deepseek-r1-qwen megrez kormo f2llmv2 stablelm2 hunyuan solar-open grok-2",
    "starcoder": "refact command-r smollm codeshell exaone minerva-7b mellum2",
    "dbrx": "smaug-bpe glm4 chatglm-bpe",
    "deepseek-v3": "hunyuan-dense joyai-llm",
    "bloom": "poro-chat gpt3-finnish",
    "gpt-4o": "llama4 kanana2 talkie minimax-m2",
    "tiny_aya": "cohere2moe",
    "bailingmoe": "bailingmoe2 llada-moe",
}

PIECES = ["'s", "'LL", "'ſ", "'re", "don't", "It'S", "a", "Hello", "WORLD", "camelCase", "HTTPServer", "ǅ", "ʰ", "ß",
          "é", "e\u0301", "\u0301", "ﬁ", "ΑΣ", "привет", "مرحبا", "שלום", "नमस्ते", "ไทย", "漢字", "かな", "カナ", "한국어",
          "\u1100\u1161", "ㄅㄆ", "〇", "𠀀", "豈", "豈", "𝒳", "1", "12", "123", "1234567", "٣٤", "²", "½", "Ⅷ", "१२", "¹²³4",
          "!", "...", "?!", "«", "»", "—", "、", "。", "！", "$", "€", "+", "<=>", "^", "~", "|", "`", "_", "__init__", "#",
          "/", "//", "\\", "(", ")", "[", "]", "{", "}", "@x", "©", "👍🏽", "👩\u200d💻", "\u200b", "\u200d", "\u00ad",
          "\ufeff", "\u180e", "\u0000", "\u001f", " ", "  ", "   ", "     ", " " * 9, " " * 20, " " * 130, "\t", "\n", "\r\n",
          "\n\n", " \n", "\n ", "\u00a0", "\u3000", "\u2009", "\u2028", "\u0085", "\x0b", "\x0c", "<sentinel:12>",
          "IMGIMGABCZ", "،", "۔", "।", "…", "<br/>\n", "http://a.b/c?d=1", "3.14", "1,000,000", "x2", "2x", "a b c"]


def texts():
    random.seed(SEED)
    return ["".join(random.choice(PIECES) for _ in range(24)) for _ in range(40)] + ["".join(PIECES), " ".join(PIECES)]


def lengths(expressions, text):
    steps = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in expressions]
    words = pre_tokenizers.Sequence(steps).pre_tokenize_str(text)
    return [len(word.encode()) for word, _ in words]


def main():
    all_texts = texts()
    rules = {name: [lengths(expressions, text) for text in all_texts] for name, expressions in RULES.items()}
    names = {name: rule for rule, others in NAMES.items() for name in others.split()}
    parts = [f'"texts":{json.dumps(all_texts)}', f'"names":{json.dumps(names)}']
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(words, separators=(',', ':'))}" for name, words in rules.items())
    OUT.write_text("{" + ",\n".join(parts) + ',\n"rules":{\n' + lines + "}}\n")


main()
