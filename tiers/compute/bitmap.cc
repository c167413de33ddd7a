#include "tiers/compute/bitmap.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"
#include "core/model/layout/row_group.h"
#include "tiers/compute/kernels.h"

namespace tierd {
namespace {

// Dense bytes that are expanded at a time and then read by a kernel: less than an L2 cache holds.
constexpr uint64_t kDenseBytes = 256 << 10;

// Calls multiply(first group, groups, their dense bytes) for all groups, some at a time.
template <class Multiply>
const std::byte* by_expanded_groups(const ComputeKernels& kernels, const BitmapRows& rows,
                                    ExpandedLines& dense, const Multiply& multiply) {
  const auto bitmap = Bitmap::of(rows.encoding, true);
  TIERD_CHECK(bitmap.has_value());
  const uint64_t bytes = group_bytes(rows.encoding, rows.cols);
  const auto most = static_cast<uint32_t>(std::max<uint64_t>(1, kDenseBytes / bytes));
  std::byte* const out = room_for(dense, std::min(most, rows.groups) * bytes);
  BitmapValues values = rows.values;
  for (uint32_t first = 0; first < rows.groups; first += most) {
    const uint32_t groups = std::min(most, rows.groups - first);
    values.at = kernels.expand_bitmap(*bitmap, rows.bits + bitmap->bits_bytes(first * bytes), values,
                                      groups * bytes / bitmap->element_bytes, out);
    if (values.at == nullptr) return nullptr;
    multiply(first, groups, out);
  }
  return values.at;
}

}  // namespace

uint64_t count_bits(const std::byte* bits, uint64_t bytes) {
  uint64_t count = 0;
  uint64_t i = 0;
  for (; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bits + i, sizeof word);
    count += static_cast<uint64_t>(std::popcount(word));
  }
  for (; i < bytes; ++i) count += static_cast<uint64_t>(std::popcount(std::to_integer<uint8_t>(bits[i])));
  return count;
}

bool expand_neuron(ExpandBitmap expand, const Bitmap& bitmap, std::span<const std::byte> compressed,
                   std::span<std::byte> dense) {
  const uint64_t bits = bitmap.bits_bytes(dense.size());
  if (bits > compressed.size()) return false;
  const std::byte* const end = compressed.data() + compressed.size();
  return expand(bitmap, compressed.data(), {compressed.data() + bits, end},
                dense.size() / bitmap.element_bytes, dense.data()) == end;
}

const std::byte* expand_bitmap_plainly(const Bitmap& bitmap, const std::byte* bits, BitmapValues values,
                                       uint64_t elements, std::byte* out) {
  const uint32_t bytes = bitmap.element_bytes;
  for (uint64_t i = 0; i < elements; ++i, out += bytes) {
    if ((bits[i / 8] >> (i % 8) & std::byte{1}) == std::byte{0}) {
      std::memset(out, std::to_integer<int>(bitmap.zero), bytes);
      continue;
    }
    if (values.end - values.at < static_cast<std::ptrdiff_t>(bytes)) return nullptr;
    std::memcpy(out, values.at, bytes);
    values.at += bytes;
  }
  return values.at;
}

const std::byte* multiply_bitmap(const ComputeKernels& kernels, const BitmapRows& rows, const float* x,
                                 size_t ldx, uint32_t tokens, float* y, size_t ldy, ExpandedLines& dense) {
  if (tokens <= kFewTokens) {
    return kernels.gemv_bitmap(rows.encoding, rows.bits, rows.values, rows.groups, rows.cols, x, ldx, tokens,
                               y, ldy);
  }
  return by_expanded_groups(kernels, rows, dense,
                            [&](uint32_t first, uint32_t groups, const std::byte* weights) {
                              kernels.matmul(rows.encoding, weights, groups, rows.cols, x, ldx, tokens,
                                             y + first * kGroupRows, ldy);
                            });
}

const std::byte* multiply_bitmap_int8(const ComputeKernels& kernels, const BitmapRows& rows,
                                      const QuantizedRows& x, uint32_t first_token, uint32_t tokens, float* y,
                                      size_t ldy, ExpandedLines& dense) {
  return by_expanded_groups(kernels, rows, dense,
                            [&](uint32_t first, uint32_t groups, const std::byte* weights) {
                              kernels.matmul_int8(rows.encoding, weights, groups, rows.cols, x, first_token,
                                                  tokens, y + first * kGroupRows, ldy);
                            });
}

}  // namespace tierd
