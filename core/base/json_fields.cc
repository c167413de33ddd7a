#include "core/base/json_fields.h"

#include <charconv>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/utf8.h"

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

// Returns a value for messages. A list or an object of any size is named by its type.
std::string excerpt(const json& value) {
  constexpr size_t kShown = 48;
  if (value.is_structured() && !value.empty()) return value.type_name();
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return text;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = utf8_character_bytes(text, i);
    if (bytes == 0) return false;
    i += bytes;
  }
  return true;
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

Result<json> read_json_file(const std::string& path, uint64_t most_bytes, uint64_t most_values) {
  TIERD_ASSIGN(const std::string text, read_whole_file(path, most_bytes));
  TIERD_ASSIGN(json root, parse_json(text, path, most_values));
  TIERD_TRY(JsonFields::of(root, path));
  return root;
}

nlohmann::ordered_json string_to_json(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return {{"hex", hex}};
}

bool string_from_json(const json& value, std::string& out) {
  if (value.is_string()) {
    out = value.get<std::string>();
    return true;
  }
  const auto found = value.is_object() ? value.find("hex") : value.end();
  if (!value.is_object() || found == value.end() || !found->is_string()) return false;
  const std::string& hex = found->get_ref<const std::string&>();
  out.clear();
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    uint8_t byte = 0;
    const char* begin = hex.data() + i;
    const auto [end, status] = std::from_chars(begin, begin + 2, byte, 16);
    if (status != std::errc() || end != begin + 2) return false;
    out += static_cast<char>(byte);
  }
  return hex.size() % 2 == 0;
}

Result<JsonFields> JsonFields::of(const json& object, std::string origin, std::string path) {
  if (!object.is_object()) {
    return Error{
        Code::corrupt, std::move(origin),
        fmt::format("{}{}found {}, expected an object", path, path.empty() ? "" : ": ", excerpt(object))};
  }
  return JsonFields(object, std::move(origin), std::move(path));
}

const json* JsonFields::get(std::string_view key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

std::string JsonFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Error JsonFields::error(Code code, std::string_view key, std::string_view detail) const {
  return {code, origin_, fmt::format("{}: {}", path_of(key), detail)};
}

Error JsonFields::wrong(std::string_view key, const json& found, std::string_view expected) const {
  return error(key, fmt::format("found {}, expected {}", excerpt(found), expected));
}

void JsonFields::warn(std::string_view key, std::string_view detail) const {
  say_once(fmt::format("{}: {}: {}", origin_, path_of(key), detail));
}

Result<const json*> JsonFields::member(std::string_view key) const {
  const auto found = object_->find(key);
  if (found == object_->end()) return absent(key);
  return &*found;
}

Result<JsonFields> JsonFields::object(std::string_view key) const {
  TIERD_ASSIGN(const json* value, member(key));
  return of(*value, origin_, path_of(key));
}

Result<JsonFields> JsonFields::element(std::string_view key, size_t index, const json& value) const {
  return of(value, origin_, fmt::format("{}[{}]", path_of(key), index));
}

Result<uint64_t> JsonFields::as_whole(std::string_view key, const json& value, uint64_t most) const {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > most)
    return wrong(key, value, fmt::format("a whole number from 0 to {}", most));
  return value.get<uint64_t>();
}

Result<float> JsonFields::as_float(std::string_view key, const json& value) const {
  if (!value.is_number() || !std::isfinite(value.get<float>()))
    return wrong(key, value, "a number that fits a float");
  return value.get<float>();
}

Result<uint64_t> JsonFields::whole(std::string_view key, uint64_t most) const {
  const json* value = get(key);
  if (value == nullptr) return absent(key);
  return as_whole(key, *value, most);
}

Result<uint32_t> JsonFields::u32(std::string_view key, std::optional<uint32_t> fallback) const {
  if (fallback && !has(key)) return *fallback;
  TIERD_ASSIGN(const uint64_t value, whole(key, UINT32_MAX));
  return static_cast<uint32_t>(value);
}

Result<float> JsonFields::f32(std::string_view key, std::optional<float> fallback) const {
  const json* value = get(key);
  if (value != nullptr) return as_float(key, *value);
  if (fallback) return *fallback;
  return absent(key);
}

Result<bool> JsonFields::flag(std::string_view key, std::optional<bool> fallback) const {
  const json* value = get(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return absent(key);
  }
  if (!value->is_boolean()) return wrong(key, *value, "true or false");
  return value->get<bool>();
}

Result<std::string> JsonFields::text(std::string_view key, std::optional<std::string> fallback) const {
  const json* value = get(key);
  if (value == nullptr) {
    if (fallback) return *std::move(fallback);
    return absent(key);
  }
  if (!value->is_string()) return wrong(key, *value, "a string");
  return value->get<std::string>();
}

Status JsonFields::read(std::string_view key, std::string& out) const {
  TIERD_ASSIGN(const json* value, member(key));
  return string_from_json(*value, out) ? Status() : wrong(key, *value, "a string");
}

namespace {

// Calls add(value) for one value or for each of a list; `value` may be NULL.
Status each_of(const json* value, auto&& add) {
  if (value == nullptr) return {};
  if (!value->is_array()) return add(*value);
  for (const json& element : *value) TIERD_TRY(add(element));
  return {};
}

}  // namespace

Result<std::vector<uint32_t>> JsonFields::u32_list(std::string_view key) const {
  std::vector<uint32_t> list;
  TIERD_TRY(each_of(get(key), [&](const json& element) -> Status {
    TIERD_ASSIGN(const uint64_t number, as_whole(key, element, UINT32_MAX));
    list.push_back(static_cast<uint32_t>(number));
    return {};
  }));
  return list;
}

Result<std::vector<int64_t>> JsonFields::integers(std::string_view key) const {
  std::vector<int64_t> list;
  TIERD_TRY(each_of(get(key), [&](const json& element) -> Status {
    const bool fits = element.is_number_integer() &&
                      (!element.is_number_unsigned() || element.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (!fits) return wrong(key, element, "a whole number");
    list.push_back(element.get<int64_t>());
    return {};
  }));
  return list;
}

}  // namespace tierd
