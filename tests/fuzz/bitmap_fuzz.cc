// A compressed neuron of a forged store, expanded by the library and by each kernel set.
#include "core/model/layout/bitmap.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "tests/fuzz/target.h"
#include "tiers/compute/kernels.h"

namespace tierd {

// The first two bytes: the bitmap, and the number of elements divided by eight.
void fuzz(std::string_view input) {
  if (input.size() < 2) return;
  constexpr Bitmap kBitmaps[] = {
      {4, std::byte{0}}, {2, std::byte{0}}, {1, std::byte{0}}, {1, std::byte{0x80}}};
  const Bitmap& bitmap = kBitmaps[static_cast<uint8_t>(input[0]) % 4];
  const uint64_t elements = 8 * (1 + uint64_t{static_cast<uint8_t>(input[1])});
  // In memory of exactly this size, for AddressSanitizer.
  const std::vector<std::byte> packed(reinterpret_cast<const std::byte*>(input.data()) + 2,
                                      reinterpret_cast<const std::byte*>(input.data()) + input.size());
  std::vector<std::byte> dense(elements * bitmap.element_bytes);
  const bool sound = decompress(bitmap, packed, dense).ok();
  if (sound) {
    // A bitmap may have a zero among its values; compressing again then gives other bytes.
    std::vector<std::byte> again(compressed_bytes(bitmap, dense));
    compress(bitmap, dense, again);
    std::vector<std::byte> back(dense.size());
    TIERD_CHECK(again.size() <= packed.size() && decompress(bitmap, again, back).ok() && back == dense);
  }
  const uint64_t bits = bitmap.bits_bytes(dense.size());
  if (packed.size() < bits) return;
  const BitmapValues values = {packed.data() + bits, packed.data() + packed.size()};
  for (const std::string_view set : kernel_names()) {
    std::vector<std::byte> out(dense.size());
    const std::byte* const next =
        kernels_by_name(set)->expand_bitmap(bitmap, packed.data(), values, elements, out.data());
    TIERD_CHECK(sound == (next == values.end));
    if (sound) TIERD_CHECK(out == dense);
  }
}

}  // namespace tierd
