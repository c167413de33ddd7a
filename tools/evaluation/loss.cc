#include "tools/evaluation/loss.h"

#include <algorithm>
#include <cmath>

#include "core/base/statistics.h"

namespace tierd {
namespace {

// Returns the logarithm of the sum of the exponentials of a row of logits.
double log_sum(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return std::log(sum) + top;
}

double perplexity(double nats, uint64_t tokens) {
  return tokens == 0 ? 0 : std::exp(nats / static_cast<double>(tokens));
}

}  // namespace

void Loss::add(std::span<const float> reference, std::span<const float> subject, uint32_t next) {
  const double reference_sum = log_sum(reference), subject_sum = log_sum(subject);
  reference_nats_ += reference_sum - reference[next];
  subject_nats_ += subject_sum - subject[next];
  double divergence = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = reference[i] - reference_sum, log_q = subject[i] - subject_sum;
    divergence += std::exp(log_p) * (log_p - log_q);
    largest_difference_ = std::max(largest_difference_, std::abs(reference[i] - subject[i]));
  }
  divergences_.push_back(std::max(0.0, divergence));  // rounding may give slightly less than 0
}

double Loss::reference_perplexity() const {
  return perplexity(reference_nats_, tokens());
}
double Loss::subject_perplexity() const {
  return perplexity(subject_nats_, tokens());
}

double Loss::mean_divergence() const {
  return mean(divergences_);
}

double Loss::divergence_quantile(double share) const {
  return quantile(divergences_, share);
}

double entropy(std::span<const float> logits) {
  const double sum = log_sum(logits);
  double nats = 0;
  for (const float logit : logits) {
    const double log_p = logit - sum;
    nats -= std::exp(log_p) * log_p;
  }
  return nats;
}

}  // namespace tierd
