// XXH3-64, the checksum of all data in a store: it finds accidental damage by disks, cables and memory, and
// costs less than reading the data. It does not protect against forgery.
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
