#!/usr/bin/env python3
"""Renders chats with models' own templates: what core/model/text/named_templates.cc has to write.

Development only; the tests read what is committed. The templates themselves are their models' and are not here: a
folder of them (`<model>.jinja`, from the models' tokenizer_config.json) is the argument.
    pip install jinja2
    python tests/golden/make_chat_golden.py FOLDER
Writes tests/golden/chat/golden.json: for each model of MODELS its family, and for each chat the text without BOS, or
null where its template refuses the chat.
"""

import json
import pathlib
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = pathlib.Path(__file__).parent / "chat" / "golden.json"

MODELS = {
    "DeepSeek-R1-Distill-Llama-8B": "deepseek-r1",
    "DeepSeek-V2": "deepseek2",
    "Devstral-Small-2507": "mistral-v7-tekken",
    "Llama-3.1-8B-Instruct": "llama3.1",
    "Meta-Llama-3-8B-Instruct": "llama3",
    "Mistral-7B-Instruct-v0.2": "mistral",
    "Mistral-7B-Instruct-v0.1": "mistral-v1",
    "Mistral-Large-Instruct-2407": "mistral-v3",
    "Mistral-Large-Instruct-2411": "mistral-v7",
    "Mistral-Nemo-Instruct-2407": "mistral-v3-tekken",
    "OpenHermes-2.5-Mistral-7B": "chatml",
    "Orca-Vicuna": "vicuna-orca",
    "Phi-3.5-mini-instruct": "phi3",
    "Qwen2.5-7B-Instruct": "qwen2.5",
    "Qwen3-0.6B": "qwen3",
    "deepseek-coder-33b-instruct": "deepseek",
    "phi-4": "phi4",
    "vicuna-13b-1.1": "vicuna",
    "vigogne-2-70b-chat": "llama2-sys",
}

# Without a system message, these templates write a default one of their own, which named_templates.cc does not.
WITH_A_SYSTEM_OF_THEIR_OWN = {"Devstral-Small-2507", "vigogne-2-70b-chat"}

CHATS = {
    "a question": [("user", "Hi ")],
    "a system": [("system", "Be brief."), ("user", " Hi")],
    "turns": [("system", "Be brief."), ("user", "Hi"), ("assistant", " Hello. "), ("user", "Why?")],
    "no system": [("user", "Hi"), ("assistant", "Hello."), ("user", "Why?")],
    "thoughts": [("system", "Think."), ("user", "Hi"), ("assistant", "<think>\nA.\n</think>\n\nHello."), ("user", "Why?")],
}


def environment():
    found = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def refuse(why):
        raise ValueError(why)

    found.globals["raise_exception"] = refuse
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    models = []
    for model, family in MODELS.items():
        template = environment().from_string((folder / f"{model}.jinja").read_text())
        chats = []
        for name, messages in CHATS.items():
            if model in WITH_A_SYSTEM_OF_THEIR_OWN and messages[0][0] != "system":
                continue
            spoken = [{"role": role, "content": content} for role, content in messages]
            try:
                text = template.render(
                    messages=spoken, add_generation_prompt=True, bos_token="<s>", eos_token="</s>", tools=None
                ).removeprefix("<s>")
            except ValueError:
                text = None
            chats.append({"chat": name, "messages": spoken, "text": text})
        models.append({"model": model, "family": family, "chats": chats})
    OUT.write_text(json.dumps(models, indent=1, ensure_ascii=False) + "\n")


main()
