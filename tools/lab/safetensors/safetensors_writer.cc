#include "tools/lab/safetensors/safetensors_writer.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/formats/safetensors.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and written as they are");

constexpr uint64_t kHeaderAlignment = 8;  // so that the first tensor is aligned when the file is mapped
constexpr const char* kReservedName = "__metadata__";

std::string partial_path(const std::string& path) {
  return path + ".partial";
}

// Returns the header behind its length. `ends`: the end of each tensor, counted from the header's end.
Result<std::string> header_of(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                              const SafetensorsMetadata& metadata, std::vector<uint64_t>& ends) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[kReservedName] = metadata;
  uint64_t data_bytes = 0;
  for (const SafetensorsEntry& entry : entries) {
    const auto error = [&](std::string detail) {
      return Error{Code::invalid_argument, fmt::format("{}: tensor \"{}\"", path, entry.name),
                   std::move(detail)};
    };
    if (entry.name == kReservedName || header.contains(entry.name)) return error("the name is taken");
    const auto value_bytes = bytes_of_dtype(entry.dtype);
    if (!value_bytes) return error(fmt::format("dtype \"{}\" is unknown", entry.dtype));
    uint64_t end = *value_bytes;
    bool overflows = false;
    for (const uint64_t extent : entry.shape) overflows |= __builtin_mul_overflow(end, extent, &end);
    overflows |= __builtin_add_overflow(end, data_bytes, &end);
    if (overflows || end > INT64_MAX) return error("shape is larger than any file");
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {data_bytes, end}}};
    data_bytes = end;
    ends.push_back(end);
  }
  try {
    std::string text = header.dump();
    text.resize(align_up(text.size(), kHeaderAlignment), ' ');
    const uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
  } catch (const nlohmann::json::exception& exception) {
    return Error{Code::invalid_argument, path,
                 fmt::format("a tensor's name is not UTF-8: {}", exception.what())};
  }
}

}  // namespace

std::optional<std::string> dtype_of_encoding(Encoding encoding) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    if (encoding_of_dtype(dtype) == encoding) return dtype;
  }
  return std::nullopt;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<SafetensorsEntry>& entries,
                                                    const SafetensorsMetadata& metadata) {
  std::vector<uint64_t> ends;
  TIERD_ASSIGN(const std::string header, header_of(path, entries, metadata, ends));
  Disk disk;
  TIERD_ASSIGN(OpenFile file, disk.open(partial_path(path), true));
  SafetensorsWriter writer(path, std::move(file));
  writer.offsets_ = {header.size()};
  for (const uint64_t end : ends) writer.offsets_.push_back(header.size() + end);
  TIERD_TRY(disk.reserve(writer.file_, writer.offsets_.back()));
  TIERD_TRY(writer.append(std::as_bytes(std::span(header))));
  return writer;
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  TIERD_CHECK_MSG(bytes.size() <= offsets_.back() - at_, path_);
  TIERD_TRY(disk_.write(file_, at_, bytes));
  at_ += bytes.size();
  written_ += bytes.size();
  return {};
}

Status SafetensorsWriter::write(size_t entry, uint64_t offset, std::span<const std::byte> bytes) {
  const uint64_t begin = offsets_[entry] + offset;
  TIERD_CHECK_MSG(begin <= offsets_[entry + 1] && bytes.size() <= offsets_[entry + 1] - begin, path_);
  TIERD_TRY(disk_.write(file_, begin, bytes));
  written_ += bytes.size();
  return {};
}

Status SafetensorsWriter::finish() {
  TIERD_CHECK_MSG(written_ == offsets_.back(), path_);
  TIERD_TRY(disk_.sync(file_));
  TIERD_TRY(disk_.rename(partial_path(path_), path_));
  TIERD_ASSIGN(const OpenFile folder, open_directory(parent_directory(path_)));
  return disk_.sync(folder);
}

}  // namespace tierd
