#include "core/model/text/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/model/text/known_templates.h"

namespace tierd {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
}

// Placeholders in the marks of a turn: EOS, and BOS, which is left out at the beginning of the text because
// the tokenizer adds it there.
constexpr std::string_view kEosMark = "{eos}";
constexpr std::string_view kBosMark = "{bos}";

// The text before and after the content of a message.
struct Turn {
  std::string_view before;
  std::string_view after;
  bool trims = false;
};

// The position of the system message.
enum class System : uint8_t {
  in_turns,       // a turn of its own; any number of them
  in_first_user,  // inside the first user message, between its marks, before the content
  in_last_user,
  nowhere,
};

// The treatment of an assistant's reasoning, up to </think>, in past turns.
enum class Thoughts : uint8_t { stay, go, go_with_lines };

// The turns of consecutive tool results: the text before, around each and after them.
struct ToolTurns {
  std::string_view begin;
  Turn each;
  std::string_view end;
};

struct Form {
  Turn system, user, assistant;
  std::string_view next;  // the beginning of the assistant's turn
  System where = System::in_turns;
  std::string_view preface = {};                // before the content of the first system message
  std::optional<std::string_view> silent = {};  // default system message
  Thoughts thoughts = Thoughts::stay;
  std::optional<ToolTurns> tools = {};  // nothing: the form has no turns of tools
};

constexpr Turn kIm[] = {{"<|im_start|>system\n", "<|im_end|>\n"},
                        {"<|im_start|>user\n", "<|im_end|>\n"},
                        {"<|im_start|>assistant\n", "<|im_end|>\n"}};
constexpr std::string_view kImNext = "<|im_start|>assistant\n";
constexpr ToolTurns kImTools = {"", {"<|im_start|>tool\n", "<|im_end|>\n"}, ""};
constexpr ToolTurns kQwenTools = {
    "<|im_start|>user", {"\n<tool_response>\n", "\n</tool_response>"}, "<|im_end|>\n"};
constexpr Form kFormChatml = {
    .system = kIm[0], .user = kIm[1], .assistant = kIm[2], .next = kImNext, .tools = kImTools};
constexpr Form kFormQwq = {.system = kIm[0],
                           .user = kIm[1],
                           .assistant = kIm[2],
                           .next = "<|im_start|>assistant\n<think>\n",
                           .thoughts = Thoughts::go_with_lines,
                           .tools = kQwenTools};
constexpr Form kFormQwen3 = {.system = kIm[0],
                             .user = kIm[1],
                             .assistant = kIm[2],
                             .next = kImNext,
                             .thoughts = Thoughts::go_with_lines,
                             .tools = kQwenTools};
constexpr Form chatml_saying(std::string_view silent, const ToolTurns& tools = kImTools) {
  return {.system = kIm[0],
          .user = kIm[1],
          .assistant = kIm[2],
          .next = kImNext,
          .silent = silent,
          .tools = tools};
}
constexpr std::string_view kQwen25 = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

constexpr Form kFormPhi4 = {{"<|im_start|>system<|im_sep|>", "<|im_end|>"},
                            {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
                            {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"},
                            "<|im_start|>assistant<|im_sep|>"};
constexpr Form kFormPhi3 = {{"<|system|>\n", "<|end|>\n"},
                            {"<|user|>\n", "<|end|>\n"},
                            {"<|assistant|>\n", "<|end|>\n"},
                            "<|assistant|>\n"};
constexpr Form kFormPhi2 = {{"", "\n"}, {"Instruct: ", "\n"}, {"Output: ", "\n"}, "Output:"};

constexpr Turn kHeader[] = {{"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>", true},
                            {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>", true},
                            {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", true}};
constexpr std::string_view kHeaderNext = "<|start_header_id|>assistant<|end_header_id|>\n\n";
constexpr ToolTurns kHeaderTools = {
    "", {"<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>", true}, ""};
constexpr Form kFormLlama3 = {.system = kHeader[0],
                              .user = kHeader[1],
                              .assistant = kHeader[2],
                              .next = kHeaderNext,
                              .tools = kHeaderTools};
// The date that these templates write without a clock, so that a chat is the same text on every day.
constexpr Form kFormLlama31 = {
    .system = kHeader[0],
    .user = kHeader[1],
    .assistant = kHeader[2],
    .next = kHeaderNext,
    .preface = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
    .silent = ""};
constexpr Form kFormLlama2 = {.system = {"<<SYS>>\n", "\n<</SYS>>\n\n"},
                              .user = {"{bos}[INST] ", " [/INST]", true},
                              .assistant = {" ", " {eos}", true},
                              .next = "",
                              .where = System::in_first_user};
constexpr Form kFormLlama2Sys = {.system = kFormLlama2.system,
                                 .user = {"[INST] ", " [/INST]", true},
                                 .assistant = kFormLlama2.assistant,
                                 .next = "",
                                 .where = System::in_first_user};

constexpr Form kFormMistral = {.system = {},
                               .user = {"[INST] ", " [/INST]"},
                               .assistant = {"", "{eos}"},
                               .next = "",
                               .where = System::nowhere};
constexpr Form kFormMistralV1 = {.system = {"", "\n\n"},
                                 .user = {" [INST] ", " [/INST]"},
                                 .assistant = {" ", "{eos}"},
                                 .next = "",
                                 .where = System::in_first_user};
constexpr Form kFormMistralV3 = {.system = {"", "\n\n"},
                                 .user = {"[INST] ", "[/INST]"},
                                 .assistant = {" ", "{eos}", true},
                                 .next = "",
                                 .where = System::in_last_user};
constexpr Form kFormMistralV3Tekken = {.system = {"", "\n\n"},
                                       .user = {"[INST]", "[/INST]"},
                                       .assistant = {"", "{eos}"},
                                       .next = "",
                                       .where = System::in_last_user};
constexpr Form kFormMistralV7 = {
    {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"}, {"[INST] ", "[/INST]"}, {" ", "{eos}"}, ""};
constexpr Form kFormMistralV7Tekken = {
    {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, {"[INST]", "[/INST]"}, {"", "{eos}"}, ""};

constexpr Form kFormDeepseek = {
    .system = {"", ""},
    .user = {"### Instruction:\n", "\n"},
    .assistant = {"### Response:\n", "\n<|EOT|>\n"},
    .next = "### Response:\n",
    .silent =
        "You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek "
        "Company, and you only answer questions related to computer science. For politically sensitive "
        "questions, security and privacy issues, and other non-computer science questions, you will refuse "
        "to answer\n"};
constexpr Form kFormDeepseek2 = {{"", "\n\n"}, {"User: ", "\n\n"}, {"Assistant: ", "{eos}"}, "Assistant:"};
constexpr Form kFormDeepseek3 = {.system = {"", ""},
                                 .user = {"<｜User｜>", ""},
                                 .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
                                 .next = "<｜Assistant｜>",
                                 .thoughts = Thoughts::go};
constexpr Form kFormDeepseekR1 = {.system = {"", ""},
                                  .user = {"<｜User｜>", ""},
                                  .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
                                  .next = "<｜Assistant｜><think>\n",
                                  .thoughts = Thoughts::go};

constexpr Form kFormZephyr = {{"<|system|>\n", "{eos}\n"},
                              {"<|user|>\n", "{eos}\n"},
                              {"<|assistant|>\n", "{eos}\n"},
                              "<|assistant|>\n"};
constexpr Form kFormTulu = {
    {"<|system|>\n", "\n"}, {"<|user|>\n", "\n"}, {"<|assistant|>\n", "{eos}\n"}, "<|assistant|>\n"};
constexpr Form kFormVicuna = {{"", "\n\n"}, {"USER: ", "\n"}, {"ASSISTANT: ", "{eos}\n"}, "ASSISTANT:"};
constexpr Form kFormVicunaOrca = {
    {"SYSTEM: ", "\n"}, {"USER: ", "\n"}, {"ASSISTANT: ", "{eos}\n"}, "ASSISTANT:"};
constexpr Form kFormFalcon = {{"System: ", "\n"}, {"User: ", "\n"}, {"Falcon: ", "\n"}, "Falcon:"};
constexpr Form kFormPersimmon = {{"", "\n\n"}, {"human: ", "\n\n"}, {"adept: ", "\n\n"}, "adept:"};

// Writes a chat in one form.
class Writer {
 public:
  // `silent`: the system message of a chat without one.
  Writer(const Form& form, std::optional<std::string_view> silent, const std::string& begin,
         const std::string& end)
      : form_(form), silent_(silent), begin_(begin), end_(end) {}

  std::string write(std::span<const ChatMessage> messages) {
    const bool told = messages.front().role == "system";
    std::string system;  // system message inside a user's turn
    size_t bearer = messages.size();
    if (form_.where == System::in_turns) {
      if (!told && silent_) turn(form_.system, std::string(*silent_), form_.preface);
    } else if (told) {
      system.append(form_.system.before).append(messages.front().content).append(form_.system.after);
      for (size_t i = 0; i != messages.size(); ++i) {
        if (messages[i].role != "user") continue;
        bearer = i;
        if (form_.where == System::in_first_user) break;
      }
    }
    for (size_t i = 0; i != messages.size(); ++i) {
      const std::string& content = messages[i].content;
      if (messages[i].role == "user") {
        turn(form_.user, i == bearer ? system + content : content);
      } else if (messages[i].role == "assistant") {
        turn(form_.assistant, spoken(content));
      } else if (messages[i].role == "tool") {
        if (i == 0 || messages[i - 1].role != "tool") mark(form_.tools->begin);
        turn(form_.tools->each, content);
        if (i + 1 == messages.size() || messages[i + 1].role != "tool") mark(form_.tools->end);
      } else if (form_.where == System::in_turns) {
        turn(form_.system, content, i == 0 ? form_.preface : "");
      }
    }
    return out_.append(form_.next);
  }

 private:
  void turn(const Turn& turn, const std::string& content, std::string_view preface = {}) {
    mark(turn.before);
    out_ += preface;
    out_ += turn.trims ? trimmed(content) : content;
    mark(turn.after);
  }

  void mark(std::string_view marks) {
    while (!marks.empty()) {
      if (marks.starts_with(kEosMark)) {
        out_ += end_;
        marks.remove_prefix(kEosMark.size());
      } else if (marks.starts_with(kBosMark)) {
        if (!out_.empty()) out_ += begin_;
        marks.remove_prefix(kBosMark.size());
      } else {
        out_ += marks.front();
        marks.remove_prefix(1);
      }
    }
  }

  std::string spoken(const std::string& content) const {
    constexpr std::string_view kThought = "</think>";
    const size_t at = content.rfind(kThought);
    if (form_.thoughts == Thoughts::stay || at == std::string::npos) return content;
    size_t from = at + kThought.size();
    if (form_.thoughts == Thoughts::go_with_lines)
      from = std::min(content.find_first_not_of('\n', from), content.size());
    return content.substr(from);
  }

  const Form& form_;
  std::optional<std::string_view> silent_;
  const std::string& begin_;
  const std::string& end_;
  std::string out_;
};

// Normalizes quotes and line feeds: Jinja's strings may have either quote, and line feeds literal or as \n.
std::string normalized(std::string_view text) {
  std::string out;
  for (size_t i = 0; i != text.size(); ++i) {
    if (text[i] == '\\' && i + 1 != text.size() && text[i + 1] == 'n') {
      out += '\n', ++i;
    } else {
      out += text[i] == '"' ? '\'' : text[i];
    }
  }
  return out;
}

}  // namespace

struct ChatTemplate::Family {
  const char* name;
  const Form& form;
  // Strings that its templates contain, and that those of the families above do not.
  std::vector<std::string_view> marks;
  std::string_view without = {};  // a string that they do not contain

  bool has(const std::string& chat_template) const {
    const auto in = [&](std::string_view mark) { return chat_template.find(mark) != std::string::npos; };
    return std::all_of(marks.begin(), marks.end(), in) && (without.empty() || !in(without));
  }
};

// Sorted by precedence: the first family that matches a template names it.
const std::vector<ChatTemplate::Family>& ChatTemplate::families() {
  static constexpr Form kQwen15Form = chatml_saying("You are a helpful assistant");
  static constexpr Form kQwen2Form = chatml_saying("You are a helpful assistant.");
  static constexpr Form kQwen25Form = chatml_saying(kQwen25, kQwenTools);
  static const std::vector<Family> all = {
      {"phi4", kFormPhi4, {"<|im_start|>", "<|im_sep|>"}},
      {"qwq", kFormQwq, {"<|im_start|>assistant\n<think>\n"}},
      {"qwen3", kFormQwen3, {"<|im_start|>", "</think>"}},
      {"qwen2.5", kQwen25Form, {"<|im_start|>", kQwen25}},
      {"qwen2", kQwen2Form, {"<|im_start|>system\nYou are a helpful assistant.<|im_end|>"}},
      {"qwen1.5", kQwen15Form, {"<|im_start|>system\nYou are a helpful assistant<|im_end|>"}},
      {"chatml", kFormChatml, {"<|im_start|>", "<|im_end|>"}},
      {"llama3.1", kFormLlama31, {"<|start_header_id|>", "Cutting Knowledge Date: December 2023"}},
      {"llama3", kFormLlama3, {"<|start_header_id|>", "<|end_header_id|>"}},
      {"mistral-v7", kFormMistralV7, {"[SYSTEM_PROMPT] "}},
      {"mistral-v7-tekken", kFormMistralV7Tekken, {"[SYSTEM_PROMPT]"}},
      {"llama2", kFormLlama2, {"bos_token + '[INST] '", "<<SYS>>"}},
      {"llama2-sys", kFormLlama2Sys, {"[INST]", "<<SYS>>"}},
      {"mistral-v1", kFormMistralV1, {"' [INST] '"}},
      {"mistral-v3-tekken", kFormMistralV3Tekken, {"[AVAILABLE_TOOLS]", "'[INST]'"}},
      {"mistral-v3", kFormMistralV3, {"[AVAILABLE_TOOLS]", "'[INST] '"}},
      {"mistral", kFormMistral, {"'[INST] '"}},
      {"deepseek-r1", kFormDeepseekR1, {"<｜User｜>", "<｜Assistant｜><think>\n"}},
      {"deepseek3", kFormDeepseek3, {"<｜User｜>", "<｜Assistant｜>"}, "<think>"},
      {"deepseek2", kFormDeepseek2, {"'Assistant: ' + message['content'] + eos_token"}},
      {"deepseek", kFormDeepseek, {"### Instruction:", "<|EOT|>"}},
      {"phi3", kFormPhi3, {"<|user|>", "<|end|>"}},
      {"zephyr", kFormZephyr, {"'<|user|>\n' + message['content'] + eos_token"}},
      {"tulu", kFormTulu, {"'<|user|>\n' + message['content'] + '\n'"}},
      {"vicuna-orca", kFormVicunaOrca, {"SYSTEM: ", "USER: ", "ASSISTANT: "}},
      {"vicuna", kFormVicuna, {"USER: ", "ASSISTANT: "}},
      {"falcon", kFormFalcon, {"Falcon:"}},
      {"persimmon", kFormPersimmon, {"human: ", "adept:"}},
      {"phi2", kFormPhi2, {"Instruct: ", "Output:"}},
  };
  return all;
}

ChatTemplate::ChatTemplate(const Family& family, const Vocab& vocab, const KnownTemplate* known)
    : family_(&family), known_(known) {
  if (vocab.eos != kNoToken) end_ = vocab.pieces[vocab.eos];
  if (vocab.bos != kNoToken) begin_ = vocab.pieces[vocab.bos];
}

std::vector<std::string_view> ChatTemplate::names() {
  std::vector<std::string_view> all;
  for (const Family& family : families()) all.emplace_back(family.name);
  std::sort(all.begin(), all.end());
  return all;
}

std::string_view ChatTemplate::name() const {
  return family_->name;
}

Result<ChatTemplate> ChatTemplate::named(std::string_view name, const Vocab& vocab) {
  for (const Family& family : families()) {
    if (family.name == name) return ChatTemplate(family, vocab);
  }
  return Error{
      Code::invalid_argument, "--chat-template",
      fmt::format("'{}' is not a chat template; expected one of {}", name, fmt::join(names(), ", "))};
}

Result<ChatTemplate> ChatTemplate::of(const Vocab& vocab) {
  if (vocab.chat_template.empty()) {
    return Error{Code::unsupported, "chat template",
                 fmt::format("the model has none; name one with --chat-template, one of {}",
                             fmt::join(names(), ", "))};
  }
  if (const KnownTemplate* known = find_known_template(vocab.chat_template)) {
    for (const Family& family : families()) {
      if (family.name == known->family) return ChatTemplate(family, vocab, known);
    }
  }
  const std::string normal = normalized(vocab.chat_template);
  for (const Family& family : families()) {
    if (!family.has(normal)) continue;
    return Error{Code::unsupported, "chat template",
                 fmt::format("the model's template resembles {0}, but is not identical to a known one and "
                             "may write other text; use it as {0} with --chat-template {0}",
                             family.name)};
  }
  return Error{
      Code::unsupported, "chat template",
      fmt::format("the model's template is not known; name the one to use with --chat-template, one of {}",
                  fmt::join(names(), ", "))};
}

Status ChatTemplate::check_order(std::span<const ChatMessage> messages) const {
  if (known_ == nullptr) return {};
  const auto bad = [&](size_t i, std::string_view why) {
    return Error{Code::invalid_argument, "request",
                 fmt::format("messages[{}]: {}, which the model's chat template does not support", i, why)};
  };
  const size_t begin = messages.front().role == "system" ? 1 : 0;
  for (size_t i = begin; i < messages.size(); ++i) {
    if (messages[i].role == "system" && (known_->system_first || known_->takes_turns))
      return bad(i, "a system message that is not the first");
    if (known_->takes_turns && (messages[i].role == "user") != ((i - begin) % 2 == 0))
      return bad(i, "user and assistant do not alternate");
  }
  if (known_->ends_with_user && messages.back().role != "user")
    return bad(messages.size() - 1,
               fmt::format("a chat whose last message is of the {}", messages.back().role));
  return {};
}

std::vector<ChatMessage> ChatTemplate::without_empty_system(std::span<const ChatMessage> messages) const {
  std::vector<ChatMessage> kept;
  const EmptySystem rule = known_ == nullptr ? EmptySystem::stays : known_->empty_system;
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool empty = messages[i].role == "system" && messages[i].content.empty();
    const bool goes = rule == EmptySystem::goes || (rule == EmptySystem::goes_first && i == 0);
    if (!empty || !goes) kept.push_back(messages[i]);
  }
  return kept;
}

Result<std::string> ChatTemplate::apply(std::span<const ChatMessage> messages) const {
  const auto bad = [](size_t i, std::string why) {
    return Error{Code::invalid_argument, "request", fmt::format("messages[{}]: {}", i, why)};
  };
  if (messages.empty())
    return Error{Code::invalid_argument, "request", "messages is empty; expected at least one"};
  const System where = family_->form.where;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role == "tool" && family_->form.tools) continue;
    if (role == "tool")
      return bad(i, fmt::format("messages of role tool are not supported for a {} model", family_->name));
    if (role != "system" && role != "user" && role != "assistant")
      return bad(i, fmt::format("role '{}', expected system, user, assistant or tool", role));
    if (role != "system" || where == System::in_turns) continue;
    if (where == System::nowhere)
      return bad(i, fmt::format("a {} model does not support system messages", family_->name));
    if (i != 0)
      return bad(i, fmt::format("a {} model supports a system message as the first one only", family_->name));
  }
  if (where != System::in_turns && messages.front().role == "system" &&
      std::none_of(messages.begin(), messages.end(), [](const auto& m) { return m.role == "user"; }))
    return bad(0, fmt::format("a {} model requires a user message after the system message", family_->name));
  TIERD_TRY(check_order(messages));
  const std::vector<ChatMessage> written = without_empty_system(messages);
  if (written.empty())
    return bad(
        0, "the chat is an empty system message alone, for which the model's chat template writes nothing");
  std::optional<std::string_view> silent = family_->form.silent;
  if (known_ != nullptr && known_->silent != nullptr) silent = known_->silent;
  return Writer(family_->form, silent, begin_, end_).write(written);
}

}  // namespace tierd
