#include "core/layout/bitmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.h"

namespace tierd {
namespace {

constexpr std::array<std::string_view, 2> kCompressions = {"none", "bitmap"};

// Calls each(element, is_zero) for all elements.
template <class Each>
void for_each_element(const Bitmap& bitmap, std::span<const std::byte> dense, const Each& each) {
  TIERD_CHECK(dense.size() % bitmap.element_bytes == 0);
  for (uint64_t i = 0; i < dense.size() / bitmap.element_bytes; ++i) {
    const auto element = dense.subspan(i * bitmap.element_bytes, bitmap.element_bytes);
    each(i, std::ranges::all_of(element, [&](std::byte b) { return b == bitmap.zero; }));
  }
}

bool has_bit(std::span<const std::byte> bits, uint64_t i) {
  return (bits[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
}

}  // namespace

std::string_view name(Compression compression) {
  return kCompressions[static_cast<size_t>(compression)];
}

std::optional<Compression> compression_by_name(std::string_view name) {
  const auto* const found = std::ranges::find(kCompressions, name);
  if (found == kCompressions.end()) return std::nullopt;
  return static_cast<Compression>(found - kCompressions.begin());
}

std::optional<Bitmap> Bitmap::of(const Cut& cut, const Encodings& encodings) {
  if (encodings.size() == 0) return std::nullopt;
  const bool row_groups = is_cut_into<Rows>(cut) || is_cut_into<Experts>(cut);
  const auto first = of(encodings.front(), row_groups);
  for (const Encoding encoding : encodings) {
    if (of(encoding, row_groups) != first) return std::nullopt;
  }
  return first;
}

uint64_t compressed_bytes(const Bitmap& bitmap, std::span<const std::byte> dense) {
  uint64_t values = 0;
  for_each_element(bitmap, dense, [&](uint64_t, bool is_zero) { values += is_zero ? 0 : 1; });
  return bitmap.bits_bytes(dense.size()) + values * bitmap.element_bytes;
}

void compress(const Bitmap& bitmap, std::span<const std::byte> dense, std::span<std::byte> out) {
  const auto bits = out.first(bitmap.bits_bytes(dense.size()));
  std::ranges::fill(bits, std::byte{0});
  std::byte* value = out.data() + bits.size();
  for_each_element(bitmap, dense, [&](uint64_t i, bool is_zero) {
    if (is_zero) return;
    bits[i / 8] |= std::byte{1} << (i % 8);
    std::memcpy(value, dense.data() + i * bitmap.element_bytes, bitmap.element_bytes);
    value += bitmap.element_bytes;
  });
  TIERD_CHECK(value == out.data() + out.size());
}

Status decompress(const Bitmap& bitmap, std::span<const std::byte> in, std::span<std::byte> dense) {
  const uint64_t elements = dense.size() / bitmap.element_bytes;
  const uint64_t bits_bytes = bitmap.bits_bytes(dense.size());
  TIERD_CHECK(dense.size() % bitmap.element_bytes == 0);
  const auto malformed = [](std::string detail) { return Error{Code::corrupt, "bitmap", std::move(detail)}; };
  if (in.size() < bits_bytes)
    return malformed(fmt::format("has {} bytes, expected at least {} of bits", in.size(), bits_bytes));
  const auto bits = in.first(bits_bytes);
  if (elements % 8 != 0 && (bits.back() >> (elements % 8)) != std::byte{0})
    return malformed(fmt::format("has bits behind the last of its {} elements", elements));
  uint64_t at = bits_bytes;
  std::ranges::fill(dense, bitmap.zero);
  for (uint64_t i = 0; i < elements; ++i) {
    if (!has_bit(bits, i)) continue;
    if (in.size() - at < bitmap.element_bytes)
      return malformed(fmt::format("has {} bytes, its bits say more", in.size()));
    std::memcpy(dense.data() + i * bitmap.element_bytes, in.data() + at, bitmap.element_bytes);
    at += bitmap.element_bytes;
  }
  if (at == in.size()) return {};
  return malformed(fmt::format("has {} bytes, its bits say {}", in.size(), at));
}

}  // namespace tierd
