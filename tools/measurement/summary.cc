#include "tools/measurement/summary.h"

#include <algorithm>
#include <cmath>

#include "core/base/statistics.h"

namespace tierd {

Summary summarize(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [least, most] = std::ranges::minmax(values);
  return {median(values), least, most, values.size()};
}

std::vector<size_t> find_strays(const std::vector<std::vector<double>>& rounds, double tolerance) {
  std::vector<double> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  const double middle = median(std::move(all));
  std::vector<size_t> strays;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const bool off = std::any_of(rounds[i].begin(), rounds[i].end(), [&](double value) {
      return std::fabs(value - middle) > tolerance * middle;
    });
    if (off) strays.push_back(i);
  }
  return strays;
}

}  // namespace tierd
