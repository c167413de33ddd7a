// Axis neuron: neurons that are summed together are computed together, in the order of the runs, with any
// amount of staging. No pass may wait for a block that only a later run would free.
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/model/layout/bundle.h"
#include "tests/kernel/scripted_answers.h"
#include "tests/kernel/scripted_world.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

// Returns `count` neurons of each run in `runs`.
Neurons some_of_runs(std::initializer_list<uint32_t> runs, uint32_t count) {
  Neurons neurons;
  for (const uint32_t run : runs) {
    for (uint32_t i = 0; i < count; ++i) neurons.push_back(run * kRun + i);
  }
  return neurons;
}

// Look-ahead has prefetched the last run, which keeps its block until the earlier runs are summed. These use
// the other block.
TEST(Runs, ComeThroughOneBlockBesideTheLookAhead) {
  ScriptedWorld world(
      {.neurons = {1, 256}, .slots = {0, 0}, .blocks = 2, .neurons_per_block = kRun, .bundles = true});
  const Neurons active = some_of_runs({0, 1, 2, 3}, 40);
  world.script.predict = [&](SiteId site, tierd_set_out* out) {
    return answer_neurons(site == 0 ? Neurons{0} : active, out);
  };
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 1, some_of_runs({3}, 40)}} : std::vector<Ahead>{};
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  ASSERT_TRUE(world.pass(1, 0).ok());
  world.expect_whole(1, 0, active);
  EXPECT_EQ(world.flash.started.size(), 1u + 4u);
  EXPECT_EQ(world.scheduler->counters().staged, 40u);
  EXPECT_EQ(world.scheduler->counters().wasted, 0u);
  world.expect_nothing_lost();
}

// A larger block takes as many whole runs as fit.
TEST(Runs, AreReadTogetherWhereTheyFit) {
  ScriptedWorld world(
      {.neurons = {256}, .slots = {0}, .blocks = 2, .neurons_per_block = 2 * kRun, .bundles = true});
  const Neurons active = some_of_runs({0, 1, 2, 3}, 50);
  world.script.predict = [&](SiteId, tierd_set_out* out) { return answer_neurons(active, out); };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, active);
  ASSERT_EQ(world.flash.started.size(), 2u);
  EXPECT_EQ(world.flash.started[0].extents, some_of_runs({0, 1}, 50));
  EXPECT_EQ(world.flash.started[1].extents, some_of_runs({2, 3}, 50));
  world.expect_nothing_lost();
}

// Kept and streamed neurons are interleaved in the file.
TEST(Runs, WhatIsKeptAndWhatStreamsByComeWithOneRead) {
  ScriptedWorld world(
      {.neurons = {128}, .slots = {128}, .blocks = 2, .neurons_per_block = 2 * kRun, .bundles = true});
  const Neurons active = some_of_runs({0, 1}, 5);
  world.script.predict = [&](SiteId, tierd_set_out* out) { return answer_neurons(active, out); };
  world.script.admit = [](const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                          tierd_victims_out*) {
    for (uint32_t i = 0; i < missing->n; ++i)
      verdict[i] = static_cast<uint8_t>(i % 2 == 0 ? TIERD_VERDICT_KEEP : TIERD_VERDICT_BYPASS);
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.expect_whole(0, 0, active);
  ASSERT_EQ(world.flash.started.size(), 1u);
  EXPECT_EQ(world.flash.started[0].extents.size(), active.size());
  ASSERT_TRUE(world.pass(0, 1).ok());
  world.expect_whole(0, 1, active);
  EXPECT_EQ(world.flash.started[1].extents.size(), active.size() / 2) << "half of them were kept";
  world.expect_nothing_lost();
}

// A failed pass waits for a read into slots; then the pass for which the read was made waits for it.
TEST(Runs, AReadOutlivesThePassThatWaitedForIt) {
  ScriptedWorld world(
      {.neurons = {4, 4}, .slots = {4, 4}, .neurons_per_block = 4, .attempts = 1, .bundles = true});
  world.script.predict = [](SiteId site, tierd_set_out* out) {
    out->all = site == 1 ? 1 : 0;
    return 0;
  };
  world.script.look_ahead = [](SiteId site) {
    return site == 0 ? std::vector<Ahead>{{1, 3, Neurons{0, 1}}} : std::vector<Ahead>{};
  };
  world.script.admit = [](const tierd_set_view* missing, int priority, uint32_t, uint8_t* verdict,
                          tierd_victims_out*) {
    std::fill_n(verdict, missing->n,
                uint8_t(priority == TIERD_PRIORITY_DEMAND ? TIERD_VERDICT_BYPASS : TIERD_VERDICT_KEEP));
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  world.settle();
  ASSERT_EQ(world.flash.open.size(), 1u);
  world.idle = [&] {
    if (world.flash.open.size() > 1) world.flash.finish(1, DoneStatus::io_error);
  };
  ASSERT_FALSE(world.pass(1, 0).ok());
  world.idle = [&] {
    if (!world.flash.open.empty()) world.flash.finish();
  };
  ASSERT_TRUE(world.pass(1, 1).ok());
  world.expect_whole(1, 1, {0, 1, 2, 3});
  world.expect_nothing_lost();
}

// Draws a world whose blocks hold a run, as the memory plan guarantees, with `memories_below` memories
// between the store and those of the units.
WorldOptions draw(Random& random, uint64_t seed, uint32_t memories_below) {
  WorldOptions options;
  options.neurons.clear();
  options.slots.clear();
  uint32_t run = 1;
  options.side_by_side = random.below(3) == 0;
  options.editions = 1 + random.below(3);
  for (int s = 0; s < 3; ++s) {
    uint32_t n = random.below(4) == 0 ? 1 + random.below(8) : 1 + random.below(256);
    if (options.side_by_side && s != 0) n = options.neurons[0];
    options.neurons.push_back(n);
    for (uint32_t level = 0; level < options.editions; ++level)
      options.slots.push_back(random.below(3) == 0 ? 0 : random.below(n + 1));
    run = std::max(run, std::min(n, kRun));
  }
  options.bundles = random.below(2) == 0;
  options.blocks = 1 + random.below(random.below(2) == 0 ? 3 : 8);
  options.neurons_per_block = run + (random.below(2) == 0 ? 0 : random.below(3 * kRun));
  options.units = 1 + random.below(2);
  options.messages = 4 + random.below(30);
  options.credits = 1 + random.below(8);
  if (random.below(2) == 0) options.seed = seed;
  if (memories_below == 0) return options;
  options.memories_below = memories_below;
  std::vector<uint32_t>& below = options.below.emplace();
  for (const uint32_t n : options.neurons) {
    for (uint32_t level = 0; level < options.editions; ++level)
      below.push_back(random.below(3) == 0 ? 0 : random.below(n + 1));
  }
  options.blocks_below = 1 + random.below(random.below(2) == 0 ? 3 : 8);
  options.direct = random.below(2) == 0;
  return options;
}

void history(uint64_t seed, uint32_t memories_below) {
  Random random(seed);
  const WorldOptions options = draw(random, seed, memories_below);
  ScriptedWorld world(options);
  const auto some_of = [&](uint32_t n) {
    Neurons some;
    const uint32_t part = 1 + random.below(4);
    for (uint32_t i = 0; i < n; ++i) {
      if (random.below(4) < part) some.push_back(i);
    }
    return some;
  };
  for (EditionId e = 0; e < world.sites.editions.size(); ++e) {
    std::vector<uint8_t> homes(world.sites.editions[e].n);
    for (uint8_t& home : homes) home = static_cast<uint8_t>(random.below(options.units));
    world.placement.place(e, homes);
  }
  world.script.choose = [&](const tierd_set_view* set, uint8_t* level) {
    for (uint32_t i = 0; i < set->n; ++i) level[i] = static_cast<uint8_t>(random.below(options.editions));
    return 0;
  };
  Neurons active;
  world.script.predict = [&](SiteId site, tierd_set_out* out) {
    active = some_of(world.sites[site].n);
    return answer_neurons(active, out);
  };
  world.script.look_ahead = [&](SiteId site) {
    std::vector<Ahead> wishes;
    for (uint32_t distance = 1; distance <= 6; ++distance) {
      if (random.below(2) == 0) continue;
      const SiteId to = (site + distance) % 3;
      wishes.push_back({to, distance, some_of(world.sites[to].n)});
    }
    return wishes;
  };
  world.script.assign = [&](const tierd_set_view* set, uint8_t* unit) {
    for (uint32_t i = 0; i < set->n; ++i) unit[i] = static_cast<uint8_t>(random.below(options.units));
    return 0;
  };
  const auto victims = [&](const Residency* here, EditionId edition, uint32_t most, tierd_victims_out* out) {
    const uint32_t n = world.sites.editions[edition].n;
    for (uint32_t i = 0; i < n && out->n < most && here != nullptr; ++i) {
      if (here->evictable(edition, i) && random.below(2) == 0) out->item[out->n++] = {edition, i};
    }
    return out->n;
  };
  const auto cache = [&](Script& script, const Residency* here, bool refuses) {
    script.admit = [&, here, refuses](const tierd_set_view* missing, int priority, uint32_t free_slots,
                                      uint8_t* verdict, tierd_victims_out* out) {
      free_slots += victims(here, missing->edition, random.below(missing->n + 1), out);
      const uint32_t often = 1 + random.below(4);
      for (uint32_t i = 0; i < missing->n; ++i) {
        const bool keep = free_slots > 0 && random.below(4) < often;
        free_slots -= keep ? 1 : 0;
        const bool refuse = refuses && priority != TIERD_PRIORITY_DEMAND && random.below(4) == 0;
        verdict[i] = keep ? TIERD_VERDICT_KEEP : refuse ? TIERD_VERDICT_REFUSE : TIERD_VERDICT_BYPASS;
      }
      return 0;
    };
    script.expire = [&, here](EditionId edition, tierd_victims_out* out) {
      const uint32_t n = world.sites.editions[edition].n;
      if (random.below(3) == 0) (void)victims(here, edition, random.below(n + 1), out);
    };
  };
  // A cache does not know its unit, so victims are named only where there is one unit.
  cache(world.script, options.units == 1 ? &world.residency : nullptr, true);
  cache(world.script_below, memories_below == 1 ? &world.residencies.front() : nullptr, true);
  uint32_t fault_every = 0;
  world.idle = [&] {
    ManualFlash& agent = random.below(2) == 0 && !world.mover.open.empty() ? world.mover : world.flash;
    if (agent.open.empty()) return;
    const bool fails = fault_every != 0 && random.below(fault_every) == 0;
    const uint32_t i = random.below(static_cast<uint32_t>(agent.open.size()));
    agent.finish(i, fails ? DoneStatus::io_error : DoneStatus::ok);
  };

  for (uint32_t step = 0; step < 8; ++step) {
    fault_every = step % 4 == 3 ? 2 + random.below(10) : 0;
    for (SiteId site = 0; site < 3; ++site) {
      for (RecordingCompute& unit : world.computes) unit.log.clear();
      const Status status = world.pass(site, step, {}, random.below(5) == 0);
      if (!status.ok()) {
        EXPECT_NE(fault_every, 0u) << status.error().line();
        break;
      }
      Neurons computed;
      for (const RecordingCompute& unit : world.computes) {
        std::vector<std::pair<EditionId, uint32_t>> own;
        for (const Computed& c : unit.log) {
          if (c.neurons.empty()) continue;
          for (const uint32_t neuron : c.neurons) own.emplace_back(c.edition, neuron);
        }
        EXPECT_TRUE(!options.bundles || std::is_sorted(own.begin(), own.end()))
            << "what is added comes edition after edition, each by number";
        for (const auto& [edition, neuron] : own) computed.push_back(neuron);
      }
      std::sort(computed.begin(), computed.end());
      EXPECT_EQ(computed, active);
    }
    ASSERT_TRUE(world.end_step(step).ok());
  }
  fault_every = 0;
  world.expect_nothing_lost();
}

// The first hundred suffice for sanitizers.
constexpr uint64_t kHistories = kSanitized ? 100 : 400;

TEST(Runs, EveryPassEnds) {
  for (uint64_t seed = 1; seed <= kHistories; ++seed) {
    SCOPED_TRACE(seed);
    history(seed, 0);
    if (HasFailure()) return;
  }
}

TEST(Runs, EveryPassEndsWithAMemoryBetween) {
  for (uint64_t seed = 1; seed <= kHistories; ++seed) {
    SCOPED_TRACE(seed);
    history(seed, 1);
    if (HasFailure()) return;
  }
}

TEST(Runs, EveryPassEndsWithSeveralMemoriesBetween) {
  for (uint64_t seed = 1; seed <= kHistories; ++seed) {
    SCOPED_TRACE(seed);
    history(seed, 2 + static_cast<uint32_t>(seed % 2));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tierd
