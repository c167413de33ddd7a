#include "core/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_fields.h"

namespace tierd {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they are");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the cap of the format's own library
constexpr const char* kMetadataKey = "__metadata__";

constexpr std::array<std::pair<std::string_view, uint32_t>, 16> kDtypeBytes = {{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"F8_E8M0", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"F64", 8},
    {"I64", 8},
    {"U64", 8},
}};

Result<std::vector<uint64_t>> unsigned_list(const JsonFields& fields, const char* key) {
  std::vector<uint64_t> list;
  TIERD_TRY(fields.read_each(key, [&](const json& value, size_t index) -> Status {
    TIERD_ASSIGN(list.emplace_back(), fields.as_whole(fmt::format("{}[{}]", key, index), value, UINT64_MAX));
    return {};
  }));
  return list;
}

// `data_bytes`: the bytes of the file from `data_start` on, the position of offset 0 of the header's numbers.
Result<SafetensorsTensor> read_tensor(const std::string& name, const JsonFields& fields, uint64_t data_bytes,
                                      uint64_t data_start) {
  TIERD_ASSIGN(std::string dtype, fields.text("dtype"));
  SafetensorsTensor tensor{name, std::move(dtype), {}, 0, 0};
  const auto element_bytes = bytes_of_dtype(tensor.dtype);
  if (!element_bytes)
    return fields.error(Code::unsupported, "dtype", fmt::format("\"{}\" is not known", tensor.dtype));

  TIERD_ASSIGN(tensor.shape, unsigned_list(fields, "shape"));
  uint64_t bytes = *element_bytes;
  for (const uint64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return fields.error("shape", "is larger than any file");
  }

  TIERD_ASSIGN(const auto offsets, unsigned_list(fields, "data_offsets"));
  if (offsets.size() != 2) return fields.error("data_offsets", "is not a pair");
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    return fields.error("data_offsets", fmt::format("[{}, {}] lie outside the file's {} bytes of data",
                                                    offsets[0], offsets[1], data_bytes));
  }
  if (offsets[1] - offsets[0] != bytes) {
    return fields.error("data_offsets", fmt::format("span {} bytes, shape and dtype need {}",
                                                    offsets[1] - offsets[0], bytes));
  }
  tensor.offset = data_start + offsets[0];
  tensor.bytes = bytes;
  return tensor;
}

Status check_contiguous(const File& file, const std::vector<SafetensorsTensor>& tensors,
                        uint64_t data_start) {
  uint64_t end = data_start;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.offset != end) {
      return Error{Code::corrupt, file.at(tensor.offset),
                   fmt::format("tensor \"{}\" {} at {}", tensor.name,
                               tensor.offset < end ? "overlaps the one that ends"
                                                   : "leaves a hole after the one that ends",
                               end)};
    }
    end += tensor.bytes;
  }
  if (end != file.size_bytes()) {
    return Error{Code::corrupt, file.path(),
                 fmt::format("{} bytes, the tensors end at {}", file.size_bytes(), end)};
  }
  return {};
}

}  // namespace

std::optional<uint32_t> bytes_of_dtype(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypeBytes) {
    if (name == dtype) return bytes;
  }
  return std::nullopt;
}

std::optional<Encoding> encoding_of_dtype(std::string_view dtype) {
  if (dtype == "F32") return Encoding::f32;
  if (dtype == "F16") return Encoding::f16;
  if (dtype == "BF16") return Encoding::bf16;
  return std::nullopt;
}

namespace {

Result<json> read_header(const File& file, uint64_t& header_bytes) {
  if (file.size_bytes() < kLengthBytes) {
    return Error{Code::corrupt, file.path(),
                 fmt::format("{} bytes, too short for a header", file.size_bytes())};
  }
  TIERD_TRY(file.read_exact(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size_bytes() - kLengthBytes) {
    return Error{Code::corrupt, file.at(0),
                 fmt::format("the header's length is {}, expected at most {}", header_bytes,
                             std::min(kMaxHeaderBytes, file.size_bytes() - kLengthBytes))};
  }
  std::string text(header_bytes, '\0');
  TIERD_TRY(file.read_exact(kLengthBytes, std::as_writable_bytes(std::span(text))));
  TIERD_ASSIGN(json header, parse_json(text, file.path()));
  TIERD_TRY(JsonFields::of(header, file.at(kLengthBytes)));
  return header;
}

}  // namespace

Result<SafetensorsMetadata> read_safetensors_metadata(const File& file) {
  uint64_t header_bytes = 0;
  TIERD_ASSIGN(const json header, read_header(file, header_bytes));
  SafetensorsMetadata metadata;
  if (!header.contains(kMetadataKey) || !header[kMetadataKey].is_object()) return metadata;
  for (const auto& [key, value] : header[kMetadataKey].items()) {
    if (value.is_string()) metadata[key] = value.get<std::string>();
  }
  return metadata;
}

Result<std::vector<SafetensorsTensor>> read_safetensors_header(const File& file) {
  uint64_t header_bytes = 0;
  TIERD_ASSIGN(const json header, read_header(file, header_bytes));
  const uint64_t data_start = kLengthBytes + header_bytes;
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) continue;
    TIERD_ASSIGN(const JsonFields fields,
                 JsonFields::of(value, fmt::format("{}: tensor \"{}\"", file.path(), name)));
    TIERD_ASSIGN(SafetensorsTensor tensor,
                 read_tensor(name, fields, file.size_bytes() - data_start, data_start));
    tensors.push_back(std::move(tensor));
  }
  // Empty tensors come first among those of equal offset, or they would seem to overlap.
  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  TIERD_TRY(check_contiguous(file, tensors, data_start));
  return tensors;
}

}  // namespace tierd
