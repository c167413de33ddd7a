// XXH3-64, the checksum of everything a store holds: it finds what disks, cables and memory do to bytes, and
// costs less than reading them. It is no defence against a forger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tierd {

uint64_t checksum(std::span<const std::byte> bytes);
uint64_t checksum(std::string_view text);

// 16 lower-case hexadecimal digits.
std::string checksum_text(uint64_t checksum);

}  // namespace tierd
