// M2Cache's adjacent token update (section 5.3). Of each network a memory holds exactly the neurons that the
// last token used, each in the edition in which it used them: what the next token shares with it stays, the
// others make room for what that one lacks. A neuron whose rank has changed comes in its new edition, and
// leaves the old one. What is used whole in every step stays for good.
//
// The paper's unit of a layer is one block of memory with room for a token's neurons. Here each edition has
// slots, as many as its tokens need on the mean; where a token needs more, the rest passes through staging.
//
// A pass of several rows is one token's: all that its rows use stays until the next one.
#include <cstdint>
#include <vector>

#include "tierd/fixed_set.hpp"
#include "tierd/split_by_need.hpp"

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

class Atu : public tierd::FixedSet {
 public:
  explicit Atu(const tierd::Host& host) : FixedSet(host), split_(host, true) {
    for (uint32_t e = 0; e < host.n_editions(); ++e) units_.emplace_back(in_part(e) ? host.edition(e).n : 0);
  }

  void share(uint64_t bytes, uint32_t* max_slots) {
    split_.share(bytes, max_slots, needs());
    for (uint32_t e = 0; e < host().n_editions(); ++e) {
      std::vector<uint32_t> kept;
      for (uint32_t i = 0; !in_part(e) && i < host().edition(e).n && kept.size() < max_slots[e]; ++i) {
        if (host().at_home(e, i)) kept.push_back(i);
      }
      keep(e, std::move(kept));
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    name_surplus(max_slots, victims);
    for (uint32_t e = 0; e < host().n_editions(); ++e) {
      if (in_part(e)) tierd::name_surplus(host(), e, units_[e].here(), max_slots[e], victims);
    }
  }

  void resplit(uint32_t* wanted) { *wanted = split_.is_due(needs()) ? 1 : 0; }

  // What the present pass uses and is here is pinned, so that whoever may leave is not used by it.
  void admit(const tierd_set_view& missing, int priority, uint32_t free_slots, uint8_t* verdict,
             tierd_victims_out& victims) {
    if (!in_part(missing.edition)) return FixedSet::admit(missing, priority, free_slots, verdict, victims);
    victims.n = 0;
    const uint32_t lacking = missing.n > free_slots ? missing.n - free_slots : 0;
    const std::vector<uint32_t>& here = units_[missing.edition].here();
    for (size_t i = 0; i < here.size() && victims.n < std::min(lacking, victims.cap); ++i) {
      if (host().evictable(missing.edition, here[i])) victims.item[victims.n++] = {missing.edition, here[i]};
    }
    const uint32_t kept = std::min(missing.n, free_slots + victims.n);
    if (kept < missing.n) split_.falls_short();
    for (uint32_t i = 0; i < missing.n; ++i)
      verdict[i] = i < kept ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
  }

  void landed(uint32_t edition, const uint32_t* idx, uint32_t n) {
    FixedSet::landed(edition, idx, in_part(edition) ? 0 : n);
    for (uint32_t i = 0; in_part(edition) && i < n; ++i) units_[edition].landed(idx[i]);
  }
  void dropped(uint32_t edition, const uint32_t* idx, uint32_t n, int why) {
    FixedSet::dropped(edition, idx, in_part(edition) ? 0 : n, why);
    for (uint32_t i = 0; in_part(edition) && i < n; ++i) units_[edition].dropped(idx[i]);
  }

  void touch(const tierd_set_view& used) {
    if (in_part(used.edition)) units_[used.edition].touch(used);
  }

  void expire(uint32_t edition, tierd_victims_out& victims) {
    victims.n = 0;
    for (const uint32_t neuron : units_[edition].here()) {
      if (!units_[edition].used_by_last(neuron) && host().evictable(edition, neuron))
        victims.item[victims.n++] = {edition, neuron};
    }
  }

 private:
  bool in_part(uint32_t edition) const { return tierd::used_in_part(host().site_of(edition)); }
  std::vector<double> needs() const {
    std::vector<double> needs;
    for (const Unit& unit : units_) needs.push_back(unit.need());
    return needs;
  }

  tierd::SplitByNeed split_;
  std::vector<Unit> units_;  // [editions]
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Atu>("atu", "1.0",
                               "dense weights stay, and the neurons of the last token (M2Cache)"))
