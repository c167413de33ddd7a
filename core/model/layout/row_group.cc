#include "core/model/layout/row_group.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

constexpr uint32_t kChunk = 4;  // bytes of one row in a chunk
constexpr uint32_t kLargestBlock = block_bytes(Encoding::q6_k);

// The scales of a block encoding, in f16: bytes, and offset in the plain order.
struct Scales {
  uint32_t bytes;
  uint32_t at;
};
constexpr Scales scales_of(Encoding e) {
  if (e == Encoding::q4_k || e == Encoding::q5_k) return {4, 0};
  return {2, e == Encoding::q6_k ? block_bytes(e) - 2 : 0};
}
constexpr uint32_t chunks_at(Encoding e) {
  return scales_of(e).at == 0 ? scales_of(e).bytes : 0;
}
constexpr uint32_t chunks_of(Encoding e) {
  return (block_bytes(e) - scales_of(e).bytes) / kChunk;
}
// Offsets in a block of a group: scale after scale, each of 16 rows, then chunk after chunk.
constexpr uint32_t scale_in_group(uint32_t row, uint32_t byte) {
  return (byte / 2 * kGroupRows + row) * 2;
}
constexpr uint32_t chunk_in_group(Encoding e, uint32_t row, uint32_t chunk) {
  return kGroupRows * scales_of(e).bytes + (chunk * kGroupRows + row) * kChunk;
}
// The byte that is xored with a stored byte to give the plain one and back.
constexpr std::byte bias_of(Encoding e) {
  return e == Encoding::q8_0 ? std::byte{0x80} : std::byte{0};
}

// Packs one column block of one row. Every size is a constant, so that each copy is a load and a store.
template <Encoding e>
void pack_block(uint32_t row, const std::byte* in, std::byte* out) {
  if constexpr (is_quantized(e)) {
    for (uint32_t i = 0; i < scales_of(e).bytes; i += 2)
      std::memcpy(out + scale_in_group(row, i), in + scales_of(e).at + i, 2);
    constexpr uint32_t kBias = 0x01010101u * std::to_integer<uint32_t>(bias_of(e));
    for (uint32_t c = 0; c < chunks_of(e); ++c) {
      uint32_t chunk;
      std::memcpy(&chunk, in + chunks_at(e) + c * kChunk, kChunk);
      chunk ^= kBias;
      std::memcpy(out + chunk_in_group(e, row, c), &chunk, kChunk);
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

void unpack_block(Encoding e, uint32_t row, const std::byte* in, std::byte* out) {
  if (!is_quantized(e)) {
    std::memcpy(out, in + row * block_bytes(e), block_bytes(e));
    return;
  }
  for (uint32_t i = 0; i < scales_of(e).bytes; i += 2)
    std::memcpy(out + scales_of(e).at + i, in + scale_in_group(row, i), 2);
  for (uint32_t i = 0; i < chunks_of(e) * kChunk; ++i)
    out[chunks_at(e) + i] = in[chunk_in_group(e, row, i / kChunk) + i % kChunk] ^ bias_of(e);
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
    case Encoding::q4_k:
      return pack_blocks<Encoding::q4_k>(rows, blocks, plain.data(), group.data());
    case Encoding::q5_k:
      return pack_blocks<Encoding::q5_k>(rows, blocks, plain.data(), group.data());
    case Encoding::q6_k:
      return pack_blocks<Encoding::q6_k>(rows, blocks, plain.data(), group.data());
  }
}

void unpack_row_bytes(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<std::byte> out) {
  TIERD_CHECK(row < kGroupRows && group.size() == kGroupRows * out.size());
  const uint32_t unit = block_bytes(e);
  for (size_t at = 0; at < out.size(); at += unit)
    unpack_block(e, row, group.data() + at * kGroupRows, &out[at]);
}

void unpack_row(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<float> out) {
  TIERD_CHECK(row < kGroupRows && group.size() == kGroupRows * encoded_bytes(e, out.size()));
  const uint32_t unit = block_bytes(e);
  const uint32_t values = block_values(e);
  std::byte block[kLargestBlock];
  for (size_t i = 0; i < out.size(); i += values) {
    unpack_block(e, row, group.data() + i / values * unit * kGroupRows, block);
    decode(e, std::span(block, unit), out.subspan(i, values));
  }
}

}  // namespace tierd
