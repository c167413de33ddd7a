#include "core/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace tierd {

std::string format_bytes(double bytes) {
  static constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000.0;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 9.995 ? 2 : (bytes < 99.95 ? 1 : 0), kUnits[unit]);
}

std::string format_rate(double bytes_per_second) {
  return format_bytes(bytes_per_second) + "/s";
}

std::string format_duration(double seconds) {
  if (seconds < 0.0995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 99.5) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

Result<uint64_t> parse_bytes(std::string_view text, std::string_view origin) {
  const Error bad{Code::invalid_argument, std::string(origin),
                  fmt::format("'{}' is not a size; write for example 512 MiB, 4 GB or 1000000", text)};
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || !(number >= 0)) return bad;
  std::string unit;
  for (const char* p = end; p != text.data() + text.size(); ++p) {
    if (*p != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  struct Unit {
    std::string_view name;
    double factor;
  };
  static constexpr std::array kUnits = {
      Unit{"", 1},         Unit{"b", 1},        Unit{"k", 1e3},      Unit{"kb", 1e3},     Unit{"m", 1e6},
      Unit{"mb", 1e6},     Unit{"g", 1e9},      Unit{"gb", 1e9},     Unit{"t", 1e12},     Unit{"tb", 1e12},
      Unit{"kib", 0x1p10}, Unit{"mib", 0x1p20}, Unit{"gib", 0x1p30}, Unit{"tib", 0x1p40},
  };
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = number * known.factor;
    if (bytes >= 0x1p63) return bad;
    return static_cast<uint64_t>(bytes);
  }
  return bad;
}

}  // namespace tierd
