// M2Cache's adjacent token update (section 5.3). Of each network a memory holds exactly the neurons that the
// last token used, each in the edition in which it used them: what the next token shares with it stays, the
// others make room for what that one lacks. A neuron whose rank has changed comes in its new edition, and
// leaves the old one. What is used whole in every step stays for good.
//
// The paper's unit of a layer is one block of memory with room for a token's neurons. Here each edition has
// slots, as many as its tokens need on the mean; where a token needs more, the rest passes through staging.
//
// A pass of several rows is one token's: all that its rows use stays until the next one.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tierd/whole_and_part.hpp"

namespace {

// How fast what an edition needs is forgotten: a token's part of the mean.
constexpr double kNewest = 1.0 / 16;

// The resident neurons of one edition.
class Unit {
 public:
  explicit Unit(uint32_t n) : used_at_(n, 0), place_(n, kAbsent) {}

  void landed(uint32_t neuron) {
    if (place_[neuron] != kAbsent) return;
    place_[neuron] = static_cast<uint32_t>(here_.size());
    here_.push_back(neuron);
  }
  void dropped(uint32_t neuron) {
    if (place_[neuron] == kAbsent) return;
    here_[place_[neuron]] = here_.back();
    place_[here_.back()] = place_[neuron];
    here_.pop_back();
    place_[neuron] = kAbsent;
  }

  void touch(const tierd_set_view& used) {
    ++token_;
    for (uint32_t i = 0; i < used.n; ++i) used_at_[used.idx == nullptr ? i : used.idx[i]] = token_;
    if (used.rows > 1) return;
    need_ = need_ < 0 ? used.n : need_ + (used.n - need_) * kNewest;
  }
  bool used_by_last(uint32_t neuron) const { return used_at_[neuron] == token_; }

  const std::vector<uint32_t>& here() const { return here_; }
  std::vector<uint32_t> leaving_order() const { return here_; }
  // Neurons a token, on the mean of the latest; negative: not known yet.
  double need() const { return need_; }

 private:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  uint64_t token_ = 0;
  std::vector<uint64_t> used_at_;  // [n] the last token that used it; 0: none
  std::vector<uint32_t> place_;    // [n] in here_
  std::vector<uint32_t> here_;
  double need_ = -1;
};

class Atu : public tierd::WholeAndPart<Unit> {
 public:
  explicit Atu(const tierd::Host& host) : WholeAndPart(host, true, [](uint32_t n) { return Unit(n); }) {}

  // What the present pass uses and is here is pinned, so that whoever may leave is not used by it.
  void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    if (!in_part(missing.edition)) return FixedSet::admit(missing, priority, free_slots, verdict, victims);
    victims.n = 0;
    const uint32_t wanted = std::min(lacking(missing, free_slots), victims.cap);
    const std::vector<uint32_t>& here = parts()[missing.edition].here();
    for (size_t i = 0; i < here.size() && victims.n < wanted; ++i) {
      if (host().evictable(missing.edition, here[i])) victims.item[victims.n++] = {missing.edition, here[i]};
    }
    if (keep_first(missing, free_slots + victims.n, verdict) < missing.n) falls_short();
  }

  void touch(const tierd_set_view& used) {
    if (in_part(used.edition)) parts()[used.edition].touch(used);
  }

  void expire(uint32_t edition, tierd_victims_out& victims) {
    victims.n = 0;
    const Unit& unit = parts()[edition];
    for (const uint32_t neuron : unit.here()) {
      if (!unit.used_by_last(neuron) && host().evictable(edition, neuron))
        victims.item[victims.n++] = {edition, neuron};
    }
  }
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Atu>("atu", "1.0",
                               "dense weights stay, and the neurons of the last token (M2Cache)"))
