// The order of the sampler's steps, which narrow down the candidates: llama.cpp's --samplers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

enum class SamplerStep : uint8_t {
  penalties,  // first, if included
  top_n_sigma,
  top_k,
  typical_p,
  top_p,
  min_p,
  xtc,
  temperature,  // later steps see probabilities at that temperature
};

// Returns llama.cpp's default chain: filters see probabilities before temperature.
std::vector<SamplerStep> default_samplers();

// Parses a list of names with ; between them ("top_k;top_p;temperature"), or a letter for each ("kpt"), as
// llama.cpp does: a step that is not listed is not run. "dry" is accepted and has no effect, as with
// multiplier 0. Error: invalid_argument with `origin`, for a name that is unknown or listed twice, or
// penalties that are not first.
Result<std::vector<SamplerStep>> parse_samplers(std::string_view text, std::string_view origin);
// "penalties;top_n_sigma;..."
std::string samplers_text(const std::vector<SamplerStep>& steps);

}  // namespace tierd
