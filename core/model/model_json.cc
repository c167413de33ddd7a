#include "core/model/model_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

#include "core/model/config_fields.h"

namespace tierd {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kVocabKinds = {"sentencepiece_bpe", "byte_bpe"};
constexpr uint8_t kLastTokenType = static_cast<uint8_t>(TokenType::byte);

Status read_strings(const JsonFields& fields, std::string_view key, std::vector<std::string>& out) {
  return fields.read_each(key, [&](const json& value, size_t index) -> Status {
    if (string_from_json(value, out.emplace_back())) return {};
    return fields.wrong(fmt::format("{}[{}]", key, index), value, "a string or bytes in hex");
  });
}

Status read_numbers(const JsonFields& fields, std::string_view key, uint32_t most, auto&& take) {
  return fields.read_each(key, [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const uint64_t number, fields.as_whole(fmt::format("{}[{}]", key, index), value, most));
    take(static_cast<uint32_t>(number));
    return {};
  });
}

ordered_json token_to_json(uint32_t token) {
  return token == kNoToken ? ordered_json(nullptr) : ordered_json(token);
}

Status read_token(const JsonFields& fields, std::string_view key, uint32_t& out) {
  TIERD_ASSIGN(const json* value, fields.member(key));
  out = kNoToken;
  return value->is_null() ? Status() : fields.read(key, out);
}

// Fields that stores of earlier versions do not have. A field with its default value is not written, so that
// plan texts of earlier versions stay equal.
constexpr std::array<std::string_view, 1> kAddedLater = {"qkv_relu"};
// Fields that the writer of a store sets; no source has them.
constexpr const char* kChannelOrder = "channel_order";
constexpr const char* kExpertOrder = "expert_order";

bool was_added_later(std::string_view key) {
  return std::ranges::find(kAddedLater, key) != kAddedLater.end();
}

// Writes one field a call.
struct FieldWriter {
  ordered_json& out;

  template <class T>
  void operator()(const char* key, const T& field) {
    if (was_added_later(key) && field == T()) return;
    if constexpr (std::is_enum_v<T>) {
      out[key] = name(field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out[key] = string_to_json(field);
    } else {
      out[key] = field;
    }
  }
};

// Reads one field a call; after an error, none.
struct FieldReader {
  const JsonFields& fields;
  Status status;

  template <class T>
  void operator()(const char* key, T& field) {
    if (was_added_later(key) && !fields.has(key)) return;
    if (status.ok()) status = read(key, field);
  }

 private:
  template <class T>
  Status read(const char* key, T& field) {
    return fields.read(key, field);
  }
  Status read(const char* key, std::vector<float>& field) {
    return fields.read_each(key, [&](const json& value, size_t index) -> Status {
      TIERD_ASSIGN(field.emplace_back(), fields.as_float(fmt::format("{}[{}]", key, index), value));
      return {};
    });
  }
  template <class Enum>
  requires std::is_enum_v<Enum> Status read(const char* key, Enum& field) {
    std::string text;
    TIERD_TRY(fields.read(key, text));
    const auto found = by_name<Enum>(text);
    if (!found) {
      return fields.error(
          key, fmt::format("is '{}', expected one of {}", text, fmt::join(names_of(Enum{}), ", ")));
    }
    field = *found;
    return {};
  }
};

}  // namespace

ordered_json to_json(const ModelConfig& config) {
  ordered_json out;
  visit_fields(config, FieldWriter{out});
  if (config.channel_order) out[kChannelOrder] = true;
  if (config.expert_order) out[kExpertOrder] = true;
  return out;
}

Status from_json(const JsonFields& fields, ModelConfig& config) {
  FieldReader reader{fields, {}};
  visit_fields(config, reader);
  TIERD_TRY(reader.status);
  if (fields.has(kChannelOrder)) TIERD_TRY(fields.read(kChannelOrder, config.channel_order));
  return fields.has(kExpertOrder) ? fields.read(kExpertOrder, config.expert_order) : Status();
}

namespace {

// Written only if true. Only tokenizers of Hugging Face set them.
constexpr std::array<std::pair<const char*, bool Vocab::*>, 3> kSpaceRules = {
    {{"prefix_text_only", &Vocab::prefix_text_only},
     {"metaspace", &Vocab::metaspace},
     {"split_at_spaces", &Vocab::split_at_spaces}}};

constexpr std::array<std::pair<const char*, bool AddedToken::*>, 5> kAddedRules = {
    {{"normalized", &AddedToken::normalized},
     {"lstrip", &AddedToken::lstrip},
     {"rstrip", &AddedToken::rstrip},
     {"single_word", &AddedToken::single_word},
     {"is_piece", &AddedToken::is_piece}}};

ordered_json to_json(const std::vector<AddedToken>& tokens) {
  ordered_json out = ordered_json::array();
  for (const AddedToken& added : tokens) {
    ordered_json one = {{"token", added.token}};
    for (const auto& [key, rule] : kAddedRules) {
      if (added.*rule) one[key] = true;
    }
    if (!added.found_as.empty()) one["found_as"] = string_to_json(added.found_as);
    out.push_back(std::move(one));
  }
  return out;
}

Status read_added_tokens(const JsonFields& fields, std::vector<AddedToken>& tokens) {
  return fields.read_each("added_tokens", [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(const JsonFields one, fields.element("added_tokens", index, value));
    AddedToken added;
    TIERD_TRY(one.read("token", added.token));
    for (const auto& [key, rule] : kAddedRules) {
      if (one.has(key)) TIERD_TRY(one.read(key, added.*rule));
    }
    if (one.has("found_as")) TIERD_TRY(one.read("found_as", added.found_as));
    tokens.push_back(std::move(added));
    return {};
  });
}

}  // namespace

ordered_json to_json(const Vocab& vocab) {
  ordered_json out;
  out["kind"] = kVocabKinds[static_cast<size_t>(vocab.kind)];
  out["pre_tokenizer"] = string_to_json(vocab.pre_tokenizer);
  out["bos"] = token_to_json(vocab.bos);
  out["eos"] = token_to_json(vocab.eos);
  out["unknown"] = token_to_json(vocab.unknown);
  out["end_tokens"] = vocab.end_tokens;
  out["add_bos"] = vocab.add_bos;
  out["add_space_prefix"] = vocab.add_space_prefix;
  for (const auto& [key, rule] : kSpaceRules) {
    if (vocab.*rule) out[key] = true;
  }
  if (vocab.added_tokens) out["added_tokens"] = to_json(*vocab.added_tokens);
  if (!vocab.chat_template.empty()) out["chat_template"] = string_to_json(vocab.chat_template);
  for (const char* key : {"pieces", "types", "score_bits", "merges"}) out[key] = ordered_json::array();
  for (const std::string& piece : vocab.pieces) out["pieces"].push_back(string_to_json(piece));
  for (const TokenType type : vocab.types) out["types"].push_back(static_cast<uint32_t>(type));
  for (const float score : vocab.scores) out["score_bits"].push_back(std::bit_cast<uint32_t>(score));
  for (const std::string& merge : vocab.merges) out["merges"].push_back(string_to_json(merge));
  return out;
}

Status from_json(const JsonFields& fields, Vocab& vocab) {
  constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
  std::string kind;
  TIERD_TRY(fields.read("kind", kind));
  if (kind != kVocabKinds[0] && kind != kVocabKinds[1]) {
    return fields.error("kind",
                        fmt::format("is '{}', expected one of {}", kind, fmt::join(kVocabKinds, ", ")));
  }
  vocab.kind = kind == kVocabKinds[0] ? VocabKind::sentencepiece_bpe : VocabKind::byte_bpe;
  TIERD_TRY(fields.read("pre_tokenizer", vocab.pre_tokenizer));
  TIERD_TRY(read_token(fields, "bos", vocab.bos));
  TIERD_TRY(read_token(fields, "eos", vocab.eos));
  TIERD_TRY(read_token(fields, "unknown", vocab.unknown));
  TIERD_TRY(
      read_numbers(fields, "end_tokens", kAny, [&](uint32_t token) { vocab.end_tokens.push_back(token); }));
  TIERD_TRY(fields.read("add_bos", vocab.add_bos));
  TIERD_TRY(fields.read("add_space_prefix", vocab.add_space_prefix));
  for (const auto& [key, rule] : kSpaceRules) {
    if (fields.has(key)) TIERD_TRY(fields.read(key, vocab.*rule));
  }
  if (fields.has("added_tokens")) TIERD_TRY(read_added_tokens(fields, vocab.added_tokens.emplace()));
  if (fields.has("chat_template")) TIERD_TRY(fields.read("chat_template", vocab.chat_template));
  TIERD_TRY(read_strings(fields, "pieces", vocab.pieces));
  TIERD_TRY(read_numbers(fields, "types", kLastTokenType,
                         [&](uint32_t type) { vocab.types.push_back(static_cast<TokenType>(type)); }));
  TIERD_TRY(read_numbers(fields, "score_bits", kAny,
                         [&](uint32_t bits) { vocab.scores.push_back(std::bit_cast<float>(bits)); }));
  return read_strings(fields, "merges", vocab.merges);
}

}  // namespace tierd
