// Picks the next token from logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/result.h"
#include "core/model/sampling/penalties.h"
#include "core/model/sampling/sampler_chain.h"

namespace tierd {

// The names are llama.cpp's. The bias is added first, then the samplers run in their order.
struct SamplerOptions {
  std::vector<SamplerStep> samplers = default_samplers();
  float temperature = 0.8f;  // 0: greedy: bias and penalties apply, filters and seed do not
  uint32_t top_k = 40;       // keep the k most probable; 0: all
  float top_p = 0.95f;       // keep the fewest most probable whose sum reaches this, at least one; 1: all
  float min_p = 0.05f;       // keep tokens with at least this share of the highest probability; 0: all
  float typical_p =
      1;  // keep the fewest of nearly average information whose sum reaches this, at least one; 1: all
  float top_n_sigma = -1;      // keep logits within this many standard deviations of the highest; <= 0: all
  float xtc_probability = 0;   // how often the top choices but the least probable of them are left out
  float xtc_threshold = 0.1f;  // least probability of a top choice; above 0.5: none ever
  PenaltyOptions penalties = {};
  // Added to the logits of tokens; -INFINITY: the token is never chosen.
  std::vector<std::pair<uint32_t, float>> logit_bias = {};
  uint64_t seed = 0;
};

class Sampler {
 public:
  // Error: invalid_argument naming the option.
  static Result<Sampler> create(const SamplerOptions& options);
  // The same with options that several samplers share; `seed` replaces theirs.
  static Result<Sampler> create(std::shared_ptr<const SamplerOptions> options, uint64_t seed);

  // Adds a token of the text that this sampler did not choose: the prompt's.
  void accept(uint32_t token) { penalties_.accept(token); }

  // Chooses the next token and accepts it. The same options and logits give the same tokens on every machine.
  // Equal logits rank by lower id. Errors: corrupt if a logit is not finite, naming it; invalid_argument if
  // the bias forbids every token. Not thread-safe.
  Result<uint32_t> sample(std::span<const float> logits);

 private:
  struct Candidate {
    uint32_t token;
    float logit;
    double weight;  // exp of the logit relative to the highest; not normalized
  };

  Sampler(std::shared_ptr<const SamplerOptions> options, uint64_t seed);

  bool has(SamplerStep step) const;
  std::span<const float> adjusted(std::span<const float> logits);
  void rank(std::span<const float> logits);
  void run(SamplerStep step, std::span<const float> logits);
  void keep_top_k();
  void keep_within_sigma(std::span<const float> logits);
  void keep_typical();
  void keep_top_p();
  void keep_min_p();
  void exclude_top_choices();
  void weigh(double temperature);
  uint32_t draw();
  double whole() const;

  std::shared_ptr<const SamplerOptions> options_;
  bool all_are_ranked_ = false;  // some step before top_k, if there is a top_k, needs more than the k highest
  bool sigma_is_of_all_ = true;  // no step before top_n_sigma removes a logit
  Random random_;
  Penalties penalties_;
  std::vector<float> adjusted_;
  std::vector<Candidate> candidates_;  // by falling logit
};

}  // namespace tierd
