// The rotary encoding of positions: how far each pair of a head's values turns from one position to the next.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/result.h"

namespace tierd {

// How frequencies change for a context that is longer than the first training's (transformers:
// modeling_rope_utils.py). `longrope` has two lists of divisors, `dynamic` a theta that grows with the
// context.
enum class RopeScaling : uint8_t { none, linear, llama3, yarn, longrope, dynamic };
constexpr std::array<std::string_view, 6> names_of(RopeScaling) {
  return {"none", "linear", "llama3", "yarn", "longrope", "dynamic"};
}

struct Rope {
  float theta = 10000.0f;
  RopeScaling scaling = RopeScaling::none;
  float factor = 1.0f;
  uint32_t dim = 0;  // number of a head's first values that are rotated; 0: all
  // llama3
  float low_freq_factor = 1.0f;
  float high_freq_factor = 4.0f;
  // of the first training: of llama3, yarn, longrope and dynamic
  uint32_t original_context = 8192;
  // yarn: pairs that turn more often than beta_fast in the original context stay as they are, those that turn
  // less often than beta_slow are divided by the factor, those between are blended; with bounds_are_whole the
  // bounds are rounded outwards to whole pairs.
  float beta_fast = 32.0f;
  float beta_slow = 1.0f;
  bool bounds_are_whole = true;
  // Rotated values are multiplied by it (transformers: attention_factor).
  float magnitude = 1.0f;
  // rotary_dim/2 divisors of the frequencies: GGUF's rope_freqs.weight, or longrope's short_factor; empty:
  // derived from the above
  std::vector<float> divisors = {};
  std::vector<float> long_divisors = {};  // in a context longer than the original one; of longrope
};

// Checks the fields against each other and the `rotated` values of a head. Error: corrupt, of `origin`.
Status validate(const Rope& rope, uint32_t rotated, std::string_view origin);

// Returns the rotated/2 radians per position, for a run of `context` positions.
std::vector<float> rope_frequencies(const Rope& rope, uint32_t rotated, uint32_t context);

// Returns the magnitude that yarn and longrope have where a file does not say.
float yarn_magnitude(float factor, float scale = 1);
float longrope_magnitude(float factor, uint32_t original_context);

}  // namespace tierd
