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

constexpr uint32_t chunks_of(Encoding e) {
  return (block_bytes(e) - kScaleBytes) / kChunk;
}
// What turns a stored byte of a block encoding into the plain one and back.
constexpr std::byte bias_of(Encoding e) {
  return e == Encoding::q8_0 ? std::byte{0x80} : std::byte{0};
}

// One column block of one row. Every size is a constant, so that each copy is a load and a store.
template <Encoding e>
void pack_block(uint32_t row, const std::byte* in, std::byte* out) {
  if constexpr (is_quantized(e)) {
    std::memcpy(out + row * kScaleBytes, in, kScaleBytes);
    constexpr uint32_t kBias = 0x01010101u * std::to_integer<uint32_t>(bias_of(e));
    for (uint32_t c = 0; c < chunks_of(e); ++c) {
      uint32_t chunk;
      std::memcpy(&chunk, in + kScaleBytes + c * kChunk, kChunk);
      chunk ^= kBias;
      std::memcpy(out + kGroupScaleBytes + (c * kGroupRows + row) * kChunk, &chunk, kChunk);
    }
  } else {
    std::memcpy(out + row * block_bytes(e), in, block_bytes(e));
  }
}

template <Encoding e>
void pack_blocks(uint32_t rows, uint64_t blocks, const std::byte* plain, std::byte* group) {
  constexpr uint32_t kUnit = block_bytes(e);
  const uint64_t row_bytes = blocks * kUnit;
  for (uint64_t b = 0; b < blocks; ++b) {
    for (uint32_t r = 0; r < rows; ++r) {
      pack_block<e>(r, plain + r * row_bytes + b * kUnit, group + b * kUnit * kGroupRows);
    }
  }
}

}  // namespace

void pack_row_group(Encoding e, uint32_t rows, uint32_t cols, std::span<const std::byte> plain,
                    std::span<std::byte> group) {
  TIERD_CHECK(rows >= 1 && rows <= kGroupRows && cols % block_values(e) == 0);
  TIERD_CHECK(plain.size() == rows * encoded_bytes(e, cols) && group.size() == group_bytes(e, cols));
  if (rows < kGroupRows) std::fill(group.begin(), group.end(), std::byte{0});
  const uint64_t blocks = cols / block_values(e);
  switch (e) {
    case Encoding::f32:
      return pack_blocks<Encoding::f32>(rows, blocks, plain.data(), group.data());
    case Encoding::f16:
    case Encoding::bf16:
      return pack_blocks<Encoding::f16>(rows, blocks, plain.data(), group.data());
    case Encoding::q8_0:
      return pack_blocks<Encoding::q8_0>(rows, blocks, plain.data(), group.data());
    case Encoding::q4_0:
      return pack_blocks<Encoding::q4_0>(rows, blocks, plain.data(), group.data());
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
