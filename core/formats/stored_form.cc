#include "core/formats/stored_form.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

constexpr uint64_t kReadAtOnce = 1 << 20;
// Shorter runs are read together with what is between them.
constexpr uint64_t kShortRun = 4096;

constexpr uint64_t kMxfp4Values = 32;
constexpr uint64_t kMxfp4Codes = kMxfp4Values / 2;  // bytes
constexpr uint64_t kMxfp4Block = kMxfp4Codes + 1;

// Writes a block from its scale and its codes in their order.
void put_block(std::byte scale, const std::byte* codes, std::byte* out) {
  const auto code = [&](uint64_t value) {
    return value % 2 == 0 ? codes[value / 2] & std::byte{0x0F} : codes[value / 2] >> 4;
  };
  out[0] = scale;
  for (uint64_t i = 0; i < kMxfp4Codes; ++i) out[1 + i] = code(i) | (code(i + kMxfp4Codes) << 4);
}

bool has_range(std::span<const File> files, uint32_t file, uint64_t offset, uint64_t bytes) {
  const uint64_t size = files[file].size_bytes();
  return offset <= size && bytes <= size - offset;
}

}  // namespace

Status Runs::read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
                  std::span<std::byte> out) const {
  const File& file = files[tensor.file];
  if (bytes_ < kShortRun && stride_ < kReadAtOnce) return gather(file, tensor, offset, out);
  while (!out.empty()) {
    const uint64_t inside = offset % bytes_;
    const uint64_t bytes = std::min<uint64_t>(bytes_ - inside, out.size());
    TIERD_TRY(file.read_exact(tensor.offset + offset / bytes_ * stride_ + inside, out.first(bytes)));
    out = out.subspan(bytes);
    offset += bytes;
  }
  return {};
}

Status Runs::gather(const File& file, const TensorInfo& tensor, uint64_t offset,
                    std::span<std::byte> out) const {
  std::vector<std::byte> read;
  while (!out.empty()) {
    const uint64_t run = offset / bytes_;
    const uint64_t wanted = (offset + out.size() - 1) / bytes_ + 1 - run;
    const uint64_t runs = std::min(wanted, kReadAtOnce / stride_);
    read.resize((runs - 1) * stride_ + bytes_);
    TIERD_TRY(file.read_exact(tensor.offset + run * stride_, read));
    for (uint64_t i = 0; i < runs; ++i) {
      const uint64_t inside = offset % bytes_;
      const uint64_t bytes = std::min<uint64_t>(bytes_ - inside, out.size());
      std::memcpy(out.data(), read.data() + i * stride_ + inside, bytes);
      out = out.subspan(bytes);
      offset += bytes;
    }
  }
  return {};
}

bool Runs::fits(std::span<const File> files, const TensorInfo& tensor) const {
  return has_range(files, tensor.file, tensor.offset, (tensor.bytes() / bytes_ - 1) * stride_ + bytes_);
}

Status WithSum::read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
                     std::span<std::byte> out) const {
  std::vector<std::byte> stored(encoded_bytes(encoding_, tensor.cols));
  TIERD_TRY(files[tensor.file].read_exact(tensor.offset, stored));
  std::vector<float> values(tensor.cols);
  decode(encoding_, stored, values);
  for (float& value : values) value += added_;
  std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + offset, out.size());
  return {};
}

bool WithSum::fits(std::span<const File> files, const TensorInfo& tensor) const {
  return has_range(files, tensor.file, tensor.offset, encoded_bytes(encoding_, tensor.cols));
}

Status ApartMxfp4::read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
                        std::span<std::byte> out) const {
  const uint64_t blocks = tensor.cols / kMxfp4Values;  // of a row
  const uint64_t row_bytes = blocks * kMxfp4Block;
  std::vector<std::byte> codes(blocks * kMxfp4Codes), scales(blocks), row(row_bytes);
  while (!out.empty()) {
    const uint64_t in_file = first_ + offset / row_bytes * step_;
    TIERD_TRY(files[tensor.file].read_exact(tensor.offset + in_file * codes.size(), codes));
    TIERD_TRY(files[scales_.file].read_exact(scales_.offset + in_file * blocks, scales));
    for (uint64_t b = 0; b < blocks; ++b)
      put_block(scales[b], &codes[b * kMxfp4Codes], &row[b * kMxfp4Block]);
    const uint64_t inside = offset % row_bytes;
    const uint64_t bytes = std::min<uint64_t>(row_bytes - inside, out.size());
    std::memcpy(out.data(), row.data() + inside, bytes);
    out = out.subspan(bytes);
    offset += bytes;
  }
  return {};
}

bool ApartMxfp4::fits(std::span<const File> files, const TensorInfo& tensor) const {
  const uint64_t rows = first_ + (tensor.rows - 1) * step_ + 1;
  return has_range(files, tensor.file, tensor.offset, rows * tensor.cols / 2) &&
         has_range(files, scales_.file, scales_.offset, rows * tensor.cols / kMxfp4Values);
}

// Reads all columns for any part, since each has values of every row.
Status Transposed::read(std::span<const File> files, const TensorInfo& tensor, uint64_t offset,
                        std::span<std::byte> out) const {
  const uint64_t size = encoded_bytes(tensor.encoding, 1);
  TIERD_CHECK(offset % size == 0 && out.size() % size == 0);
  if (out.empty()) return {};
  const uint64_t begin = offset / size, end = begin + out.size() / size;
  const uint64_t pitch_bytes = pitch_ * size;
  const uint64_t at_once = std::max<uint64_t>(1, kReadAtOnce / pitch_bytes);
  std::vector<std::byte> columns(at_once * pitch_bytes);
  const uint64_t first_row = begin / tensor.cols, last_row = (end - 1) / tensor.cols;
  for (uint64_t c0 = 0; c0 < tensor.cols; c0 += at_once) {
    const uint64_t count = std::min(at_once, tensor.cols - c0);
    TIERD_TRY(files[tensor.file].read_exact(tensor.offset + c0 * pitch_bytes,
                                            std::span(columns).first(count * pitch_bytes)));
    for (uint64_t row = first_row; row <= last_row; ++row) {
      for (uint64_t c = 0; c < count; ++c) {
        const uint64_t value = row * tensor.cols + c0 + c;
        if (value < begin || value >= end) continue;
        std::memcpy(&out[(value - begin) * size], &columns[c * pitch_bytes + (first_ + row * step_) * size],
                    size);
      }
    }
  }
  return {};
}

bool Transposed::fits(std::span<const File> files, const TensorInfo& tensor) const {
  return has_range(files, tensor.file, tensor.offset,
                   tensor.cols * pitch_ * encoded_bytes(tensor.encoding, 1));
}

}  // namespace tierd
