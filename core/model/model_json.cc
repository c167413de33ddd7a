#include "core/model/model_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/model/config_fields.h"

namespace tierd {

constexpr std::array<std::string_view, 3> names_of(VocabKind) {
  return {"sentencepiece_bpe", "byte_bpe", "ranked_bpe"};
}

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
constexpr uint8_t kLastTokenType = static_cast<uint8_t>(TokenType::byte);

// Forms of a field's JSON that its type does not name. `T` is const for the writer.
template <class T>
struct IfSet {  // left out while it has its default value
  T& field;
};
template <class T>
struct TokenOrNull {
  T& field;
};
template <class T>
struct Bits {  // floats by their bits
  T& field;
};
template <class T>
IfSet(T&) -> IfSet<T>;
template <class T>
TokenOrNull(T&) -> TokenOrNull<T>;
template <class T>
Bits(T&) -> Bits<T>;

template <class Added, class Visit>
void visit_added_token(Added& added, Visit&& visit) {
  visit("token", added.token);
  visit("normalized", IfSet{added.normalized});
  visit("lstrip", IfSet{added.lstrip});
  visit("rstrip", IfSet{added.rstrip});
  visit("single_word", IfSet{added.single_word});
  visit("is_piece", IfSet{added.is_piece});
  visit("found_as", IfSet{added.found_as});
}

template <class Step, class Visit>
void visit_step(Step& step, Visit&& visit) {
  visit("kind", step.kind);
  visit("pattern", IfSet{step.pattern});
  visit("regex", IfSet{step.regex});
  visit("content", IfSet{step.content});
  visit("behavior", IfSet{step.behavior});
  visit("invert", IfSet{step.invert});
  visit("cuts", IfSet{step.cuts});
  visit("prefix", IfSet{step.prefix});
  visit("begin", IfSet{step.begin});
  visit("end", IfSet{step.end});
}

// Calls visit(key, field) for every field of a Vocab; `V` is Vocab or const Vocab.
template <class V, class Visit>
void visit_vocab(V& vocab, Visit&& visit) {
  visit("kind", vocab.kind);
  visit("pre_tokenizer", vocab.pre_tokenizer);
  visit("normalizers", IfSet{vocab.normalizers});  // only tokenizers of Hugging Face have these
  visit("cuts", IfSet{vocab.cuts});
  visit("decoders", IfSet{vocab.decoders});
  visit("whole_words_first", IfSet{vocab.whole_words_first});
  visit("fuse_unknown", IfSet{vocab.fuse_unknown});
  visit("bos", TokenOrNull{vocab.bos});
  visit("eos", TokenOrNull{vocab.eos});
  visit("unknown", TokenOrNull{vocab.unknown});
  visit("end_tokens", vocab.end_tokens);
  visit("add_bos", vocab.add_bos);
  visit("after_bos", IfSet{vocab.after_bos});
  visit("add_space_prefix", vocab.add_space_prefix);
  visit("prefix_text_only", IfSet{vocab.prefix_text_only});
  visit("metaspace", IfSet{vocab.metaspace});
  visit("split_at_spaces", IfSet{vocab.split_at_spaces});
  visit("added_tokens", IfSet{vocab.added_tokens});
  visit("chat_template", IfSet{vocab.chat_template});
  visit("tool_chat_template", IfSet{vocab.tool_chat_template});
  visit("pieces", vocab.pieces);
  visit("types", vocab.types);
  visit("score_bits", Bits{vocab.scores});
  visit("merges", vocab.merges);
}

// The list of config_fields.h and the orders that the writer of a store sets; no source has those.
template <class Config, class Visit>
void visit_stored_config(Config& config, Visit&& visit) {
  visit_fields(config, visit);
  visit("channel_order", IfSet{config.channel_order});
  visit("expert_order", IfSet{config.expert_order});
}

// Writes one field a call.
struct FieldWriter {
  ordered_json& out;

  template <class T>
  void operator()(const char* key, const T& field) {
    out[key] = value_of(field);
  }
  // Stores of earlier versions do not have the field, and plan texts stay equal to theirs.
  template <class T>
  void operator()(const char* key, const T& field, const T& usual) {
    if (field != usual) out[key] = value_of(field);
  }
  template <class T>
  void operator()(const char* key, IfSet<T> of) {
    if (of.field != std::remove_const_t<T>()) out[key] = value_of(of.field);
  }

 private:
  template <class T>
  static ordered_json value_of(const T& field) {
    if constexpr (std::is_enum_v<T>)
      return name(field);
    else
      return field;
  }
  static ordered_json value_of(const std::string& field) { return string_to_json(field); }
  static ordered_json value_of(TokenOrNull<const uint32_t> of) {
    return of.field == kNoToken ? ordered_json(nullptr) : ordered_json(of.field);
  }
  static ordered_json value_of(Bits<const std::vector<float>> of) {
    return list_of(of.field, [](float score) { return std::bit_cast<uint32_t>(score); });
  }
  static ordered_json value_of(const std::vector<std::string>& texts) {
    return list_of(texts, string_to_json);
  }
  static ordered_json value_of(const std::vector<TokenType>& types) {
    return list_of(types, [](TokenType type) { return static_cast<uint32_t>(type); });
  }
  static ordered_json value_of(const std::optional<std::vector<AddedToken>>& tokens) {
    return list_of(*tokens, [](const AddedToken& added) {
      ordered_json one;
      visit_added_token(added, FieldWriter{one});
      return one;
    });
  }
  static ordered_json value_of(const std::vector<TextStep>& steps) {
    return list_of(steps, [](const TextStep& step) {
      ordered_json one;
      visit_step(step, FieldWriter{one});
      return one;
    });
  }
  static ordered_json list_of(const auto& elements, const auto& value) {
    ordered_json list = ordered_json::array();
    for (const auto& element : elements) list.push_back(value(element));
    return list;
  }
};

// Reads one field a call; after an error, none.
struct FieldReader {
  const JsonFields& fields;
  Status status = {};

  template <class T>
  void operator()(const char* key, T& field) {
    if (status.ok()) status = read(key, field);
  }
  template <class T>
  void operator()(const char* key, T& field, const T&) {
    if (fields.has(key) && status.ok()) status = read(key, field);
  }
  template <class T>
  void operator()(const char* key, IfSet<T> of) {
    if (fields.has(key) && status.ok()) status = read(key, of.field);
  }
  template <class T>
  void operator()(const char* key, TokenOrNull<T> of) {
    if (status.ok()) status = read_token(key, of.field);
  }
  template <class T>
  void operator()(const char* key, Bits<T> of) {
    if (!status.ok()) return;
    status = read_numbers(key, kAny, [&](uint32_t bits) { of.field.push_back(std::bit_cast<float>(bits)); });
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
  Status read(const char* key, std::vector<uint32_t>& field) {
    return read_numbers(key, kAny, [&](uint32_t number) { field.push_back(number); });
  }
  Status read(const char* key, std::vector<TokenType>& field) {
    return read_numbers(key, kLastTokenType,
                        [&](uint32_t type) { field.push_back(static_cast<TokenType>(type)); });
  }
  Status read(const char* key, std::vector<std::string>& field) {
    return fields.read_each(key, [&](const json& value, size_t index) -> Status {
      if (string_from_json(value, field.emplace_back())) return {};
      return fields.wrong(fmt::format("{}[{}]", key, index), value, "a string or bytes in hex");
    });
  }
  Status read(const char* key, std::optional<std::vector<AddedToken>>& field) {
    std::vector<AddedToken>& tokens = field.emplace();
    return fields.read_each(key, [&](const json& value, size_t index) -> Status {
      TIERD_ASSIGN(const JsonFields one, fields.element(key, index, value));
      FieldReader reader{one};
      visit_added_token(tokens.emplace_back(), reader);
      return reader.status;
    });
  }
  Status read(const char* key, std::vector<TextStep>& steps) {
    return fields.read_each(key, [&](const json& value, size_t index) -> Status {
      TIERD_ASSIGN(const JsonFields one, fields.element(key, index, value));
      FieldReader reader{one};
      visit_step(steps.emplace_back(), reader);
      return reader.status;
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
  Status read_token(const char* key, uint32_t& out) {
    TIERD_ASSIGN(const json* value, fields.member(key));
    out = kNoToken;
    return value->is_null() ? Status() : fields.read(key, out);
  }
  Status read_numbers(const char* key, uint32_t most, auto&& take) {
    return fields.read_each(key, [&](const json& value, size_t index) -> Status {
      TIERD_ASSIGN(const uint64_t number, fields.as_whole(fmt::format("{}[{}]", key, index), value, most));
      take(static_cast<uint32_t>(number));
      return {};
    });
  }
};

}  // namespace

ordered_json to_json(const ModelConfig& config) {
  ordered_json out;
  visit_stored_config(config, FieldWriter{out});
  return out;
}

Status from_json(const JsonFields& fields, ModelConfig& config) {
  FieldReader reader{fields};
  visit_stored_config(config, reader);
  return reader.status;
}

ordered_json to_json(const Vocab& vocab) {
  ordered_json out;
  visit_vocab(vocab, FieldWriter{out});
  return out;
}

Status from_json(const JsonFields& fields, Vocab& vocab) {
  FieldReader reader{fields};
  visit_vocab(vocab, reader);
  return reader.status;
}

}  // namespace tierd
