// A neuron without its zeros (Endor, section 3): one bit for each of its elements, in their order, the lowest
// bit of a byte first; then the elements whose bit is set, one behind the other. Expansion restores every
// bit: -0 and NaN are not zeros.
//
// Elements have the order of the neuron's bytes (row_group.h, bundle.h, column.h). In a row group they are 16
// rows of one column, then of the next, so that 16 bits are one column and an expand instruction with that
// mask makes the vector that a kernel multiplies. The bits determine the number of values: a slot needs no
// further fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/align.h"
#include "core/base/enum_names.h"
#include "core/base/result.h"
#include "core/model/layout/cut.h"

namespace tierd {

// The form of a neuron's bytes: dense, a bitmap, or the output of a codec (neuron_codec.h), whose own name
// the store records. Names are part of the store's format.
enum class Compression : uint8_t { none, bitmap, codec };
constexpr std::array<std::string_view, 3> names_of(Compression) {
  return {"none", "bitmap", "codec"};
}
// Returns nothing for any name other than "none" and "bitmap".
std::optional<Compression> compression_by_name(std::string_view name);

// The elements for which a bitmap has bits.
struct Bitmap {
  uint32_t element_bytes = 1;     // 1, 2 or 4
  std::byte zero = std::byte{0};  // each byte of an element that is left out

  // `dense`: bytes of whole elements.
  constexpr uint64_t bits_bytes(uint64_t dense) const { return divide_up(dense / element_bytes, 8); }

  // Returns the bitmap of a site's neurons: floats by the value, q8_0 by the byte. Nothing if an encoding
  // cannot represent a zero element, or if the parts need different bitmaps.
  static std::optional<Bitmap> of(const Cut& cut, const Encodings& encodings);
  // Returns the bitmap of one encoding, in row groups or in plain order.
  static constexpr std::optional<Bitmap> of(Encoding encoding, bool row_groups) {
    switch (encoding) {
      case Encoding::f32:
        return Bitmap{4, std::byte{0}};
      case Encoding::f16:
      case Encoding::bf16:
        return Bitmap{2, std::byte{0}};
      case Encoding::q8_0:  // row groups store q + 128
        return Bitmap{1, row_groups ? std::byte{0x80} : std::byte{0}};
      default:
        return std::nullopt;
    }
  }

  bool operator==(const Bitmap&) const = default;
};

// Returns the bytes of `dense` as a bitmap: bits and values.
uint64_t compressed_bytes(const Bitmap& bitmap, std::span<const std::byte> dense);
// `out` has compressed_bytes() bytes.
void compress(const Bitmap& bitmap, std::span<const std::byte> dense, std::span<std::byte> out);
// The inverse. Error: corrupt if `in` has not the size that its bits imply, or bits behind the last element.
Status decompress(const Bitmap& bitmap, std::span<const std::byte> in, std::span<std::byte> dense);

}  // namespace tierd
