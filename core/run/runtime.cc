#include "core/run/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/align.h"
#include "core/base/cores.h"
#include "core/base/units.h"
#include "core/layout/row_group.h"
#include "core/run/drawn_activity.h"
#include "core/run/run_trace.h"
#include "core/run/runtime_names.h"
#include "core/store/file.h"

namespace tierd {
namespace {

constexpr uint64_t kSpinNs = 20'000;  // with a core to itself, an agent's thread looks for messages so long

// A number that may be left out.
Result<std::optional<uint64_t>> parse_number(const std::string& text, const char* key) {
  if (text.empty()) return std::optional<uint64_t>();
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) {
    return Error{Code::invalid_argument, key, fmt::format("'{}' is not a whole number", text)};
  }
  return std::optional<uint64_t>(number);
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(RunPlan plan, const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(plan)));
  runtime->quiet_ = options.quiet;
  runtime->force_ = options.force || runtime->plan_.config.execute == "trace";
  TIERD_ASSIGN(runtime->machine_, VirtualMachine::create(runtime->plan_.config, options.play_on));
  TIERD_TRY(runtime->make_dispatcher());
  const uint32_t threads = runtime->plan_.config.threads;
  runtime->threads_ = threads != 0 ? threads : available_cores();
  for (const StoredSite& site : runtime->plan_.store.manifest().sites) {
    if (site.pieces == 1) continue;
    runtime->extent_pieces_.push_back(
        {site.first_extent, site.neurons(), site.pieces, static_cast<uint32_t>(site.extent_bytes(0))});
  }
  for (size_t tier = 0; tier < runtime->plan_.tiers.memories.size(); ++tier)
    TIERD_TRY(runtime->make_tier(tier, options));
  TIERD_TRY(runtime->make_strategies(options));
  TIERD_TRY(runtime->make_store_agent(options));
  TIERD_TRY(runtime->make_kernel(options));
  if (runtime->executes()) {
    TIERD_TRY(runtime->load_tensors());
    // Manifest and data were opened one after the other.
    TIERD_TRY(runtime->plan_.store.unchanged());
  }
  // Last, because a thread inherits the binding of the one that makes it.
  const auto driven_here = [](const Tier& tier) {
    return tier.config.compute && tier.config.thread != "own";
  };
  if (runtime->binds_workers() && std::ranges::any_of(runtime->plan_.tiers.memories, driven_here))
    (void)bind_this_thread(0);
  return runtime;
}

Runtime::~Runtime() {
  if (engine_ != nullptr) (void)engine_->drain();
  // The threads end before what they use.
  for (TierState& tier : tiers_) tier.threads.clear();
  flash_thread_.reset();
}

Status Runtime::make_dispatcher() {
  TIERD_ASSIGN(const std::optional<uint64_t> shuffle,
               parse_number(plan_.config.shuffle, "scheduler.shuffle"));
  Dispatcher::Options options;
  // All neurons of a site can be computed by one message, and an arena is named edition by edition.
  options.max_units = static_cast<uint32_t>(plan_.model.sites.editions.size());
  for (const Site& site : plan_.model.sites) options.max_units = std::max(options.max_units, site.n);
  options.shuffle_seed = shuffle;
  dispatcher_ = std::make_unique<Dispatcher>(pools_, clock(), options);
  return {};
}

std::vector<uint32_t> Runtime::slots_for_all(MemoryId memory) const {
  const Memory& of = plan_.tiers.topology.memory(memory);
  std::vector<uint32_t> slots;
  for (EditionId e = 0; e < plan_.model.sites.editions.size(); ++e)
    slots.push_back(of.holds(e) ? plan_.model.sites.editions[e].n : 0);
  return slots;
}

uint64_t Runtime::addresses_for_all(size_t tier) const {
  const std::vector<Edition>& editions = plan_.model.sites.editions;
  const std::vector<uint32_t> all = slots_for_all(plan_.tiers.memories[tier].first_memory);
  const uint64_t bytes = align_up(arena_offsets(editions, all).back(), kArenaAlignment);
  const TierMemory& memory = plan_.memory.tiers[tier];
  return bytes + memory.staging_of_memory() + memory.tensors < kMostMemoryBytes ? bytes : 0;
}

// Before the strategies, which may ask for products from the first moment on. How much of the arena they will
// use is not known yet, and may change: there are addresses for every neuron, which cost nothing. Where spans
// cannot name so many, or addresses are limited, there are those that the plan allows.
Status Runtime::make_tier(size_t tier, const RuntimeOptions& options) {
  const TierMemory& memory = plan_.memory.tiers[tier];
  TierState& state = tiers_.emplace_back(TierState{.budget = Budget(memory.capacity)});
  const uint64_t all = addresses_for_all(tier);
  state.whole = all != 0 && !addresses_are_limited();
  state.most_arena = state.whole ? memory.whole : memory.arena;
  // An edition's beginning is aligned.
  const uint64_t part =
      align_up(memory.arena, kArenaAlignment) + plan_.model.sites.editions.size() * kArenaAlignment;
  state.staging_offset = state.whole ? all : part;
  const Tier& of = plan_.tiers.memories[tier];
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

// The i-th of a tier: it computes, or its memory is all that is used of it.
Result<MadeAgent> Runtime::make_memory_agent(size_t tier, uint32_t i, const RuntimeOptions& options) {
  const Tier& of = plan_.tiers.memories[tier];
  TierState& state = tiers_[tier];
  ComputeTask task;
  task.memory = static_cast<MemoryId>(of.first_memory + i);
  task.arena_bytes = state.staging_offset;
  task.staging_bytes = plan_.memory.tiers[tier].staging_of_memory();
  task.kernels = plan_.config.kernels;
  task.described = machine_ != nullptr;
  std::vector<PlacedTensor>& tensors = state.tensors.emplace_back();
  if (of.config.compute) {
    const UnitPlan& plan = plan_.model.units[of.first_unit + i];
    task.plan = plan.compute;
    task.cores = cores_of(of, i);
    task.threads = static_cast<uint32_t>(task.cores.size());
    if (of.cores.empty() && !binds_workers()) task.cores.clear();
    tensors = place_tensors(plan.tensors, task);
  }
  AgentContext context{.number = static_cast<uint16_t>(of.first_agent + i),
                       .table = of.config.table(),
                       .pools = pools_,
                       .clock = clock()};
  context.compute = std::move(task);
  // A run that executes nothing may have no file to read.
  if (of.reads_directly() && executes()) {
    uint32_t readers = 0;
    for (const Tier& other : plan_.tiers.memories) readers += other.reads_directly() ? other.config.count : 0;
    const uint64_t each = plan_.memory.tiers.front().direct / readers;
    context.read = read_task(options);
    context.read->memory_bytes = plan_.memory.tiers[tier].arena + plan_.memory.tiers[tier].staging;
    context.read->bounce_bytes = each - each % kDirectIoAlignment;
  }
  return make_agent(of.agent, context);
}

// Agents that run side by side divide the cores; those that one thread drives take turns with all of them.
std::vector<uint32_t> Runtime::cores_of(const Tier& tier, uint32_t agent) const {
  std::vector<uint32_t> cores = tier.cores;
  uint32_t sharers = tier.config.thread == "own" ? tier.config.count : 1;
  uint32_t number = tier.config.thread == "own" ? agent : 0;
  if (cores.empty()) {
    cores.resize(threads_);
    std::iota(cores.begin(), cores.end(), 0U);
    // With all tiers that name no cores. The kernel's thread comes first.
    sharers = number = 0;
    bool driven_here = false;
    for (const Tier& other : plan_.tiers.memories) {
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

std::vector<Runtime::PlacedTensor> Runtime::place_tensors(std::span<const uint32_t> resident,
                                                          ComputeTask& task) const {
  const Manifest& manifest = plan_.store.manifest();
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

const Runtime::TierState& Runtime::first_computing() const {
  size_t tier = 0;
  while (!plan_.tiers.memories[tier].config.compute) ++tier;
  return tiers_[tier];
}

std::vector<size_t> Runtime::memories_of(size_t tier) const {
  std::vector<size_t> memories(plan_.tiers.memories[tier].config.count);
  std::iota(memories.begin(), memories.end(), plan_.tiers.memories[tier].first_memory - 1u);
  return memories;
}

Status Runtime::make_strategies(const RuntimeOptions& asked) {
  const auto linear = [this](const PluginTensors::Tensor& tensor, const float* x, uint32_t rows, float* y) {
    first_computing().agents.front().products->linear(
        {tensor.encoding, static_cast<uint32_t>(tensor.dims[0]), static_cast<uint32_t>(tensor.dims[1]),
         tensor.packed.get()},
        x, rows, y);
  };
  StrategySet::Options options;
  options.topology = plan_.tiers.topology;
  options.seed = plan_.config.seed;
  options.deadline_ns = uint64_t{plan_.config.plugin_deadline_ms} * 1'000'000;
  options.running = asked.running_plugins;
  options.linear = linear;
  options.measure_every = plan_.config.measure_every;
  TIERD_ASSIGN(strategies_, StrategySet::create(plan_.strategies, plan_.model.sites, options));
  plan_.strategies = {};  // the instances hold what they need: tensors must not outlive a swap
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const Tier& of = plan_.tiers.memories[tier];
    for (const uint64_t part :
         strategies_->divide(plan_.memory.tiers[tier].arena, of.first_memory, of.config.count))
      parts_.push_back(part);
  }
  TIERD_ASSIGN(slots_, strategies_->share(parts_));
  for (size_t tier = 0; tier < tiers_.size(); ++tier) TIERD_TRY(reserve(tier));
  return {};
}

Status Runtime::reserve(size_t tier) {
  const TierMemory& memory = plan_.memory.tiers[tier];
  Budget& budget = tiers_[tier].budget;
  if (plan_.tiers.memories[tier].config.compute) {
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

ReadTask Runtime::read_task(const RuntimeOptions& options) const {
  ReadTask task;
  task.path = plan_.store.data_path();
  task.extents = plan_.store.manifest().extents;
  task.pieces = extent_pieces_;
  task.open_device = options.open_device;
  return task;
}

Status Runtime::make_store_agent(const RuntimeOptions& options) {
  const Tier& store = plan_.tiers.store;
  AgentContext context{
      .number = store.first_agent, .table = store.config.table(), .pools = pools_, .clock = clock()};
  const std::vector<const StoredSite*> stored = plan_.store.manifest().stored();
  for (const Edition& edition : plan_.model.sites.editions) {
    if (edition.made_of == kNoEdition) continue;
    const StoredSite& site = **std::ranges::find(stored, edition.first_extent, &StoredSite::first_extent);
    if (site.compression == Compression::none) continue;  // moves encode them anew
    CompressedExtents& compressed = compressed_extents_.emplace_back();
    compressed.first = site.first_extent;
    compressed.bytes = site.compressed;
    compressed.expanded = edition.bytes;
    if (site.compression == Compression::codec) {
      compressed.codec = plan_.codec.get();
    } else {
      compressed.bitmap = *Bitmap::of(site.cut, site.encodings);
    }
  }
  std::ranges::sort(compressed_extents_, {}, &CompressedExtents::first);
  const TierMemory& lowest = plan_.memory.tiers.front();
  context.read = read_task(options);
  context.read->landing = pools_.memory(1).subspan(tiers_.front().staging_offset, lowest.staging_of_memory());
  context.read->memory_bytes = lowest.arena + lowest.staging;
  context.read->bounce_bytes = lowest.bounce;
  context.read->compressed = compressed_extents_;
  context.read->kernels = plan_.config.kernels;
  if (machine_) context.read->described = machine_->disk(store.config.thread == "own");
  TIERD_ASSIGN(flash_, make_agent(store.agent, context));
  return {};
}

bool Runtime::binds_workers() const {
  return plan_.config.bind && plan_.config.threads <= own_cores().units.size();
}

Result<Agent*> Runtime::on_thread(Agent& agent, const TierConfig& config, std::optional<uint32_t> core,
                                  std::unique_ptr<AgentThread>& owner) const {
  if (config.thread != "own" || machine_) return &agent;
  AgentThread::Options options;
  options.core = core;
  if (available_cores() > threads_) options.spin_ns = kSpinNs;
  owner = std::make_unique<AgentThread>(agent, options);
  return owner.get();
}

// In the order of their numbers.
Status Runtime::add_agents(std::vector<const Agent*>& agents) {
  const auto add = [&](Agent& agent, uint32_t number) {
    TIERD_CHECK(dispatcher_->add_agent(agent) == number);
    agents.push_back(&agent);
  };
  const Tier& store = plan_.tiers.store;
  std::optional<uint32_t> core;
  if (!store.cores.empty()) core = store.cores.front();
  TIERD_ASSIGN(Agent * reads, on_thread(*flash_.agent, store.config, core, flash_thread_));
  add(*reads, store.first_agent);
  std::vector<std::string> memories;
  for (size_t memory = 0; memory <= plan_.tiers.topology.memories.size(); ++memory)
    memories.push_back(plan_.tiers.tier_of(static_cast<MemoryId>(memory)).config.name);
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const Tier& of = plan_.tiers.memories[tier];
    const bool own = of.config.thread == "own";
    for (uint32_t i = 0; i < of.config.count; ++i) {
      const std::vector<uint32_t> cores = cores_of(of, i);
      Agent* agent = tiers_[tier].agents[i].agent.get();
      if (machine_) {
        VirtualMachine::Unit unit{.tier = of.config.name, .plan = {}};
        unit.memories = memories;
        if (of.reads_directly()) unit.reads = {plan_.store.manifest().extents, extent_pieces_};
        if (of.config.compute) unit.plan = plan_.model.units[of.first_unit + i].compute;
        unit.share = static_cast<double>(cores.size()) / threads_;
        unit.runs = of.apart() ? VirtualMachine::Runs::beside
                    : own      ? VirtualMachine::Runs::on_its_own_thread
                               : VirtualMachine::Runs::on_the_kernels_thread;
        TIERD_ASSIGN(agent, machine_->agent(*agent, std::move(unit), plan_.model.sites.editions));
      }
      // The thread that drives an agent is worker 0 of its team.
      core.reset();
      if (!of.cores.empty() || binds_workers()) core = cores.front();
      std::unique_ptr<AgentThread> thread;
      TIERD_ASSIGN(Agent * driven, on_thread(*agent, of.config, core, thread));
      if (thread) tiers_[tier].threads.push_back(std::move(thread));
      add(*driven, of.first_agent + i);
    }
  }
  return {};
}

Status Runtime::make_kernel(const RuntimeOptions& asked) {
  const SiteTable& sites = plan_.model.sites;
  const Config& config = plan_.config;
  std::vector<const Agent*> agents;
  TIERD_TRY(add_agents(agents));
  for (const std::vector<uint32_t>& slots : slots_) residencies_.emplace_back(sites.editions, slots);
  strategies_->set_residencies(residencies_);
  Recording* recording = asked.recording;
  if (!config.activity.empty() && !asked.play_on) {
    TIERD_ASSIGN(drawn_, draw_activity(config, plan_.model));
    recording = drawn_.get();
  }
  if (machine_ && recording == nullptr && !asked.play_on) TIERD_TRY(plays());

  Scheduler::Options options;
  options.topology = plan_.tiers.topology;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const uint32_t needed = serves(Op::move) | serves(Op::resize);
    const bool resizes = (plan_.tiers.memories[tier].agent.entry->serves & needed) == needed;
    for (const size_t m : memories_of(tier)) {
      Memory& to = options.topology.memories[m];
      to.arena_bytes = parts_[m];
      to.reserved = tiers_[tier].whole ? slots_for_all(static_cast<MemoryId>(m + 1)) : slots_[m];
      to.arena_offset = arena_offset_.emplace_back(arena_offsets(sites.editions, to.reserved));
      to.resizes = resizes;
      to.staging_offset = tiers_[tier].staging_offset;
    }
  }
  options.prefetch = config.prefetch;
  options.recording = recording;
  options.max_rows = plan_.memory.model.max_rows;
  options.measure_every = config.measure_every;
  options.describe_extent = [this](uint32_t extent) {
    return plan_.store.data_path() + ": " + plan_.store.describe(extent);
  };
  scheduler_ = std::make_unique<Scheduler>(*dispatcher_, sites, strategies_->strategies(),
                                           strategies_->placement(), residencies_, options);

  TIERD_TRY(make_recording(asked, options, agents));
  const UnitId head = sites.all.back().flow.output.front().unit;
  engine_ = std::make_unique<Engine>(*dispatcher_, *scheduler_, plan_.model,
                                     options.topology.units[head].agent, [this] { return recover(); });
  return {};
}

// One at most: a recorder that listens beside another would be in its times.
Status Runtime::make_recording(const RuntimeOptions& asked, const Scheduler::Options& scheduler,
                               const std::vector<const Agent*>& agents) {
  const Config& config = plan_.config;
  const auto refuse = [](const char* key, const char* why) {
    return Error{Code::invalid_argument, key, why};
  };
  if (asked.play_on) {
    dispatcher_->set_observer(asked.observer);
    return {};
  }
  if (!config.trace.empty() && !config.timeline.empty()) {
    return refuse(
        "run.timeline",
        "a run has either a timeline or a trace (run.trace), which tier-trace export turns into one");
  }
  dispatcher_->set_observer(asked.observer);
  if (!config.trace.empty()) {
    if (asked.observer != nullptr) return refuse("run.trace", "this program listens to the run itself");
    const TraceHeader header = trace_header(plan_, slots_, scheduler, dispatcher_->options(), agents);
    TIERD_ASSIGN(recorder_, Recorder::create(config.trace, header, clock()));
    dispatcher_->set_observer(recorder_.get());
  }
  if (config.timeline.empty()) return {};
  if (asked.observer != nullptr) return refuse("run.timeline", "this program listens to the run itself");
  TimelineNames names;
  names.facts = run_facts(plan_);
  names.sites = &plan_.model.sites;
  for (const Agent* agent : agents) names.agents.emplace_back(agent->name());
  TIERD_ASSIGN(timeline_, TimelineFile::create(config.timeline, std::move(names), clock()));
  dispatcher_->set_observer(&timeline_->observer());
  return {};
}

Status Runtime::load_tensors() {
  const Manifest& manifest = plan_.store.manifest();
  TIERD_ASSIGN(const File file, File::open(plan_.store.data_path()));
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    for (uint32_t i = 0; i < tiers_[tier].tensors.size(); ++i) {
      const auto id = static_cast<MemoryId>(plan_.tiers.memories[tier].first_memory + i);
      const auto& load = tiers_[tier].agents[i].load;
      std::vector<std::byte> read;
      for (const auto& [tensor, offset] : tiers_[tier].tensors[i]) {
        const uint32_t extent = manifest.resident[tensor].extent;
        const uint64_t size = manifest.extents[extent].bytes;
        if (load) read.resize(size);
        const std::span<std::byte> bytes = load ? std::span(read) : pools_.memory(id).subspan(offset, size);
        TIERD_TRY(file.read_exact(manifest.extents[extent].offset, bytes));
        TIERD_TRY(plan_.store.verify(extent, bytes));
        if (load) load(offset, bytes);
      }
    }
  }
  file.forget();
  return {};
}

}  // namespace tierd
