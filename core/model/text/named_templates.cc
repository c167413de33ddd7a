#include "core/model/text/named_templates.h"

#include <algorithm>
#include <array>

namespace tierd {
namespace {

// A template is one of the bodies below, behind the settings of its family: `system`, `user` and `assistant`
// are the texts before and after a message's content; `next` begins the assistant's turn. Optional are
// `silent`, the system message of a chat without one; `preface`, which precedes the first system message;
// `tool`, the texts before, around each and after consecutive messages of tools; `trims`, the roles whose
// contents lose the white space around them; and `thoughts`: "go" removes an assistant's text up to </think>,
// and "lines" the line feeds behind it as well.
struct NamedTemplate {
  std::string_view name;
  std::array<std::string_view, 3> settings;
  std::string_view body;
};

// The system message has a turn of its own.
constexpr std::string_view kTurns =
    R"({%- set silent_turn = silent is defined and messages[0].role != 'system' %}
{%- if silent_turn %}{{ system[0] + (preface | default('')) + silent + system[1] }}{% endif %}
{%- for message in messages %}
{%- set content = message.content | trim if message.role in (trims | default([])) else message.content %}
{%- if message.role == 'system' %}
{{- system[0] + (preface | default('') if loop.first else '') + content + system[1] }}
{%- elif message.role == 'user' %}{{ user[0] + content + user[1] }}
{%- elif message.role == 'assistant' %}
{%- if thoughts is defined %}{% set content = content.split('</think>')[-1] if '</think>' not in content or
    thoughts == 'go' else content.split('</think>')[-1].lstrip('\n') %}{% endif %}
{{- assistant[0] + content + assistant[1] }}
{%- elif message.role == 'tool' and tool is defined %}
{%- if loop.first or loop.previtem.role != 'tool' %}{{ tool[0] }}{% endif %}
{{- tool[1] + content + tool[2] }}
{%- if loop.last or loop.nextitem.role != 'tool' %}{{ tool[3] }}{% endif %}
{%- else %}{{ raise_exception("a message of the role '" + message.role + "' is not supported") }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ next }}{% endif %})";

// The system message is inside a message of the user: the first one, or the last one where `last` is set. No
// `system`: there are no system messages.
constexpr std::string_view kInstructions = R"({%- set found = namespace(text='', bearer=-1) %}
{%- if messages[0].role == 'system' %}
{%- if system is not defined %}{{ raise_exception('system messages are not supported') }}{% endif %}
{%- set found.text = system[0] + messages[0].content + system[1] %}
{%- for message in messages %}
{%- if message.role == 'user' and (last is defined or found.bearer < 0) %}{% set found.bearer = loop.index0 %}{% endif %}
{%- endfor %}
{%- if found.bearer < 0 %}{{ raise_exception('a system message requires a message of the user behind it') }}{% endif %}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}
{%- set content = (found.text if loop.index0 == found.bearer else '') + message.content %}
{{- user[0] + (content | trim if 'user' in (trims | default([])) else content) + user[1] }}
{%- elif message.role == 'assistant' %}
{%- set content = message.content %}
{{- assistant[0] + (content | trim if 'assistant' in (trims | default([])) else content) + assistant[1] }}
{%- elif message.role != 'system' %}
{{- raise_exception("a message of the role '" + message.role + "' is not supported") }}
{%- elif not loop.first %}
{{- raise_exception('a system message is supported as the first message only') }}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kImTurns = R"({%- set system = ['<|im_start|>system\n', '<|im_end|>\n'] %}
{%- set user = ['<|im_start|>user\n', '<|im_end|>\n'] %}
{%- set assistant = ['<|im_start|>assistant\n', '<|im_end|>\n'] %}
{%- set next = '<|im_start|>assistant\n' %}
{%- set tool = ['', '<|im_start|>tool\n', '<|im_end|>\n', ''] %})";
constexpr std::string_view kQwenTools =
    R"({%- set tool = ['<|im_start|>user', '\n<tool_response>\n', '\n</tool_response>', '<|im_end|>\n'] %})";
constexpr std::string_view kHeaders =
    R"({%- set system = ['<|start_header_id|>system<|end_header_id|>\n\n', '<|eot_id|>'] %}
{%- set user = ['<|start_header_id|>user<|end_header_id|>\n\n', '<|eot_id|>'] %}
{%- set assistant = ['<|start_header_id|>assistant<|end_header_id|>\n\n', '<|eot_id|>'] %}
{%- set next = assistant[0] %}
{%- set trims = ['system', 'user', 'assistant', 'tool'] %})";
constexpr std::string_view kEos = R"({%- set eos = eos_token | default('') %})";

constexpr auto kTemplates = std::to_array<NamedTemplate>({
    {"chatml", {kImTurns}, kTurns},
    {"deepseek",
     {R"({%- set system = ['', ''] %}
{%- set user = ['### Instruction:\n', '\n'] %}
{%- set assistant = ['### Response:\n', '\n<|EOT|>\n'] %}
{%- set next = '### Response:\n' %}
{%- set silent = 'You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek '
    'Company, and you only answer questions related to computer science. For politically sensitive questions, '
    'security and privacy issues, and other non-computer science questions, you will refuse to answer\n' %})"},
     kTurns},
    {"deepseek-r1",
     {R"({%- set system = ['', ''] %}
{%- set user = ['<｜User｜>', ''] %}
{%- set assistant = ['<｜Assistant｜>', '<｜end▁of▁sentence｜>'] %}
{%- set next = '<｜Assistant｜><think>\n' %}
{%- set thoughts = 'go' %})"},
     kTurns},
    {"deepseek2",
     {kEos, R"({%- set system = ['', '\n\n'] %}
{%- set user = ['User: ', '\n\n'] %}
{%- set assistant = ['Assistant: ', eos] %}
{%- set next = 'Assistant:' %})"},
     kTurns},
    {"deepseek3",
     {R"({%- set system = ['', ''] %}
{%- set user = ['<｜User｜>', ''] %}
{%- set assistant = ['<｜Assistant｜>', '<｜end▁of▁sentence｜>'] %}
{%- set next = '<｜Assistant｜>' %}
{%- set thoughts = 'go' %})"},
     kTurns},
    {"falcon",
     {R"({%- set system = ['System: ', '\n'] %}
{%- set user = ['User: ', '\n'] %}
{%- set assistant = ['Falcon: ', '\n'] %}
{%- set next = 'Falcon:' %})"},
     kTurns},
    {"llama2",
     {kEos, R"({%- set system = ['<<SYS>>\n', '\n<</SYS>>\n\n'] %}
{%- set user = [bos_token | default('') ~ '[INST] ', ' [/INST]'] %}
{%- set assistant = [' ', ' ' + eos] %}
{%- set trims = ['user', 'assistant'] %})"},
     kInstructions},
    {"llama2-sys",
     {kEos, R"({%- set system = ['<<SYS>>\n', '\n<</SYS>>\n\n'] %}
{%- set user = ['[INST] ', ' [/INST]'] %}
{%- set assistant = [' ', ' ' + eos] %}
{%- set trims = ['user', 'assistant'] %})"},
     kInstructions},
    {"llama3",
     {kHeaders,
      R"({%- set tool = ['', '<|start_header_id|>tool<|end_header_id|>\n\n', '<|eot_id|>', ''] %})"},
     kTurns},
    // The date is the one that these templates write without a clock.
    {"llama3.1",
     {kHeaders, R"({%- set silent = '' %}
{%- set preface = 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n' %})"},
     kTurns},
    {"mistral",
     {kEos, R"({%- set user = ['[INST] ', ' [/INST]'] %}
{%- set assistant = ['', eos] %})"},
     kInstructions},
    {"mistral-v1",
     {kEos, R"({%- set system = ['', '\n\n'] %}
{%- set user = [' [INST] ', ' [/INST]'] %}
{%- set assistant = [' ', eos] %})"},
     kInstructions},
    {"mistral-v3",
     {kEos, R"({%- set system = ['', '\n\n'] %}
{%- set user = ['[INST] ', '[/INST]'] %}
{%- set assistant = [' ', eos] %}
{%- set trims = ['assistant'] %}
{%- set last = true %})"},
     kInstructions},
    {"mistral-v3-tekken",
     {kEos, R"({%- set system = ['', '\n\n'] %}
{%- set user = ['[INST]', '[/INST]'] %}
{%- set assistant = ['', eos] %}
{%- set last = true %})"},
     kInstructions},
    {"mistral-v7",
     {kEos, R"({%- set system = ['[SYSTEM_PROMPT] ', '[/SYSTEM_PROMPT]'] %}
{%- set user = ['[INST] ', '[/INST]'] %}
{%- set assistant = [' ', eos] %}
{%- set next = '' %})"},
     kTurns},
    {"mistral-v7-tekken",
     {kEos, R"({%- set system = ['[SYSTEM_PROMPT]', '[/SYSTEM_PROMPT]'] %}
{%- set user = ['[INST]', '[/INST]'] %}
{%- set assistant = ['', eos] %}
{%- set next = '' %})"},
     kTurns},
    {"persimmon",
     {R"({%- set system = ['', '\n\n'] %}
{%- set user = ['human: ', '\n\n'] %}
{%- set assistant = ['adept: ', '\n\n'] %}
{%- set next = 'adept:' %})"},
     kTurns},
    {"phi2",
     {R"({%- set system = ['', '\n'] %}
{%- set user = ['Instruct: ', '\n'] %}
{%- set assistant = ['Output: ', '\n'] %}
{%- set next = 'Output:' %})"},
     kTurns},
    {"phi3",
     {R"({%- set system = ['<|system|>\n', '<|end|>\n'] %}
{%- set user = ['<|user|>\n', '<|end|>\n'] %}
{%- set assistant = ['<|assistant|>\n', '<|end|>\n'] %}
{%- set next = '<|assistant|>\n' %})"},
     kTurns},
    {"phi4",
     {R"({%- set system = ['<|im_start|>system<|im_sep|>', '<|im_end|>'] %}
{%- set user = ['<|im_start|>user<|im_sep|>', '<|im_end|>'] %}
{%- set assistant = ['<|im_start|>assistant<|im_sep|>', '<|im_end|>'] %}
{%- set next = assistant[0] %})"},
     kTurns},
    {"qwen1.5", {kImTurns, R"({%- set silent = 'You are a helpful assistant' %})"}, kTurns},
    {"qwen2", {kImTurns, R"({%- set silent = 'You are a helpful assistant.' %})"}, kTurns},
    {"qwen2.5",
     {kImTurns, kQwenTools,
      R"({%- set silent = 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' %})"},
     kTurns},
    {"qwen3", {kImTurns, kQwenTools, R"({%- set thoughts = 'lines' %})"}, kTurns},
    {"qwq",
     {kImTurns, kQwenTools, R"({%- set thoughts = 'lines' %}
{%- set next = '<|im_start|>assistant\n<think>\n' %})"},
     kTurns},
    {"tulu",
     {kEos, R"({%- set system = ['<|system|>\n', '\n'] %}
{%- set user = ['<|user|>\n', '\n'] %}
{%- set assistant = ['<|assistant|>\n', eos + '\n'] %}
{%- set next = '<|assistant|>\n' %})"},
     kTurns},
    {"vicuna",
     {kEos, R"({%- set system = ['', '\n\n'] %}
{%- set user = ['USER: ', '\n'] %}
{%- set assistant = ['ASSISTANT: ', eos + '\n'] %}
{%- set next = 'ASSISTANT:' %})"},
     kTurns},
    {"vicuna-orca",
     {kEos, R"({%- set system = ['SYSTEM: ', '\n'] %}
{%- set user = ['USER: ', '\n'] %}
{%- set assistant = ['ASSISTANT: ', eos + '\n'] %}
{%- set next = 'ASSISTANT:' %})"},
     kTurns},
    {"zephyr",
     {kEos, R"({%- set system = ['<|system|>\n', eos + '\n'] %}
{%- set user = ['<|user|>\n', eos + '\n'] %}
{%- set assistant = ['<|assistant|>\n', eos + '\n'] %}
{%- set next = '<|assistant|>\n' %})"},
     kTurns},
});

}  // namespace

std::optional<std::string> named_template(std::string_view name) {
  const auto found = std::ranges::find(kTemplates, name, &NamedTemplate::name);
  if (found == kTemplates.end()) return {};
  std::string text;
  for (const std::string_view part : found->settings) text += part;
  return text.append(found->body);
}

std::vector<std::string_view> template_names() {
  std::vector<std::string_view> names;
  for (const NamedTemplate& one : kTemplates) names.push_back(one.name);
  return names;
}

}  // namespace tierd
