// Base class of a cache that keeps the sites that every step uses whole, and selected neurons of the other
// sites. Each edition of the latter has a Part, which remembers its neurons. The slots of each follow from
// its measured need (SplitByNeed). Optional; C++17, header-only.
#ifndef TIERD_POLICY_WHOLE_AND_PART_HPP
#define TIERD_POLICY_WHOLE_AND_PART_HPP

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tierd/policy/fixed_set.hpp"
#include "tierd/policy/split_by_need.hpp"

namespace tierd {

// Implements the functions of a cache except `admit`, `touch` and `expire`, which concern the parts. A Part
// has
//   void landed(uint32_t neuron), void dropped(uint32_t neuron)
//   std::vector<uint32_t> leaving_order() const   all resident neurons, the first to evict first
//   double need() const                           mean slots that it needs; negative: not known yet
template <class Part>
class WholeAndPart : public FixedSet {
 public:
  // make(n): returns the part of an edition of n neurons, or of 0 if a step uses the edition whole.
  // `at_once`: see SplitByNeed.
  template <class Make>
  WholeAndPart(const Host& host, bool at_once, Make make) : FixedSet(host), split_(host, at_once) {
    for (uint32_t e = 0; e < host.n_editions(); ++e)
      parts_.push_back(make(in_part(e) ? host.edition(e).n : 0));
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
      if (in_part(e)) tierd::name_surplus(host(), e, parts_[e].leaving_order(), max_slots[e], victims);
    }
  }

  void resplit(uint32_t* wanted) { *wanted = split_.is_due(needs()) ? 1 : 0; }

  void landed(uint32_t edition, const uint32_t* idx, uint32_t n) {
    FixedSet::landed(edition, idx, in_part(edition) ? 0 : n);
    for (uint32_t i = 0; in_part(edition) && i < n; ++i) parts_[edition].landed(idx[i]);
  }
  void dropped(uint32_t edition, const uint32_t* idx, uint32_t n, int why) {
    FixedSet::dropped(edition, idx, in_part(edition) ? 0 : n, why);
    for (uint32_t i = 0; in_part(edition) && i < n; ++i) parts_[edition].dropped(idx[i]);
  }

 protected:
  bool in_part(uint32_t edition) const { return used_in_part(host().site_of(edition)); }
  // [editions]
  std::vector<Part>& parts() { return parts_; }

  // Reports that `missing` has more neurons than there are slots: another split is considered.
  void falls_short() { split_.falls_short(); }

  // Returns the number of missing neurons for which there is no slot.
  static uint32_t lacking(const tierd_set_view& missing, uint32_t free_slots) {
    return missing.n > free_slots ? missing.n - free_slots : 0;
  }
  // Keeps the first `room` missing neurons and bypasses the others. Returns the number kept.
  static uint32_t keep_first(const tierd_set_view& missing, uint32_t room, uint8_t* verdict) {
    const uint32_t kept = std::min(missing.n, room);
    for (uint32_t i = 0; i < missing.n; ++i)
      verdict[i] = i < kept ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS;
    return kept;
  }

 private:
  std::vector<double> needs() const {
    std::vector<double> needs;
    for (const Part& part : parts_) needs.push_back(part.need());
    return needs;
  }

  SplitByNeed split_;
  std::vector<Part> parts_;
};

}  // namespace tierd
#endif
