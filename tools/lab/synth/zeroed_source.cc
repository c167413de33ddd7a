#include "tools/lab/synth/zeroed_source.h"

#include <fmt/format.h>

#include "core/model/layout/bitmap.h"

namespace tierd {
namespace {

// Returns a pseudo-random number below 100 for each position.
uint32_t percentile(uint64_t place) {
  uint64_t x = (place + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 31) * 0x94d049bb133111eb;
  return static_cast<uint32_t>((x >> 32) * 100 >> 32);
}

}  // namespace

std::string ZeroedSource::fingerprint() const {
  return fmt::format("{}, {} % zero", of_->fingerprint(), percent_);
}

Status ZeroedSource::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  TIERD_TRY(of_->read(tensor, offset, out));
  const auto bitmap = Bitmap::of(tensor.encoding, false);
  if (!bitmap || tensor.rows == 1 || !tensor.name.starts_with("layers.")) return {};
  const uint32_t bytes = bitmap->element_bytes;
  const uint32_t scale = is_quantized(tensor.encoding) ? 2 : 0;  // of a block, before its values
  const uint32_t block = block_bytes(tensor.encoding);
  for (uint64_t i = 0; i < out.size(); ++i) {
    const uint64_t at = offset + i;
    if (scale != 0 && at % block < scale) continue;
    if (percentile(at / bytes) < percent_) out[i] = std::byte{0};
  }
  return {};
}

}  // namespace tierd
