#include "tools/tier-compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/engine/session.h"

namespace tierd {
namespace {

// The logarithm of what a row of logits adds up to.
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
  divergences_.push_back(std::max(0.0, divergence));  // rounding may leave a little less than nothing
}

double Loss::reference_perplexity() const {
  return perplexity(reference_nats_, tokens());
}
double Loss::subject_perplexity() const {
  return perplexity(subject_nats_, tokens());
}

double Loss::mean_divergence() const {
  if (divergences_.empty()) return 0;
  return std::accumulate(divergences_.begin(), divergences_.end(), 0.0) /
         static_cast<double>(divergences_.size());
}

double Loss::divergence_quantile(double share) const {
  if (divergences_.empty()) return 0;
  std::vector<double> sorted = divergences_;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  return sorted[static_cast<size_t>(at)];
}

Result<Loss> compare_on(Engine& reference, Engine& subject, const std::vector<std::vector<uint32_t>>& windows,
                        const std::function<void(uint64_t)>& progress) {
  Loss loss;
  Session first(reference, 0), second(subject, 0);
  const size_t vocab = reference.vocab_size();
  const size_t most =
      std::min({reference.max_rows(), reference.logit_rows(), subject.max_rows(), subject.logit_rows()});
  std::vector<float> expected(most * vocab);
  for (const std::vector<uint32_t>& window : windows) {
    first.clear();
    second.clear();
    const std::span tokens(window);
    // The last one is only predicted.
    for (size_t at = 0; at + 1 < tokens.size();) {
      const auto chunk = tokens.subspan(at, std::min(most, tokens.size() - 1 - at));
      TIERD_TRY(first.append_with_logits(chunk, [&](size_t i, std::span<const float> logits) {
        std::copy(logits.begin(), logits.end(), expected.begin() + static_cast<std::ptrdiff_t>(i * vocab));
      }));
      TIERD_TRY(second.append_with_logits(chunk, [&](size_t i, std::span<const float> logits) {
        loss.add(std::span<const float>(expected).subspan(i * vocab, vocab), logits, tokens[at + i + 1]);
      }));
      at += chunk.size();
      progress(chunk.size());
    }
  }
  return loss;
}

}  // namespace tierd
