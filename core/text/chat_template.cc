#include "core/text/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tierd {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
}

// What a family writes with.
struct Frame {
  std::span<const ChatMessage> messages;
  const std::string& begin;  // BOS
  const std::string& end;    // EOS
};

// [ROLE] before and [END] after each message, and the assistant's beginning.
struct Marks {
  const char* system[2];
  const char* user[2];
  const char* assistant[2];
  const char* next;
  bool trims = false;
};
std::string marked(const Frame& frame, const Marks& marks) {
  std::string out;
  for (const ChatMessage& message : frame.messages) {
    const auto& [before, after] = message.role == "system" ? marks.system
                                  : message.role == "user" ? marks.user
                                                           : marks.assistant;
    out += before;
    out += marks.trims ? trimmed(message.content) : message.content;
    for (const char* c = after; *c != '\0'; ++c) *c == '\1' ? out += frame.end : out += *c;
  }
  return out + marks.next;
}

std::string chatml(const Frame& frame) {
  return marked(frame, {{"<|im_start|>system\n", "<|im_end|>\n"},
                        {"<|im_start|>user\n", "<|im_end|>\n"},
                        {"<|im_start|>assistant\n", "<|im_end|>\n"},
                        "<|im_start|>assistant\n"});
}

std::string llama3(const Frame& frame) {
  return marked(frame, {{"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
                        {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
                        {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
                        "<|start_header_id|>assistant<|end_header_id|>\n\n",
                        true});
}

std::string zephyr(const Frame& frame) {
  return marked(
      frame,
      {{"<|system|>\n", "\1\n"}, {"<|user|>\n", "\1\n"}, {"<|assistant|>\n", "\1\n"}, "<|assistant|>\n"});
}

std::string vicuna(const Frame& frame) {
  return marked(frame, {{"", "\n\n"}, {"USER: ", "\n"}, {"ASSISTANT: ", "\1\n"}, "ASSISTANT:"});
}

std::string deepseek(const Frame& frame) {
  return marked(
      frame, {{"", ""}, {"### Instruction:\n", "\n"}, {"### Response:\n", "\n<|EOT|>\n"}, "### Response:\n"});
}

std::string deepseek2(const Frame& frame) {
  return marked(frame, {{"", "\n\n"}, {"User: ", "\n\n"}, {"Assistant: ", "\1"}, "Assistant:"});
}

std::string deepseek3(const Frame& frame) {
  return marked(
      frame,
      {{"", "\n\n"}, {"<｜User｜>", ""}, {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"}, "<｜Assistant｜>"});
}

std::string mistral_v7(const Frame& frame) {
  return marked(frame, {{"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"}, {"[INST] ", "[/INST]"}, {" ", "\1"}, ""});
}

std::string falcon(const Frame& frame) {
  return marked(frame, {{"System: ", "\n"}, {"User: ", "\n"}, {"Falcon: ", "\n"}, "Falcon:"});
}

std::string persimmon(const Frame& frame) {
  return marked(frame, {{"", "\n\n"}, {"human: ", "\n\n"}, {"adept: ", "\n\n"}, "adept:"});
}

std::string phi2(const Frame& frame) {
  return marked(frame, {{"", "\n"}, {"Instruct: ", "\n"}, {"Output: ", "\n"}, "Output:"});
}

// The system's words stand in the first user's.
std::string llama2(const Frame& frame) {
  std::string out, system;
  bool first = true;
  for (const ChatMessage& message : frame.messages) {
    if (message.role == "system") {
      system = "<<SYS>>\n" + message.content + "\n<</SYS>>\n\n";
    } else if (message.role == "user") {
      // The tokenizer puts the first BOS.
      out += (first ? "" : frame.begin) + "[INST] " + trimmed(std::exchange(system, {}) + message.content) +
             " [/INST]";
      first = false;
    } else {
      out += " " + trimmed(message.content) + " " + frame.end;
    }
  }
  return out;
}

std::string mistral(const Frame& frame, const char* before, const char* after) {
  std::string out, system;
  for (const ChatMessage& message : frame.messages) {
    if (message.role == "system") {
      system = message.content + "\n\n";
    } else if (message.role == "user") {
      out += before + std::exchange(system, {}) + message.content + after;
    } else {
      out += " " + message.content + frame.end;
    }
  }
  return out;
}

}  // namespace

struct ChatTemplate::Family {
  const char* name;
  std::string (*write)(const Frame&);
  // What its templates contain, and none of the families above it.
  std::vector<const char*> marks;
  bool system_first = false;  // the system speaks at most once, and first
};

// In the order in which a template is looked at.
const std::vector<ChatTemplate::Family>& ChatTemplate::families() {
  static const std::vector<Family> all = {
      {"chatml", chatml, {"<|im_start|>", "<|im_end|>"}},
      {"llama3", llama3, {"<|start_header_id|>", "<|end_header_id|>"}},
      {"mistral-v7", mistral_v7, {"[SYSTEM_PROMPT]"}},
      {"llama2", llama2, {"[INST]", "<<SYS>>"}, true},
      {"mistral-v3",
       [](const Frame& f) { return mistral(f, "[INST] ", "[/INST]"); },
       {"[INST]", "[AVAILABLE_TOOLS]"},
       true},
      {"mistral-v1", [](const Frame& f) { return mistral(f, "[INST] ", " [/INST]"); }, {"[INST]"}, true},
      {"deepseek3", deepseek3, {"<｜User｜>", "<｜Assistant｜>"}},
      {"deepseek2", deepseek2, {"'Assistant: ' + message['content'] + eos_token"}},
      {"deepseek", deepseek, {"### Instruction:", "<|EOT|>"}},
      {"zephyr", zephyr, {"<|user|>", "eos_token"}},
      {"vicuna", vicuna, {"USER: ", "ASSISTANT: "}},
      {"falcon", falcon, {"Falcon:"}},
      {"persimmon", persimmon, {"human: ", "adept:"}},
      {"phi2", phi2, {"Instruct: ", "Output:"}},
  };
  return all;
}

ChatTemplate::ChatTemplate(const Family& family, const Vocab& vocab) : family_(&family) {
  if (vocab.eos != kNoToken) end_ = vocab.pieces[vocab.eos];
  if (vocab.bos != kNoToken) begin_ = vocab.pieces[vocab.bos];
}

std::vector<std::string_view> ChatTemplate::names() {
  std::vector<std::string_view> all;
  for (const Family& family : families()) all.emplace_back(family.name);
  return all;
}

std::string_view ChatTemplate::name() const {
  return family_->name;
}

Result<ChatTemplate> ChatTemplate::named(std::string_view name, const Vocab& vocab) {
  for (const Family& family : families()) {
    if (family.name == name) return ChatTemplate(family, vocab);
  }
  return Error{Code::invalid_argument, "--chat-template",
               fmt::format("there is no '{}'; known are {}", name, fmt::join(names(), ", "))};
}

Result<ChatTemplate> ChatTemplate::of(const Vocab& vocab) {
  if (vocab.chat_template.empty()) {
    return Error{
        Code::unsupported, "chat template",
        fmt::format("the model brings none; give one with --chat-template: {}", fmt::join(names(), ", "))};
  }
  for (const Family& family : families()) {
    const bool all = std::all_of(family.marks.begin(), family.marks.end(), [&](const char* mark) {
      return vocab.chat_template.find(mark) != std::string::npos;
    });
    if (all) return ChatTemplate(family, vocab);
  }
  return Error{
      Code::unsupported, "chat template",
      fmt::format("the model's is of no known family; give the one that is meant with --chat-template: {}",
                  fmt::join(names(), ", "))};
}

Result<std::string> ChatTemplate::apply(std::span<const ChatMessage> messages) const {
  const auto bad = [](size_t i, std::string why) {
    return Error{Code::invalid_argument, "request", fmt::format("messages[{}]: {}", i, why)};
  };
  if (messages.empty()) return Error{Code::invalid_argument, "request", "messages: there are none"};
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant")
      return bad(i, fmt::format("role '{}' is none of system, user, assistant", role));
    if (role == "system" && i != 0 && family_->system_first)
      return bad(i, fmt::format("the system speaks first, or not at all, to a {} model", family_->name));
  }
  if (family_->system_first && messages.back().role == "system")
    return bad(messages.size() - 1, fmt::format("a user must follow, to a {} model", family_->name));
  return family_->write({messages, begin_, end_});
}

}  // namespace tierd
