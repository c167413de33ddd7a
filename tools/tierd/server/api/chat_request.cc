#include "tools/tierd/server/api/chat_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json_fields.h"
#include "core/model/text/text_stream.h"
#include "tools/tierd/server/api/api_error.h"
#include "tools/tierd/server/api/request_fields.h"

namespace tierd {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A placeholder for the words that are continued. It marks where they end in the chat's text.
constexpr std::string_view kContinued = "\x02to be continued\x03";

bool is_empty(const json& value) {
  return value.is_null() || value == "" || value == false || (value.is_structured() && value.empty());
}

// Checks the fields of a message beside its role and content.
Status check_message(const json& message, const std::string& place, bool last) {
  for (const auto& [name, value] : message.items()) {
    const bool reads = name == "role" || name == "content" || name == "name" || name == "tool_call_id";
    if (reads || is_empty(value) || (name == "prefix" && last && value == true)) continue;
    const bool known = name == "tool_calls" || name == "function_call" || name == "refusal" ||
                       name == "reasoning_content" || name == "reasoning" || name == "audio" ||
                       name == "annotations" || name == "prefix";
    return field_error(place + "." + well_formed(name.substr(0, 64)),
                       known ? "is not supported" : "is not a field of a message");
  }
  return {};
}

// Returns the texts of a list of parts, joined.
Result<std::string> text_of_parts(const json& parts, const std::string& place) {
  std::string content;
  for (const json& part : parts) {
    TIERD_ASSIGN(const JsonFields fields, JsonFields::of(part, kRequest, place));
    TIERD_ASSIGN(const std::string type, fields.text("type"));
    if (type != "text") return field_error(place, "only text is supported");
    TIERD_TRY(check_fields(part, place + ".", {"type", "text", "cache_control"}));
    TIERD_ASSIGN(const std::string text, fields.text("text"));
    content += text;
  }
  return content;
}

// Reads a message, whose content is a text or a list of text parts. An assistant that only called tools has
// the content null.
Result<ordered_json> read_message(const json& message, const std::string& place, bool last) {
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(message, kRequest, place));
  TIERD_ASSIGN(std::string role, fields.text("role"));
  if (role == "developer") role = "system";
  TIERD_TRY(check_message(message, place, last));
  ordered_json read = {{"role", std::move(role)}, {"content", ""}};
  for (const char* name : {"name", "tool_call_id"}) {
    if (!fields.has(name)) continue;
    TIERD_ASSIGN(read[name], fields.text(name));
  }
  const auto content = message.find("content");
  if (content != message.end() && content->is_array()) {
    TIERD_ASSIGN(read["content"], text_of_parts(*content, place + ".content"));
    return read;
  }
  const bool silent = read["role"] == "assistant" && content != message.end() && content->is_null();
  if (silent) return read;
  TIERD_ASSIGN(read["content"], fields.text("content"));
  return read;
}

// Returns whether the last message is continued: the assistant's, unless the client says otherwise.
Result<bool> is_continued(const json& body, const ordered_json& messages) {
  const bool by_assistant = !messages.empty() && messages.back()["role"] == "assistant";
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(body, kRequest));
  TIERD_ASSIGN(const bool continues, fields.flag("continue_final_message", by_assistant));
  TIERD_ASSIGN(const bool begins, fields.flag("add_generation_prompt", !continues));
  if (continues && messages.size() > 1 && messages[messages.size() - 2]["role"] == "assistant")
    return field_error("messages", "the last two messages are of the assistant, so none can be continued");
  if (continues && !by_assistant)
    return field_error("continue_final_message", "true requires that the last message is of the assistant");
  if (begins == continues) {
    return field_error("add_generation_prompt",
                       continues ? "expected false, because the assistant's last message is continued"
                                 : "false is supported only if the last message is continued");
  }
  return continues;
}

}  // namespace

Result<std::string> read_chat(const json& body, const ChatTemplate& form) {
  const auto list = body.find("messages");
  if (list == body.end() || !list->is_array()) return field_error("messages", "expected a list of messages");
  ordered_json messages = ordered_json::array();
  for (size_t i = 0; i < list->size(); ++i) {
    TIERD_ASSIGN(ordered_json message,
                 read_message((*list)[i], fmt::format("messages[{}]", i), i + 1 == list->size()));
    messages.push_back(std::move(message));
  }
  TIERD_ASSIGN(const bool continued, is_continued(body, messages));
  if (!continued) return form.apply({messages});
  const auto words = messages.back()["content"].get<std::string>();
  messages.erase(messages.size() - 1);
  if (!messages.empty()) {
    TIERD_ASSIGN(const std::string text, form.apply({messages}));
    return text + words;
  }
  // Without other messages, the template's beginning of an assistant's message precedes the words.
  messages.push_back({{"role", "assistant"}, {"content", kContinued}});
  TIERD_ASSIGN(std::string text, form.apply({messages}));
  const size_t end = text.rfind(kContinued);
  if (end == std::string::npos)
    return field_error("messages",
                       "the chat template does not write the assistant's message, so it cannot be continued");
  return text.substr(0, end) + words;
}

}  // namespace tierd
