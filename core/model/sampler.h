// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "core/base/result.h"

namespace tierd {

// The filters work in the order of llama.cpp's default chain: top_k, top_p, min_p, temperature; the first
// three see the model's own probabilities, before temperature.
struct SamplerOptions {
  float temperature = 0.8f;  // 0: greedy, the filters and the seed do not matter
  uint32_t top_k = 40;       // keep the k most probable; 0: all
  float top_p = 0.95f;       // keep the fewest most probable that reach this sum; 1: all
  float min_p = 0.05f;       // keep those at least so probable in relation to the most probable; 0: all
  uint64_t seed = 0;
};

class Sampler {
 public:
  // Error: invalid_argument naming the option.
  static Result<Sampler> create(const SamplerOptions& options);

  // The same options and logits give the same tokens, everywhere. Equal logits rank by lower id. Error:
  // corrupt where a logit is not finite, naming it. Not thread-safe.
  Result<uint32_t> sample(std::span<const float> logits);

 private:
  struct Candidate {
    uint32_t token;
    float logit;
    double weight;  // exp of the logit relative to the highest; not normalized
  };

  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}

  void keep_top_k(std::span<const float> logits);
  void keep_top_p();
  void keep_min_p();
  uint32_t draw();

  SamplerOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;  // by falling logit
};

}  // namespace tierd
