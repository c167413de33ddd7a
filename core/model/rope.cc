#include "core/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

namespace tierd {
namespace {

constexpr uint32_t kMostContext = 1u << 28;

Error wrong_rope(std::string_view origin, std::string detail) {
  return {Code::corrupt, std::string(origin), std::move(detail)};
}

Status rope_positive(std::string_view origin, std::string_view field, float value) {
  if (std::isfinite(value) && value > 0) return {};
  return wrong_rope(origin, fmt::format("rope {} is {}, expected a positive number", field, value));
}

Status validate_divisors(const std::vector<float>& divisors, uint32_t rotated, std::string_view origin) {
  if (divisors.size() != rotated / 2) {
    return wrong_rope(
        origin,
        fmt::format("{} rope frequency divisors, expected half as many as the {} rotated values of a head",
                    divisors.size(), rotated));
  }
  for (const float divisor : divisors) TIERD_TRY(rope_positive(origin, "frequency divisor", divisor));
  return {};
}

Status validate_bounds(std::string_view origin, std::string_view high_name, float high,
                       std::string_view low_name, float low) {
  TIERD_TRY(rope_positive(origin, low_name, low));
  TIERD_TRY(rope_positive(origin, high_name, high));
  if (high > low) return {};
  return wrong_rope(origin, fmt::format("rope {} {} is not above {} {}", high_name, high, low_name, low));
}

// Llama 3.1: long wavelengths are stretched by `factor`, short ones kept, those between are blended.
double llama3_frequency(double frequency, const Rope& rope) {
  const double context = rope.original_context;
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < context / rope.high_freq_factor) return frequency;
  if (wavelength > context / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth =
      (context / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

// Divides the frequencies by yarn's factor, in part between its bounds, and not before them.
void stretch(const Rope& rope, std::vector<double>& frequencies) {
  const double rotated = 2.0 * static_cast<double>(frequencies.size());
  // Returns the pair that turns `turns` times in the original context.
  const auto pair = [&](double turns) {
    return rotated * std::log(rope.original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(static_cast<double>(rope.theta)));
  };
  double first = pair(rope.beta_fast), last = pair(rope.beta_slow);
  if (rope.bounds_are_whole) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, rotated - 1);
  if (first == last) last += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double share = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * share + frequencies[i] * (1 - share);
  }
}

// Returns the theta of a context that is longer than the original one.
double dynamic_theta(const Rope& rope, uint32_t rotated, uint32_t context) {
  if (context <= rope.original_context) return rope.theta;
  const double stretched =
      static_cast<double>(rope.factor) * context / rope.original_context - (rope.factor - 1);
  return rope.theta * std::pow(stretched, rotated / (rotated - 2.0));
}

}  // namespace

Status validate(const Rope& rope, uint32_t rotated, std::string_view origin) {
  TIERD_TRY(rope_positive(origin, "theta", rope.theta));
  TIERD_TRY(rope_positive(origin, "scaling factor", rope.factor));
  TIERD_TRY(rope_positive(origin, "magnitude", rope.magnitude));
  const bool has_original = rope.scaling != RopeScaling::none && rope.scaling != RopeScaling::linear;
  if (has_original && (rope.original_context < 1 || rope.original_context > kMostContext)) {
    return wrong_rope(origin, fmt::format("rope original context is {}, expected 1 to {}",
                                          rope.original_context, kMostContext));
  }
  if (rope.scaling == RopeScaling::llama3)
    TIERD_TRY(validate_bounds(origin, "high_freq_factor", rope.high_freq_factor, "low_freq_factor",
                              rope.low_freq_factor));
  if (rope.scaling == RopeScaling::yarn) {
    TIERD_TRY(validate_bounds(origin, "beta_fast", rope.beta_fast, "beta_slow", rope.beta_slow));
    if (rope.theta <= 1)
      return wrong_rope(origin, fmt::format("rope theta is {}, expected more than 1 for yarn", rope.theta));
  }
  if (rope.scaling == RopeScaling::dynamic && rotated <= 2)
    return wrong_rope(origin,
                      fmt::format("{} values of a head are rotated, expected more for dynamic", rotated));
  const bool has_two_lists = rope.scaling == RopeScaling::longrope;
  if (has_two_lists || !rope.divisors.empty()) TIERD_TRY(validate_divisors(rope.divisors, rotated, origin));
  if (has_two_lists) return validate_divisors(rope.long_divisors, rotated, origin);
  if (rope.long_divisors.empty()) return {};
  return wrong_rope(origin, "rope divisors of a long context are set, which only longrope has");
}

std::vector<float> rope_frequencies(const Rope& rope, uint32_t rotated, uint32_t context) {
  const double theta =
      rope.scaling == RopeScaling::dynamic ? dynamic_theta(rope, rotated, context) : rope.theta;
  std::vector<double> frequencies(rotated / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = 1.0 / std::pow(theta, 2.0 * static_cast<double>(i) / rotated);
  if (rope.scaling == RopeScaling::linear) {
    for (double& frequency : frequencies) frequency /= rope.factor;
  }
  if (rope.scaling == RopeScaling::llama3) {
    for (double& frequency : frequencies) frequency = llama3_frequency(frequency, rope);
  }
  if (rope.scaling == RopeScaling::yarn) stretch(rope, frequencies);
  const bool longer = rope.scaling == RopeScaling::longrope && context > rope.original_context;
  const std::vector<float>& divisors = longer ? rope.long_divisors : rope.divisors;
  for (size_t i = 0; i < divisors.size(); ++i) frequencies[i] /= divisors[i];
  return {frequencies.begin(), frequencies.end()};
}

float yarn_magnitude(float factor, float scale) {
  return factor <= 1 ? 1 : 0.1F * scale * std::log(factor) + 1;
}

float longrope_magnitude(float factor, uint32_t original_context) {
  if (factor <= 1) return 1;
  return std::sqrt(1 + std::log(factor) / std::log(static_cast<float>(original_context)));
}

}  // namespace tierd
