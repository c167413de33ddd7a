// The values of a GGUF file's metadata, each as the type that the caller expects.
#include "core/formats/gguf_header.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/base/log.h"
#include "core/formats/gguf_stream.h"

namespace tierd {
namespace {

constexpr uint64_t kMaxLayers = 1 << 16;  // of a list with a value for each layer

template <class Stored, class Read>
Result<std::vector<Read>> read_elements(const File& file, const GgufArray& where) {
  std::vector<Stored> stored(where.count);
  TIERD_TRY(file.read_exact(where.offset, std::as_writable_bytes(std::span(stored))));
  std::vector<Read> read(where.count);
  std::transform(stored.begin(), stored.end(), read.begin(), [](Stored value) {
    if constexpr (std::is_same_v<Stored, uint64_t>) value = std::min<uint64_t>(value, INT64_MAX);
    return static_cast<Read>(value);
  });
  return read;
}

}  // namespace

const GgufTensor* GgufHeader::find(std::string_view wanted) const {
  const auto it = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const GgufTensor& tensor) { return tensor.name == wanted; });
  return it == tensors_.end() ? nullptr : &*it;
}

bool GgufHeader::has_array_of(const std::string& key, GgufType type) const {
  const GgufValue* value = get(key);
  const auto* found = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  return found != nullptr && found->type == type;
}

std::vector<std::string> GgufHeader::keys(std::string_view prefix) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : values_) {
    if (key.starts_with(prefix)) found.push_back(key);
  }
  std::sort(found.begin(), found.end());
  return found;
}

const GgufValue* GgufHeader::get(const std::string& key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Error GgufHeader::error(Code code, const std::string& key, std::string_view detail) const {
  return {code, fmt::format("{}: key \"{}\"", path_, key), std::string(detail)};
}

void GgufHeader::warn(const std::string& key, std::string_view detail) const {
  say_once(fmt::format("{}: key \"{}\": {}", path_, key, detail));
}

Error GgufHeader::absent(const std::string& key) const {
  return error(Code::corrupt, key, "missing");
}

Result<uint32_t> GgufHeader::u32(const std::string& key, std::optional<uint32_t> fallback) const {
  const GgufValue* value = get(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return absent(key);
  }
  if (const auto* u = std::get_if<uint64_t>(value); u != nullptr && *u <= UINT32_MAX) {
    return static_cast<uint32_t>(*u);
  }
  if (const auto* i = std::get_if<int64_t>(value); i != nullptr && *i >= 0 && *i <= UINT32_MAX) {
    return static_cast<uint32_t>(*i);
  }
  return error(Code::corrupt, key, "expected a whole number from 0 to 4294967295");
}

Result<uint32_t> GgufHeader::u32_of_layers(const File& file, const std::string& key, uint32_t layers,
                                           std::optional<uint32_t> fallback) const {
  const GgufValue* value = get(key);
  if (value == nullptr || !std::holds_alternative<GgufArray>(*value)) return u32(key, fallback);
  TIERD_ASSIGN(const std::vector<int64_t> list, integers(file, key, kMaxLayers));
  if (list.size() != layers) {
    return error(Code::corrupt, key, fmt::format("a list of {}, there are {} layers", list.size(), layers));
  }
  if (list.empty()) return error(Code::corrupt, key, "an empty list, expected a value for each layer");
  const auto other = std::find_if(list.begin(), list.end(), [&](int64_t n) { return n != list.front(); });
  if (other != list.end()) {
    return error(Code::unsupported, key,
                 fmt::format("a list with {} for layer 0 and {} for layer {}, supported is one value for all",
                             list.front(), *other, other - list.begin()));
  }
  if (list.front() < 0 || list.front() > UINT32_MAX) {
    return error(Code::corrupt, key, "expected whole numbers from 0 to 4294967295");
  }
  warn(key, fmt::format("a list of {} equal values, {} is used for all layers", list.size(), list.front()));
  return static_cast<uint32_t>(list.front());
}

Result<int64_t> GgufHeader::integer(const std::string& key) const {
  const GgufValue* value = get(key);
  if (value == nullptr) return absent(key);
  if (const auto* u = std::get_if<uint64_t>(value)) {
    return static_cast<int64_t>(std::min<uint64_t>(*u, INT64_MAX));
  }
  if (const auto* i = std::get_if<int64_t>(value)) return *i;
  return error(Code::corrupt, key, "expected a whole number");
}

Result<float> GgufHeader::f32(const std::string& key, std::optional<float> fallback) const {
  const GgufValue* value = get(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return absent(key);
  }
  const auto* number = std::get_if<double>(value);
  if (number == nullptr || !std::isfinite(static_cast<float>(*number))) {
    return error(Code::corrupt, key, "expected a finite float");
  }
  return static_cast<float>(*number);
}

Result<bool> GgufHeader::flag(const std::string& key, std::optional<bool> fallback) const {
  const GgufValue* value = get(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    return absent(key);
  }
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return error(Code::corrupt, key, "expected a bool");
}

Result<std::string> GgufHeader::text(const std::string& key, std::optional<std::string> fallback) const {
  const GgufValue* value = get(key);
  if (value == nullptr) {
    if (fallback) return *std::move(fallback);
    return absent(key);
  }
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return error(Code::corrupt, key, "expected a string");
}

Result<GgufArray> GgufHeader::array(const std::string& key, GgufType type, uint64_t limit) const {
  const GgufValue* value = get(key);
  if (value == nullptr) return GgufArray{type, 0, 0};
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != type) {
    return error(Code::corrupt, key, fmt::format("expected an array of {}", name(type)));
  }
  if (array->count > limit) {
    return error(Code::corrupt, key, fmt::format("{} elements, expected at most {}", array->count, limit));
  }
  return *array;
}

Result<std::vector<std::string>> GgufHeader::strings(const File& file, const std::string& key,
                                                     uint64_t limit) const {
  TIERD_ASSIGN(const GgufArray where, array(key, GgufType::string, limit));
  GgufStream stream(file, where.offset);
  std::vector<std::string> result;
  result.reserve(where.count);
  for (uint64_t i = 0; i < where.count; ++i) {
    TIERD_ASSIGN(std::string text, stream.text(key, kMaxGgufTextBytes));
    result.push_back(std::move(text));
  }
  return result;
}

Result<std::vector<float>> GgufHeader::floats(const File& file, const std::string& key,
                                              uint64_t limit) const {
  TIERD_ASSIGN(const GgufArray where, array(key, GgufType::f32, limit));
  return read_elements<float, float>(file, where);
}

Result<std::vector<int64_t>> GgufHeader::integers(const File& file, const std::string& key,
                                                  uint64_t limit) const {
  const GgufValue* value = get(key);
  const auto* found = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  TIERD_ASSIGN(const GgufArray where, array(key, found == nullptr ? GgufType::i32 : found->type, limit));
  switch (where.type) {
    case GgufType::u8:
      return read_elements<uint8_t, int64_t>(file, where);
    case GgufType::i8:
      return read_elements<int8_t, int64_t>(file, where);
    case GgufType::u16:
      return read_elements<uint16_t, int64_t>(file, where);
    case GgufType::i16:
      return read_elements<int16_t, int64_t>(file, where);
    case GgufType::u32:
      return read_elements<uint32_t, int64_t>(file, where);
    case GgufType::i32:
      return read_elements<int32_t, int64_t>(file, where);
    case GgufType::u64:
      return read_elements<uint64_t, int64_t>(file, where);
    case GgufType::i64:
      return read_elements<int64_t, int64_t>(file, where);
    default:
      return error(Code::corrupt, key,
                   fmt::format("expected an array of whole numbers, found {}", name(where.type)));
  }
}

}  // namespace tierd
