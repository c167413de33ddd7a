#include "core/model/text/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/model/text/named_templates.h"

namespace tierd {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOrigin = "chat template";

Result<jinja::Template> parsed(std::string_view source, std::string_view origin, std::string_view remedy) {
  auto made = jinja::Template::parse(source);
  if (made.ok()) return made;
  const Error& error = made.error();
  return Error{error.code, std::string(origin), fmt::format("{}: {}{}", error.origin, error.detail, remedy)};
}

std::tm today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  localtime_r(&now, &date);
  return date;
}

// Gives the thought of a message the names that templates know it by, as transformers does.
ordered_json with_thought(const ordered_json& message) {
  if (!message.is_object()) return message;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto thought = message.find(name);
    if (thought == message.end() || thought->is_null()) continue;
    ordered_json named = {{"thinking", *thought}};
    for (const auto& [key, value] : message.items()) named[key] = value;
    named["reasoning_content"] = *thought;
    return named;
  }
  return message;
}

}  // namespace

ChatTemplate::ChatTemplate(jinja::Template parsed, std::string name, const Vocab& vocab)
    : template_(std::move(parsed)), name_(std::move(name)) {
  const auto add = [&](const char* variable, uint32_t token) {
    if (token != kNoToken) tokens_.emplace_back(variable, vocab.pieces[token]);
  };
  add("bos_token", vocab.bos);
  add("eos_token", vocab.eos);
  add("unk_token", vocab.unknown);
  if (vocab.add_bos && vocab.bos != kNoToken) left_out_ = vocab.pieces[vocab.bos];
}

std::vector<std::string_view> ChatTemplate::names() {
  return template_names();
}

Result<ChatTemplate> ChatTemplate::named(std::string_view name, const Vocab& vocab) {
  const auto source = named_template(name);
  if (!source) {
    return Error{
        Code::invalid_argument, "--chat-template",
        fmt::format("'{}' is not a chat template; expected one of {}", name, fmt::join(names(), ", "))};
  }
  TIERD_ASSIGN(jinja::Template made, parsed(*source, kOrigin, ""));
  return ChatTemplate(std::move(made), std::string(name), vocab);
}

Result<ChatTemplate> ChatTemplate::from(std::string_view source, std::string origin, const Vocab& vocab) {
  TIERD_ASSIGN(jinja::Template made, parsed(source, origin, ""));
  return ChatTemplate(std::move(made), std::move(origin), vocab);
}

Result<ChatTemplate> ChatTemplate::of(const Vocab& vocab) {
  const std::string choice =
      fmt::format("name one with --chat-template, one of {}", fmt::join(names(), ", "));
  if (vocab.chat_template.empty()) {
    return Error{Code::unsupported, kOrigin, "the model has none; " + choice};
  }
  TIERD_ASSIGN(jinja::Template made, parsed(vocab.chat_template, kOrigin, "; " + choice));
  ChatTemplate own(std::move(made), "the model's own", vocab);
  if (!vocab.tool_chat_template.empty()) {
    TIERD_ASSIGN(own.with_tools_, parsed(vocab.tool_chat_template, "chat template tool_use", "; " + choice));
  }
  return own;
}

Result<std::string> ChatTemplate::apply(const ChatInput& input) const {
  if (input.messages.empty())
    return Error{Code::invalid_argument, "request", "messages is empty; expected at least one"};
  ordered_json variables = ordered_json::object();
  ordered_json& messages = variables["messages"] = ordered_json::array();
  for (const ordered_json& message : input.messages) messages.push_back(with_thought(message));
  variables["tools"] = input.tools == nullptr ? ordered_json() : *input.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = input.begins_answer;
  for (const auto& [name, token] : tokens_) variables[name] = token;
  if (input.variables != nullptr) {
    for (const auto& [name, value] : input.variables->items()) variables[name] = value;
  }
  jinja::Rendering rendering;
  rendering.now = input.date == nullptr ? today() : *input.date;
  const bool with_tools = with_tools_ && input.tools != nullptr && !input.tools->empty();
  auto text = (with_tools ? *with_tools_ : template_).render(variables, rendering);
  if (!text.ok()) {
    const Error& error = text.error();
    const std::string line = error.origin.empty() ? "" : ", " + error.origin;
    return Error{error.code, "request", fmt::format("messages: chat template{}: {}", line, error.detail)};
  }
  if (!left_out_.empty() && text->starts_with(left_out_)) text->erase(0, left_out_.size());
  return text;
}

}  // namespace tierd
