// Where valid copies of neurons are in a tier's arena. Per canonical site a range of equal slots; a slot is
// free, leased (bytes on their way in), valid, or valid and pinned (in use by a message in flight).
//
// A slot keeps its place for life: neurons are found through it, in whatever order they lie, and closing a
// gap would copy what the next arrival fills for nothing. Only where a site gets fewer slots, those behind
// its new end move.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/active_set.h"
#include "core/kernel/site.h"

namespace tierd {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

// Where the slots of each canonical site begin in an arena with addresses for `slots[s]` of site s, and
// behind them where it ends: [sites + 1] bytes, ascending. A site begins at a multiple of 4096, one that is
// larger than 2 MiB at a multiple of that: how much of each is in use may change, and what is not used is
// given back to the system in whole pages.
inline constexpr uint64_t kArenaAlignment = 2u << 20;
std::vector<uint64_t> arena_offsets(const std::vector<Site>& sites, std::span<const uint32_t> slots);

class Residency {
 public:
  enum class State : uint8_t { absent, leased, valid };
  struct Neuron {
    uint32_t slot = kNoSlot;
    State state = State::absent;
    uint16_t pins = 0;
    bool evictable() const { return state == State::valid && pins == 0; }
  };

  // `max_slots[s]`: slots of site s (0 for aliases).
  Residency(const std::vector<Site>& sites, std::span<const uint32_t> max_slots);

  // Queries take any site, aliases included.
  bool valid(SiteId site, uint32_t neuron) const { return at(site, neuron).state == State::valid; }
  bool leased(SiteId site, uint32_t neuron) const { return at(site, neuron).state == State::leased; }
  bool pinned(SiteId site, uint32_t neuron) const { return at(site, neuron).pins != 0; }
  bool evictable(SiteId site, uint32_t neuron) const { return at(site, neuron).evictable(); }
  // All of a site's; stay where they are.
  std::span<const Neuron> neurons(SiteId site) const { return domain(site).neurons; }
  // kNoSlot if neither valid nor leased.
  uint32_t slot(SiteId site, uint32_t neuron) const { return at(site, neuron).slot; }
  uint32_t free_slots(SiteId site) const { return static_cast<uint32_t>(domain(site).free.size()); }
  uint32_t max_slots(SiteId site) const { return domain(site).max_slots; }
  uint32_t valid_count(SiteId site) const { return domain(site).valid; }
  // A hash of where every neuron is: two histories that end alike have the same.
  uint64_t digest() const;

  // free -> leased. A free slot must exist.
  uint32_t lease(SiteId site, uint32_t neuron);
  void abandon(SiteId site, uint32_t neuron);                   // leased -> free
  void evict(SiteId site, uint32_t neuron);                     // valid, not pinned -> free
  void landed(SiteId site, std::span<const uint32_t> neurons);  // leased -> valid
  void pin(SiteId site, std::span<const uint32_t> neurons);     // counted
  void unpin(SiteId site, std::span<const uint32_t> neurons);
  void landed(SiteId site, uint32_t neuron) { landed(site, {&neuron, 1}); }
  void pin(SiteId site, uint32_t neuron) { pin(site, {&neuron, 1}); }
  void unpin(SiteId site, uint32_t neuron) { unpin(site, {&neuron, 1}); }
  // Pins those of `wanted` that are valid and appends them to `here`, the others to `absent`.
  void pin_valid(SiteId site, const ActiveSet& wanted, std::vector<uint32_t>& here,
                 std::vector<uint32_t>& absent);

  // A neuron whose slot lay behind the end that a site has now.
  struct Move {
    uint32_t neuron;
    uint32_t from, to;  // slots
    bool operator==(const Move&) const = default;
  };
  // A canonical site has so many slots from now on, at least as many as neurons that are valid; nothing of it
  // is leased or pinned. What lay behind the new end takes the lowest free slots, in the order of the old
  // ones. Returns what must be copied.
  std::vector<Move> resize(SiteId site, uint32_t slots);

 private:
  struct Domain {
    std::vector<Neuron> neurons;
    std::vector<uint32_t> free;  // a stack; lowest slot on top at the start
    uint32_t max_slots = 0;
    uint32_t valid = 0;
  };
  Domain& domain(SiteId site) { return domains_[domain_of_[site]]; }
  const Domain& domain(SiteId site) const { return domains_[domain_of_[site]]; }
  const Neuron& at(SiteId site, uint32_t neuron) const { return domain(site).neurons[neuron]; }
  void release(Domain& domain, Neuron& neuron);

  std::vector<SiteId> domain_of_;
  std::vector<Domain> domains_;
};

}  // namespace tierd
