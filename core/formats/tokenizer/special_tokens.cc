#include "core/formats/tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "core/base/file.h"
#include "core/base/json_fields.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/formats/tokenizer/added_tokens.h"
#include "core/formats/tokenizer/chat_templates.h"
#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/formats/tokenizer/tokenizer_json_parts.h"
#include "core/formats/tokenizer/turn_ends.h"
#include "core/model/text/normalizer.h"
#include "core/model/text/pre_tokenizer.h"

namespace tierd {
namespace {

using nlohmann::json;

// Returns nullopt if there is no such file.
Result<std::optional<json>> read_beside(const std::string& path, const char* name, std::string& file) {
  file = (std::filesystem::path(path).parent_path() / name).string();
  if (!is_regular_file(file)) return std::optional<json>();
  TIERD_ASSIGN(json root, read_json_file(file, kMaxTokenizerConfigBytes));
  return std::optional<json>(std::move(root));
}

// Sets a token that is given as its text, or as an object with its text under "content".
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
  if (vocab.types[token] == TokenType::normal) make_control(token, vocab);
  return {};
}

// Makes a special token of a list, or of one of the keys below, a control token.
void set_other_special_token(const json& token, const char* key, const std::string& file, Vocab& vocab) {
  const std::string piece = token.is_string() ? token.get<std::string>() : json_text(token, "content");
  if (piece.empty()) return;
  const auto found = std::ranges::find(vocab.pieces, piece);
  if (found != vocab.pieces.end()) {
    make_control(static_cast<uint32_t>(found - vocab.pieces.begin()), vocab);
  } else {
    say_once(fmt::format("{}: {}: \"{}\" is not in the vocabulary; ignored", file, key, shown(piece)));
  }
}

void set_other_special_tokens(const json& root, const std::string& file, Vocab& vocab) {
  for (const char* key : {"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    if (const json* const token = json_member(root, key)) set_other_special_token(*token, key, file, vocab);
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const json* const tokens = json_member(root, key);
    if (tokens == nullptr || !tokens->is_structured()) continue;
    for (const json& token : *tokens) set_other_special_token(token, key, file, vocab);
  }
}

Status set_special_tokens(const json& root, const std::string& file, Vocab& vocab) {
  TIERD_TRY(set_token(root, "bos_token", file, vocab, vocab.bos));
  TIERD_TRY(set_token(root, "eos_token", file, vocab, vocab.eos));
  set_other_special_tokens(root, file, vocab);
  return {};
}

Result<std::optional<bool>> flag(const json& config, const char* key, const std::string& file) {
  const json* const value = json_member(config, key);
  if (value == nullptr) return std::optional<bool>();
  if (value->is_boolean()) return std::optional(value->get<bool>());
  return Error{Code::corrupt, file,
               fmt::format("{}: expected true or false, found {}", key, value->type_name())};
}

// Makes the last step of a byte-level vocabulary put a space before words.
Status add_prefix(const std::string& file, Vocab& vocab) {
  if (vocab.cuts.empty()) {
    if (PreTokenizer::make(vocab.pre_tokenizer, file).ok() && vocab.pre_tokenizer != "gpt-2")
      return Error{Code::unsupported, file,
                   fmt::format("add_prefix_space: true is not supported with the rule \"{}\", expected false",
                               vocab.pre_tokenizer)};
    vocab.cuts = {{.kind = TextStepKind::byte_level, .cuts = true}};
    vocab.pre_tokenizer.clear();
  }
  vocab.cuts.back().prefix = SpacePrefix::always;
  return {};
}

bool adds_prefix(const Vocab& vocab) {
  return std::ranges::any_of(vocab.normalizers,
                             [](const TextStep& step) { return step.kind == TextStepKind::prepend; }) ||
         std::ranges::any_of(vocab.cuts,
                             [](const TextStep& step) { return step.prefix != SpacePrefix::never; });
}

// Sets the texts of tokens that are matched after the normalizers of a tokenizer.json.
Status normalize_added_tokens(const std::string& path, Vocab& vocab) {
  if (!vocab.added_tokens || vocab.normalizers.empty()) return {};
  TIERD_ASSIGN(const Normalizer normalizer, Normalizer::make(vocab.normalizers, path));
  std::unordered_map<std::string, uint32_t> tokens;
  for (AddedToken& added : *vocab.added_tokens) {
    const std::string& piece = vocab.pieces[added.token];
    if (!added.normalized || piece.empty()) continue;
    added.found_as = normalizer.apply(piece);
    if (added.found_as.empty())
      return Error{
          Code::unsupported, path,
          fmt::format("added_tokens \"{}\": normalized: the normalizers leave nothing of it", shown(piece))};
    const auto [same, is_new] = tokens.try_emplace(added.found_as, added.token);
    if (!is_new)
      return Error{Code::unsupported, path,
                   fmt::format("added_tokens \"{}\": normalized: the normalizers make it equal to \"{}\"",
                               shown(piece), shown(vocab.pieces[same->second]))};
  }
  return {};
}

// Applies the fields of tokenizer_config.json that change tokens. `piped`: the vocabulary is a
// tokenizer.json's, which has most of these settings itself.
Status obey_config(const json& config, const std::string& file, bool piped, Vocab& vocab) {
  for (const char* key : {"split_special_tokens", "do_lower_case"}) {
    TIERD_ASSIGN(const std::optional<bool> set, flag(config, key, file));
    if (set.value_or(false))
      return Error{Code::unsupported, file, fmt::format("{}: true is not supported, expected false", key)};
  }
  if (const json* const options = json_member(config, "sp_model_kwargs");
      options != nullptr && !options->empty())
    return Error{Code::unsupported, file, "sp_model_kwargs: options are not supported, expected {}"};
  TIERD_ASSIGN(const std::optional<bool> cleans, flag(config, "clean_up_tokenization_spaces", file));
  if (cleans.value_or(false))
    say_once(file +
             ": clean_up_tokenization_spaces: true is ignored: text is shown with the spaces of its tokens");
  TIERD_ASSIGN(const std::optional<bool> add_bos, flag(config, "add_bos_token", file));
  vocab.add_bos = add_bos.value_or(vocab.add_bos);
  TIERD_ASSIGN(const std::optional<bool> add_eos, flag(config, "add_eos_token", file));
  if (add_eos.value_or(false))
    say_once(file + ": add_eos_token: true is ignored: EOS is not added to a text that is continued");
  TIERD_ASSIGN(const std::optional<bool> prefix, flag(config, "add_prefix_space", file));
  TIERD_ASSIGN(const std::optional<bool> legacy, flag(config, "legacy", file));
  if (vocab.kind == VocabKind::byte_bpe) return prefix.value_or(false) ? add_prefix(file, vocab) : Status();
  const bool llama = json_text(config, "tokenizer_class").starts_with("Llama");
  if (vocab.kind == VocabKind::ranked_bpe) {
    if (prefix != false || !llama || !adds_prefix(vocab)) return {};
    return Error{Code::unsupported, file,
                 "add_prefix_space: found false, but the steps of tokenizer.json add a space"};
  }
  if (prefix == false && (!piped || llama)) vocab.add_space_prefix = false;
  // With `legacy` (the default) the space prefix is also added to text that follows a token.
  if (legacy == false && !piped) vocab.prefix_text_only = true;
  return {};
}

Status add_end_token(const json& value, const std::string& file, Vocab& vocab) {
  const std::string found = shown(value.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!value.is_number_integer()) {
    return Error{Code::corrupt, file, fmt::format("eos_token_id: expected a token's id, found {}", found)};
  }
  if (value.is_number_unsigned() && value.get<uint64_t>() < vocab.pieces.size()) {
    vocab.end_tokens.push_back(value.get<uint32_t>());
  } else {
    say_once(fmt::format("{}: eos_token_id: found {}, the tokenizer has {} tokens; ignored", file, found,
                         vocab.pieces.size()));
  }
  return {};
}

}  // namespace

Status apply_special_token_files(const std::string& path, Vocab& vocab) {
  std::string file;
  const bool piped = vocab.added_tokens.has_value();
  TIERD_ASSIGN(const std::optional<json> added, read_beside(path, "added_tokens.json", file));
  if (added) TIERD_TRY(add_listed_tokens(*added, file, vocab));
  std::string config_file;
  TIERD_ASSIGN(const std::optional<json> config, read_beside(path, "tokenizer_config.json", config_file));
  if (config) TIERD_TRY(add_decoder_tokens(*config, config_file, piped, vocab));
  // tokenizer_config.json is applied last, because other programs follow it if the two differ.
  TIERD_ASSIGN(const std::optional<json> map, read_beside(path, "special_tokens_map.json", file));
  if (map) TIERD_TRY(set_special_tokens(*map, file, vocab));
  if (config) {
    TIERD_TRY(set_special_tokens(*config, config_file, vocab));
    TIERD_TRY(obey_config(*config, config_file, piped, vocab));
  }
  TIERD_TRY(read_chat_templates(path, config ? &*config : nullptr, vocab));
  TIERD_ASSIGN(const std::optional<json> generation, read_beside(path, "generation_config.json", file));
  if (generation) {
    const auto eos = generation->find("eos_token_id");
    if (eos != generation->end() && eos->is_array()) {
      for (const json& value : *eos) TIERD_TRY(add_end_token(value, file, vocab));
    } else if (eos != generation->end() && !eos->is_null()) {
      TIERD_TRY(add_end_token(*eos, file, vocab));
    }
  }
  TIERD_TRY(normalize_added_tokens(path, vocab));
  if (vocab.eos != kNoToken) vocab.end_tokens.push_back(vocab.eos);
  add_turn_ends(piped ? OrdinaryEnds::remain : OrdinaryEnds::become_control, vocab);
  std::sort(vocab.end_tokens.begin(), vocab.end_tokens.end());
  vocab.end_tokens.erase(std::unique(vocab.end_tokens.begin(), vocab.end_tokens.end()),
                         vocab.end_tokens.end());
  return {};
}

}  // namespace tierd
