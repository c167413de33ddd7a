// The agents of an assembly: their tasks, cores, threads and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <system_error>

#include "core/base/align.h"
#include "core/base/units.h"
#include "core/run/assembly.h"
#include "core/system/cores.h"

namespace tierd {
namespace {

constexpr uint64_t kSpinNs = 20'000;  // polling time of an agent's thread with a core of its own

}  // namespace

uint64_t Assembly::addresses_for_all(size_t tier) const {
  const std::vector<Edition>& editions = plan.model.sites.editions;
  const std::vector<uint32_t> all = slots_for_all(plan.tiers.memories[tier].first_memory);
  const uint64_t bytes = align_up(arena_offsets(editions, all).back(), kArenaAlignment);
  const TierMemory& memory = plan.memory.tiers[tier];
  return bytes + memory.staging_of_memory() + memory.tensors < kMostMemoryBytes ? bytes : 0;
}

std::vector<uint32_t> Assembly::slots_for_all(MemoryId memory) const {
  const Memory& of = plan.tiers.topology.memory(memory);
  std::vector<uint32_t> all;
  for (EditionId e = 0; e < plan.model.sites.editions.size(); ++e)
    all.push_back(of.holds(e) ? plan.model.sites.editions[e].n : 0);
  return all;
}

// Makes the agents of a tier. They precede the strategies, which may request products in `create`. The use of
// the arena is not known yet, and may change: addresses for every neuron are reserved, which costs nothing.
// If messages cannot name so many, or addresses are limited, only those of the plan are reserved.
Status Assembly::make_tier(size_t tier, const RuntimeOptions& options) {
  const TierMemory& memory = plan.memory.tiers[tier];
  TierState& state = tiers.emplace_back(TierState{.budget = Budget(memory.capacity)});
  const uint64_t all = addresses_for_all(tier);
  state.whole = all != 0 && !addresses_are_limited();
  state.most_arena = state.whole ? memory.whole : memory.arena;
  // The beginning of each edition is aligned.
  const uint64_t part =
      align_up(memory.arena, kArenaAlignment) + plan.model.sites.editions.size() * kArenaAlignment;
  state.staging_offset = state.whole ? all : part;
  const Tier& of = plan.tiers.memories[tier];
  if (state.staging_offset + memory.staging_of_memory() + memory.tensors > kMostMemoryBytes) {
    return Error{Code::no_space, of.key("capacity"),
                 fmt::format("{} for weights are more than messages can name; at most {} can be",
                             format_bytes(static_cast<double>(memory.arena)),
                             format_bytes(static_cast<double>(kMostMemoryBytes)))};
  }
  for (uint32_t i = 0; i < of.config.count; ++i) {
    TIERD_ASSIGN(state.agents.emplace_back(), make_memory_agent(tier, i, options));
  }
  return {};
}

// Makes the i-th agent of a tier: one that computes, or one that only provides a memory.
Result<MadeAgent> Assembly::make_memory_agent(size_t tier, uint32_t i, const RuntimeOptions& options) {
  const Tier& of = plan.tiers.memories[tier];
  TierState& state = tiers[tier];
  ComputeTask task;
  task.memory = static_cast<MemoryId>(of.first_memory + i);
  task.arena_bytes = state.staging_offset;
  task.staging_bytes = plan.memory.tiers[tier].staging_of_memory();
  task.kernels = plan.config.kernels;
  task.described = machine != nullptr;
  std::vector<PlacedTensor>& tensors = state.tensors.emplace_back();
  if (of.config.compute) {
    const UnitPlan& unit = plan.model.units[of.first_unit + i];
    task.plan = unit.compute;
    task.cores = cores_of(of, i);
    task.threads = static_cast<uint32_t>(task.cores.size());
    if (of.cores.empty() && !binds_workers()) task.cores.clear();
    tensors = place_tensors(unit.tensors, task);
  }
  AgentContext context{.number = static_cast<uint16_t>(of.first_agent + i),
                       .table = of.config.table(),
                       .pools = pools,
                       .clock = clock()};
  context.compute = std::move(task);
  // A run that executes nothing may have no file to read.
  if (of.reads_directly() && executes()) {
    uint32_t readers = 0;
    for (const Tier& other : plan.tiers.memories) readers += other.reads_directly() ? other.config.count : 0;
    const uint64_t each = plan.memory.tiers.front().direct / readers;
    context.read = read_task(options);
    context.read->memory_bytes = plan.memory.tiers[tier].arena + plan.memory.tiers[tier].staging;
    context.read->bounce_bytes = each - each % kDirectIoAlignment;
  }
  TIERD_ASSIGN(MadeAgent made, make_agent(of.agent, context));
  if (options.wrap_agent) options.wrap_agent(made, context.number);
  return made;
}

// Agents that run in parallel divide the cores; agents that one thread drives take turns with all of them.
std::vector<uint32_t> Assembly::cores_of(const Tier& tier, uint32_t agent) const {
  std::vector<uint32_t> cores = tier.cores;
  uint32_t sharers = tier.config.thread == "own" ? tier.config.count : 1;
  uint32_t number = tier.config.thread == "own" ? agent : 0;
  if (cores.empty()) {
    cores.resize(threads);
    std::iota(cores.begin(), cores.end(), 0U);
    // The cores are shared with all tiers that name none. The kernel's thread comes first.
    sharers = number = 0;
    bool driven_here = false;
    for (const Tier& other : plan.tiers.memories) {
      if (!other.config.compute || !other.cores.empty()) continue;
      if (other.config.thread != "own") {
        driven_here = true;
        continue;
      }
      if (other.first_agent == tier.first_agent) number = sharers + agent;
      sharers += other.config.count;
    }
    if (driven_here) {
      ++sharers;
      number = tier.config.thread == "own" ? number + 1 : 0;
    }
  }
  const auto all = static_cast<uint32_t>(cores.size());
  if (all < sharers) return {cores[number % all]};
  const auto share = [&](uint32_t n) { return cores.begin() + uint64_t{all} * n / sharers; };
  return {share(number), share(number + 1)};
}

std::vector<Assembly::PlacedTensor> Assembly::place_tensors(std::span<const uint32_t> resident,
                                                            ComputeTask& task) const {
  const Manifest& manifest = plan.store.manifest();
  const uint64_t first = task.arena_bytes + task.staging_bytes;
  uint64_t offset = first;
  std::vector<PlacedTensor> placed;
  for (const uint32_t tensor : resident) {
    task.tensors.push_back(offset);
    placed.push_back({tensor, offset});
    offset += manifest.extents[manifest.resident[tensor].extent].bytes;
  }
  task.tensor_bytes = offset - first;
  return placed;
}

ReadTask Assembly::read_task(const RuntimeOptions& options) const {
  ReadTask task;
  task.path = plan.store.data_path();
  task.extents = plan.store.manifest().extents;
  task.pieces = extent_pieces;
  task.open_device = options.open_device;
  return task;
}

Status Assembly::make_store_agent(const RuntimeOptions& options) {
  const Tier& store = plan.tiers.store;
  AgentContext context{.number = store.first_agent,
                       .table = store.config.table(),
                       .pools = pools,
                       .clock = clock(),
                       .own_thread = store.config.thread == "own"};
  const std::vector<const StoredSite*> stored = plan.store.manifest().stored();
  for (const Edition& edition : plan.model.sites.editions) {
    if (edition.made_of == kNoEdition) continue;
    const StoredSite& site = **std::ranges::find(stored, edition.first_extent, &StoredSite::first_extent);
    if (site.compression == Compression::none) continue;  // moves encode these neurons
    CompressedExtents& compressed = compressed_extents.emplace_back();
    compressed.first = site.first_extent;
    compressed.bytes = site.compressed;
    compressed.expanded = edition.bytes;
    if (site.compression == Compression::codec) {
      compressed.codec = plan.codec.get();
    } else {
      compressed.bitmap = *Bitmap::of(site.cut, site.encodings);
    }
  }
  std::ranges::sort(compressed_extents, {}, &CompressedExtents::first);
  const TierMemory& lowest = plan.memory.tiers.front();
  context.read = read_task(options);
  context.read->landing = pools.memory(1).subspan(tiers.front().staging_offset, lowest.staging_of_memory());
  context.read->memory_bytes = lowest.arena + lowest.staging;
  context.read->bounce_bytes = lowest.bounce;
  context.read->compressed = compressed_extents;
  context.read->kernels = plan.config.kernels;
  if (machine) context.read->described = machine->disk(store.config.thread == "own");
  TIERD_ASSIGN(flash, make_agent(store.agent, context));
  for (const Link& link : plan.tiers.topology.links) {
    if (link.from == kStore && link.agent == store.first_agent)
      strategies->tell_gap(link.to, flash.reading.gap_bytes);
  }
  return {};
}

bool Assembly::binds_workers() const {
  return plan.config.bind && plan.config.threads <= own_cores().units.size();
}

Result<Agent*> Assembly::on_thread(Agent& agent, const TierConfig& config, std::optional<uint32_t> core,
                                   std::unique_ptr<AgentThread>& owner) const {
  if (config.thread != "own" || machine) return &agent;
  AgentThread::Options options;
  options.core = core;
  options.deadline_ns = uint64_t{plan.config.agent_deadline_ms} * 1'000'000;
  options.short_slices = &agent == flash.agent.get();
  if (available_cores() > threads) options.spin_ns = kSpinNs;
  try {
    owner = std::make_unique<AgentThread>(agent, options);
  } catch (const std::system_error& error) {
    return Error{Code::no_space, config.table() + ".thread",
                 fmt::format("no thread of its own can be had: {}", error.what())};
  }
  return owner.get();
}

// Adds the agents in the order of their numbers.
Status Assembly::add_agents(std::vector<const Agent*>& agents) {
  const auto add = [&](Agent& agent, uint32_t number) {
    TIERD_CHECK(dispatcher->add_agent(agent) == number);
    agents.push_back(&agent);
  };
  const Tier& store = plan.tiers.store;
  std::optional<uint32_t> core;
  if (!store.cores.empty()) core = store.cores.front();
  TIERD_ASSIGN(Agent * reads, on_thread(*flash.agent, store.config, core, flash_thread));
  add(*reads, store.first_agent);
  std::vector<std::string> memories;
  for (size_t memory = 0; memory <= plan.tiers.topology.memories.size(); ++memory)
    memories.push_back(plan.tiers.tier_of(static_cast<MemoryId>(memory)).config.name);
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const Tier& of = plan.tiers.memories[tier];
    const bool own = of.config.thread == "own";
    for (uint32_t i = 0; i < of.config.count; ++i) {
      const std::vector<uint32_t> cores = cores_of(of, i);
      Agent* agent = tiers[tier].agents[i].agent.get();
      if (machine) {
        VirtualMachine::Unit unit{.tier = of.config.name, .plan = {}};
        unit.memories = memories;
        if (of.reads_directly()) unit.reads = {plan.store.manifest().extents, extent_pieces};
        if (of.config.compute) unit.plan = plan.model.units[of.first_unit + i].compute;
        unit.share = static_cast<double>(cores.size()) / threads;
        unit.runs = of.apart() ? VirtualMachine::Runs::beside
                    : own      ? VirtualMachine::Runs::on_its_own_thread
                               : VirtualMachine::Runs::on_the_kernels_thread;
        TIERD_ASSIGN(agent, machine->agent(*agent, std::move(unit), plan.model.sites.editions));
      }
      // The thread that drives an agent is worker 0 of its team.
      core.reset();
      if (!of.cores.empty() || binds_workers()) core = cores.front();
      std::unique_ptr<AgentThread> thread;
      TIERD_ASSIGN(Agent * driven, on_thread(*agent, of.config, core, thread));
      if (thread) tiers[tier].threads.push_back(std::move(thread));
      add(*driven, of.first_agent + i);
    }
  }
  return {};
}

}  // namespace tierd
