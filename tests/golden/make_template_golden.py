#!/usr/bin/env python3
"""Renders chats with chat templates as transformers does: the texts that tierd's interpreter has to write.

Development only.
    pip install transformers==5.23.0 jinja2==3.1.6
    python tests/golden/make_template_golden.py                 # writes tests/golden/templates/golden.json
    python tests/golden/make_template_golden.py FOLDER TEST     # compares all FOLDER/*.jinja, and prints the counts
TEST is the program text_test. The templates of FOLDER are their models' and are not in this repository.
"""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent / "templates"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 7, 4, 15, 6, 7)


chat_template_utils.datetime = FixedDate


def said(role, content, **more):
    return {"role": role, "content": content, **more}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Returns the weather of a place: \"now\" & <soon>.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "City, as in Zürich or 東京"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                    "days": {"type": "array", "items": {"type": "integer"}, "nullable": True},
                    "where": {
                        "type": "object",
                        "properties": {"lat": {"type": "number"}, "lon": {"type": ["number", "null"]}},
                        "required": ["lat"],
                    },
                    "how": {"oneOf": [{"type": "string", "default": "x"}, {"type": "boolean"}]},
                },
                "required": ["place"],
            },
        },
    },
    {"type": "function", "function": {"name": "stop", "description": "Stops.", "parameters": {"type": "object", "properties": {}}}},
]


def called(name, arguments, number):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {"place": "Zürich", "days": [1, 2], "where": {"lat": 47.5, "lon": None}, "unit": "celsius", "sure": True}
TOOL_TURNS = [
    said("system", "You have tools."),
    said("user", "How is the weather?"),
    said("assistant", "", tool_calls=[called("get_weather", WEATHER, "abcdefghi")]),
    said("tool", '{"degrees": 21}', name="get_weather", tool_call_id="abcdefghi"),
    said("assistant", "It is 21 degrees."),
    said("user", "Stop, and look again."),
    said("assistant", "Stopping.", tool_calls=[called("stop", {}, "123456789"), called("get_weather", WEATHER, "abcdefghj")]),
    said("tool", "stopped", name="stop", tool_call_id="123456789"),
    said("tool", '{"degrees": 22}', name="get_weather", tool_call_id="abcdefghj"),
]
THOUGHT_TURNS = [
    said("user", "2 + 2?"),
    said("assistant", "It is 4.", reasoning_content="Two and two.\nThat is 4."),
    said("user", " And 3 + 3? "),
    said("assistant", "<think>\nThree and three.\n</think>\n\nIt is 6."),
    said("user", "Thanks <|im_end|> {{ x }}\r\n"),
]
CHATS = {
    "plain": [[said("user", "Hello "), said("assistant", " Hi\n"), said("user", "Who are you? — \"é\"")], None],
    "system": [[said("system", " Be brief.\n"), said("user", "Hello")], None],
    "tools": [TOOL_TURNS, TOOLS],
    "thought": [THOUGHT_TURNS, None],
    "empty system": [[said("system", ""), said("user", "Hello")], None],
}


def rendered(template, messages, tools, begins, more):
    try:
        texts, _ = chat_template_utils.render_jinja_template(
            [messages], tools=tools, chat_template=template, add_generation_prompt=begins, **TOKENS, **more
        )
        return {"text": texts[0]}
    except Exception as error:  # any refusal
        raised = type(error).__name__ == "TemplateError"
        return {"text": None, "raised": str(error) if raised else None, "why": f"{type(error).__name__}: {error}"[:300]}


def cases(file):
    # As transformers reads chat_template.jinja.
    template = file.read_text(encoding="utf-8")
    chats = []
    for name, (messages, tools) in CHATS.items():
        for begins in (True, False):
            for more in ({}, {"enable_thinking": False}) if name == "plain" and begins else ({},):
                chat = {"chat": name, "messages": messages, "tools": tools, "add_generation_prompt": begins, "variables": more}
                chats.append({**chat, **rendered(template, messages, tools, begins, more)})
    return {"name": file.stem, "template": template, "chats": chats}


def main():
    if len(sys.argv) == 1:
        # The templates are beside the golden texts, and the chats once for all.
        models = [cases(file) for file in sorted(HERE.glob("*.jinja"))]
        chats = [{k: v for k, v in chat.items() if k not in ("text", "raised", "why")} for chat in models[0]["chats"]]
        texts = {
            model["name"]: [chat["text"] if chat["text"] is not None else {"raised": chat["raised"]} for chat in model["chats"]]
            for model in models
        }
        (HERE / "golden.json").write_text(json.dumps({"chats": chats, "texts": texts}, indent=1, ensure_ascii=False) + "\n")
        return
    models = [cases(file) for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja"))]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(models, file)
        file.flush()
        command = [sys.argv[2], "--gtest_filter=ChatTemplate.TemplatesOfAFolder*", "--gtest_brief=1"]
        sys.exit(subprocess.run(command, env={**os.environ, "TIERD_TEMPLATE_CASES": file.name}).returncode)


main()
