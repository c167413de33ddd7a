#include "core/base/checksum.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // uses the widest instructions of this processor: three times as fast as the x86-64 baseline
#else
#include <xxhash.h>
#endif

namespace tierd {

uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
uint64_t checksum(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}
std::string checksum_text(uint64_t checksum) {
  return fmt::format("{:016x}", checksum);
}

}  // namespace tierd
