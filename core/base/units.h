// Sizes and rates as text for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// "3.75 GB": decimal units, as for disks and in papers.
std::string format_bytes(double bytes);
std::string format_rate(double bytes_per_second);
// "1.5 s", "12 ms", "3 min 20 s".
std::string format_duration(double seconds);

// "512 MiB", "4GB", "1.5 GiB", "1000000" (bytes). Error: invalid_argument naming `origin`.
Result<uint64_t> parse_bytes(std::string_view text, std::string_view origin);

}  // namespace tierd
