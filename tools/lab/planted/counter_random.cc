#include "tools/lab/planted/counter_random.h"

#include <cmath>
#include <numbers>

namespace tierd {

void fill_normal(RandomKey key, std::span<float> out) {
  constexpr double kUnit = 0x1p-32;
  const auto counter = [](size_t i) { return static_cast<uint32_t>(i); };
  for (size_t i = 0; i < out.size(); i += 2) {
    const double u = (random_word(key, counter(i)) + 0.5) * kUnit;
    const double angle = 2 * std::numbers::pi * kUnit * random_word(key, counter(i + 1));
    const double radius = std::sqrt(-2 * std::log(u));
    out[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < out.size()) out[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

}  // namespace tierd
