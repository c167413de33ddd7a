#include "core/base/json_fields.h"

#include <cmath>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/log.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
// Longest number, in digits: the time to parse one grows with their square.
constexpr size_t kLongestLiteral = 1024;

// Checks the bounds before parsing, so that the parser never holds a deep nest or many values.
std::optional<std::string> beyond_bounds(std::string_view text, uint64_t most_values) {
  int depth = 0;
  bool in_string = false;
  uint64_t values = 1;
  size_t literal = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    const bool opens = c == '{' || c == '[';
    const bool closes = c == '}' || c == ']';
    values += opens || c == ',';
    in_string = c == '"';
    depth += opens;
    depth -= closes;
    literal = opens || closes || c == ',' || c == ':' || c == '"' || c <= ' ' ? 0 : literal + 1;
    if (depth > kMaxDepth) return fmt::format("JSON nested deeper than {} levels", kMaxDepth);
    if (values > most_values) return fmt::format("JSON of more than {} values", most_values);
    if (literal > kLongestLiteral) return fmt::format("a number of more than {} digits", kLongestLiteral);
  }
  return std::nullopt;
}

// nlohmann's messages begin with "[json.exception.parse_error.101] ".
std::string_view without_exception_id(std::string_view message) {
  const size_t end = message.find("] ");
  return end == std::string_view::npos ? message : message.substr(end + 2);
}

// Finds duplicate keys, of which the parser would silently keep the last, and another program the first.
class DuplicateKeys {
 public:
  bool operator()(int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second) {
      first_ = first_.value_or(parsed.get<std::string>());
    }
    return true;
  }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::vector<std::unordered_set<std::string>> open_;  // keys seen, per object not yet closed
  std::optional<std::string> first_;
};

std::string excerpt(const json& value) {
  constexpr size_t kShown = 48;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view origin, uint64_t most_values) {
  if (auto beyond = beyond_bounds(text, most_values))
    return Error{Code::corrupt, std::string(origin), std::move(*beyond)};
  try {
    DuplicateKeys duplicates;
    json parsed = json::parse(text, std::ref(duplicates));
    if (duplicates.first()) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("the key \"{}\" occurs twice in one object", *duplicates.first())};
    }
    return parsed;
  } catch (const json::exception& e) {
    return Error{Code::corrupt, std::string(origin),
                 fmt::format("not valid JSON: {}", without_exception_id(e.what()))};
  }
}

Result<JsonFields> JsonFields::of(const json& object, std::string origin, std::string prefix) {
  if (!object.is_object()) {
    const std::string key = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": ";
    return Error{Code::corrupt, std::move(origin),
                 fmt::format("{}found {}, expected an object", key, excerpt(object))};
  }
  return JsonFields(object, std::move(origin), std::move(prefix));
}

const json* JsonFields::get(const char* key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

Error JsonFields::error(Code code, const char* key, std::string_view detail) const {
  return {code, origin_, fmt::format("{}{}: {}", prefix_, key, detail)};
}

void JsonFields::warn(const char* key, std::string_view detail) const {
  say_once(fmt::format("{}: {}{}: {}", origin_, prefix_, key, detail));
}

Error JsonFields::absent(const char* key) const {
  return error(Code::corrupt, key, "missing");
}

Error JsonFields::wrong(const char* key, const json& found, std::string_view expected) const {
  return error(Code::corrupt, key, fmt::format("found {}, expected {}", excerpt(found), expected));
}

Result<uint32_t> JsonFields::as_u32(const char* key, const json& value) const {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) {
    return wrong(key, value, "a whole number from 0 to 4294967295");
  }
  return value.get<uint32_t>();
}

Result<uint32_t> JsonFields::u32(const char* key, std::optional<uint32_t> fallback) const {
  const json* value = get(key);
  if (value != nullptr) return as_u32(key, *value);
  if (fallback) return *fallback;
  return absent(key);
}

Result<float> JsonFields::f32(const char* key, std::optional<float> fallback) const {
  const json* value = get(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return absent(key);
  }
  if (!value->is_number() || !std::isfinite(value->get<float>())) {
    return wrong(key, *value, "a number that fits a float");
  }
  return value->get<float>();
}

Result<bool> JsonFields::flag(const char* key, std::optional<bool> fallback) const {
  const json* value = get(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return absent(key);
  }
  if (!value->is_boolean()) return wrong(key, *value, "true or false");
  return value->get<bool>();
}

Result<std::string> JsonFields::text(const char* key, std::optional<std::string> fallback) const {
  const json* value = get(key);
  if (value == nullptr) {
    if (fallback) return *std::move(fallback);
    return absent(key);
  }
  if (!value->is_string()) return wrong(key, *value, "a string");
  return value->get<std::string>();
}

Result<std::vector<int64_t>> JsonFields::integers(const char* key) const {
  const json* value = get(key);
  std::vector<int64_t> list;
  if (value == nullptr) return list;
  const auto add = [&](const json& element) -> Status {
    const bool fits = element.is_number_integer() &&
                      (!element.is_number_unsigned() || element.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (!fits) return wrong(key, element, "a whole number");
    list.push_back(element.get<int64_t>());
    return {};
  };
  if (!value->is_array()) {
    TIERD_TRY(add(*value));
    return list;
  }
  for (const json& element : *value) TIERD_TRY(add(element));
  return list;
}

Result<std::vector<uint32_t>> JsonFields::u32_list(const char* key) const {
  const json* value = get(key);
  std::vector<uint32_t> list;
  if (value == nullptr) return list;
  if (!value->is_array()) {
    TIERD_ASSIGN(const uint32_t single, as_u32(key, *value));
    list.push_back(single);
    return list;
  }
  for (const json& element : *value) {
    TIERD_ASSIGN(const uint32_t number, as_u32(key, element));
    list.push_back(number);
  }
  return list;
}

Result<JsonFields> JsonFields::object(const char* key) const {
  const json* value = get(key);
  TIERD_CHECK(value != nullptr);
  return of(*value, origin_, fmt::format("{}{}.", prefix_, key));
}

}  // namespace tierd
