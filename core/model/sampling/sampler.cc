#include "core/model/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

// The logit of a forbidden token.
constexpr float kNever = -std::numeric_limits<float>::infinity();

bool by_falling_logit(float a, uint32_t a_token, float b, uint32_t b_token) {
  return a != b ? a > b : a_token < b_token;
}

}  // namespace

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  return create(std::make_shared<const SamplerOptions>(options), options.seed);
}

Result<Sampler> Sampler::create(std::shared_ptr<const SamplerOptions> shared, uint64_t seed) {
  const SamplerOptions& options = *shared;
  const auto within = [](float value, float least, float most) { return value >= least && value <= most; };
  if (!std::isfinite(options.temperature) || options.temperature < 0)
    return bad_option("temperature", options.temperature, "0 or more");
  if (!within(options.top_p, 0, 1)) return bad_option("top_p", options.top_p, "0 to 1");
  if (!within(options.min_p, 0, 1)) return bad_option("min_p", options.min_p, "0 to 1");
  if (!(options.typical_p > 0 && options.typical_p <= 1))
    return bad_option("typical_p", options.typical_p, "more than 0 and at most 1");
  if (!std::isfinite(options.top_n_sigma))
    return bad_option("top_n_sigma", options.top_n_sigma, "a finite number");
  if (!within(options.xtc_probability, 0, 1))
    return bad_option("xtc_probability", options.xtc_probability, "0 to 1");
  if (!within(options.xtc_threshold, 0, 1))
    return bad_option("xtc_threshold", options.xtc_threshold, "0 to 1");
  const PenaltyOptions& penalties = options.penalties;
  if (penalties.repeat_last_n < -1) {
    return bad_option("repeat_last_n", static_cast<float>(penalties.repeat_last_n), "-1 or more");
  }
  if (!(penalties.repeat_penalty > 0 && std::isfinite(penalties.repeat_penalty)))
    return bad_option("repeat_penalty", penalties.repeat_penalty, "more than 0");
  if (!std::isfinite(penalties.presence_penalty))
    return bad_option("presence_penalty", penalties.presence_penalty, "a finite number");
  if (!std::isfinite(penalties.frequency_penalty))
    return bad_option("frequency_penalty", penalties.frequency_penalty, "a finite number");
  for (const auto& [token, bias] : options.logit_bias) {
    if (std::isnan(bias) || bias == -kNever)
      return bad_option("logit_bias", bias, fmt::format("a finite number for token {}", token).c_str());
  }
  return Sampler(std::move(shared), seed);
}

Sampler::Sampler(std::shared_ptr<const SamplerOptions> options, uint64_t seed)
    : options_(std::move(options)), random_(seed), penalties_(options_->penalties) {
  const auto begin = options_->samplers.begin(), end = options_->samplers.end();
  const auto keeps_the_order_of_logits = [](SamplerStep step) {
    return step == SamplerStep::penalties || step == SamplerStep::temperature;
  };
  const auto top_k = std::find(begin, end, SamplerStep::top_k);
  all_are_ranked_ = top_k == end || !std::all_of(begin, top_k, [&](SamplerStep step) {
                      return keeps_the_order_of_logits(step) || step == SamplerStep::top_n_sigma;
                    });
  sigma_is_of_all_ =
      std::all_of(begin, std::find(begin, end, SamplerStep::top_n_sigma), keeps_the_order_of_logits);
}

bool Sampler::has(SamplerStep step) const {
  return std::ranges::count(options_->samplers, step) != 0;
}

Result<uint32_t> Sampler::sample(std::span<const float> logits) {
  TIERD_CHECK(!logits.empty());
  TIERD_TRY(check_finite(logits));
  logits = adjusted(logits);
  const auto highest = std::max_element(logits.begin(), logits.end());
  if (*highest == kNever) return Error{Code::invalid_argument, "logit_bias", "forbids every token"};
  auto token = static_cast<uint32_t>(highest - logits.begin());
  if (options_->temperature > 0) {
    rank(logits);
    for (const SamplerStep step : options_->samplers) run(step, logits);
    token = draw();
  }
  penalties_.accept(token);
  return token;
}

// Returns the logits with the bias and the penalties.
std::span<const float> Sampler::adjusted(std::span<const float> logits) {
  const bool penalized = penalties_.active() && has(SamplerStep::penalties);
  if (options_->logit_bias.empty() && !penalized) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : options_->logit_bias) {
    if (token >= adjusted_.size() || adjusted_[token] == kNever) continue;
    const float sum = std::clamp(adjusted_[token] + bias, -kLargestLogit, kLargestLogit);
    adjusted_[token] = bias == kNever ? kNever : sum;
  }
  if (penalized) penalties_.apply(adjusted_);
  return adjusted_;
}

void Sampler::run(SamplerStep step, std::span<const float> logits) {
  switch (step) {
    case SamplerStep::penalties:
      return;  // applied by adjusted()
    case SamplerStep::top_n_sigma:
      return keep_within_sigma(logits);
    case SamplerStep::top_k:
      return keep_top_k();
    case SamplerStep::typical_p:
      return keep_typical();
    case SamplerStep::top_p:
      return keep_top_p();
    case SamplerStep::min_p:
      return keep_min_p();
    case SamplerStep::xtc:
      return exclude_top_choices();
    case SamplerStep::temperature:
      return weigh(options_->temperature);
  }
}

// Fills candidates_ with the allowed tokens by falling logit; only the k highest if no step needs the others.
void Sampler::rank(std::span<const float> logits) {
  candidates_.clear();
  for (uint32_t token = 0; token < logits.size(); ++token) {
    if (logits[token] != kNever) candidates_.push_back({token, logits[token], 0});
  }
  const size_t all = candidates_.size();
  const size_t k = options_->top_k == 0 || all_are_ranked_ ? all : std::min<size_t>(options_->top_k, all);
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k),
                    candidates_.end(), [](const Candidate& a, const Candidate& b) {
                      return by_falling_logit(a.logit, a.token, b.logit, b.token);
                    });
  candidates_.resize(k);
  weigh(1);
}

void Sampler::weigh(double temperature) {
  const double highest = candidates_[0].logit;
  for (Candidate& c : candidates_)
    c.weight = std::exp((static_cast<double>(c.logit) - highest) / temperature);
}

void Sampler::keep_top_k() {
  if (options_->top_k == 0 || options_->top_k >= candidates_.size()) return;
  candidates_.erase(candidates_.begin() + options_->top_k, candidates_.end());
}

// Mean and deviation are those of all logits that the steps before this one have kept.
void Sampler::keep_within_sigma(std::span<const float> logits) {
  if (options_->top_n_sigma <= 0) return;
  double sum = 0, squares = 0, count = 0;
  const auto each = [&](const auto& take) {
    if (sigma_is_of_all_) {
      for (const float logit : logits) {
        if (logit != kNever) take(logit);
      }
    } else {
      for (const Candidate& c : candidates_) take(c.logit);
    }
  };
  each([&](float logit) { sum += logit, ++count; });
  const double mean = sum / count;
  each([&](float logit) { squares += (logit - mean) * (logit - mean); });
  const double least = candidates_[0].logit - options_->top_n_sigma * std::sqrt(squares / count);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
}

// Keeps the tokens whose information is nearest to the expected one (Meister et al. 2022).
void Sampler::keep_typical() {
  if (options_->typical_p >= 1) return;
  const double total = whole();
  double entropy = 0;
  for (const Candidate& c : candidates_) {
    const double p = c.weight / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  const auto distance = [&](const Candidate& c) { return std::abs(-std::log(c.weight / total) - entropy); };
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& a, const Candidate& b) { return distance(a) < distance(b); });
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && sum < options_->typical_p * total) sum += candidates_[kept++].weight;
  candidates_.resize(kept);
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return by_falling_logit(a.logit, a.token, b.logit, b.token);
  });
}

void Sampler::keep_top_p() {
  if (options_->top_p >= 1) return;
  const double total = whole();
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || sum < options_->top_p * total))
    sum += candidates_[kept++].weight;
  candidates_.resize(kept);
}

void Sampler::keep_min_p() {
  const double least = options_->min_p * candidates_[0].weight;
  std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < least; });
}

// "Exclude top choices": of the tokens above the threshold only the least probable is kept.
void Sampler::exclude_top_choices() {
  // Draws no random number if nothing can be left out, so that texts without this option do not change.
  if (options_->xtc_probability <= 0 || options_->xtc_threshold > 0.5f || candidates_.size() < 2) return;
  if (random_.uniform() >= options_->xtc_probability) return;
  const double least = options_->xtc_threshold * whole();
  const auto above = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const Candidate& c) { return c.weight < least; });
  if (above - candidates_.begin() >= 2) candidates_.erase(candidates_.begin(), above - 1);
}

double Sampler::whole() const {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  return total;
}

uint32_t Sampler::draw() {
  double left = random_.uniform() * whole();
  for (const Candidate& c : candidates_) {
    left -= c.weight;
    if (left < 0) return c.token;
  }
  return candidates_.back().token;  // rounding has used up the sum
}

}  // namespace tierd
