#include "core/model/layout/bitmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace tierd {
namespace {

template <class Element>
Element zero_of(const Bitmap& bitmap) {
  Element zero;
  std::memset(&zero, std::to_integer<int>(bitmap.zero), sizeof zero);
  return zero;
}
template <class Element>
Element element_at(std::span<const std::byte> dense, uint64_t i) {
  Element element;
  std::memcpy(&element, dense.data() + i * sizeof element, sizeof element);
  return element;
}

template <class Element>
uint64_t count_values(const Bitmap& bitmap, std::span<const std::byte> dense) {
  const auto zero = zero_of<Element>(bitmap);
  uint64_t values = 0;
  for (uint64_t i = 0; i < dense.size() / sizeof(Element); ++i)
    values += element_at<Element>(dense, i) != zero ? 1 : 0;
  return values;
}

template <class Element>
void compress_elements(const Bitmap& bitmap, std::span<const std::byte> dense, std::span<std::byte> out) {
  const auto zero = zero_of<Element>(bitmap);
  const uint64_t elements = dense.size() / sizeof(Element);
  std::byte* value = out.data() + bitmap.bits_bytes(dense.size());
  for (uint64_t i = 0; i < elements; i += 8) {
    uint32_t bits = 0;
    for (uint64_t k = i; k < std::min(i + 8, elements); ++k) {
      const auto element = element_at<Element>(dense, k);
      if (element == zero) continue;
      bits |= 1U << (k - i);
      std::memcpy(value, &element, sizeof element);
      value += sizeof element;
    }
    out[i / 8] = static_cast<std::byte>(bits);
  }
  TIERD_CHECK(value == out.data() + out.size());
}

// Calls call() with a value of the element's type.
template <class Call>
auto with_element(const Bitmap& bitmap, const Call& call) {
  if (bitmap.element_bytes == 1) return call(uint8_t{});
  if (bitmap.element_bytes == 2) return call(uint16_t{});
  return call(uint32_t{});
}

bool has_bit(std::span<const std::byte> bits, uint64_t i) {
  return (bits[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
}

}  // namespace

std::optional<Compression> compression_by_name(std::string_view name) {
  const auto found = by_name<Compression>(name);
  return found == Compression::codec ? std::nullopt : found;
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
  TIERD_CHECK(dense.size() % bitmap.element_bytes == 0);
  const uint64_t values =
      with_element(bitmap, [&](auto element) { return count_values<decltype(element)>(bitmap, dense); });
  return bitmap.bits_bytes(dense.size()) + values * bitmap.element_bytes;
}

void compress(const Bitmap& bitmap, std::span<const std::byte> dense, std::span<std::byte> out) {
  TIERD_CHECK(dense.size() % bitmap.element_bytes == 0);
  with_element(bitmap, [&](auto element) { compress_elements<decltype(element)>(bitmap, dense, out); });
}

Status decompress(const Bitmap& bitmap, std::span<const std::byte> in, std::span<std::byte> dense) {
  const uint64_t elements = dense.size() / bitmap.element_bytes;
  const uint64_t bits_bytes = bitmap.bits_bytes(dense.size());
  TIERD_CHECK(dense.size() % bitmap.element_bytes == 0);
  const auto malformed = [](std::string detail) { return Error{Code::corrupt, "bitmap", std::move(detail)}; };
  if (in.size() < bits_bytes)
    return malformed(fmt::format("has {} bytes, expected at least {} for its bits", in.size(), bits_bytes));
  const auto bits = in.first(bits_bytes);
  if (elements % 8 != 0 && (bits.back() >> (elements % 8)) != std::byte{0})
    return malformed(fmt::format("has bits set after the last of its {} elements", elements));
  uint64_t at = bits_bytes;
  std::ranges::fill(dense, bitmap.zero);
  for (uint64_t i = 0; i < elements; ++i) {
    if (!has_bit(bits, i)) continue;
    if (in.size() - at < bitmap.element_bytes)
      return malformed(fmt::format("has {} bytes, fewer than its bits require", in.size()));
    std::memcpy(dense.data() + i * bitmap.element_bytes, in.data() + at, bitmap.element_bytes);
    at += bitmap.element_bytes;
  }
  if (at == in.size()) return {};
  return malformed(fmt::format("has {} bytes, its bits require {}", in.size(), at));
}

}  // namespace tierd
