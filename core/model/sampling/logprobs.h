// The model's own probabilities of tokens, as natural logarithms, before any option of the sampler.
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
  std::vector<TokenLogprob> top;  // the most probable tokens, falling; equal ones by rising id
};

// `logits`: [vocab], all finite. `token` < logits.size(). Returns at most `top` most probable tokens.
Logprobs logprobs_of(std::span<const float> logits, uint32_t token, size_t top);

}  // namespace tierd
