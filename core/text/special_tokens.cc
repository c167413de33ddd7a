#include "core/text/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/log.h"
#include "core/text/input_file.h"
#include "core/text/turn_ends.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxConfigBytes = 16u << 20;

// nullopt where there is no such file.
Result<std::optional<json>> read_beside(const std::string& path, const char* name, std::string& file) {
  file = (std::filesystem::path(path).parent_path() / name).string();
  if (!is_regular_file(file)) return std::optional<json>();
  TIERD_ASSIGN(json root, read_json_file(file, kMaxConfigBytes));
  return std::optional<json>(std::move(root));
}

// A token is written as its text, or as an object with its text under "content".
Status set_token(const json& root, const char* key, const std::string& file, Vocab& vocab, uint32_t& token) {
  const auto it = root.find(key);
  if (it == root.end() || it->is_null()) return {};
  const json* text = &*it;
  if (text->is_object()) {
    const auto content = text->find("content");
    if (content != text->end()) text = &*content;
  }
  if (!text->is_string()) {
    return Error{Code::corrupt, file,
                 fmt::format("{}: expected the token's text, found {}", key, text->type_name())};
  }
  const auto& piece = text->get_ref<const std::string&>();
  const auto found = std::find(vocab.pieces.begin(), vocab.pieces.end(), piece);
  if (found == vocab.pieces.end()) {
    return Error{Code::corrupt, file, fmt::format("{}: \"{}\" is not in the vocabulary", key, shown(piece))};
  }
  token = static_cast<uint32_t>(found - vocab.pieces.begin());
  if (vocab.types[token] == TokenType::normal) vocab.types[token] = TokenType::control;
  return {};
}

Status set_begin_and_end(const json& root, const std::string& file, Vocab& vocab) {
  TIERD_TRY(set_token(root, "bos_token", file, vocab, vocab.bos));
  return set_token(root, "eos_token", file, vocab, vocab.eos);
}

Status add_end_token(const json& value, const std::string& file, Vocab& vocab) {
  const std::string found = shown(value.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!value.is_number_integer()) {
    return Error{Code::corrupt, file, fmt::format("eos_token_id: expected a token's id, found {}", found)};
  }
  if (value.is_number_unsigned() && value.get<uint64_t>() < vocab.pieces.size()) {
    vocab.end_tokens.push_back(value.get<uint32_t>());
  } else {
    say_once(fmt::format("{}: eos_token_id: found {}, the tokenizer has {} tokens; taken as none", file,
                         found, vocab.pieces.size()));
  }
  return {};
}

// A text, or a list of named ones, of which "default" is for chats.
Status set_chat_template(const json& root, const std::string& file, Vocab& vocab) {
  const auto it = root.find("chat_template");
  if (it == root.end() || it->is_null()) return {};
  if (it->is_string()) {
    vocab.chat_template = it->get<std::string>();
    return {};
  }
  const auto wrong = Error{Code::corrupt, file, "chat_template: expected a text, or a list of named ones"};
  if (!it->is_array()) return wrong;
  for (const json& one : *it) {
    if (!one.is_object() || !one.contains("name") || !one.contains("template") ||
        !one["template"].is_string())
      return wrong;
    if (one["name"] == "default") vocab.chat_template = one["template"].get<std::string>();
  }
  return {};
}

}  // namespace

Status apply_special_token_files(const std::string& path, Vocab& vocab) {
  std::string file;
  // tokenizer_config.json is read last: where the two differ, it is the one that programs obey.
  TIERD_ASSIGN(const std::optional<json> map, read_beside(path, "special_tokens_map.json", file));
  if (map) TIERD_TRY(set_begin_and_end(*map, file, vocab));
  TIERD_ASSIGN(const std::optional<json> config, read_beside(path, "tokenizer_config.json", file));
  if (config) {
    TIERD_TRY(set_begin_and_end(*config, file, vocab));
    const auto add_bos = config->find("add_bos_token");
    if (add_bos != config->end() && !add_bos->is_null()) {
      if (!add_bos->is_boolean()) {
        return Error{Code::corrupt, file,
                     fmt::format("add_bos_token: expected true or false, found {}", add_bos->type_name())};
      }
      vocab.add_bos = add_bos->get<bool>();
    }
    TIERD_TRY(set_chat_template(*config, file, vocab));
  }
  const std::string apart = (std::filesystem::path(path).parent_path() / "chat_template.jinja").string();
  if (is_regular_file(apart)) {
    TIERD_ASSIGN(vocab.chat_template, read_whole_file(apart, kMaxConfigBytes));
  }
  TIERD_ASSIGN(const std::optional<json> generation, read_beside(path, "generation_config.json", file));
  if (generation) {
    const auto eos = generation->find("eos_token_id");
    if (eos != generation->end() && eos->is_array()) {
      for (const json& value : *eos) TIERD_TRY(add_end_token(value, file, vocab));
    } else if (eos != generation->end() && !eos->is_null()) {
      TIERD_TRY(add_end_token(*eos, file, vocab));
    }
  }
  if (vocab.eos != kNoToken) vocab.end_tokens.push_back(vocab.eos);
  add_turn_ends(vocab);
  std::sort(vocab.end_tokens.begin(), vocab.end_tokens.end());
  vocab.end_tokens.erase(std::unique(vocab.end_tokens.begin(), vocab.end_tokens.end()),
                         vocab.end_tokens.end());
  return {};
}

}  // namespace tierd
