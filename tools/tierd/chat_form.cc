#include "tools/tierd/chat_form.h"

#include "core/base/file.h"

namespace tierd {
namespace {

constexpr uint64_t kLongestTemplate = uint64_t{4} << 20;

}  // namespace

Result<ChatTemplate> chat_form(const Arguments& arguments, const Vocab& vocab) {
  const std::string& file = arguments.chat_template_file;
  if (!arguments.chat_template.empty() && !file.empty()) {
    return Error{Code::invalid_argument, "--chat-template-file",
                 "is given beside --chat-template; expected one of the two"};
  }
  if (!arguments.chat_template.empty()) return ChatTemplate::named(arguments.chat_template, vocab);
  if (file.empty()) return ChatTemplate::of(vocab);
  TIERD_ASSIGN(const std::string source, read_whole_file(file, kLongestTemplate));
  return ChatTemplate::from(source, file, vocab);
}

bool names_chat_form(const Arguments& arguments) {
  return !arguments.chat_template.empty() || !arguments.chat_template_file.empty();
}

}  // namespace tierd
