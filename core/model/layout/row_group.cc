#include "core/model/layout/row_group.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/model/layout/block_words.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/for_encoding.h"

namespace tierd {
namespace {

// Offsets in a block of a group: factor after factor, each of 16 rows, then word after word.
constexpr uint32_t factor_in_group(Encoding e, uint32_t row, uint32_t byte) {
  if (factor_bytes(e) == 1) return row;
  return (byte / 2 * kGroupRows + row) * 2 + byte % 2;
}
constexpr uint32_t word_in_group(Encoding e, uint32_t row, uint32_t word) {
  return kGroupRows * factor_bytes(e) + (word * kGroupRows + row) * 4;
}

// Packs one column block of one row. Every size is a constant, so that each copy is a load and a store.
template <Encoding E>
void pack_block(uint32_t row, const std::byte* in, std::byte* out) {
  if constexpr (is_quantized(E)) {
    for (uint32_t i = 0; i < factor_bytes(E); ++i) out[factor_in_group(E, row, i)] = in[factors_at(E) + i];
    for (uint32_t w = 0; w < words_of_block(E); ++w) {
      const uint32_t word = load_word<E>(in, w);
      std::memcpy(out + word_in_group(E, row, w), &word, sizeof word);
    }
  } else {
    std::memcpy(out + row * block_bytes(E), in, block_bytes(E));
  }
}

template <Encoding E>
void unpack_block(uint32_t row, const std::byte* in, std::byte* out) {
  if constexpr (is_quantized(E)) {
    for (uint32_t i = 0; i < factor_bytes(E); ++i) out[factors_at(E) + i] = in[factor_in_group(E, row, i)];
    for (uint32_t w = 0; w < words_of_block(E); ++w) {
      uint32_t word;
      std::memcpy(&word, in + word_in_group(E, row, w), sizeof word);
      store_word<E>(out, w, word);
    }
  } else {
    std::memcpy(out, in + row * block_bytes(E), block_bytes(E));
  }
}

template <Encoding E>
void pack_blocks(uint32_t rows, uint64_t blocks, const std::byte* plain, std::byte* group) {
  constexpr uint32_t kUnit = block_bytes(E);
  const uint64_t row_bytes = blocks * kUnit;
  for (uint64_t b = 0; b < blocks; ++b) {
    for (uint32_t r = 0; r < rows; ++r)
      pack_block<E>(r, plain + r * row_bytes + b * kUnit, group + b * kUnit * kGroupRows);
  }
}

}  // namespace

void pack_row_group(Encoding e, uint32_t rows, uint32_t cols, std::span<const std::byte> plain,
                    std::span<std::byte> group) {
  TIERD_CHECK(rows >= 1 && rows <= kGroupRows && cols % block_values(e) == 0);
  TIERD_CHECK(plain.size() == rows * encoded_bytes(e, cols) && group.size() == group_bytes(e, cols));
  for_encoding(e, [&](auto encoding) {
    if (rows < kGroupRows) std::fill(group.begin(), group.end(), std::byte{0});
    pack_blocks<encoding>(rows, cols / block_values(encoding), plain.data(), group.data());
  });
}

void unpack_row_bytes(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<std::byte> out) {
  TIERD_CHECK(row < kGroupRows && group.size() == kGroupRows * out.size());
  for_encoding(e, [&](auto encoding) {
    for (size_t at = 0; at < out.size(); at += block_bytes(encoding))
      unpack_block<encoding>(row, group.data() + at * kGroupRows, &out[at]);
  });
}

void unpack_row(Encoding e, uint32_t row, std::span<const std::byte> group, std::span<float> out) {
  TIERD_CHECK(row < kGroupRows && group.size() == kGroupRows * encoded_bytes(e, out.size()));
  for_encoding(e, [&](auto encoding) {
    constexpr uint32_t kValues = block_values(encoding), kBytes = block_bytes(encoding);
    std::byte block[kBytes];
    for (size_t i = 0; i < out.size(); i += kValues) {
      unpack_block<encoding>(row, group.data() + i / kValues * kBytes * kGroupRows, block);
      decode(e, block, out.subspan(i, kValues));
    }
  });
}

}  // namespace tierd
