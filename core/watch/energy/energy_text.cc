#include "core/watch/energy/energy_text.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

namespace tierd {
namespace {

std::string scaled(double value, std::string_view unit, double first,
                   std::initializer_list<std::string_view> prefixes) {
  double scale = first;
  auto prefix = prefixes.begin();
  while (prefix + 1 != prefixes.end() && value >= scale * 999.5) {
    scale *= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value / scale, *prefix, unit);
}

}  // namespace

std::string format_joules(double joules) {
  return scaled(joules, "J", 1e-3, {"m", "", "k", "M", "G"});
}

std::string format_grams(double grams) {
  return scaled(grams, "g", 1e-3, {"m", "", "k"});
}

std::string embodied_text(double grams) {
  return grams > 0 ? format_grams(grams) + " of it embodied" : "no embodied mass is described";
}

}  // namespace tierd
