#include "core/formats/tokenizer/chat_templates.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/json_fields.h"
#include "core/formats/tokenizer/tokenizer_files.h"

namespace tierd {
namespace {

using nlohmann::json;

// Sets the templates of a field: a text, or a list of named ones, of which "default" is for chats and
// "tool_use" for chats with tools.
Status take_field(const json& root, const std::string& file, Vocab& vocab) {
  const auto it = root.find("chat_template");
  if (it == root.end() || it->is_null()) return {};
  if (it->is_string()) {
    vocab.chat_template = it->get<std::string>();
    return {};
  }
  const auto wrong = Error{Code::corrupt, file,
                           "chat_template: expected a string, or a list of objects with name and template"};
  if (!it->is_array()) return wrong;
  for (const json& one : *it) {
    if (!one.is_object() || !one.contains("name") || !one.contains("template") ||
        !one["template"].is_string())
      return wrong;
    if (one["name"] == "default") vocab.chat_template = one["template"].get<std::string>();
    if (one["name"] == "tool_use") vocab.tool_chat_template = one["template"].get<std::string>();
  }
  return {};
}

// Leaves the text as it is if there is no such file.
Status take_file(const std::filesystem::path& file, std::string& text) {
  if (!is_regular_file(file.string())) return {};
  TIERD_ASSIGN(text, read_whole_file(file.string(), kMaxTokenizerConfigBytes));
  return {};
}

}  // namespace

Status read_chat_templates(const std::string& path, const json* config, Vocab& vocab) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string processor = (folder / "chat_template.json").string();
  if (is_regular_file(processor)) {
    TIERD_ASSIGN(const json root, read_json_file(processor, kMaxTokenizerConfigBytes));
    TIERD_TRY(take_field(root, processor, vocab));
  }
  if (config != nullptr) TIERD_TRY(take_field(*config, (folder / "tokenizer_config.json").string(), vocab));
  TIERD_TRY(take_file(folder / "chat_template.jinja", vocab.chat_template));
  return take_file(folder / "additional_chat_templates" / "tool_use.jinja", vocab.tool_chat_template);
}

}  // namespace tierd
