#include "core/formats/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/align.h"
#include "core/base/log.h"
#include "core/formats/gguf_names.h"
#include "core/formats/gguf_stream.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they are");

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 64;
constexpr uint32_t kMaxDimensions = 4;
// The smallest size of an entry, by which a count is checked against the remaining bytes of the file.
constexpr uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

constexpr std::array<uint32_t, 13> kTypeBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};

struct TensorType {
  uint32_t number;
  std::string_view name;
  std::optional<Encoding> encoding;
};
constexpr std::array<TensorType, 34> kTensorTypes = {{
    {0, "F32", Encoding::f32},
    {1, "F16", Encoding::f16},
    {2, "Q4_0", Encoding::q4_0},
    {3, "Q4_1", Encoding::q4_1},
    {6, "Q5_0", Encoding::q5_0},
    {7, "Q5_1", Encoding::q5_1},
    {8, "Q8_0", Encoding::q8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", Encoding::q2_k},
    {11, "Q3_K", Encoding::q3_k},
    {12, "Q4_K", Encoding::q4_k},
    {13, "Q5_K", Encoding::q5_k},
    {14, "Q6_K", Encoding::q6_k},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", Encoding::iq4_nl},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", Encoding::iq4_xs},
    {24, "I8", {}},
    {25, "I16", {}},
    {26, "I32", {}},
    {27, "I64", {}},
    {28, "F64", {}},
    {29, "IQ1_M", {}},
    {30, "BF16", Encoding::bf16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", Encoding::mxfp4},
    {40, "NVFP4", {}},
    {41, "Q1_0", {}},
}};

std::string supported_types() {
  std::vector<std::string_view> names;
  for (const TensorType& type : kTensorTypes) {
    if (type.encoding) names.push_back(type.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<GgufType> to_type(uint32_t number, const GgufStream& stream) {
  if (number >= kTypeBytes.size()) {
    return stream.error(fmt::format("metadata type {}, known are 0 to {}", number, kTypeBytes.size() - 1));
  }
  return static_cast<GgufType>(number);
}

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

// Fills a GgufHeader from front to back.
class GgufParser {
 public:
  GgufParser(const File& file, GgufHeader& header) : file_(file), stream_(file), header_(header) {}

  Status run() {
    header_.path_ = file_.path();
    TIERD_TRY(magic_and_version());
    TIERD_ASSIGN(const uint64_t n_tensors, stream_.number<uint64_t>("the number of tensors"));
    TIERD_ASSIGN(const uint64_t n_values, stream_.number<uint64_t>("the number of metadata entries"));
    TIERD_TRY(plausible("metadata entries", n_values, kMinMetadataBytes));
    for (uint64_t i = 0; i < n_values; ++i) TIERD_TRY(metadata());
    TIERD_TRY(alignment());
    TIERD_TRY(plausible("tensors", n_tensors, kMinTensorBytes));
    for (uint64_t i = 0; i < n_tensors; ++i) TIERD_TRY(tensor());
    return place_tensors();
  }

 private:
  Status magic_and_version() {
    TIERD_ASSIGN(const auto magic, stream_.number<uint32_t>("the magic"));
    if (magic != kGgufMagic) return Error{Code::corrupt, file_.at(0), "not a GGUF file"};
    TIERD_ASSIGN(const auto version, stream_.number<uint32_t>("the version"));
    const auto refuse = [&](Code code, std::string found) {
      return Error{code, file_.at(4), std::move(found) + ", supported are versions 2 and 3, little-endian"};
    };
    if (version == 0) return refuse(Code::corrupt, "GGUF version 0");
    if ((version & 0xffff) == 0) return refuse(Code::unsupported, "a big-endian GGUF file");
    if (version == 1 || version > 3)
      return refuse(Code::unsupported, fmt::format("GGUF version {}", version));
    return {};
  }

  Status plausible(std::string_view what, uint64_t count, uint64_t least_bytes) {
    if (count <= stream_.left() / least_bytes) return {};
    return stream_.error(
        fmt::format("{} {} do not fit in the {} bytes left of the file", count, what, stream_.left()));
  }

  Status metadata() {
    TIERD_ASSIGN(std::string key, stream_.text("a metadata key", kMaxKeyBytes));
    if (key.empty()) return stream_.error("an empty metadata key");
    TIERD_ASSIGN(const auto number, stream_.number<uint32_t>("a metadata type"));
    TIERD_ASSIGN(const GgufType type, to_type(number, stream_));
    TIERD_ASSIGN(GgufValue value, read_value(type, key));
    if (!header_.values_.emplace(key, std::move(value)).second) {
      return header_.error(Code::corrupt, key, "occurs twice");
    }
    return {};
  }

  template <class Stored, class Read>
  Result<GgufValue> scalar(const std::string& key) {
    TIERD_ASSIGN(const Read value, stream_.number<Read>(key));
    return GgufValue(static_cast<Stored>(value));
  }

  Result<GgufValue> read_value(GgufType type, const std::string& key) {
    switch (type) {
      case GgufType::u8:
        return scalar<uint64_t, uint8_t>(key);
      case GgufType::i8:
        return scalar<int64_t, int8_t>(key);
      case GgufType::u16:
        return scalar<uint64_t, uint16_t>(key);
      case GgufType::i16:
        return scalar<int64_t, int16_t>(key);
      case GgufType::u32:
        return scalar<uint64_t, uint32_t>(key);
      case GgufType::i32:
        return scalar<int64_t, int32_t>(key);
      case GgufType::f32:
        return scalar<double, float>(key);
      case GgufType::u64:
        return scalar<uint64_t, uint64_t>(key);
      case GgufType::i64:
        return scalar<int64_t, int64_t>(key);
      case GgufType::f64:
        return scalar<double, double>(key);
      case GgufType::boolean: {
        TIERD_ASSIGN(const auto byte, stream_.number<uint8_t>(key));
        if (byte > 1) return header_.error(Code::corrupt, key, fmt::format("a bool of value {}", byte));
        return GgufValue(byte == 1);
      }
      case GgufType::string: {
        TIERD_ASSIGN(std::string text, stream_.text(key, kMaxGgufTextBytes));
        return GgufValue(std::move(text));
      }
      case GgufType::array:
        return read_array(key);
    }
    return header_.error(Code::corrupt, key, "unknown type");
  }

  Result<GgufValue> read_array(const std::string& key) {
    TIERD_ASSIGN(const auto number, stream_.number<uint32_t>(key));
    TIERD_ASSIGN(const GgufType type, to_type(number, stream_));
    TIERD_ASSIGN(const auto count, stream_.number<uint64_t>(key));
    if (type == GgufType::array) return header_.error(Code::unsupported, key, "an array of arrays");
    const uint64_t element_bytes = kTypeBytes[static_cast<size_t>(type)];
    if (count > stream_.left() / element_bytes) {
      return header_.error(Code::corrupt, key,
                           fmt::format("an array of {} {} does not fit in the {} bytes left of the file",
                                       count, name(type), stream_.left()));
    }
    const GgufArray array{type, count, stream_.offset()};
    if (type != GgufType::string) {
      TIERD_TRY(stream_.skip(count * element_bytes, key));
    } else {
      for (uint64_t i = 0; i < count; ++i) TIERD_TRY(stream_.skip_text(key));
    }
    return GgufValue(array);
  }

  Status alignment() {
    const std::string key = "general.alignment";
    TIERD_ASSIGN(alignment_, header_.u32(key, static_cast<uint32_t>(kDefaultAlignment)));
    if (!std::has_single_bit(alignment_) || alignment_ > kMaxAlignment) {
      return header_.error(
          Code::corrupt, key,
          fmt::format("found {}, expected a power of two up to {}", alignment_, kMaxAlignment));
    }
    return {};
  }

  Error tensor_error(Code code, const std::string& tensor, std::string_view detail) const {
    return {code, fmt::format("{}: tensor \"{}\"", file_.path(), tensor), std::string(detail)};
  }

  Status tensor() {
    GgufTensor tensor;
    TIERD_ASSIGN(tensor.name, stream_.text("a tensor's name", kMaxTensorNameBytes));
    if (!names_.insert(tensor.name).second) return tensor_error(Code::corrupt, tensor.name, "occurs twice");
    TIERD_TRY(dimensions(tensor));
    TIERD_TRY(tensor_type(tensor));
    TIERD_ASSIGN(tensor.offset,
                 stream_.number<uint64_t>(tensor.name));  // in the data; place_tensors adds the data's start
    header_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Status dimensions(GgufTensor& tensor) {
    TIERD_ASSIGN(const auto n, stream_.number<uint32_t>(tensor.name));
    if (n == 0 || n > kMaxDimensions) {
      return tensor_error(Code::corrupt, tensor.name,
                          fmt::format("{} dimensions, expected 1 to {}", n, kMaxDimensions));
    }
    std::array<uint64_t, kMaxDimensions> extents = {1, 1, 1, 1};
    uint64_t values = 1;
    for (uint32_t i = 0; i < n; ++i) {
      TIERD_ASSIGN(extents[i], stream_.number<uint64_t>(tensor.name));
      if (__builtin_mul_overflow(values, extents[i], &values) || values > INT64_MAX / 8) {
        return tensor_error(
            Code::corrupt, tensor.name,
            fmt::format("dimension {} is {}, which makes the tensor larger than any file", i, extents[i]));
      }
    }
    if (values == 0) return {};  // no rows and no columns; a required tensor is refused later
    const bool experts = gguf_experts_part(tensor.name).has_value();
    if ((extents[2] != 1 && !experts) || extents[3] != 1) {
      return tensor_error(Code::unsupported, tensor.name,
                          fmt::format("{} dimensions, supported are 1, 2, and for experts 3", n));
    }
    tensor.cols = extents[0];
    tensor.rows = extents[1] * extents[2];
    tensor.matrices = extents[2];
    return {};
  }

  Status tensor_type(GgufTensor& tensor) {
    TIERD_ASSIGN(const auto number, stream_.number<uint32_t>(tensor.name));
    if (tensor.rows == 0) return {};
    const auto type = std::find_if(kTensorTypes.begin(), kTensorTypes.end(),
                                   [&](const TensorType& t) { return t.number == number; });
    if (type == kTensorTypes.end() || !type->encoding) {
      const std::string found =
          type == kTensorTypes.end() ? fmt::format("number {}", number) : std::string(type->name);
      return tensor_error(Code::unsupported, tensor.name,
                          fmt::format("type {}, supported are {}", found, supported_types()));
    }
    tensor.encoding = *type->encoding;
    if (tensor.cols % block_values(tensor.encoding) != 0) {
      return tensor_error(Code::corrupt, tensor.name,
                          fmt::format("rows of {} values in {}, expected a multiple of its block of {}",
                                      tensor.cols, type->name, block_values(tensor.encoding)));
    }
    return {};
  }

  static uint64_t data_bytes(const GgufTensor& tensor) {
    return encoded_bytes(tensor.encoding, tensor.rows * tensor.cols);
  }

  // Checks the tensors' offsets, which count from the aligned end of the list, and makes them absolute.
  Status place_tensors() {
    const uint64_t data_start = align_up(stream_.offset(), alignment_);
    const uint64_t left_bytes = file_.size_bytes() - std::min(data_start, file_.size_bytes());
    for (GgufTensor& tensor : header_.tensors_) {
      const uint64_t bytes = data_bytes(tensor);
      if (tensor.offset % alignment_ != 0) {
        return tensor_error(Code::corrupt, tensor.name,
                            fmt::format("offset {} is not a multiple of {}", tensor.offset, alignment_));
      }
      if (tensor.offset > left_bytes || bytes > left_bytes - tensor.offset) {
        return tensor_error(
            Code::corrupt, tensor.name,
            fmt::format("{} bytes at offset {} of the data, but the file has {} bytes of data", bytes,
                        tensor.offset, left_bytes));
      }
      tensor.offset += data_start;
    }
    return check_overlaps();
  }

  Status check_overlaps() const {
    std::vector<const GgufTensor*> sorted;
    for (const GgufTensor& tensor : header_.tensors_) sorted.push_back(&tensor);
    std::sort(sorted.begin(), sorted.end(), [&](const GgufTensor* a, const GgufTensor* b) {
      return std::pair(a->offset, data_bytes(*a)) < std::pair(b->offset, data_bytes(*b));
    });
    for (size_t i = 1; i < sorted.size(); ++i) {
      const GgufTensor& before = *sorted[i - 1];
      if (before.offset + data_bytes(before) > sorted[i]->offset) {
        return tensor_error(Code::corrupt, sorted[i]->name,
                            fmt::format("overlaps tensor \"{}\"", before.name));
      }
    }
    return {};
  }

  const File& file_;
  GgufStream stream_;
  GgufHeader& header_;
  uint32_t alignment_ = 0;
  std::unordered_set<std::string> names_;
};

Result<GgufHeader> GgufHeader::read(const File& file) {
  GgufHeader header;
  TIERD_TRY(GgufParser(file, header).run());
  return header;
}

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
    return error(
        Code::corrupt, key,
        fmt::format("found a list of {} values, expected one for each of {} layers", list.size(), layers));
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
