#include "core/kernel/residency.h"

#include <algorithm>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/checksum.h"

namespace tierd {
namespace {
constexpr uint32_t kNoNeuron = UINT32_MAX;
}

std::vector<uint64_t> arena_offsets(std::span<const Edition> editions, std::span<const uint32_t> slots) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (EditionId e = 0; e < editions.size(); ++e) {
    const uint64_t bytes = uint64_t{slots[e]} * editions[e].slot_bytes;
    offsets.push_back(align_up(end, bytes > kArenaAlignment ? kArenaAlignment : kDirectIoAlignment));
    end = offsets.back() + bytes;
  }
  offsets.push_back(align_up(end, kDirectIoAlignment));
  return offsets;
}

Residency::Residency(std::span<const Edition> editions, std::span<const uint32_t> max_slots)
    : holdings_(editions.size()) {
  TIERD_CHECK(max_slots.size() == editions.size());
  for (EditionId e = 0; e < editions.size(); ++e) {
    Holding& h = holdings_[e];
    h.neurons.resize(editions[e].n);
    h.max_slots = max_slots[e];
    for (uint32_t slot = h.max_slots; slot-- > 0;) h.free.push_back(slot);
  }
}

uint64_t Residency::digest() const {
  WordHash hash;
  for (const Holding& h : holdings_) {
    for (const Neuron& neuron : h.neurons) {
      hash.add(uint64_t{neuron.slot} << 32 | uint64_t{neuron.pins} << 8 |
               static_cast<uint64_t>(neuron.state));
    }
  }
  return hash.value();
}

uint32_t Residency::lease(EditionId e, uint32_t i) {
  Holding& h = holding(e);
  Neuron& neuron = h.neurons[i];
  TIERD_CHECK(neuron.state == State::absent && !h.free.empty());
  neuron.slot = h.free.back();
  neuron.state = State::leased;
  h.free.pop_back();
  return neuron.slot;
}

void Residency::abandon(EditionId e, uint32_t i) {
  Holding& h = holding(e);
  TIERD_CHECK(h.neurons[i].state == State::leased);
  release(h, h.neurons[i]);
}

void Residency::evict(EditionId e, uint32_t i) {
  Holding& h = holding(e);
  TIERD_CHECK(h.neurons[i].state == State::valid && h.neurons[i].pins == 0);
  --h.valid;
  release(h, h.neurons[i]);
}

void Residency::landed(EditionId e, std::span<const uint32_t> neurons) {
  Holding& h = holding(e);
  for (const uint32_t i : neurons) {
    TIERD_CHECK(h.neurons[i].state == State::leased);
    h.neurons[i].state = State::valid;
  }
  h.valid += static_cast<uint32_t>(neurons.size());
}

void Residency::pin(EditionId e, std::span<const uint32_t> neurons) {
  Holding& h = holding(e);
  for (const uint32_t i : neurons) {
    TIERD_CHECK(h.neurons[i].state == State::valid);
    ++h.neurons[i].pins;
  }
}

void Residency::unpin(EditionId e, std::span<const uint32_t> neurons) {
  Holding& h = holding(e);
  for (const uint32_t i : neurons) {
    TIERD_CHECK(h.neurons[i].pins > 0);
    --h.neurons[i].pins;
  }
}

void Residency::pin_valid(EditionId e, const ActiveSet& wanted, std::vector<uint32_t>& here,
                          std::vector<uint32_t>& absent) {
  Neuron* const neurons = holding(e).neurons.data();
  const size_t here_before = here.size();
  const size_t absent_before = absent.size();
  here.resize(here_before + wanted.size());
  absent.resize(absent_before + wanted.size());
  uint32_t* to_here = here.data() + here_before;
  uint32_t* to_absent = absent.data() + absent_before;
  for (uint32_t w = 0; w < wanted.size(); ++w) {
    const uint32_t i = wanted[w];
    const bool valid = neurons[i].state == State::valid;
    neurons[i].pins += valid ? 1 : 0;
    *to_here = *to_absent = i;
    to_here += valid ? 1 : 0;
    to_absent += valid ? 0 : 1;
  }
  here.resize(static_cast<size_t>(to_here - here.data()));
  absent.resize(static_cast<size_t>(to_absent - absent.data()));
}

std::vector<Residency::Move> Residency::resize(EditionId e, uint32_t slots) {
  Holding& h = holding(e);
  TIERD_CHECK(h.valid + h.free.size() == h.max_slots && h.valid <= slots);
  std::vector<uint32_t> holder(std::max(slots, h.max_slots), kNoNeuron);
  for (uint32_t i = 0; i < h.neurons.size(); ++i) {
    TIERD_CHECK(h.neurons[i].pins == 0);
    if (h.neurons[i].slot != kNoSlot) holder[h.neurons[i].slot] = i;
  }
  std::vector<Move> moves;
  uint32_t to = 0;
  for (uint32_t from = slots; from < h.max_slots; ++from) {
    if (holder[from] == kNoNeuron) continue;
    while (holder[to] != kNoNeuron) ++to;
    holder[to] = holder[from];
    h.neurons[holder[to]].slot = to;
    moves.push_back({holder[to], from, to});
  }
  h.max_slots = slots;
  h.free.clear();
  for (uint32_t slot = slots; slot-- > 0;) {
    if (holder[slot] == kNoNeuron) h.free.push_back(slot);
  }
  return moves;
}

void Residency::release(Holding& h, Neuron& neuron) {
  h.free.push_back(neuron.slot);
  neuron = Neuron{};
}

}  // namespace tierd
