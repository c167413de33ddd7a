// Numbers of all parts of a report: units, means, and readable sizes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/units.h"

namespace tierd {

inline constexpr double kMs = 1e-6;  // ns to ms

inline double per(double value, uint64_t count) {
  return count == 0 ? 0 : value / static_cast<double>(count);
}

inline std::string size_text(const nlohmann::json& bytes) {
  return format_bytes(bytes.get<double>());
}

}  // namespace tierd
