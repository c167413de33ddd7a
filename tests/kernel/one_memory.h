// One memory whose supply a test takes apart: it lies over another memory, with a link from the store as
// well. The messages of both links end when the test says so, and the other memory is the test's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/agent.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/sources.h"
#include "tests/kernel/add_site.h"

namespace tierd {

// Messages that the test ends. The oldest is first.
class HeldMessages final : public Agent {
 public:
  std::string_view name() const override { return "held"; }
  uint32_t credits() const override { return 64; }
  Submit submit(const Message& message, const Payload& payload) override {
    if (message.op == Op::cancel || message.op == Op::raise) {
      controls.push_back(message);
      done_.push_back({.id = message.id});
    } else {
      open.push_back({message, {payload.units.begin(), payload.units.end()}});
    }
    return Submit::ok;
  }
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done> done) override {
    const size_t n = std::min(done.size(), done_.size());
    std::copy_n(done_.begin(), n, done.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }
  void end(DoneStatus status = DoneStatus::ok) {
    ASSERT_FALSE(open.empty());
    done_.push_back({.id = open.front().first.id, .status = status});
    open.pop_front();
  }

  std::deque<std::pair<Message, std::vector<Unit>>> open;
  std::vector<Message> controls;

 private:
  std::vector<Done> done_;
};

class ScriptedOffer final : public Offer {
 public:
  EditionId edition() const override { return request.edition; }
  uint32_t place(uint32_t neuron) const override {
    const auto found = places.find(neuron);
    return found == places.end() ? kNowhere : found->second;
  }
  const std::vector<uint32_t>& refused() const override { return not_fetched; }
  Status status() const override { return fault; }
  void took(std::span<const uint32_t> neurons) override { note("took", neurons); }
  void stop() override { note("stop", {}); }
  void release_all_but(std::span<const uint32_t> neurons) override { note("keep", neurons); }
  void note(std::string what, std::span<const uint32_t> neurons) {
    for (const uint32_t neuron : neurons) what += " " + std::to_string(neuron);
    log.push_back(what);
  }

  GatherRequest request;
  std::map<uint32_t, uint32_t> places;  // of neurons that are there
  std::vector<uint32_t> not_fetched;
  Status fault;
  std::vector<std::string> log;
};

class ScriptedMemory final : public SourceMemory {
 public:
  bool holds(EditionId /*edition*/, uint32_t neuron) const override {
    return std::ranges::count(valid, neuron) != 0;
  }
  Result<Offer*> offer(GatherRequest request) override {
    if (fault) return *fault;
    ScriptedOffer& offer = offers.emplace_back();
    offer.request = std::move(request);
    for (const uint32_t neuron : valid) offer.places[neuron] = 1000 + neuron;
    offer.not_fetched = refuses;
    return &offer;
  }
  void close(Offer& offer, bool gives_up) override {
    static_cast<ScriptedOffer&>(offer).note(gives_up ? "closed" : "closed for the next", {});
  }
  void fetch() override { ++fetches; }

  std::vector<uint32_t> valid;
  std::vector<uint32_t> refuses;
  std::optional<Error> fault;
  std::deque<ScriptedOffer> offers;
  int fetches = 0;
};

// Memory 2 over memory 1. Site 0 has 8 neurons, and no results are added.
struct OneMemory {
  static constexpr MemoryId kBelow = 1, kId = 2;
  static constexpr uint32_t kNeurons = 8, kSlotBytes = 4096;

  explicit OneMemory(bool computed_from = true) : topology(links(computed_from)) {
    strategies.caches.resize(2);
    dispatcher.add_agent(reads);
    dispatcher.add_agent(moves);
  }
  static SiteTable one_site() {
    Site site;
    site.name = "site";
    site.n = kNeurons;
    Edition edition;
    edition.slot_bytes = kSlotBytes;
    edition.bytes.assign(kNeurons, kSlotBytes);
    SiteTable sites;
    add_site(sites, site, edition);
    return sites;
  }
  static Topology links(bool computed_from) {
    Topology topology;
    for (int m = 0; m < 2; ++m) {
      Memory& memory = topology.memories.emplace_back();
      memory.arena_offset = {0};
      memory.reserved = {4};
      memory.staging_offset = 16 * kSlotBytes;
      memory.staging_blocks = 4;
      memory.block_bytes = 2 * kSlotBytes;
    }
    topology.memories[kId - 1].over = kBelow;
    topology.links = {{kStore, kBelow, 1, 0}, {kBelow, kId, 2, 0}, {kStore, kId, 1, 0}};
    if (computed_from) topology.units.push_back({.agent = 2, .memory = kId});
    return topology;
  }
  // Delivers the messages that have ended.
  void turn() {
    while (dispatcher.turn()) {
    }
  }
  // A list of neurons that pass through staging, and of others that have slots.
  FetchList list(const std::vector<uint32_t>& streamed, const std::vector<uint32_t>& kept = {}) {
    FetchList list{.purpose = {0, 0, kId}, .edition = 0, .any_order = true};
    for (const uint32_t neuron : streamed) list.neurons.push_back({neuron, false});
    for (const uint32_t neuron : kept) {
      residency.lease(0, neuron);
      list.neurons.push_back({neuron, true});
    }
    return list;
  }

  PoolTable pools;
  WallClock clock;
  Waiter waiter;
  Dispatcher dispatcher{pools, clock, waiter, {}};
  HeldMessages reads, moves;
  const SiteTable sites = one_site();
  const Topology topology;
  const std::vector<uint32_t> slots = {4};
  Residency residency{sites.editions, slots};
  MemoryCounters counters;
  Notice changed;
  Strategies strategies;
  ScriptedMemory below;
  std::vector<SourceMemory*> memories = {&below, nullptr};
  const SupplyContext context{kId, dispatcher, sites, topology, residency, counters, changed};
  Admission admission{context, strategies};
  Sources sources{context, memories};
};

}  // namespace tierd
