#include "tools/tierd/trend.h"

#include <cmath>

namespace tierd {

Trend trend_of(std::span<const uint64_t> values) {
  Trend trend;
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return trend;
  for (const uint64_t value : values) trend.mean += static_cast<double>(value) / n;
  const double middle = (n - 1) / 2;
  double squares = 0, products = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    squares += x * x;
    products += x * (static_cast<double>(values[i]) - trend.mean);
  }
  if (squares == 0) return trend;
  trend.slope = products / squares;
  if (values.size() < 3) return trend;
  double rest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    const double off = static_cast<double>(values[i]) - trend.mean - trend.slope * x;
    rest += off * off;
  }
  trend.error = std::sqrt(rest / (n - 2) / squares);
  return trend;
}

}  // namespace tierd
