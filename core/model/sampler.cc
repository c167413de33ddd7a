#include "core/model/sampler.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tierd {
namespace {

Error bad_option(const char* option, float value, const char* expected) {
  return {Code::invalid_argument, option, fmt::format("{} found, expected {}", value, expected)};
}

Status check_finite(std::span<const float> logits) {
  const auto it =
      std::find_if(logits.begin(), logits.end(), [](float logit) { return !std::isfinite(logit); });
  if (it == logits.end()) return {};
  return Error{
      Code::corrupt, "logits",
      fmt::format("the logit of token {} is {}, expected a finite number", it - logits.begin(), *it)};
}

}  // namespace

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return bad_option("temperature", options.temperature, "0 or more");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return bad_option("top_p", options.top_p, "more than 0 and at most 1");
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) return bad_option("min_p", options.min_p, "0 to 1");
  return Sampler(options);
}

Result<uint32_t> Sampler::sample(std::span<const float> logits) {
  TIERD_CHECK(!logits.empty());
  TIERD_TRY(check_finite(logits));
  if (options_.temperature == 0) {
    return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  keep_top_k(logits);
  keep_top_p();
  keep_min_p();
  return draw();
}

void Sampler::keep_top_k(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (uint32_t token = 0; token < logits.size(); ++token) candidates_[token] = {token, logits[token], 0};
  const size_t k = options_.top_k == 0 ? logits.size() : std::min<size_t>(options_.top_k, logits.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k),
                    candidates_.end(), [](const Candidate& a, const Candidate& b) {
                      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
                    });
  candidates_.resize(k);
  for (Candidate& c : candidates_) c.weight = std::exp(static_cast<double>(c.logit) - candidates_[0].logit);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && sum < options_.top_p * total) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
}

void Sampler::keep_min_p() {
  std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < options_.min_p; });
}

uint32_t Sampler::draw() {
  double total = 0;
  for (Candidate& c : candidates_) {
    c.weight = std::exp((static_cast<double>(c.logit) - candidates_[0].logit) / options_.temperature);
    total += c.weight;
  }
  double left = random_.uniform() * total;
  for (const Candidate& c : candidates_) {
    left -= c.weight;
    if (left < 0) return c.token;
  }
  return candidates_.back().token;  // rounding ate the last sliver
}

}  // namespace tierd
