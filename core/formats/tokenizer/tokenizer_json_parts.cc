#include "core/formats/tokenizer/tokenizer_json_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/model/text/pre_tokenizer.h"
#include "core/model/text/sentencepiece_bpe.h"

namespace tierd {
namespace {

using nlohmann::json;

// Lists the steps of a normalizer, pre-tokenizer, … : one step, or a Sequence under `list_key`.
std::vector<const json*> steps_of(const json* step, const char* list_key) {
  std::vector<const json*> steps;
  if (step == nullptr) return steps;
  const json* list = json_text(*step, "type") == "Sequence" ? json_member(*step, list_key) : nullptr;
  if (list == nullptr || !list->is_array()) {
    steps.push_back(step);
  } else {
    for (const json& item : *list) {
      for (const json* inner : steps_of(&item, list_key)) steps.push_back(inner);
    }
  }
  return steps;
}

bool replaces(const json& step, std::string_view from, std::string_view to) {
  const json* pattern = json_member(step, "pattern");
  return pattern != nullptr && json_text(*pattern, "String") == from && json_text(step, "content") == to;
}

// Returns whether the step removes one space at the beginning, or none.
bool strips_prefix(const json& step) {
  const auto count = [&](const char* key) { return step.value(key, json(0)); };
  return json_text(step, "content") == " " && count("stop") == 0 &&
         (count("start") == 0 || count("start") == 1);
}

}  // namespace

const json* json_member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string json_text(const json& object, const char* key) {
  const json* value = json_member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

TokenizerJsonParts::TokenizerJsonParts(const std::string& path, const json& root)
    : path_(path),
      root_(root),
      normalizers_(steps_of(json_member(root, "normalizer"), "normalizers")),
      pre_tokenizers_(steps_of(json_member(root, "pre_tokenizer"), "pretokenizers")) {}

Result<bool> TokenizerJsonParts::flag(const json& object, const char* key, bool otherwise,
                                      const std::string& part) const {
  const json* value = json_member(object, key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  return fail(Code::corrupt,
              fmt::format("{}: {}: expected true or false, found {}", part, key, value->type_name()));
}

bool TokenizerJsonParts::is_byte_level() const {
  return std::ranges::any_of(pre_tokenizers_,
                             [](const json* step) { return json_text(*step, "type") == "ByteLevel"; });
}

// Returns a step in the form of PreTokenizer::name_of_steps; empty if it cuts nothing.
Result<std::string> TokenizerJsonParts::byte_level_step(const json& step) const {
  const std::string type = json_text(step, "type");
  const std::string part = "pre_tokenizer " + shown(type);
  if (type == "ByteLevel") {
    TIERD_ASSIGN(const bool prefix, flag(step, "add_prefix_space", true, part));
    if (prefix) return fail(Code::unsupported, "pre_tokenizer ByteLevel: add_prefix_space is not supported");
    TIERD_ASSIGN(const bool cuts, flag(step, "use_regex", true, part));
    return cuts ? type : std::string();
  }
  if (type == "Split") {
    const json* pattern = json_member(step, "pattern");
    TIERD_ASSIGN(const bool inverted, flag(step, "invert", false, part));
    if (pattern == nullptr || json_text(step, "behavior") != "Isolated" || inverted)
      return fail(Code::unsupported, "pre_tokenizer Split: supported is the behavior Isolated, not inverted");
    return "Split " + json_text(*pattern, "Regex");
  }
  if (type == "Digits") {
    TIERD_ASSIGN(const bool apart, flag(step, "individual_digits", false, part));
    if (!apart) return fail(Code::unsupported, "pre_tokenizer Digits: supported is individual_digits only");
  }
  return type;
}

Status TokenizerJsonParts::read_byte_level(bool ignore_merges, Vocab& vocab) const {
  for (const json* step : normalizers_) {
    // NFC: text is nearly always composed already, so it is not composed here.
    const std::string type = json_text(*step, "type");
    if (type != "NFC")
      return fail(Code::unsupported, fmt::format("normalizer \"{}\" is not supported", shown(type)));
  }
  std::string steps;
  for (const json* step : pre_tokenizers_) {
    // ByteLevel writes bytes as characters, which no later step expects.
    if (step != pre_tokenizers_.back() && json_text(*step, "type") == "ByteLevel")
      return fail(Code::unsupported, "pre_tokenizer ByteLevel: a step after it is not supported");
    TIERD_ASSIGN(const std::string name, byte_level_step(*step));
    if (!name.empty()) steps += steps.empty() ? name : "\n" + name;
  }
  const std::string_view name = PreTokenizer::name_of_steps(steps, ignore_merges);
  if (name.empty()) {
    return fail(Code::unsupported,
                fmt::format("pre_tokenizer \"{}\"{} is not supported; supported are {}", shown(steps),
                            ignore_merges ? " with model.ignore_merges" : "", PreTokenizer::known_names()));
  }
  vocab.pre_tokenizer = name;
  return {};
}

Status TokenizerJsonParts::read_metaspace(const json& step, Vocab& vocab) const {
  const std::string type = json_text(step, "type");
  const std::string part = "pre_tokenizer Metaspace";
  if (type != "Metaspace") {
    return fail(
        Code::unsupported,
        fmt::format("pre_tokenizer \"{}\" is not supported; expected ByteLevel or Metaspace", shown(type)));
  }
  if (const std::string mark = json_text(step, "replacement"); mark != kSpaceMark)
    return fail(Code::unsupported,
                fmt::format("{}: replacement \"{}\" is not supported; expected \"▁\"", part, shown(mark)));
  TIERD_ASSIGN(vocab.split_at_spaces, flag(step, "split", true, part));
  // Older files have only add_prefix_space.
  TIERD_ASSIGN(const bool prefix, flag(step, "add_prefix_space", true, part));
  const json* scheme = json_member(step, "prepend_scheme");
  const std::string name =
      scheme == nullptr ? (prefix ? "always" : "never") : json_text(step, "prepend_scheme");
  if (name != "always" && name != "first" && name != "never") {
    return fail(Code::unsupported,
                fmt::format("{}: prepend_scheme \"{}\" is not supported; expected always, first or never",
                            part, shown(name)));
  }
  if (!prefix && name != "never") {
    return fail(Code::corrupt,
                fmt::format("{}: add_prefix_space is false, but prepend_scheme is \"{}\"; expected never",
                            part, name));
  }
  vocab.metaspace = true;
  vocab.add_space_prefix = name != "never";
  vocab.prefix_text_only = name == "first";
  return {};
}

Status TokenizerJsonParts::read_space_rule(Vocab& vocab) const {
  vocab.add_space_prefix = false;
  bool marks = false;
  for (const json* step : normalizers_) {
    const std::string type = json_text(*step, "type");
    if (type == "Prepend" && json_text(*step, "prepend") == kSpaceMark && !vocab.add_space_prefix) {
      vocab.add_space_prefix = true;
    } else if (type == "Replace" && replaces(*step, " ", kSpaceMark)) {
      marks = true;
    } else {
      return fail(Code::unsupported, fmt::format("normalizer \"{}\" is not supported", shown(type)));
    }
  }
  if (pre_tokenizers_.empty()) {
    if (marks) return {};
    return fail(Code::unsupported,
                "has neither a pre_tokenizer ByteLevel nor a normalizer that writes spaces as \"▁\"; "
                "expected one of them");
  }
  if (pre_tokenizers_.size() > 1 || !normalizers_.empty()) {
    const json* other = normalizers_.empty() ? pre_tokenizers_.front() : normalizers_.front();
    return fail(
        Code::unsupported,
        fmt::format("pre_tokenizer \"{}\" together with other steps (\"{}\") is not supported",
                    shown(json_text(*pre_tokenizers_.back(), "type")), shown(json_text(*other, "type"))));
  }
  return read_metaspace(*pre_tokenizers_.front(), vocab);
}

// "single" lists the parts of the result: {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}.
Status TokenizerJsonParts::read_template(const json& step, Vocab& vocab) const {
  const std::string part = "post_processor TemplateProcessing";
  const json* single = json_member(step, "single");
  if (single == nullptr || !single->is_array())
    return fail(Code::corrupt, part + ": single: expected a list");
  std::vector<std::string> before, after;
  uint32_t texts = 0;
  for (const json& item : *single) {
    const json* special = json_member(item, "SpecialToken");
    const json* sequence = json_member(item, "Sequence");
    if ((special == nullptr) == (sequence == nullptr) ||
        (sequence != nullptr && json_text(*sequence, "id") != "A"))
      return fail(Code::unsupported, part + ": single: expected special tokens and the sequence A");
    if (sequence != nullptr) {
      ++texts;
    } else {
      (texts == 0 ? before : after).push_back(json_text(*special, "id"));
    }
  }
  if (texts != 1 || before.size() > 1) {
    return fail(Code::unsupported, fmt::format("{}: single: {} tokens before the text, and the text {} "
                                               "times; supported are at most one token and one text",
                                               part, before.size(), texts));
  }
  for (const std::string& end : after) {
    say_once(fmt::format("{}: {}: \"{}\" is not added to the end of a text that is continued", path_, part,
                         shown(end)));
  }
  if (before.empty()) return {};
  const json* specials = json_member(step, "special_tokens");
  const json* begin = specials == nullptr ? nullptr : json_member(*specials, before.front().c_str());
  const json* ids = begin == nullptr ? nullptr : json_member(*begin, "ids");
  if (ids == nullptr || !ids->is_array() || ids->size() != 1 || !ids->front().is_number_unsigned() ||
      ids->front().get<uint64_t>() >= vocab.pieces.size()) {
    return fail(Code::corrupt, fmt::format("{}: special_tokens: expected one id of the vocabulary for \"{}\"",
                                           part, shown(before.front())));
  }
  vocab.bos = ids->front().get<uint32_t>();
  vocab.add_bos = true;
  return {};
}

Status TokenizerJsonParts::read_post_processor(Vocab& vocab) const {
  vocab.add_bos = false;
  uint32_t templates = 0;
  for (const json* step : steps_of(json_member(root_, "post_processor"), "processors")) {
    const std::string type = json_text(*step, "type");
    if (type == "ByteLevel") continue;  // changes only offsets
    if (type != "TemplateProcessing" || ++templates > 1)
      return fail(Code::unsupported, fmt::format("post_processor \"{}\" is not supported", shown(type)));
    TIERD_TRY(read_template(*step, vocab));
  }
  return {};
}

Status TokenizerJsonParts::check_decoder(bool byte_level) const {
  for (const json* step : steps_of(json_member(root_, "decoder"), "decoders")) {
    const std::string type = json_text(*step, "type");
    const bool known = byte_level
                           ? type == "ByteLevel"
                           : type == "ByteFallback" || type == "Fuse" ||
                                 (type == "Replace" && replaces(*step, kSpaceMark, " ")) ||
                                 (type == "Metaspace" && json_text(*step, "replacement") == kSpaceMark) ||
                                 (type == "Strip" && strips_prefix(*step));
    if (!known) return fail(Code::unsupported, fmt::format("decoder \"{}\" is not supported", shown(type)));
  }
  return {};
}

void TokenizerJsonParts::warn_of_lengths() const {
  for (const char* key : {"truncation", "padding"}) {
    if (json_member(root_, key) != nullptr)
      say_once(fmt::format("{}: {}: ignored, because texts are neither truncated nor padded", path_, key));
  }
}

}  // namespace tierd
