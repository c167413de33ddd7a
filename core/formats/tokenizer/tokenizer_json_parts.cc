#include "core/formats/tokenizer/tokenizer_json_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "core/base/utf8.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr const char* kTemplate = "post_processor TemplateProcessing";

// Lists the processors: one, or those of a Sequence.
void list_processors(const json* step, std::vector<const json*>& steps) {
  if (step == nullptr) return;
  const json* list = json_text(*step, "type") == "Sequence" ? json_member(*step, "processors") : nullptr;
  if (list == nullptr || !list->is_array()) {
    steps.push_back(step);
    return;
  }
  for (const json& item : *list) list_processors(&item, steps);
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

Result<bool> TokenizerJsonParts::flag(const json& object, const char* key, bool otherwise,
                                      const std::string& part) const {
  const json* value = json_member(object, key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  return fail(Code::corrupt,
              fmt::format("{}: {}: expected true or false, found {}", part, key, value->type_name()));
}

Result<uint32_t> TokenizerJsonParts::template_token(const json& step, const std::string& name,
                                                    const Vocab& vocab) const {
  const json* specials = json_member(step, "special_tokens");
  const json* token = specials == nullptr ? nullptr : json_member(*specials, name.c_str());
  const json* ids = token == nullptr ? nullptr : json_member(*token, "ids");
  if (ids == nullptr || !ids->is_array() || ids->size() != 1 || !ids->front().is_number_unsigned() ||
      ids->front().get<uint64_t>() >= vocab.pieces.size()) {
    return fail(Code::corrupt, fmt::format("{}: special_tokens: expected one id of the vocabulary for \"{}\"",
                                           kTemplate, shown(name)));
  }
  return ids->front().get<uint32_t>();
}

// "single" lists the parts of the result: {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}.
Status TokenizerJsonParts::read_template(const json& step, Vocab& vocab) const {
  const std::string part = kTemplate;
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
  if (texts != 1)
    return fail(Code::unsupported,
                fmt::format("{}: single: found the text {} times, expected once", part, texts));
  for (const std::string& end : after) {
    say_once(fmt::format("{}: {}: \"{}\" is not added to the end of a text that is continued", path_, part,
                         shown(end)));
  }
  for (const std::string& name : before) {
    TIERD_ASSIGN(const uint32_t token, template_token(step, name, vocab));
    if (vocab.add_bos) {
      vocab.after_bos.push_back(token);
    } else {
      vocab.bos = token;
      vocab.add_bos = true;
    }
  }
  return {};
}

Status TokenizerJsonParts::read_post_processor(Vocab& vocab) const {
  vocab.add_bos = false;
  uint32_t templates = 0;
  std::vector<const json*> steps;
  list_processors(json_member(root_, "post_processor"), steps);
  for (const json* step : steps) {
    const std::string type = json_text(*step, "type");
    if (type == "ByteLevel") continue;  // changes only offsets
    if (type != "TemplateProcessing" || ++templates > 1)
      return fail(Code::unsupported,
                  fmt::format("post_processor \"{}\" is not supported; supported are ByteLevel and one "
                              "TemplateProcessing",
                              shown(type)));
    TIERD_TRY(read_template(*step, vocab));
  }
  return {};
}

void TokenizerJsonParts::warn_of_ignored_fields() const {
  constexpr std::array<std::string_view, 7> kRead = {
      "version", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"};
  for (const auto& [key, value] : root_.items()) {
    if (std::ranges::find(kRead, key) != kRead.end() || value.is_null()) continue;
    const bool lengths = key == "truncation" || key == "padding";
    say_once(fmt::format(
        "{}: {}: ignored, because {}", path_, shown(key),
        lengths ? "texts are neither truncated nor padded" : "no version of the format has this field"));
  }
}

}  // namespace tierd
