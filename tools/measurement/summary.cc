#include "tools/measurement/summary.h"

#include <algorithm>
#include <cmath>

namespace tierd {

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back(), n};
}

std::vector<size_t> find_strays(const std::vector<std::vector<double>>& rounds, double tolerance) {
  std::vector<double> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  const double median = summarize(std::move(all)).median;
  std::vector<size_t> strays;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const bool off = std::any_of(rounds[i].begin(), rounds[i].end(), [&](double value) {
      return std::fabs(value - median) > tolerance * median;
    });
    if (off) strays.push_back(i);
  }
  return strays;
}

}  // namespace tierd
