#include "core/layout/row_group.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/layout/codec.h"

namespace tierd {
namespace {

constexpr uint32_t kChunk = 4;  // bytes of one row in a chunk
constexpr uint32_t kScaleBytes = 2;
constexpr uint32_t kGroupScaleBytes = kGroupRows * kScaleBytes;

uint32_t chunks_of(Encoding e) {
  return (block_bytes(e) - kScaleBytes) / kChunk;
}
// What turns a stored byte of a block encoding into the plain one and back.
std::byte bias_of(Encoding e) {
  return e == Encoding::q8_0 ? std::byte{0x80} : std::byte{0};
}

}  // namespace

void pack_row_group(Encoding e, uint32_t rows, uint32_t cols, std::span<const std::byte> plain,
                    std::span<std::byte> group) {
  const uint64_t row_bytes = encoded_bytes(e, cols);
  TIERD_CHECK(rows >= 1 && rows <= kGroupRows && cols % block_values(e) == 0);
  TIERD_CHECK(plain.size() == rows * row_bytes && group.size() == group_bytes(e, cols));
  std::fill(group.begin(), group.end(), std::byte{0});
  const uint32_t unit = block_bytes(e);
  const uint64_t blocks = cols / block_values(e);
  for (uint32_t r = 0; r < rows; ++r) {
    const std::byte* in = plain.data() + r * row_bytes;
    for (uint64_t b = 0; b < blocks; ++b, in += unit) {
      std::byte* out = group.data() + b * unit * kGroupRows;
      if (!is_quantized(e)) {
        std::memcpy(out + r * unit, in, unit);
        continue;
      }
      std::memcpy(out + r * kScaleBytes, in, kScaleBytes);
      for (uint32_t c = 0; c < chunks_of(e); ++c) {
        std::byte* to = out + kGroupScaleBytes + (c * kGroupRows + r) * kChunk;
        for (uint32_t k = 0; k < kChunk; ++k) to[k] = in[kScaleBytes + c * kChunk + k] ^ bias_of(e);
      }
    }
  }
}

void unpack_row(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<float> out) {
  TIERD_CHECK(row < kGroupRows && group.size() == kGroupRows * encoded_bytes(e, out.size()));
  const uint32_t unit = block_bytes(e);
  const uint32_t values = block_values(e);
  std::byte block[64];
  for (size_t i = 0; i < out.size(); i += values) {
    const std::byte* in = group.data() + i / values * unit * kGroupRows;
    if (!is_quantized(e)) {
      std::memcpy(block, in + row * unit, unit);
    } else {
      std::memcpy(block, in + row * kScaleBytes, kScaleBytes);
      for (uint32_t c = 0; c < chunks_of(e); ++c) {
        const std::byte* from = in + kGroupScaleBytes + (c * kGroupRows + row) * kChunk;
        for (uint32_t k = 0; k < kChunk; ++k) block[kScaleBytes + c * kChunk + k] = from[k] ^ bias_of(e);
      }
    }
    decode(e, std::span(block, unit), out.subspan(i, values));
  }
}

}  // namespace tierd
