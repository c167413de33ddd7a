// M2Cache's dynamic sparse mixed precision (section 5.2): the neurons of a token are ranked by the
// predictor's scores, and the better a neuron ranks, the more bits it is used with. `ratios` gives the
// percentage of neurons that is used in each edition of a site, the best edition first: 25/25/50 of f16, q8_0
// and q4_0 are the paper's for LLaMA-13B.
//
// Only the neurons of the pass are ranked; in a pass of several rows, by their greatest score in any row.
// Shares are rounded so that every neuron has an edition, and equal scores are ranked by the number of the
// neuron. If a site has fewer editions than there are ratios, the last one takes the rest. Without scores, or
// with all neurons in one edition, nothing is ranked.
//
// Between two tokens many more neurons change ranks than come and go, and a neuron that crosses a border is
// fetched anew in another edition: where 8 of 10 neurons were used by the token before, about half of the
// bytes are in the same edition (tests/bench/results/m2cache). With a `margin`, a neuron keeps its
// edition of the token before while its rank is at most that share of all away from the edition's ranks. The
// other neurons fill the rest of each edition, the best first. The shares remain those of `ratios`.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tierd/percents.hpp"
#include "tierd/plugin.hpp"

namespace {

constexpr double kRounding = 1e-6;  // tolerance for a sum of decimals

constexpr tierd_param kParams[] = {
    tierd::lossy(
        tierd::text("ratios", "25/25/50", nullptr,
                    "of a hundred neurons so many are used in each edition of their site, the best first; "
                    "tier-profile --search-ratio finds them")),
    tierd::lossy(tierd::number(
        "margin", "0", 0, 1,
        "a neuron keeps its edition of the token before while it ranks within so large a share of all "
        "from those of that edition; 0: its rank alone decides (the paper)")),
};

constexpr const char* kManual =
    "Needs a store with several editions (model.editions, tier-convert --editions) and a predictor that "
    "gives "
    "scores, such as low-rank. 100/0/0 is lossless.";

[[noreturn]] void refuse(const std::string& ratios, const std::string& why) {
  throw tierd::Failure(TIERD_E_UNSUPPORTED, "ratios: '" + ratios.substr(0, 64) + "' " + why);
}

// Returns shares whose sum is 1.
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
        margin_(host.number("margin")),
        used_(shares_.size()),
        left_(shares_.size()),
        before_(host.n_sites()) {
    const auto whole =
        std::find_if(shares_.begin(), shares_.end(), [](double share) { return share > 1 - kRounding; });
    if (whole != shares_.end()) only_ = static_cast<int>(whole - shares_.begin());
    bool any = false, other = false;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      any = any || host.site(s).n_editions > 1;
      other = other || (host.site(s).n_editions > 1 && host.site(s).n_editions != shares_.size());
    }
    if (host.n_sites() != 0 && !any)
      throw tierd::Failure(
          TIERD_E_UNSUPPORTED,
          "every site has one edition, so that nothing is mixed: --set model.editions=q8_0,q4_0 "
          "stores three of a model in 16 bits; --set quantizer.name=plain mixes nothing");
    if (other)
      host.log(
          TIERD_LOG_WARNING,
          "some sites have another number of editions than there are ratios: their last one takes the rest");
  }

  // Scores are not needed if all neurons are used in one edition.
  uint32_t caps() const { return only_ >= 0 ? 0 : TIERD_LEVELS_NEEDS_SCORES; }

  void choose(const tierd_set_view& set, uint8_t* level) {
    last_ = static_cast<uint8_t>(host_.site(set.site).n_editions - 1);
    if (only_ >= 0 || set.score == nullptr) {
      std::fill_n(level, set.n, std::min(last_, static_cast<uint8_t>(std::max(only_, 0))));
    } else {
      rank(set, level);
    }
    if (set.kind == TIERD_SET_FORESEEN) return;
    for (uint32_t i = 0; i < set.n; ++i) ++used_[level[i]];
    tell();
  }

 private:
  // Greater scores first, of equal ones the lesser number, so no two neurons have the same key.
  static uint64_t key(float score, uint32_t i) {
    score += 0.0F;  // maps -0 to 0, which equals it
    uint32_t bits = 0;
    std::memcpy(&bits, &score, sizeof bits);
    bits = (bits & kSign) != 0 ? ~bits : bits | kSign;
    return uint64_t{bits} << 32 | (UINT32_MAX - i);
  }

  void rank(const tierd_set_view& set, uint8_t* level) {
    keys_.clear();
    rest_.clear();
    for (uint32_t i = 0; i < set.n; ++i) keys_.push_back(key(set.score[i], i));
    for (uint32_t i = 0; i < set.n; ++i) rest_.push_back(i);
    double share = 0;
    for (size_t l = 0, begin = 0; l < left_.size(); ++l) {
      share += shares_[l];
      const size_t end = l + 1 == left_.size() ? set.n : std::min<size_t>(set.n, std::lround(share * set.n));
      left_[l] = end - begin;
      begin = end;
    }
    const bool by_margin = margin_ > 0 && set.n != 0;
    if (by_margin) keep_near(set, level);
    // The best neurons get the best editions.
    size_t begin = 0;
    for (size_t l = 0; l < left_.size(); ++l) {
      const size_t end = begin + left_[l];
      if (end != begin && end != rest_.size()) nth_best(rest_, begin, end - 1);
      for (size_t i = begin; i < end; ++i) level[rest_[i]] = static_cast<uint8_t>(l);
      begin = end;
    }
    // A foreseen set may be wrong, so it must not change the edition of a later pass.
    if (by_margin && set.kind != TIERD_SET_FORESEEN) remember(set, level);
    for (uint32_t i = 0; i < set.n; ++i) level[i] = std::min(last_, level[i]);
  }

  // Puts the best of `indices` from `begin` on, by their keys, at the positions up to `n`.
  void nth_best(std::vector<uint32_t>& indices, size_t begin, size_t n) const {
    const auto at = [&](size_t i) { return indices.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(begin), at(n), indices.end(),
                     [&](uint32_t a, uint32_t b) { return keys_[a] > keys_[b]; });
  }
  uint64_t key_at(size_t rank) {
    nth_best(by_rank_, 0, rank);
    return keys_[by_rank_[rank]];
  }

  // Assigns neurons to the level that they had, and removes them from rest_ and their places from left_.
  void keep_near(const tierd_set_view& set, uint8_t* level) {
    Before& before = before_[set.site];
    if (before.level.empty()) before.level.assign(host_.site(set.site).n, kNone);
    by_rank_ = rest_;
    const auto near = static_cast<size_t>(std::lround(margin_ * set.n));
    size_t begin = 0;
    for (size_t l = 0; l < left_.size(); ++l) {
      const size_t end = begin + left_[l];
      const size_t worst = std::min<size_t>(set.n, end + near);
      if (left_[l] == 0 || worst == 0) continue;
      const uint64_t most = key_at(begin - std::min(begin, near)), least = key_at(worst - 1);
      begin = end;
      kept_.clear();
      for (uint32_t i = 0; i < set.n; ++i) {
        if (before.level[neuron(set, i)] == l && keys_[i] <= most && keys_[i] >= least) kept_.push_back(i);
      }
      if (kept_.size() > left_[l]) {
        nth_best(kept_, 0, left_[l]);
        kept_.resize(left_[l]);
      }
      for (const uint32_t i : kept_) level[i] = static_cast<uint8_t>(l);
      left_[l] -= kept_.size();
      std::sort(kept_.begin(), kept_.end());
      rest_.erase(
          std::remove_if(rest_.begin(), rest_.end(),
                         [&](uint32_t i) { return std::binary_search(kept_.begin(), kept_.end(), i); }),
          rest_.end());
    }
  }

  void remember(const tierd_set_view& set, const uint8_t* level) {
    Before& before = before_[set.site];
    for (const uint32_t used : before.used) before.level[used] = kNone;
    before.used.clear();
    for (uint32_t i = 0; i < set.n; ++i) {
      before.used.push_back(neuron(set, i));
      before.level[neuron(set, i)] = level[i];
    }
  }

  static uint32_t neuron(const tierd_set_view& set, uint32_t i) {
    return set.idx == nullptr ? i : set.idx[i];
  }

  void tell() const {
    uint64_t all = 0;
    for (const uint64_t used : used_) all += used;
    for (size_t l = 0; all != 0 && l < used_.size(); ++l)
      host_.metric(("share." + std::to_string(l)).c_str(),
                   static_cast<double>(used_[l]) / static_cast<double>(all));
  }

  static constexpr uint32_t kSign = 0x80000000;
  static constexpr uint8_t kNone = UINT8_MAX;
  // The levels of the last set of a site.
  struct Before {
    std::vector<uint8_t> level;  // [neurons] kNone: not used
    std::vector<uint32_t> used;
  };

  tierd::Host host_;
  std::vector<double> shares_;     // [editions of a site]
  double margin_;                  // a share of the set
  int only_ = -1;                  // the level of all neurons, if there is one
  uint8_t last_ = 0;               // last level of the present site
  std::vector<uint64_t> used_;     // [levels] neurons so far
  std::vector<uint64_t> keys_;     // of the set, in its order
  std::vector<uint32_t> rest_;     // indices of the set without a level
  std::vector<size_t> left_;       // [levels] places left
  std::vector<uint32_t> by_rank_;  // indices of the set, partly ordered by rank
  std::vector<uint32_t> kept_;     // of one level
  std::vector<Before> before_;     // [sites]
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::quantizer<Mixed>("mixed", "1.0",
                                               "the better a neuron ranks, the more bits it is used with"),
                       kParams),
    kManual))
