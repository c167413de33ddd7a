// The order in which a sampler narrows down who may be drawn: llama.cpp's --samplers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

enum class SamplerStep : uint8_t {
  penalties,  // first, where it is there
  top_n_sigma,
  top_k,
  typical_p,
  top_p,
  min_p,
  xtc,
  temperature,  // what follows sees probabilities at that temperature
};

// Those of llama.cpp's default chain: filters see probabilities before temperature.
std::vector<SamplerStep> default_samplers();

// A list of names with ; between them ("top_k;top_p;temperature"), or a letter for each ("kpt"), as llama.cpp
// reads them: what is not named does nothing. Dry is taken and does nothing, as where its multiplier is 0.
// Error: invalid_argument with `origin`, for what is unknown, named twice, or penalties that are not first.
Result<std::vector<SamplerStep>> parse_samplers(std::string_view text, std::string_view origin);
// "penalties;top_n_sigma;..."
std::string samplers_text(const std::vector<SamplerStep>& steps);

}  // namespace tierd
