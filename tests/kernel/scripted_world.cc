#include "tests/kernel/scripted_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>

#include "tests/kernel/add_site.h"

namespace tierd {
namespace {

constexpr uint32_t kStride = 256;  // floats; the most neurons of a site

SiteTable make_sites(const WorldOptions& options) {
  SiteTable sites;
  uint32_t extent = 0, all = 0;
  for (const uint32_t n : options.neurons) all += n;
  for (size_t s = 0; s < options.neurons.size(); ++s) {
    Site site;
    Edition edition;
    site.name = "site " + std::to_string(s);
    site.n = options.neurons[s];
    edition.slot_bytes = kSlot;
    edition.first_extent = extent;
    edition.bytes.assign(site.n, kSlot - 96);
    site.n_in = kInputs;
    site.n_out = kOutputs;
    if (s < options.flows.size()) site.flow = options.flows[s];
    site.input = {0, kStride};
    site.output = {2 * options.rows * kStride * uint32_t{sizeof(float)} / uint32_t{kPlaceUnit}, kStride};
    if (options.bundles) {
      site.added = true;
      site.stretch = kRun;
      site.contribution = {options.rows * kStride * uint32_t{sizeof(float)} / uint32_t{kPlaceUnit}, kStride};
    }
    if (options.experts) {
      site.added = true;
      site.set = Site::Set::chosen;
      site.choice = {options.rows * kStride * uint32_t{sizeof(float)} / uint32_t{kPlaceUnit}, kStride};
    }
    if (options.side_by_side) {
      edition.first_extent = static_cast<uint32_t>(s);
      edition.stride = static_cast<uint32_t>(options.neurons.size());
    }
    extent += site.n;
    if (options.tied && s == 0) {
      site.set = Site::Set::given;
      sites.all.push_back(site);
    } else {
      add_site(sites, site, edition);
      for (uint32_t level = 1; level < options.editions; ++level) {
        edition.slot_bytes /= 2;
        if (options.made == WorldOptions::Made::beside) {
          edition.made_of = sites.all.back().editions.front();
        } else {
          edition.first_extent += all;
        }
        edition.bytes.assign(site.n, edition.slot_bytes - 96);
        add_edition(sites, static_cast<SiteId>(s), edition);
      }
    }
  }
  const auto stored = static_cast<EditionId>(sites.editions.size());
  const bool replaced =
      options.made == WorldOptions::Made::above || options.made == WorldOptions::Made::everywhere;
  for (EditionId e = 0; e < stored && replaced; ++e) {
    Edition& made = sites.editions.emplace_back(Edition(sites.editions[e]));
    made.made_of = e;
    made.slot_bytes *= 2;
    for (uint32_t& bytes : made.bytes) bytes *= 2;
  }
  if (options.tied) {
    sites.all.front().editions = sites.all.back().editions;
    EXPECT_EQ(sites.all.front().n, sites.all.back().n);
  }
  return sites;
}

Dispatcher::Options dispatch(const WorldOptions& options, const SiteTable& sites) {
  Dispatcher::Options dispatch;
  dispatch.max_messages = options.messages;
  dispatch.max_units = 0;
  if (options.resizes) dispatch.max_units = static_cast<uint32_t>(sites.editions.size());
  for (const Site& site : sites) dispatch.max_units = std::max(dispatch.max_units, site.n);
  if (options.side_by_side) dispatch.max_units *= static_cast<uint32_t>(sites.size());
  dispatch.shuffle_seed = options.seed;
  return dispatch;
}

}  // namespace

ScriptedWorld::ScriptedWorld(const WorldOptions& options,
                             const std::function<Strategies(ScriptedWorld&)>& chosen)
    : idle([this] {
        if (!mover.open.empty()) return mover.finish();
        if (!flash.open.empty()) flash.finish();
      }),
      options_(options),
      sites(make_sites(options)),
      flash(options.credits, pools_),
      mover(options.credits, pools_),
      computes(options.units, RecordingCompute(options.credits, pools_, sites)),
      dispatcher(pools_, clock, waiter, dispatch(options, sites)),
      residencies(options.units, Residency(sites.editions, options.slots)),
      residency(residencies.front()),
      placement(options.units) {
  if (!options.below) options_.memories_below = 0;
  for (uint32_t m = 0; m < options_.memories_below; ++m)
    residencies.emplace_front(sites.editions, *options.below);
  Scheduler::Options scheduling;
  add_memories(scheduling.topology);
  scheduling.prefetch = options.prefetch;
  scheduling.read_attempts = options.attempts;
  scheduling.max_rows = options.rows;
  scheduling.measure_every = options.measure_every;
  scheduling.describe_extent = [](uint32_t extent) {
    return "weights.bin: extent " + std::to_string(extent);
  };
  strategies = chosen ? chosen(*this) : script.strategies();
  strategies.caches.resize(residencies.size(), strategies.caches.front());
  strategies.heat_of.resize(sites.size());
  for (uint32_t m = 0; m < options_.memories_below; ++m)
    strategies.caches[m] = script_below.strategies().caches.front();
  if (options.reads_x) strategies.reads_x.assign(sites.size(), 1);
  scheduler = std::make_unique<Scheduler>(dispatcher, sites, strategies, placement, residencies, scheduling);
}

uint16_t ScriptedWorld::add_agent(Agent& agent) {
  return dispatcher.add_agent(mortals.emplace_back(agent));
}

void ScriptedWorld::add_memories(Topology& topology) {
  const auto below = static_cast<MemoryId>(options_.memories_below);
  topology.memories.resize(below);
  for (RecordingCompute& unit : computes) add_unit(topology, unit);
  const uint16_t reads = add_agent(flash);
  if (below != 0) {
    const uint16_t moves = options_.moves_itself ? topology.units.front().agent : add_agent(mover);
    for (MemoryId m = 1; m <= below; ++m) {
      topology.memory(m) = add_memory(m, moves, *options_.below, options_.blocks_below);
      topology.memory(m).over = static_cast<MemoryId>(m - 1);
      topology.links.push_back(
          {.from = static_cast<MemoryId>(m - 1), .to = m, .agent = m == 1 ? reads : moves});
    }
    for (const ComputeUnit& unit : topology.units) {
      topology.memory(unit.memory).over = below;
      topology.links.push_back({.from = below, .to = unit.memory, .agent = moves});
    }
    if (!options_.direct) return;
  }
  if (options_.linked_units) {
    const uint16_t moves = add_agent(mover);
    for (const ComputeUnit& unit : topology.units) {
      for (const ComputeUnit& other : topology.units) {
        if (&other != &unit)
          topology.links.push_back({.from = other.memory, .to = unit.memory, .agent = moves});
      }
    }
  }
  for (const ComputeUnit& unit : topology.units)
    topology.links.push_back(
        {.from = kStore, .to = unit.memory, .agent = options_.reads_itself ? unit.agent : reads});
}

void ScriptedWorld::add_unit(Topology& topology, RecordingCompute& unit) {
  const uint16_t agent = options_.moves_itself ? add_agent(moving) : add_agent(unit);
  const auto id = static_cast<MemoryId>(topology.memories.size() + 1);
  topology.memories.push_back(add_memory(id, agent, options_.slots, options_.blocks));
  topology.units.push_back({.agent = agent, .memory = id, .joint_runs = options_.joint_runs});
  unit.arena_bytes = topology.memories.back().staging_offset;
  std::vector<Line>& activations =
      memory_.emplace_back(3 * options_.rows * kStride * sizeof(float) / sizeof(Line));
  pools_.add_activations(agent, std::as_writable_bytes(std::span(activations)));
  unit.order = &order;
}

// Adds a memory of an arena followed by staging blocks.
Memory ScriptedWorld::add_memory(MemoryId id, uint16_t agent, const std::vector<uint32_t>& slots,
                                 uint32_t blocks) {
  Memory memory;
  memory.agent = agent;
  memory.reserved = slots;
  for (EditionId e = 0; e < sites.editions.size() && options_.resizes; ++e)
    memory.reserved[e] = sites.editions[e].n;
  memory.resizes = options_.resizes;
  for (EditionId e = 0; e < slots.size(); ++e)
    memory.arena_bytes += uint64_t{slots[e]} * sites.editions[e].slot_bytes;
  if (options_.made == WorldOptions::Made::beside && id <= options_.memories_below) {
    for (EditionId e = 0; e < sites.editions.size(); ++e)
      memory.held.push_back(std::min(e, sites.editions[e].made_of));
  } else if (options_.made != WorldOptions::Made::none && options_.made != WorldOptions::Made::beside) {
    const bool makes = options_.made == WorldOptions::Made::everywhere || id > options_.memories_below;
    const auto n = static_cast<EditionId>(sites.editions.size() / 2);
    for (EditionId e = 0; e < 2 * n; ++e) memory.held.push_back(e % n + (makes ? n : 0));
  }
  memory.arena_offset = arena_offsets(sites.editions, memory.reserved);
  memory.staging_offset = memory.arena_offset.back();
  memory.staging_blocks = blocks;
  memory.block_bytes = options_.neurons_per_block * kSlot;
  const uint64_t end = memory.staging_offset + uint64_t{blocks} * memory.block_bytes;
  std::vector<Line>& lines = memory_.emplace_back((end + kSlot) / sizeof(Line));
  pools_.add_memory(id, std::as_writable_bytes(std::span(lines)));
  return memory;
}

void ScriptedWorld::heal() {
  strategies = script.strategies();
  strategies.caches.resize(residencies.size(), strategies.caches.front());
  strategies.heat_of.resize(sites.size());
}

Status ScriptedWorld::run(Task<Status> task) {
  int idle_turns = 0;
  while (!task.done()) {
    if (dispatcher.turn()) {
      idle_turns = 0;
      if (!is_shuffled() || (++turns_ % 4) != 0) continue;
    }
    idle();
    if (++idle_turns > 1000) {
      ADD_FAILURE() << "the kernel waits for nothing";
      std::abort();  // the coroutine hangs; the test cannot go on
    }
  }
  return task.take();
}

Status ScriptedWorld::pass(SiteId site, uint32_t step, const Neurons& given, bool bypass) {
  const ActiveSet set = ActiveSet::of(given);
  Pass pass;
  pass.step = step;
  pass.rows = static_cast<uint16_t>(options_.rows);
  pass.sequences = kSequences;
  pass.bypass_caches = bypass;
  pass.given = &set;
  return run(scheduler->pass(site, pass));
}

void ScriptedWorld::settle() {
  for (int i = 0; i < (is_shuffled() ? 200 : 8); ++i) dispatcher.turn();
}

void ScriptedWorld::end_all() {
  while (!flash.open.empty() || !mover.open.empty()) {
    idle();
    settle();
  }
}

size_t ScriptedWorld::moved() const {
  size_t neurons = 0;
  for (const Read& move : mover.started) neurons += move.extents.size();
  return neurons;
}

void ScriptedWorld::forget_what_died() {
  if (mortals[computes.size()].dead()) flash.open.clear();
  const MortalAgent& moves = options_.moves_itself ? mortals.front() : mortals.back();
  if (options_.below && moves.dead()) mover.open.clear();
}

void ScriptedWorld::expect_nothing_lost() {
  ASSERT_TRUE(drain().ok());
  settle();
  EXPECT_EQ(dispatcher.in_flight(), 0u);
  forget_what_died();
  EXPECT_TRUE(flash.open.empty());
  EXPECT_TRUE(mover.open.empty());
  for (const Residency& of : residencies) expect_nothing_lost(of);
}

void ScriptedWorld::expect_nothing_lost(const Residency& of) const {
  for (EditionId e = 0; e < sites.editions.size(); ++e) {
    uint32_t valid = 0;
    for (uint32_t i = 0; i < sites.editions[e].n; ++i) {
      EXPECT_FALSE(of.leased(e, i)) << "edition " << e << " neuron " << i;
      EXPECT_FALSE(of.pinned(e, i)) << "edition " << e << " neuron " << i;
      valid += of.valid(e, i) ? 1 : 0;
    }
    EXPECT_EQ(of.valid_count(e), valid);
    EXPECT_EQ(of.free_slots(e) + valid, of.max_slots(e));
  }
}

std::string ScriptedWorld::computed(SiteId site, uint32_t step) const {
  std::string text;
  for (const Computed& c : compute.log) {
    if (c.site != site || c.step != step) continue;
    text += text.empty() ? "" : " ";
    if (c.before) text += "B";
    for (size_t i = 0; i < c.neurons.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(c.neurons[i]);
    if (c.after) text += "A";
  }
  return text;
}

void ScriptedWorld::expect_whole(SiteId site, uint32_t step, const Neurons& neurons) const {
  std::vector<Computed> messages;
  std::multiset<uint32_t> seen;
  for (const Computed& c : compute.log) {
    if (c.site != site || c.step != step) continue;
    messages.push_back(c);
    seen.insert(c.neurons.begin(), c.neurons.end());
  }
  ASSERT_FALSE(messages.empty());
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].before, i == 0);
    EXPECT_EQ(messages[i].after, i + 1 == messages.size());
  }
  EXPECT_EQ(seen, std::multiset<uint32_t>(neurons.begin(), neurons.end()));
}

std::string ScriptedWorld::reads() const {
  std::string text;
  for (const Read& read : flash.started) {
    text += "[";
    for (size_t i = 0; i < read.extents.size(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(read.extents[i]);
    }
    text += "]";
  }
  return text;
}

}  // namespace tierd
