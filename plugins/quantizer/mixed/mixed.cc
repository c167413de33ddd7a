// M2Cache's dynamic sparse mixed precision (section 5.2): the neurons of a token are ranked by what the
// predictor says of them, and the better a neuron stands, the more bits it is used with. `ratios` says how
// many of a hundred neurons are used in each edition of a site, the best edition first: 25/25/50 of f16, q8_0
// and q4_0 are the paper's for LLaMA-13B.
//
// The ranks are those of the neurons that the pass uses; of a pass of several rows, of the greatest score in
// any row. Shares are rounded so that every neuron has an edition, and equal scores go by the number of the
// neuron. The last edition of a site that has fewer than there are ratios takes what is left. Where a site
// has no scores, or all neurons are used in one edition, nobody ranks anything.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tierd/percents.hpp"
#include "tierd/plugin.hpp"

namespace {

constexpr double kRounding = 1e-6;  // of a sum that a person has written in decimals

constexpr tierd_param kParams[] = {
    tierd::lossy(
        tierd::text("ratios", "25/25/50", nullptr,
                    "of a hundred neurons so many are used in each edition of their site, the best first; "
                    "tier-profile --search-ratio finds them")),
};

constexpr const char* kManual =
    "Needs a store with several editions (model.editions, tier-convert --editions) and a predictor that "
    "gives "
    "scores, such as low-rank. 100/0/0 is lossless.";

[[noreturn]] void refuse(const std::string& ratios, const std::string& why) {
  throw tierd::Failure(TIERD_E_UNSUPPORTED, "ratios: '" + ratios.substr(0, 64) + "' " + why);
}

// Shares of 1, which add up to it.
std::vector<double> read_ratios(const std::string& text) {
  std::vector<double> shares = tierd::percents("ratios", text);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (std::abs(sum - 1) > kRounding) refuse(text, "does not add up to 100");
  return shares;
}

class Mixed {
 public:
  explicit Mixed(const tierd::Host& host)
      : host_(host),
        shares_(read_ratios(host.text("ratios"))),
        used_(shares_.size()),
        least_(shares_.size() - 1) {
    const auto whole =
        std::find_if(shares_.begin(), shares_.end(), [](double share) { return share > 1 - kRounding; });
    if (whole != shares_.end()) only_ = static_cast<int>(whole - shares_.begin());
    bool any = false, other = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      any = any || host.site(s).n_editions > 1;
      other = other || (host.site(s).n_editions > 1 && host.site(s).n_editions != shares_.size());
    }
    if (host.n_sites() != 0 && !any)
      host.log(TIERD_LOG_WARNING, "every site has one edition: nothing is mixed (model.editions)");
    if (other)
      host.log(
          TIERD_LOG_WARNING,
          "some sites have another number of editions than there are ratios: their last one takes the rest");
  }

  // Where all are used in one edition, nobody need say which of them matter.
  uint32_t caps() const { return only_ >= 0 ? 0 : TIERD_LEVELS_NEEDS_SCORES; }

  void choose(const tierd_set_view& set, uint8_t* level) {
    last_ = static_cast<uint8_t>(host_.site(set.site).n_editions - 1);
    if (only_ >= 0 || set.score == nullptr) {
      const auto all = std::min(last_, static_cast<uint8_t>(std::max(only_, 0)));
      std::fill_n(level, set.n, all);
      used_[all] += set.n;
    } else {
      rank(set, level);
    }
    tell();
  }

 private:
  // Greater scores first, of equal ones the lesser number: no two neurons have the same key.
  static uint64_t key(float score, uint32_t i) {
    score += 0.0F;  // of -0 too, which equals it
    uint32_t bits = 0;
    std::memcpy(&bits, &score, sizeof bits);
    bits = (bits & kSign) != 0 ? ~bits : bits | kSign;
    return uint64_t{bits} << 32 | (UINT32_MAX - i);
  }

  // Finds the last neuron of each level; all others are then compared with these alone.
  void rank(const tierd_set_view& set, uint8_t* level) {
    keys_.clear();
    for (uint32_t i = 0; i < set.n; ++i) keys_.push_back(key(set.score[i], i));
    ranked_ = keys_;
    uint32_t begin = 0;
    double share = 0;
    for (size_t l = 0; l < least_.size(); ++l) {
      share += shares_[l];
      const uint32_t end = std::min(set.n, static_cast<uint32_t>(std::lround(share * set.n)));
      least_[l] = UINT64_MAX;
      if (end > begin) {
        std::nth_element(ranked_.begin() + begin, ranked_.begin() + (end - 1), ranked_.end(),
                         std::greater<>());
        least_[l] = ranked_[end - 1];
      }
      begin = end;
    }
    for (uint32_t i = 0; i < set.n; ++i) {
      size_t l = 0;
      while (l < least_.size() && keys_[i] < least_[l]) ++l;
      level[i] = std::min(last_, static_cast<uint8_t>(l));
      ++used_[level[i]];
    }
  }

  void tell() const {
    uint64_t all = 0;
    for (const uint64_t used : used_) all += used;
    for (size_t l = 0; all != 0 && l < used_.size(); ++l)
      host_.metric(("share." + std::to_string(l)).c_str(),
                   static_cast<double>(used_[l]) / static_cast<double>(all));
  }

  static constexpr uint32_t kSign = 0x80000000;
  tierd::Host host_;
  std::vector<double> shares_;    // [editions of a site]
  int only_ = -1;                 // the level of all neurons, where there is one
  uint8_t last_ = 0;              // level of the site that is asked for
  std::vector<uint64_t> used_;    // [levels] neurons so far
  std::vector<uint64_t> keys_;    // of the set, in its order
  std::vector<uint64_t> ranked_;  // the same, ordered as far as is needed
  std::vector<uint64_t>
      least_;  // [levels but the last] key of the last neuron of each; UINT64_MAX: it has none
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::quantizer<Mixed>("mixed", "1.0",
                                               "the better a neuron ranks, the more bits it is used with"),
                       kParams),
    kManual))
