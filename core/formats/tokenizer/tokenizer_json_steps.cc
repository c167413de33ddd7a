#include "core/formats/tokenizer/tokenizer_json_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/base/utf8.h"
#include "core/formats/tokenizer/tokenizer_json_parts.h"

namespace tierd {

using nlohmann::json;

namespace {

constexpr size_t kMaxSteps = 64;
// The factor by which the steps may make a text longer: a short prompt must not fill the memory.
constexpr double kMaxGrowth = 4096;
constexpr size_t kMaxContentBytes = 256;

// Lists the steps under `key`: one step, or those of a Sequence under `list_key`.
Status collect(const json* step, const char* list_key, const std::string& path, const std::string& key,
               std::vector<const json*>& steps) {
  if (step == nullptr) return {};
  if (json_text(*step, "type") != "Sequence") {
    steps.push_back(step);
    return {};
  }
  const json* const list = json_member(*step, list_key);
  if (list == nullptr || !list->is_array())
    return Error{Code::corrupt, path, fmt::format("{} Sequence: {}: expected a list", key, list_key)};
  for (const json& item : *list) TIERD_TRY(collect(&item, list_key, path, key, steps));
  return {};
}

// Returns the factor by which a step makes text longer at most.
double growth(const TextStep& step) {
  const auto content = static_cast<double>(step.content.size());
  switch (step.kind) {
    case TextStepKind::replace:
      return step.regex
                 ? content + 1
                 : std::max(1.0, content / static_cast<double>(std::max<size_t>(step.pattern.size(), 1)));
    case TextStepKind::metaspace:
      return std::max(1.0, content);
    case TextStepKind::nfkc:
    case TextStepKind::nfkd:
      return 11;  // U+FDFA has 3 bytes and becomes 33
    case TextStepKind::nfc:
    case TextStepKind::nfd:
      return 3;
    case TextStepKind::lowercase:
      return 1.5;
    case TextStepKind::byte_level:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

struct TokenizerJsonSteps::Part {
  const std::string& path;
  const json& step;
  std::string name;  // "pre_tokenizer Split"

  Error fail(Code code, const std::string& detail) const { return Error{code, path, name + ": " + detail}; }

  // Refuses fields that no reader of the step knows.
  Status has_only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : step.items()) {
      if (key != "type" && std::ranges::find(keys, key) == keys.end())
        return fail(Code::unsupported, fmt::format("the field \"{}\" is not supported", shown(key)));
    }
    return {};
  }

  Result<bool> flag(const char* key, bool otherwise) const {
    const json* const value = json_member(step, key);
    if (value == nullptr) return otherwise;
    if (value->is_boolean()) return value->get<bool>();
    return fail(Code::corrupt, fmt::format("{}: expected true or false, found {}", key, value->type_name()));
  }

  Result<std::string> text(const char* key) const {
    const json* const value = json_member(step, key);
    if (value == nullptr || !value->is_string())
      return fail(Code::corrupt, fmt::format("{}: expected a text, found {}", key,
                                             value == nullptr ? "nothing" : value->type_name()));
    auto found = value->get<std::string>();
    if (found.size() > kMaxContentBytes)
      return fail(Code::unsupported,
                  fmt::format("{}: {} bytes, expected at most {}", key, found.size(), kMaxContentBytes));
    return found;
  }

  Result<std::string> character(const char* key) const {
    TIERD_ASSIGN(std::string found, text(key));
    if (!found.empty() && utf8_character_bytes(found, 0) == found.size()) return found;
    return fail(Code::corrupt, fmt::format("{}: expected one character, found \"{}\"", key, shown(found)));
  }

  Result<uint32_t> count(const char* key) const {
    const json* const value = json_member(step, key);
    if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= 1u << 20)
      return value->get<uint32_t>();
    return fail(Code::corrupt, fmt::format("{}: expected a number of characters", key));
  }

  // Sets the pattern: {"String": text} or {"Regex": expression}.
  Status read_pattern(TextStep& out) const {
    const json* const pattern = json_member(step, "pattern");
    for (const char* kind : {"String", "Regex"}) {
      const json* const text = pattern == nullptr ? nullptr : json_member(*pattern, kind);
      if (text == nullptr || !text->is_string()) continue;
      out.pattern = text->get<std::string>();
      // The package makes an expression of a text; an empty one matches between all characters.
      out.regex = std::string_view(kind) == "Regex" || out.pattern.empty();
      return {};
    }
    return fail(Code::corrupt, "pattern: expected an object with String or Regex");
  }

  Status read_behavior(const char* otherwise, TextStep& out) const {
    constexpr std::array<std::string_view, 5> kBehaviors = {"Isolated", "Removed", "MergedWithPrevious",
                                                            "MergedWithNext", "Contiguous"};
    std::string found = json_text(step, "behavior");
    if (found.empty()) found = otherwise;
    const auto known = std::ranges::find(kBehaviors, found);
    if (known == kBehaviors.end())
      return fail(Code::unsupported, fmt::format("behavior \"{}\" is not supported; expected {}",
                                                 shown(found), fmt::join(kBehaviors, ", ")));
    out.behavior = static_cast<CutBehavior>(known - kBehaviors.begin());
    return {};
  }

  // Older files have only add_prefix_space.
  Status read_prefix(TextStep& out) const {
    TIERD_ASSIGN(const bool prefix, flag("add_prefix_space", true));
    const json* const scheme = json_member(step, "prepend_scheme");
    const std::string found =
        scheme == nullptr ? (prefix ? "always" : "never") : json_text(step, "prepend_scheme");
    const auto known = by_name<SpacePrefix>(found);
    if (!known)
      return fail(Code::unsupported,
                  fmt::format("prepend_scheme \"{}\" is not supported; expected always, first or never",
                              shown(found)));
    if (!prefix && *known != SpacePrefix::never)
      return fail(Code::corrupt, fmt::format("add_prefix_space is false, but prepend_scheme is \"{}\"; "
                                             "expected never",
                                             found));
    out.prefix = *known;
    return {};
  }

  template <TextStepKind kind>
  static Result<TextStep> plain(const Part& part) {
    TIERD_TRY(part.has_only({}));
    return TextStep{.kind = kind};
  }

  static Result<TextStep> strip_spaces(const Part& part) {
    TIERD_TRY(part.has_only({"strip_left", "strip_right"}));
    TIERD_ASSIGN(const bool left, part.flag("strip_left", true));
    TIERD_ASSIGN(const bool right, part.flag("strip_right", true));
    return TextStep{.kind = TextStepKind::strip, .begin = left, .end = right};
  }

  static Result<TextStep> strip_characters(const Part& part) {
    TIERD_TRY(part.has_only({"content", "start", "stop"}));
    TextStep step{.kind = TextStepKind::strip};
    TIERD_ASSIGN(step.content, part.character("content"));
    TIERD_ASSIGN(step.begin, part.count("start"));
    TIERD_ASSIGN(step.end, part.count("stop"));
    return step;
  }

  static Result<TextStep> replace(const Part& part) {
    TIERD_TRY(part.has_only({"pattern", "content"}));
    TextStep step{.kind = TextStepKind::replace};
    TIERD_TRY(part.read_pattern(step));
    TIERD_ASSIGN(step.content, part.text("content"));
    return step;
  }

  static Result<TextStep> prepend(const Part& part) {
    TIERD_TRY(part.has_only({"prepend"}));
    TextStep step{.kind = TextStepKind::prepend};
    TIERD_ASSIGN(step.content, part.text("prepend"));
    return step;
  }

  static Result<TextStep> byte_level(const Part& part) {
    TIERD_TRY(part.has_only({"add_prefix_space", "trim_offsets", "use_regex"}));
    TextStep step{.kind = TextStepKind::byte_level};
    TIERD_ASSIGN(const bool prefix, part.flag("add_prefix_space", true));
    TIERD_ASSIGN(step.cuts, part.flag("use_regex", true));
    step.prefix = prefix ? SpacePrefix::always : SpacePrefix::never;
    return step;
  }

  // The options belong to the pre-tokenizer of the same name.
  static Result<TextStep> byte_level_decoder(const Part& part) {
    TIERD_TRY(part.has_only({"add_prefix_space", "trim_offsets", "use_regex"}));
    return TextStep{.kind = TextStepKind::byte_level};
  }

  static Result<TextStep> split(const Part& part) {
    TIERD_TRY(part.has_only({"pattern", "behavior", "invert"}));
    TextStep step{.kind = TextStepKind::split};
    TIERD_TRY(part.read_pattern(step));
    TIERD_TRY(part.read_behavior("", step));
    TIERD_ASSIGN(step.invert, part.flag("invert", false));
    return step;
  }

  static Result<TextStep> split_at_character(const Part& part) {
    TIERD_TRY(part.has_only({"delimiter"}));
    TextStep step{.kind = TextStepKind::split, .behavior = CutBehavior::removed};
    TIERD_ASSIGN(step.pattern, part.character("delimiter"));
    return step;
  }

  static Result<TextStep> digits(const Part& part) {
    TIERD_TRY(part.has_only({"individual_digits"}));
    TextStep step{.kind = TextStepKind::digits};
    TIERD_ASSIGN(step.cuts, part.flag("individual_digits", false));
    return step;
  }

  static Result<TextStep> punctuation(const Part& part) {
    TIERD_TRY(part.has_only({"behavior"}));
    TextStep step{.kind = TextStepKind::punctuation};
    TIERD_TRY(part.read_behavior("Isolated", step));
    return step;
  }

  static Result<TextStep> metaspace(const Part& part) {
    TIERD_TRY(part.has_only({"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}));
    TextStep step{.kind = TextStepKind::metaspace};
    TIERD_ASSIGN(step.content, part.character("replacement"));
    TIERD_ASSIGN(step.cuts, part.flag("split", true));
    TIERD_TRY(part.read_prefix(step));
    return step;
  }
};

Result<std::vector<TextStep>> TokenizerJsonSteps::normalizers() const {
  return read("normalizer", "normalizers",
              {{"NFC", Part::plain<TextStepKind::nfc>},
               {"NFD", Part::plain<TextStepKind::nfd>},
               {"NFKC", Part::plain<TextStepKind::nfkc>},
               {"NFKD", Part::plain<TextStepKind::nfkd>},
               {"Lowercase", Part::plain<TextStepKind::lowercase>},
               {"StripAccents", Part::plain<TextStepKind::strip_accents>},
               {"Strip", Part::strip_spaces},
               {"Replace", Part::replace},
               {"Prepend", Part::prepend}});
}

Result<std::vector<TextStep>> TokenizerJsonSteps::pre_tokenizers() const {
  return read("pre_tokenizer", "pretokenizers",
              {{"ByteLevel", Part::byte_level},
               {"Split", Part::split},
               {"Digits", Part::digits},
               {"Punctuation", Part::punctuation},
               {"Metaspace", Part::metaspace},
               {"Whitespace", Part::plain<TextStepKind::whitespace>},
               {"WhitespaceSplit", Part::plain<TextStepKind::whitespace_split>},
               {"CharDelimiterSplit", Part::split_at_character}});
}

Result<std::vector<TextStep>> TokenizerJsonSteps::decoders() const {
  return read("decoder", "decoders",
              {{"ByteLevel", Part::byte_level_decoder},
               {"Replace", Part::replace},
               {"ByteFallback", Part::plain<TextStepKind::byte_fallback>},
               {"Fuse", Part::plain<TextStepKind::fuse>},
               {"Strip", Part::strip_characters},
               {"Metaspace", Part::metaspace}});
}

Status TokenizerJsonSteps::check_size(const char* key, const std::vector<TextStep>& steps) const {
  double factor = 1;
  for (const TextStep& step : steps) factor *= growth(step);
  if (steps.size() <= kMaxSteps && factor <= kMaxGrowth) return {};
  return Error{Code::unsupported, path_,
               fmt::format("{}: {} steps that can make a text {:.0f} times longer; expected at most {} steps "
                           "and a factor of {}",
                           key, steps.size(), factor, kMaxSteps, kMaxGrowth)};
}

Result<std::vector<TextStep>> TokenizerJsonSteps::read(const char* key, const char* list_key,
                                                       const std::vector<Known>& known) const {
  std::vector<const json*> found;
  TIERD_TRY(collect(json_member(root_, key), list_key, path_, key, found));
  std::vector<TextStep> steps;
  for (const json* step : found) {
    const std::string type = json_text(*step, "type");
    const auto reader = std::ranges::find(known, type, &Known::type);
    if (reader == known.end()) {
      std::string names;
      for (const Known& one : known) names += (names.empty() ? "" : ", ") + std::string(one.type);
      return Error{Code::unsupported, path_,
                   fmt::format("{} \"{}\" is not supported; supported are {}", key, shown(type), names)};
    }
    TIERD_ASSIGN(steps.emplace_back(), reader->read(Part{path_, *step, fmt::format("{} {}", key, type)}));
  }
  TIERD_TRY(check_size(key, steps));
  return steps;
}

}  // namespace tierd
