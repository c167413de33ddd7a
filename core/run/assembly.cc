#include "core/run/assembly.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <system_error>
#include <utility>

#include "core/base/align.h"
#include "core/base/file.h"
#include "core/base/units.h"
#include "core/run/run_trace.h"
#include "core/run/runtime_names.h"
#include "core/store/channel_order.h"
#include "core/system/cores.h"

namespace tierd {
namespace {

// Parses an optional number.
Result<std::optional<uint64_t>> parse_number(const std::string& text, const char* key) {
  if (text.empty()) return std::optional<uint64_t>();
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) {
    return Error{Code::invalid_argument, key, fmt::format("'{}' is not a whole number", text)};
  }
  return std::optional<uint64_t>(number);
}

// Returns the whole pages of `bytes` to the system; they read as zeros from then on.
void forget_bytes(std::span<std::byte> bytes) {
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const uint64_t begin = align_up(first, kPageBytes), end = align_down(first + bytes.size(), kPageBytes);
  if (begin < end) (void)madvise(bytes.data() + (begin - first), end - begin, MADV_DONTNEED);
}

constexpr uint64_t kSpinNs = 20'000;  // polling time of an agent's thread with a core of its own

}  // namespace

Result<std::unique_ptr<Assembly>> Assembly::create(RunPlan of, const RuntimeOptions& options,
                                                   Waiter& waiter) {
  std::unique_ptr<Assembly> made(new Assembly(std::move(of)));
  const Config& config = made->plan.config;
  TIERD_ASSIGN(made->machine, VirtualMachine::create(config, options.play_on));
  TIERD_TRY(made->make_dispatcher(waiter));
  made->threads = config.threads != 0 ? config.threads : available_cores();
  for (const StoredSite& site : made->plan.store.manifest().sites) {
    if (site.pieces == 1) continue;
    made->extent_pieces.push_back(
        {site.first_extent, site.neurons(), site.pieces, static_cast<uint32_t>(site.extent_bytes(0))});
  }
  for (size_t tier = 0; tier < made->plan.tiers.memories.size(); ++tier)
    TIERD_TRY(made->make_tier(tier, options));
  TIERD_TRY(made->make_strategies(options));
  TIERD_TRY(made->make_store_agent(options));
  TIERD_TRY(made->make_kernel(options));
  if (made->executes()) {
    TIERD_TRY(made->load_tensors());
    // The store may have changed between the opening of manifest and data.
    TIERD_TRY(made->plan.store.unchanged());
  }
  // This is last, because a new thread inherits the binding of its creator.
  const auto driven_here = [](const Tier& tier) {
    return tier.config.compute && tier.config.thread != "own";
  };
  if (made->binds_workers() && std::ranges::any_of(made->plan.tiers.memories, driven_here))
    (void)bind_this_thread(0);
  return made;
}

Assembly::~Assembly() {
  if (dispatcher != nullptr) dispatcher->stop_watching();
  // The threads must end before the objects that they use.
  for (TierState& tier : tiers) tier.threads.clear();
  flash_thread.reset();
}

void Assembly::give_up(std::unique_ptr<Assembly> assembly, std::shared_ptr<const Engine> engine) {
  const auto stuck = [](const std::unique_ptr<AgentThread>& thread) { return thread->is_stuck(); };
  const bool whole =
      std::ranges::none_of(assembly->tiers,
                           [&](const TierState& tier) { return std::ranges::any_of(tier.threads, stuck); }) &&
      (assembly->flash_thread == nullptr || !assembly->flash_thread->is_stuck());
  if (whole) return;
  assembly->give_back();
  for (TierState& tier : assembly->tiers) {
    for (const std::unique_ptr<AgentThread>& thread : tier.threads) thread->leave_behind();
  }
  if (assembly->flash_thread != nullptr) assembly->flash_thread->leave_behind();
  // Never destroyed, not even at the end of the process.
  using LeftBehind = std::pair<std::unique_ptr<Assembly>, std::shared_ptr<const Engine>>;
  static auto* const left_behind = new std::vector<LeftBehind>();
  left_behind->emplace_back(std::move(assembly), std::move(engine));
}

void Assembly::give_back() {
  dispatcher->stop_watching();
  for (size_t t = 0; t < tiers.size(); ++t) {
    TierState& tier = tiers[t];
    std::vector<bool> stuck(tier.agents.size());
    for (size_t i = 0; i < tier.threads.size(); ++i) {
      if (tier.threads[i]->is_stuck()) {
        stuck[i] = true;
        tier.threads[i]->end();
      }
    }
    for (size_t i = 0; i < tier.agents.size(); ++i) {
      if (!stuck[i]) tier.before += counts_of(tier.agents[i]);
      tier.agents[i].counts = {};
    }
  }
  if (flash_thread == nullptr || !flash_thread->is_stuck()) {
    // This agent keeps the pages that it has registered.
    flash_thread.reset();
    flash_before += counts_of(flash);
    flash.counts = {};
    flash.agent.reset();
  }
  for (const Tier& tier : plan.tiers.memories) {
    for (uint32_t i = 0; i < tier.config.count; ++i) {
      const auto memory = static_cast<MemoryId>(tier.first_memory + i);
      pools.keep_pages(memory, {});
      forget_bytes(pools.memory(memory));
      forget_bytes(pools.activations(static_cast<uint16_t>(tier.first_agent + i)));
    }
  }
}

EngineParts Assembly::engine_parts() {
  const UnitId head = plan.model.sites.all.back().flow.output.front().unit;
  return {dispatcher.get(), scheduler.get(), &plan.model, plan.tiers.topology.units[head].agent};
}

Status Assembly::make_dispatcher(Waiter& waiter) {
  TIERD_ASSIGN(const std::optional<uint64_t> shuffle, parse_number(plan.config.shuffle, "scheduler.shuffle"));
  Dispatcher::Options options;
  // One message can compute all neurons of a site, and a resize lists an arena edition by edition.
  options.max_units = static_cast<uint32_t>(plan.model.sites.editions.size());
  for (const Site& site : plan.model.sites) options.max_units = std::max(options.max_units, site.n);
  options.shuffle_seed = shuffle;
  dispatcher = std::make_unique<Dispatcher>(pools, clock(), waiter, options);
  return {};
}
const Assembly::TierState& Assembly::first_computing() const {
  size_t tier = 0;
  while (!plan.tiers.memories[tier].config.compute) ++tier;
  return tiers[tier];
}

std::vector<size_t> Assembly::memories_of(size_t tier) const {
  std::vector<size_t> memories(plan.tiers.memories[tier].config.count);
  std::iota(memories.begin(), memories.end(), plan.tiers.memories[tier].first_memory - 1u);
  return memories;
}

uint64_t Assembly::resident_bytes(size_t tier) const {
  uint64_t bytes = 0;
  for (const size_t m : memories_of(tier)) {
    for (EditionId e = 0; e < slots[m].size(); ++e)
      bytes += uint64_t{slots[m][e]} * plan.model.sites.editions[e].slot_bytes;
  }
  return bytes;
}

Status Assembly::make_strategies(const RuntimeOptions& asked) {
  const auto linear = [this](const PluginTensors::Tensor& tensor, const float* x, uint32_t rows, float* y) {
    first_computing().agents.front().products->linear(
        {tensor.encoding, static_cast<uint32_t>(tensor.dims[0]), static_cast<uint32_t>(tensor.dims[1]),
         tensor.packed.get()},
        x, rows, y);
  };
  StrategySet::Options options;
  options.topology = plan.tiers.topology;
  options.seed = plan.config.seed;
  options.deadline_ns = uint64_t{plan.config.plugin_deadline_ms} * 1'000'000;
  options.running = asked.running_plugins;
  options.linear = linear;
  options.measure_every = plan.config.measure_every;
  auto made = StrategySet::create(plan.strategies, plan.model.sites, options);
  if (!made.ok()) return naming_model(made.error(), plan.config.model);
  strategies = std::move(*made);
  plan.strategies = {};  // the instances hold their tensors, which must not outlive a swap
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const Tier& of = plan.tiers.memories[tier];
    for (const uint64_t part :
         strategies->divide(plan.memory.tiers[tier].arena, of.first_memory, of.config.count))
      parts.push_back(part);
  }
  TIERD_ASSIGN(slots, strategies->share(parts));
  if (const Status fits = strategies->fits(parts, parts); !fits.ok())
    return naming_model(fits.error(), plan.config.model);
  for (size_t tier = 0; tier < tiers.size(); ++tier) TIERD_TRY(reserve(tier));
  return {};
}

Status Assembly::reserve(size_t tier) {
  const TierMemory& memory = plan.memory.tiers[tier];
  Budget& budget = tiers[tier].budget;
  if (plan.tiers.memories[tier].config.compute) {
    TIERD_TRY(budget.reserve("KV cache", memory.kv));
    TIERD_TRY(budget.reserve("activations", memory.activations));
    TIERD_TRY(budget.reserve("small tensors", memory.tensors));
  }
  if (memory.given != 0) TIERD_TRY(budget.reserve("given activations", memory.given));
  if (tier == 0) TIERD_TRY(budget.reserve(kPluginTables, memory.tables));
  TIERD_TRY(budget.reserve("staging", memory.staging));
  if (memory.bounce != 0) TIERD_TRY(budget.reserve("bounce buffer", memory.bounce));
  if (memory.direct != 0) TIERD_TRY(budget.reserve("direct reads", memory.direct));
  return budget.reserve(kResident, resident_bytes(tier));
}

Status Assembly::make_kernel(const RuntimeOptions& asked) {
  const SiteTable& sites = plan.model.sites;
  const Config& config = plan.config;
  std::vector<const Agent*> agents;
  TIERD_TRY(add_agents(agents));
  for (const std::vector<uint32_t>& of : slots) residencies.emplace_back(sites.editions, of);
  strategies->set_residencies(residencies);
  Recording* const recording = asked.recording;
  if (machine && recording == nullptr && !asked.play_on) TIERD_TRY(plays());

  Scheduler::Options options;
  options.topology = plan.tiers.topology;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    const uint32_t needed = serves(Op::move) | serves(Op::resize);
    const bool resizes = (plan.tiers.memories[tier].agent.entry->serves & needed) == needed;
    for (const size_t m : memories_of(tier)) {
      Memory& to = options.topology.memories[m];
      to.arena_bytes = parts[m];
      to.reserved = tiers[tier].whole ? slots_for_all(static_cast<MemoryId>(m + 1)) : slots[m];
      to.arena_offset = arena_offset.emplace_back(arena_offsets(sites.editions, to.reserved));
      to.resizes = resizes;
      to.staging_offset = tiers[tier].staging_offset;
    }
  }
  options.prefetch = config.prefetch;
  options.recording = recording;
  options.max_rows = plan.memory.model.max_rows;
  options.measure_every = config.measure_every;
  // Uses the balancer's window for the comparison of loads, if it has one.
  const Parameters& of_balancer = strategies->instance("balancer").choice().parameters;
  if (const int64_t* const window = of_balancer.get<int64_t>("window"); window != nullptr && *window > 0)
    options.load_window = static_cast<uint32_t>(*window);
  options.describe_extent = [this](uint32_t extent) {
    return plan.store.data_path() + ": " + plan.store.describe(extent);
  };
  scheduler = std::make_unique<Scheduler>(*dispatcher, sites, strategies->strategies(),
                                          strategies->placement(), residencies, options);

  return make_recording(asked, options, agents);
}

// Allows one observer: the duration of a second recorder would appear in the times of the first.
Status Assembly::make_recording(const RuntimeOptions& asked, const Scheduler::Options& options,
                                const std::vector<const Agent*>& agents) {
  const Config& config = plan.config;
  const auto refuse = [](const char* key, const char* why) {
    return Error{Code::invalid_argument, key, why};
  };
  if (asked.play_on) {
    dispatcher->set_observer(asked.observer);
    return {};
  }
  if (!config.trace.empty() && !config.timeline.empty()) {
    return refuse(
        "run.timeline",
        "a run has either a timeline or a trace (run.trace), which tier-trace export turns into one");
  }
  dispatcher->set_observer(asked.observer);
  if (!config.trace.empty()) {
    if (asked.observer != nullptr) return refuse("run.trace", "this program listens to the run itself");
    const TraceHeader header = trace_header(plan, slots, options, dispatcher->options(), agents);
    TIERD_ASSIGN(recorder, Recorder::create(config.trace, header, clock()));
    dispatcher->set_observer(recorder.get());
  }
  if (config.timeline.empty()) return {};
  if (asked.observer != nullptr) return refuse("run.timeline", "this program listens to the run itself");
  TimelineNames names;
  names.facts = run_facts(plan);
  names.sites = &plan.model.sites;
  for (const Agent* agent : agents) names.agents.emplace_back(agent->name());
  TIERD_ASSIGN(timeline, TimelineFile::create(config.timeline, std::move(names), clock()));
  dispatcher->set_observer(&timeline->observer());
  return {};
}

// Checks an order of channels, since agents index inputs by it without checks.
Status Assembly::check_order(const ResidentTensor& tensor, std::span<const std::byte> bytes) const {
  if (!tensor.name.ends_with(".order")) return {};
  std::vector<float> values(tensor.cols);
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  if (is_order(values)) return {};
  return Error{Code::corrupt, plan.store.data_path(),
               fmt::format("{} is no order of {} channels: each of their numbers was expected once",
                           tensor.name, tensor.cols)};
}

Status Assembly::load_tensors() {
  const Manifest& manifest = plan.store.manifest();
  TIERD_ASSIGN(const File file, File::open(plan.store.data_path()));
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    for (uint32_t i = 0; i < tiers[tier].tensors.size(); ++i) {
      const auto id = static_cast<MemoryId>(plan.tiers.memories[tier].first_memory + i);
      const auto& load = tiers[tier].agents[i].load;
      std::vector<std::byte> read;
      for (const auto& [tensor, offset] : tiers[tier].tensors[i]) {
        const uint32_t extent = manifest.resident[tensor].extent;
        const uint64_t size = manifest.extents[extent].bytes;
        if (load) read.resize(size);
        const std::span<std::byte> bytes = load ? std::span(read) : pools.memory(id).subspan(offset, size);
        TIERD_TRY(file.read_exact(manifest.extents[extent].offset, bytes));
        TIERD_TRY(plan.store.verify(extent, bytes));
        TIERD_TRY(check_order(manifest.resident[tensor], bytes));
        if (load) load(offset, bytes);
      }
    }
  }
  file.forget();
  return {};
}

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
