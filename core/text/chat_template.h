// How the messages of a chat become the text that a model was trained on. A model's own template is a program
// (Jinja), and programs out of model files are not run: the families are written here, and a template is only
// looked at to know its family.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/text/vocab.h"

namespace tierd {

struct ChatMessage {
  std::string role;  // system, user, assistant or tool
  std::string content;
};

class ChatTemplate {
 public:
  // Error: invalid_argument, listing the known ones.
  static Result<ChatTemplate> named(std::string_view name, const Vocab& vocab);
  // Finds the family of the model's own template. Error: unsupported where that is of no known family or the
  // model has none, listing the known ones.
  static Result<ChatTemplate> of(const Vocab& vocab);
  static std::vector<std::string_view> names();

  // The text up to where the assistant speaks next; control tokens are written out, BOS is not. Errors:
  // invalid_argument for a role that there is not, or an order that the family does not have.
  Result<std::string> apply(std::span<const ChatMessage> messages) const;

  std::string_view name() const;

 private:
  struct Family;
  static const std::vector<Family>& families();
  ChatTemplate(const Family& family, const Vocab& vocab);

  const Family* family_;
  std::string end_;  // the pieces of EOS and BOS
  std::string begin_;
};

}  // namespace tierd
