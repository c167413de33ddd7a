#include "core/store/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

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
