// The places of valid copies of neurons in a tier's arena. Each edition has a range of equal slots; a slot is
// free, leased (its bytes are being fetched), valid, or valid and pinned (in use by a message in flight).
//
// A neuron keeps its slot as long as it is resident: neurons are found by slot, in any order, and the next
// fetch fills the gaps. Neurons move only if their edition gets fewer slots and theirs lies behind the new
// end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/active_set.h"
#include "core/kernel/site.h"

namespace tierd {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

// Returns [editions + 1] bytes, ascending: where the slots of each edition begin in an arena with addresses
// for `slots[e]` of edition e, and where the arena ends. An edition begins at a multiple of 4096, one larger
// than 2 MiB at a multiple of 2 MiB: the part of each in use may change, and unused memory is returned to the
// system in whole pages.
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
  // Returns the state of all neurons of an edition; the references stay valid.
  std::span<const Neuron> neurons(EditionId edition) const { return holding(edition).neurons; }
  // Returns kNoSlot if the neuron is neither valid nor leased.
  uint32_t slot(EditionId edition, uint32_t neuron) const { return at(edition, neuron).slot; }
  uint32_t free_slots(EditionId edition) const { return static_cast<uint32_t>(holding(edition).free.size()); }
  uint32_t max_slots(EditionId edition) const { return holding(edition).max_slots; }
  uint32_t valid_count(EditionId edition) const { return holding(edition).valid; }
  // Returns a hash of the place and state of every neuron, to compare two histories.
  uint64_t digest() const;

  // free -> leased. A free slot must exist.
  uint32_t lease(EditionId edition, uint32_t neuron);
  void abandon(EditionId edition, uint32_t neuron);                   // leased -> free
  void evict(EditionId edition, uint32_t neuron);                     // valid, not pinned -> free
  void landed(EditionId edition, std::span<const uint32_t> neurons);  // leased -> valid
  void pin(EditionId edition, std::span<const uint32_t> neurons);     // pins are counted
  void unpin(EditionId edition, std::span<const uint32_t> neurons);
  void landed(EditionId edition, uint32_t neuron) { landed(edition, {&neuron, 1}); }
  void pin(EditionId edition, uint32_t neuron) { pin(edition, {&neuron, 1}); }
  void unpin(EditionId edition, uint32_t neuron) { unpin(edition, {&neuron, 1}); }
  // Pins the valid ones of `wanted` and appends them to `here`, the others to `absent`.
  void pin_valid(EditionId edition, const ActiveSet& wanted, std::vector<uint32_t>& here,
                 std::vector<uint32_t>& absent);

  // A neuron whose slot was behind the new end of its edition.
  struct Move {
    uint32_t neuron;
    uint32_t from, to;  // slots
    bool operator==(const Move&) const = default;
  };
  // Gives an edition `slots` slots, at least as many as valid neurons; nothing of it is leased or pinned.
  // Neurons behind the new end get the lowest free slots, in the order of their old slots. Returns the copies
  // to make.
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
