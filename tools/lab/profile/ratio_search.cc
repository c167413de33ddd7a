#include "tools/lab/profile/ratio_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/engine/session.h"
#include "core/model/sampling/logprobs.h"
#include "tools/evaluation/loss.h"

namespace tierd {
namespace {

constexpr double kRounding = 1e-9;  // tolerance for sums of steps

// Appends the points that follow from `shares`; the editions from `edition` on are open, with `left` bits.
void add_points(const std::vector<double>& bits, double left, double step, bool drops, size_t edition,
                EditionShares& shares, std::vector<EditionShares>& points) {
  const double used = std::accumulate(shares.begin(), shares.begin() + static_cast<long>(edition), 0.0);
  if (edition + 1 == bits.size()) {
    shares[edition] = std::clamp(left / bits[edition], 0.0, 1 - used);
    const double all = used + shares[edition];
    if (all > kRounding && (drops || all > 1 - kRounding)) points.push_back(shares);
    return;
  }
  for (uint32_t k = 0;; ++k) {
    const double share = k * step;
    if (used + share > 1 + kRounding || share * bits[edition] > left + kRounding) break;
    shares[edition] = std::min(share, 1 - used);
    add_points(bits, std::max(0.0, left - share * bits[edition]), step, drops, edition + 1, shares, points);
  }
  shares[edition] = 0;
}

Result<double> entropy_of(Session& session, std::span<const uint32_t> window, uint32_t prompt) {
  session.clear();
  double nats = 0;
  uint32_t next = 0;
  for (size_t i = 0; i + 1 < window.size(); ++i) {
    const uint32_t token = i < prompt ? window[i] : next;
    TIERD_ASSIGN(const std::span<const float> logits, session.append({&token, 1}));
    if (i + 1 < std::min<size_t>(prompt, window.size() - 1)) continue;
    nats += entropy(logits);
    next = static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  return nats;
}

Result<double> perplexity_of(Session& session, const std::vector<std::vector<uint32_t>>& windows) {
  double nats = 0;
  uint64_t tokens = 0;
  for (const std::vector<uint32_t>& window : windows) {
    session.clear();
    if (window.empty()) continue;
    // The last token is only predicted, never appended.
    TIERD_TRY(session.append_with_logits(std::span(window).first(window.size() - 1),
                                         [&](size_t i, std::span<const float> logits) {
                                           nats -= logprobs_of(logits, window[i + 1], 0).chosen.logprob;
                                           ++tokens;
                                         }));
  }
  return std::exp(nats / static_cast<double>(std::max<uint64_t>(1, tokens)));
}

}  // namespace

std::vector<EditionShares> points_of_budget(const std::vector<double>& bits, double budget, double step,
                                            bool drops) {
  std::vector<EditionShares> points;
  EditionShares shares(bits.size(), 0);
  add_points(bits, budget, step, drops, 0, shares, points);
  return points;
}

void apply(const EditionShares& shares, Config& config) {
  if (config.predictor.name == "low-rank") {
    std::erase_if(config.predictor.settings, [](const Setting& setting) {
      return setting.key == "keep" || setting.key == "fit_memory" || setting.key == "mix";
    });
    config.predictor.settings.push_back({"keep", kept_share(shares), "--search-ratio"});
  }
  config.quantizer = {"mixed"};
  config.quantizer.settings = {{"ratios", ratios_text(shares), "--search-ratio"}};
}

Result<std::vector<RatioScore>> search_ratio(const RatioSearch& search, const MakeRuntime& make,
                                             const std::function<void(const RatioScore&)>& told) {
  std::vector<RatioScore> scores;
  for (const EditionShares& shares : search.points) {
    TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, make(shares));
    Session session(runtime->engine(), 0);
    RatioScore& score = scores.emplace_back();
    score.shares = shares;
    for (size_t e = 0; e < shares.size(); ++e) score.bits += shares[e] * search.bits[e];
    for (const std::vector<uint32_t>& window : search.windows) {
      TIERD_ASSIGN(const double nats, entropy_of(session, window, search.prompt));
      score.entropy += nats;
    }
    if (search.sweeps) {
      TIERD_ASSIGN(score.perplexity, perplexity_of(session, search.windows));
    }
    TIERD_TRY(runtime->engine().drain());
    told(score);
  }
  return scores;
}

size_t surest(const std::vector<RatioScore>& scores) {
  return static_cast<size_t>(std::ranges::min_element(scores, {}, &RatioScore::entropy) - scores.begin());
}
size_t best(const std::vector<RatioScore>& scores) {
  return static_cast<size_t>(std::ranges::min_element(scores, {}, &RatioScore::perplexity) - scores.begin());
}

double kept_share(const EditionShares& shares) {
  return std::min(1.0, std::accumulate(shares.begin(), shares.end(), 0.0));
}

std::string ratios_text(const EditionShares& shares) {
  const double all = kept_share(shares);
  std::string text;
  double named = 0;
  for (size_t e = 0; e < shares.size(); ++e) {
    // The last one takes the rounding error, so that they add up to 100.
    const double percent = e + 1 == shares.size() ? 100 - named : std::round(shares[e] / all * 1e4) / 100;
    named += percent;
    text += fmt::format("{}{:.6g}", e == 0 ? "" : "/", std::max(0.0, percent));
  }
  return text;
}

}  // namespace tierd
