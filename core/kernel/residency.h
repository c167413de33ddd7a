// Where valid copies of neurons are in a tier's arena. Each edition has a range of equal slots; a slot is
// free, leased (its bytes are being fetched), valid, or valid and pinned (in use by a message in flight).
//
// A slot keeps its place for life: neurons are found through it, in any order, and closing a gap would copy
// what the next fetch fills for nothing. Only where an edition gets fewer slots, those behind its new end
// move.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/active_set.h"
#include "core/kernel/site.h"

namespace tierd {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

// Where the slots of each edition begin in an arena with addresses for `slots[e]` of edition e, and behind
// them where it ends: [editions + 1] bytes, ascending. An edition begins at a multiple of 4096, one that is
// larger than 2 MiB at a multiple of that: how much of each is in use may change, and what is not used is
// given back to the system in whole pages.
inline constexpr uint64_t kArenaAlignment = 2u << 20;
std::vector<uint64_t> arena_offsets(std::span<const Edition> editions, std::span<const uint32_t> slots);

class Residency {
 public:
  enum class State : uint8_t { absent, leased, valid };
  struct Neuron {
    uint32_t slot = kNoSlot;
    State state = State::absent;
    uint16_t pins = 0;
    bool evictable() const { return state == State::valid && pins == 0; }
  };

  // `max_slots[e]`: slots of edition e.
  Residency(std::span<const Edition> editions, std::span<const uint32_t> max_slots);

  bool valid(EditionId edition, uint32_t neuron) const { return at(edition, neuron).state == State::valid; }
  bool leased(EditionId edition, uint32_t neuron) const { return at(edition, neuron).state == State::leased; }
  bool pinned(EditionId edition, uint32_t neuron) const { return at(edition, neuron).pins != 0; }
  bool evictable(EditionId edition, uint32_t neuron) const { return at(edition, neuron).evictable(); }
  // All of an edition's; stay where they are.
  std::span<const Neuron> neurons(EditionId edition) const { return holding(edition).neurons; }
  // kNoSlot if neither valid nor leased.
  uint32_t slot(EditionId edition, uint32_t neuron) const { return at(edition, neuron).slot; }
  uint32_t free_slots(EditionId edition) const { return static_cast<uint32_t>(holding(edition).free.size()); }
  uint32_t max_slots(EditionId edition) const { return holding(edition).max_slots; }
  uint32_t valid_count(EditionId edition) const { return holding(edition).valid; }
  // A hash of where every neuron is: two histories that end alike have the same.
  uint64_t digest() const;

  // free -> leased. A free slot must exist.
  uint32_t lease(EditionId edition, uint32_t neuron);
  void abandon(EditionId edition, uint32_t neuron);                   // leased -> free
  void evict(EditionId edition, uint32_t neuron);                     // valid, not pinned -> free
  void landed(EditionId edition, std::span<const uint32_t> neurons);  // leased -> valid
  void pin(EditionId edition, std::span<const uint32_t> neurons);     // counted
  void unpin(EditionId edition, std::span<const uint32_t> neurons);
  void landed(EditionId edition, uint32_t neuron) { landed(edition, {&neuron, 1}); }
  void pin(EditionId edition, uint32_t neuron) { pin(edition, {&neuron, 1}); }
  void unpin(EditionId edition, uint32_t neuron) { unpin(edition, {&neuron, 1}); }
  // Pins those of `wanted` that are valid and appends them to `here`, the others to `absent`.
  void pin_valid(EditionId edition, const ActiveSet& wanted, std::vector<uint32_t>& here,
                 std::vector<uint32_t>& absent);

  // A neuron whose slot lay behind the end that its edition has now.
  struct Move {
    uint32_t neuron;
    uint32_t from, to;  // slots
    bool operator==(const Move&) const = default;
  };
  // An edition has so many slots from now on, at least as many as neurons that are valid; nothing of it is
  // leased or pinned. What lay behind the new end takes the lowest free slots, in the order of the old
  // ones. Returns what must be copied.
  std::vector<Move> resize(EditionId edition, uint32_t slots);

 private:
  struct Holding {  // of an edition
    std::vector<Neuron> neurons;
    std::vector<uint32_t> free;  // a stack; lowest slot on top at the start
    uint32_t max_slots = 0;
    uint32_t valid = 0;
  };
  Holding& holding(EditionId edition) { return holdings_[edition]; }
  const Holding& holding(EditionId edition) const { return holdings_[edition]; }
  const Neuron& at(EditionId edition, uint32_t neuron) const { return holding(edition).neurons[neuron]; }
  static void release(Holding& holding, Neuron& neuron);

  std::vector<Holding> holdings_;  // [editions]
};

}  // namespace tierd
