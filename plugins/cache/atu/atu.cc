// M2Cache's adjacent token update (section 5.3). A memory holds exactly the neurons of each network that
// the last token used, each in the edition in which it was used. Neurons that the next token uses as well
// stay; the others make room for its missing neurons. A neuron whose rank has changed is fetched in its new
// edition, and leaves the old one. Sites that every step uses whole stay for good.
//
// The paper's unit of a layer is one block of memory with room for a token's neurons. Here each edition has
// slots, as many as its tokens need on the mean; if a token needs more, the rest passes through staging.
//
// A pass of several rows counts as one token: all neurons of its rows stay until the next one.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/policy/whole_and_part.hpp"

namespace {

// The weight of a token in the mean of an edition's need.
constexpr double kNewest = 1.0 / 16;

// The resident neurons of one edition, and those that the last token used: a bit each, so that the cost of a
// token is small.
class Unit {
 public:
  explicit Unit(uint32_t n) : here_((n + 63) / 64, 0), used_(here_.size(), 0) {}

  void landed(uint32_t neuron) { here_[neuron / 64] |= bit(neuron); }
  void dropped(uint32_t neuron) { here_[neuron / 64] &= ~bit(neuron); }

  void touch(const tierd_set_view& used) {
    std::fill(used_.begin(), used_.end(), used.idx == nullptr ? ~uint64_t{0} : 0);
    for (uint32_t i = 0; used.idx != nullptr && i < used.n; ++i) used_[used.idx[i] / 64] |= bit(used.idx[i]);
    if (used.rows > 1) return;
    need_ = need_ < 0 ? used.n : need_ + (used.n - need_) * kNewest;
  }

  // Calls each(neuron) for the resident neurons, ascending, or for those of them that the last token did not
  // use, until it returns false.
  template <class Each>
  void each_here(Each each) const {
    each_of([&](size_t word) { return here_[word]; }, each);
  }
  template <class Each>
  void each_unused(Each each) const {
    each_of([&](size_t word) { return here_[word] & ~used_[word]; }, each);
  }
  std::vector<uint32_t> leaving_order() const {
    std::vector<uint32_t> order;
    each_here([&](uint32_t neuron) { return order.push_back(neuron), true; });
    return order;
  }
  // Returns the neurons a token, on the mean of the latest; negative: not known yet.
  double need() const { return need_; }

 private:
  static uint64_t bit(uint32_t neuron) { return uint64_t{1} << neuron % 64; }
  template <class Word, class Each>
  void each_of(Word word, Each each) const {
    for (size_t w = 0; w < here_.size(); ++w) {
      for (uint64_t left = word(w); left != 0; left &= left - 1) {
        if (!each(static_cast<uint32_t>(64 * w) + static_cast<uint32_t>(__builtin_ctzll(left)))) return;
      }
    }
  }

  std::vector<uint64_t> here_, used_;  // [n] bits
  double need_ = -1;
};

class Atu : public tierd::WholeAndPart<Unit> {
 public:
  explicit Atu(const tierd::Host& host) : WholeAndPart(host, true, [](uint32_t n) { return Unit(n); }) {}

  // The resident neurons of the present pass are pinned, so it uses none of the evictable ones.
  void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    if (!in_part(missing.edition)) return FixedSet::admit(missing, priority, free_slots, verdict, victims);
    victims.n = 0;
    const uint32_t wanted = std::min(lacking(missing, free_slots), victims.cap);
    if (wanted > 0) {
      parts()[missing.edition].each_here([&](uint32_t neuron) {
        name(missing.edition, neuron, victims);
        return victims.n < wanted;
      });
    }
    if (keep_first(missing, free_slots + victims.n, verdict) < missing.n) falls_short();
  }

  void touch(const tierd_set_view& used) {
    if (in_part(used.edition)) parts()[used.edition].touch(used);
  }

  void expire(uint32_t edition, tierd_victims_out& victims) {
    victims.n = 0;
    parts()[edition].each_unused([&](uint32_t neuron) { return name(edition, neuron, victims), true; });
  }

 private:
  void name(uint32_t edition, uint32_t neuron, tierd_victims_out& victims) {
    if (host().evictable(edition, neuron)) victims.item[victims.n++] = {edition, neuron};
  }
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Atu>("atu", "1.0",
                               "keeps dense weights, and the neurons of the last token (M2Cache)"))
