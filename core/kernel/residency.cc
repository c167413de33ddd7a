#include "core/kernel/residency.h"

#include <algorithm>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {
namespace {
constexpr uint32_t kNoNeuron = UINT32_MAX;
}

std::vector<uint64_t> arena_offsets(const std::vector<Site>& sites, std::span<const uint32_t> slots) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const uint64_t bytes = uint64_t{slots[s]} * sites[s].slot_bytes;
    offsets.push_back(align_up(end, bytes > kArenaAlignment ? kArenaAlignment : kDirectIoAlignment));
    end = offsets.back() + bytes;
  }
  offsets.push_back(align_up(end, kDirectIoAlignment));
  return offsets;
}

Residency::Residency(const std::vector<Site>& sites, std::span<const uint32_t> max_slots)
    : domains_(sites.size()) {
  TIERD_CHECK(max_slots.size() == sites.size());
  for (SiteId s = 0; s < sites.size(); ++s) {
    domain_of_.push_back(sites[s].domain);
    if (sites[s].domain != s) continue;
    Domain& d = domains_[s];
    d.neurons.resize(sites[s].n);
    d.max_slots = max_slots[s];
    for (uint32_t slot = d.max_slots; slot-- > 0;) d.free.push_back(slot);
  }
}

uint64_t Residency::digest() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  const auto add = [&hash](uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
  for (const Domain& d : domains_) {
    for (const Neuron& neuron : d.neurons) {
      add(uint64_t{neuron.slot} << 32 | uint64_t{neuron.pins} << 8 | static_cast<uint64_t>(neuron.state));
    }
  }
  return hash;
}

uint32_t Residency::lease(SiteId s, uint32_t i) {
  Domain& d = domain(s);
  Neuron& neuron = d.neurons[i];
  TIERD_CHECK(neuron.state == State::absent && !d.free.empty());
  neuron.slot = d.free.back();
  neuron.state = State::leased;
  d.free.pop_back();
  return neuron.slot;
}

void Residency::abandon(SiteId s, uint32_t i) {
  Domain& d = domain(s);
  TIERD_CHECK(d.neurons[i].state == State::leased);
  release(d, d.neurons[i]);
}

void Residency::evict(SiteId s, uint32_t i) {
  Domain& d = domain(s);
  TIERD_CHECK(d.neurons[i].state == State::valid && d.neurons[i].pins == 0);
  --d.valid;
  release(d, d.neurons[i]);
}

void Residency::landed(SiteId s, std::span<const uint32_t> neurons) {
  Domain& d = domain(s);
  for (const uint32_t i : neurons) {
    TIERD_CHECK(d.neurons[i].state == State::leased);
    d.neurons[i].state = State::valid;
  }
  d.valid += static_cast<uint32_t>(neurons.size());
}

void Residency::pin(SiteId s, std::span<const uint32_t> neurons) {
  Domain& d = domain(s);
  for (const uint32_t i : neurons) {
    TIERD_CHECK(d.neurons[i].state == State::valid);
    ++d.neurons[i].pins;
  }
}

void Residency::unpin(SiteId s, std::span<const uint32_t> neurons) {
  Domain& d = domain(s);
  for (const uint32_t i : neurons) {
    TIERD_CHECK(d.neurons[i].pins > 0);
    --d.neurons[i].pins;
  }
}

void Residency::pin_valid(SiteId s, const ActiveSet& wanted, std::vector<uint32_t>& here,
                          std::vector<uint32_t>& absent) {
  Neuron* const neurons = domain(s).neurons.data();
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

std::vector<Residency::Move> Residency::resize(SiteId s, uint32_t slots) {
  Domain& d = domain(s);
  TIERD_CHECK(d.valid + d.free.size() == d.max_slots && d.valid <= slots);
  std::vector<uint32_t> holder(std::max(slots, d.max_slots), kNoNeuron);
  for (uint32_t i = 0; i < d.neurons.size(); ++i) {
    TIERD_CHECK(d.neurons[i].pins == 0);
    if (d.neurons[i].slot != kNoSlot) holder[d.neurons[i].slot] = i;
  }
  std::vector<Move> moves;
  uint32_t to = 0;
  for (uint32_t from = slots; from < d.max_slots; ++from) {
    if (holder[from] == kNoNeuron) continue;
    while (holder[to] != kNoNeuron) ++to;
    holder[to] = holder[from];
    d.neurons[holder[to]].slot = to;
    moves.push_back({holder[to], from, to});
  }
  d.max_slots = slots;
  d.free.clear();
  for (uint32_t slot = slots; slot-- > 0;) {
    if (holder[slot] == kNoNeuron) d.free.push_back(slot);
  }
  return moves;
}

void Residency::release(Domain& d, Neuron& neuron) {
  d.free.push_back(neuron.slot);
  neuron = Neuron{};
}

}  // namespace tierd
