// Sizes and rates as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// "3.75 GB": decimal units, as disks and papers use them.
std::string format_bytes(double bytes);
std::string format_rate(double bytes_per_second);
// "1.5 s", "12 ms", "3 min 20 s".
std::string format_duration(double seconds);

// "512 MiB", "4GB", "1.5 GiB", "1000000" (bytes). Error: invalid_argument naming `origin`.
Result<uint64_t> parse_bytes(std::string_view text, std::string_view origin);

}  // namespace tierd
