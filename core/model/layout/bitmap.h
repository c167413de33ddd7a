// A neuron without its zeros (Endor, section 3): one bit for each of its elements, in their order, the lowest
// of a byte first; then the elements whose bit is set, one behind the other. Whatever is in it comes back bit
// by bit: -0 and NaN are no zeros.
//
// Elements are taken as a neuron's bytes have them (row_group.h, bundle.h, column.h). Those of a row group
// are 16 rows of one column, then of the next, so that 16 bits are one column and an instruction that spreads
// values by a mask makes the vector that a kernel multiplies. How many values are there is what the bits say:
// a slot needs nothing beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/align.h"
#include "core/base/result.h"
#include "core/model/layout/cut.h"

namespace tierd {

// How the bytes of a neuron are kept: as they are, as a bitmap, or as a codec (neuron_codec.h) writes them,
// which has a name of its own. Names are part of the store's format.
enum class Compression : uint8_t { none, bitmap, codec };
// "none", "bitmap" or "codec".
std::string_view name(Compression compression);
// Nothing for any other name than "none" and "bitmap".
std::optional<Compression> compression_by_name(std::string_view name);

// Which elements a bitmap has a bit for.
struct Bitmap {
  uint32_t element_bytes = 1;     // 1, 2 or 4
  std::byte zero = std::byte{0};  // what each byte of an element is that is left out

  // `dense`: bytes of whole elements.
  constexpr uint64_t bits_bytes(uint64_t dense) const { return divide_up(dense / element_bytes, 8); }

  // The bitmap of a site's neurons, floats by the value and q8_0 by the byte. There is none where an encoding
  // has no zeros of its own, or where the parts would need different ones.
  static std::optional<Bitmap> of(const Cut& cut, const Encodings& encodings);
  // The bitmap of one encoding, in row groups or else in plain order.
  static constexpr std::optional<Bitmap> of(Encoding encoding, bool row_groups) {
    switch (encoding) {
      case Encoding::f32:
        return Bitmap{4, std::byte{0}};
      case Encoding::f16:
      case Encoding::bf16:
        return Bitmap{2, std::byte{0}};
      case Encoding::q8_0:  // row groups keep q + 128
        return Bitmap{1, row_groups ? std::byte{0x80} : std::byte{0}};
      default:
        return std::nullopt;
    }
  }

  bool operator==(const Bitmap&) const = default;
};

// Bytes that `dense` takes as a bitmap: its bits and its values, nothing else.
uint64_t compressed_bytes(const Bitmap& bitmap, std::span<const std::byte> dense);
// `out` has as many.
void compress(const Bitmap& bitmap, std::span<const std::byte> dense, std::span<std::byte> out);
// The inverse. Error: corrupt, if `in` is not what the bits say, or has bits behind the last element.
Status decompress(const Bitmap& bitmap, std::span<const std::byte> in, std::span<std::byte> dense);

}  // namespace tierd
