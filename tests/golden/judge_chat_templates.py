#!/usr/bin/env python3
"""Compares what text_test writes of published chat templates with what Jinja makes of them, for some hundred chats.

Development only. The templates are their models' and are not here: a folder of them (`<model>.jinja`) is the argument.
    pip install jinja2
    python tests/golden/judge_chat_templates.py FOLDER > chats.json
    TIERD_CHATS=chats.json build/ci/tests/text_test --gtest_filter='*JudgedChats*'
A template that passes may stand in core/model/text/known_templates.cc; the test prints the checksum of each that is not known.
"""

import json
import pathlib
import random
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

CONTENTS = ["", " ", "Hi", " a \n", "<think>x</think>y", "</think>\n\nz", "b{% x %}", "é\n", "You are", "\n"]


def environment():
    found = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])

    def refuse(why):
        raise ValueError(why)

    found.globals["raise_exception"] = refuse
    found.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    return found


def chats():
    random.seed(3)
    for _ in range(300):
        chat = []
        for turn in range(random.randrange(1, 7)):
            role = "user" if turn % 2 == 0 else "assistant"
            if random.random() < 0.3:
                role = random.choice(["user", "assistant", "system"])
            chat.append({"role": role, "content": random.choice(CONTENTS)})
        if random.random() < 0.4:
            chat.insert(0, {"role": "system", "content": random.choice(["", "S", " S "])})
        yield chat


def rendered(template, chat, begin, end):
    wrong = (ValueError, jinja2.exceptions.TemplateError, TypeError, IndexError, AttributeError, KeyError)
    try:
        text = template.render(
            messages=chat, add_generation_prompt=True, bos_token=begin, eos_token=end, tools=None
        )
    except wrong:
        return None
    return text.removeprefix(begin)


def main():
    out = []
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        template = file.read_text()
        compiled = environment().from_string(template)
        for begin, end in (("<s>", "</s>"), ("<B>", "<E>")):
            judged = [{"messages": chat, "text": rendered(compiled, chat, begin, end)} for chat in chats()]
            out.append({"model": file.stem, "template": template, "bos": begin, "eos": end, "chats": judged})
    json.dump(out, sys.stdout, ensure_ascii=False)


main()
