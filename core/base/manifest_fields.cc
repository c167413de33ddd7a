#include "core/base/manifest_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace tierd {
namespace {

using nlohmann::json;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u;
}

// Returns the bytes of the UTF-8 sequence at text[i]; 0 if it is none (overlong, surrogate, truncated).
size_t utf8_length(std::string_view text, size_t i) {
  const auto lead = static_cast<unsigned char>(text[i]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if (!is_continuation(text[i + k])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[i + 1]);
  const bool bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                   (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string shown(const json& value) {
  if (value.is_object() || value.is_array()) return value.type_name();
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr size_t kLongest = 40;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  return text;
}

}  // namespace

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

std::string ManifestFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

Error ManifestFields::error(std::string_view key, std::string_view detail) const {
  return {Code::corrupt, std::string(file_), fmt::format("{}: {}", path_of(key), detail)};
}

Error ManifestFields::wrong_type(std::string_view key, const json& found, std::string_view expected) const {
  return error(key, fmt::format("is {}, expected {}", shown(found), expected));
}

Result<const json*> ManifestFields::member(std::string_view key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) return error(key, "is missing");
  return &*found;
}

Result<ManifestFields> ManifestFields::object(std::string_view key) const {
  TIERD_ASSIGN(const json* value, member(key));
  if (!value->is_object()) return wrong_type(key, *value, "an object");
  return ManifestFields(*value, file_, path_of(key));
}

Result<ManifestFields> ManifestFields::element(std::string_view key, size_t index, const json& value) const {
  const std::string name = fmt::format("{}[{}]", key, index);
  if (!value.is_object()) return wrong_type(name, value, "an object");
  return ManifestFields(value, file_, path_of(name));
}

Result<uint64_t> ManifestFields::whole_number(std::string_view key, uint64_t most) const {
  TIERD_ASSIGN(const json* value, member(key));
  if (!value->is_number_unsigned() || value->get<uint64_t>() > most) {
    return wrong_type(key, *value, fmt::format("a whole number from 0 to {}", most));
  }
  return value->get<uint64_t>();
}

Status ManifestFields::read(std::string_view key, bool& out) const {
  TIERD_ASSIGN(const json* value, member(key));
  if (!value->is_boolean()) return wrong_type(key, *value, "true or false");
  out = value->get<bool>();
  return {};
}

Status ManifestFields::read(std::string_view key, uint32_t& out) const {
  TIERD_ASSIGN(const uint64_t value, whole_number(key, std::numeric_limits<uint32_t>::max()));
  out = static_cast<uint32_t>(value);
  return {};
}

Status ManifestFields::read(std::string_view key, uint64_t& out) const {
  TIERD_ASSIGN(out, whole_number(key, std::numeric_limits<uint64_t>::max()));
  return {};
}

Status ManifestFields::read(std::string_view key, float& out) const {
  TIERD_ASSIGN(const json* value, member(key));
  const double number = value->is_number() ? value->get<double>() : std::numeric_limits<double>::infinity();
  if (!(std::fabs(number) <= std::numeric_limits<float>::max())) {
    return wrong_type(key, *value, "a finite number");
  }
  out = static_cast<float>(number);
  return {};
}

Status ManifestFields::read(std::string_view key, std::string& out) const {
  TIERD_ASSIGN(const json* value, member(key));
  return string_from_json(*value, out) ? Status() : wrong_type(key, *value, "a string");
}

}  // namespace tierd
