// What a model says of a token: natural logarithms of its own probabilities, before any sampler's option.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tierd {

struct TokenLogprob {
  uint32_t token = 0;
  double logprob = 0;
};

struct Logprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // the most probable ones, falling; equals by rising id
};

// `logits`: [vocab], all finite. `token` < logits.size(); at most logits.size() of `top` come.
Logprobs logprobs_of(std::span<const float> logits, uint32_t token, size_t top);

}  // namespace tierd
