// Turns the messages of a chat into the text that a model was trained on. A model's own template is a program
// (Jinja), and programs from model files are not run: the families are written here, and a template is mapped
// to a family only if all of it is known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/text/vocab.h"

namespace tierd {

struct KnownTemplate;

struct ChatMessage {
  std::string role;  // system, user, assistant or tool
  std::string content;
};

class ChatTemplate {
 public:
  // Error: invalid_argument, listing the known names.
  static Result<ChatTemplate> named(std::string_view name, const Vocab& vocab);
  // Finds the family of the model's own template. Error: unsupported if the template is not known, naming the
  // family that it resembles, or if the model has none, listing the known names.
  static Result<ChatTemplate> of(const Vocab& vocab);
  static std::vector<std::string_view> names();

  // Returns the text up to the beginning of the assistant's next turn; control tokens are written out, BOS is
  // not. Errors: invalid_argument for an unknown role, or for an order of messages that the family or the
  // model's template does not accept.
  Result<std::string> apply(std::span<const ChatMessage> messages) const;

  std::string_view name() const;

 private:
  struct Family;
  static const std::vector<Family>& families();
  ChatTemplate(const Family& family, const Vocab& vocab, const KnownTemplate* known = nullptr);
  Status check_order(std::span<const ChatMessage> messages) const;
  std::vector<ChatMessage> without_empty_system(std::span<const ChatMessage> messages) const;

  const Family* family_;
  const KnownTemplate* known_;  // the model's own template; nullptr if the family was chosen by name
  std::string end_;             // the pieces of EOS and BOS
  std::string begin_;
};

}  // namespace tierd
