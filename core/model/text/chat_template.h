// Turns the messages of a chat into the text that a model was trained on, by running the model's own template
// (Jinja) or one that is named.
#pragma once

#include <ctime>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/jinja/template.h"
#include "core/model/text/vocab.h"

namespace tierd {

// The variables of a template, beside the special tokens of the model.
struct ChatInput {
  const nlohmann::ordered_json& messages;         // a list of objects, each with a role
  const nlohmann::ordered_json* tools = nullptr;  // a list of objects; NULL: none
  const nlohmann::ordered_json* variables =
      nullptr;                    // an object, such as {"enable_thinking": false}; NULL: none
  bool begins_answer = true;      // add_generation_prompt
  const std::tm* date = nullptr;  // of strftime_now; NULL: today
};

class ChatTemplate {
 public:
  // Error: invalid_argument, listing the known names.
  static Result<ChatTemplate> named(std::string_view name, const Vocab& vocab);
  // Error: unsupported or invalid_argument if the model has no template, or one that cannot be read.
  static Result<ChatTemplate> of(const Vocab& vocab);
  // Reads `source`. `origin`: the file, for messages.
  static Result<ChatTemplate> from(std::string_view source, std::string origin, const Vocab& vocab);
  static std::vector<std::string_view> names();

  // Returns the text of the chat, with control tokens written out. A BOS at its beginning is left out if the
  // tokenizer adds one: encode it with `add_special` and `parse_special`. Errors: invalid_argument or
  // unsupported, with the origin "request", for messages that the template refuses or cannot write.
  Result<std::string> apply(const ChatInput& input) const;

  // "chatml", the file of the template, or "the model's own".
  const std::string& name() const { return name_; }

 private:
  ChatTemplate(jinja::Template parsed, std::string name, const Vocab& vocab);

  jinja::Template template_;
  std::optional<jinja::Template> with_tools_;  // for chats with tools; nothing: the same one
  std::string name_;
  std::vector<std::pair<std::string, std::string>> tokens_;  // such as "bos_token", "<s>"
  std::string left_out_;                                     // the BOS that the tokenizer adds
};

}  // namespace tierd
