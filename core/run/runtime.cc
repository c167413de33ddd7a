#include "core/run/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/affinity.h"
#include "core/base/align.h"
#include "core/base/units.h"
#include "core/layout/row_group.h"
#include "core/run/run_trace.h"
#include "core/run/runtime_names.h"
#include "core/store/cache_folder.h"
#include "core/store/file.h"

namespace tierd {
namespace {

constexpr uint32_t kDefaultContext = 4096;
constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostUnits = 16;
constexpr uint32_t kMostSequences = 1024;
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

// "dram": all units of the tier; "dram.1": the second; "": none.
Result<std::vector<uint32_t>> units_named(const std::string& name, const char* key, uint32_t units) {
  constexpr std::string_view kTier = "dram";
  std::vector<uint32_t> all(units);
  std::iota(all.begin(), all.end(), 0U);
  if (name.empty()) return std::vector<uint32_t>();
  if (name == kTier) return all;
  for (const uint32_t unit : all) {
    if (name == fmt::format("{}.{}", kTier, unit)) return std::vector<uint32_t>{unit};
  }
  return Error{Code::invalid_argument, key,
               fmt::format("there is no '{}'; units are {}.0 to {}.{}, and {} is all of them", name, kTier,
                           kTier, units - 1, kTier)};
}

}  // namespace

Result<Store> open_store(const Config& config, const RuntimeOptions& options) {
  if (config.model.empty()) {
    return Error{Code::invalid_argument, "model.path", "no model is given; name one with -m"};
  }
  WriteOptions write;
  write.quiet = options.quiet;
  write.layout = *layout_by_name(config.layout);
  write.layer_group = config.layer_group;
  write.bundling = *bundling_by_name(config.bundling);
  write.encoding = encoding_by_name(config.encoding);
  write.head_encoding =
      config.head_encoding == "same" ? write.encoding : encoding_by_name(config.head_encoding);
  TIERD_ASSIGN(const std::string directory, store_for(config.model, SourceOptions{config.tokenizer}, write));
  return Store::open(directory);
}

Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options) {
  TIERD_ASSIGN(Store store, open_store(config, options));
  const Manifest& manifest = store.manifest();

  MemoryRequest request;
  TIERD_ASSIGN(request.capacity, parse_capacity(config.dram_capacity, kCapacity));
  TIERD_ASSIGN(request.most_staging, parse_bytes(config.dram_staging, "tiers.dram.staging"));
  if (config.dram_units == 0 || config.dram_units > kMostUnits) {
    return Error{Code::invalid_argument, "tiers.dram.units",
                 fmt::format("{} is not within 1 and {}", config.dram_units, kMostUnits)};
  }
  request.fit = options.fit;
  request.model.context =
      config.context != 0 ? config.context : std::min(manifest.config.context_length, kDefaultContext);
  if (request.model.context > manifest.config.context_length) {
    return Error{Code::invalid_argument, "run.context",
                 fmt::format("{} is more than the {} positions of this model", config.context,
                             manifest.config.context_length)};
  }
  if (config.threads > kMostThreads) {
    return Error{Code::invalid_argument, "run.threads",
                 fmt::format("{} is not within 0 and {}", config.threads, kMostThreads)};
  }
  if (config.ubatch == 0 || config.ubatch > UINT16_MAX) {
    return Error{Code::invalid_argument, "run.ubatch",
                 fmt::format("{} is not within 1 and 65535", config.ubatch)};
  }
  if (config.sequences == 0 || config.sequences > kMostSequences) {
    return Error{Code::invalid_argument, "run.sequences",
                 fmt::format("{} is not within 1 and {}", config.sequences, kMostSequences)};
  }
  request.model.sequences = config.sequences;
  request.model.max_rows = std::max(config.sequences, std::min(config.ubatch, request.model.context));
  request.model.logit_rows = std::max(config.sequences, std::min(options.logit_rows, request.model.max_rows));
  request.model.kv = config.kv == "f32" ? KvEncoding::f32 : KvEncoding::f16;
  const bool blocks = std::any_of(manifest.sites.begin(), manifest.sites.end(),
                                  [](const StoredSite& site) { return site.encodings.has_blocks(); });
  request.model.measure = config.measure_every != 0;
  request.model.int8_activations = blocks && config.activations == "int8";
  request.model.units = config.dram_units;
  TIERD_ASSIGN(const std::vector<uint32_t> dense, units_named(config.dense, "run.dense", config.dram_units));
  if (!dense.empty()) request.model.dense = dense.front();
  TIERD_ASSIGN(request.model.attention, units_named(config.attention, "run.attention", config.dram_units));
  if (request.model.attention.size() > 1 && manifest.config.qk_norm && manifest.config.qk_norm_wide) {
    return Error{Code::unsupported, "run.attention",
                 "this model norms the queries of all heads together: one unit must have them all"};
  }
  TIERD_ASSIGN(ChosenStrategies chosen, choose_strategies(config));
  TIERD_ASSIGN(StrategyChoices fallbacks, choose_fallbacks(config));
  TIERD_ASSIGN(AgentChoices agents, choose_agents(config));
  request.tables = chosen.tables();
  TIERD_ASSIGN(MemoryPlan memory, plan_memory(manifest, request));
  ModelPlan model = plan_model(manifest, memory.model);
  TIERD_ASSIGN(StrategyChoices strategies, read_tensors(std::move(chosen)));
  return RunPlan{config,           std::move(store),      memory,
                 std::move(model), std::move(strategies), std::move(fallbacks),
                 std::move(agents)};
}

Result<std::unique_ptr<Runtime>> Runtime::create(RunPlan plan, const RuntimeOptions& options) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(plan)));
  runtime->quiet_ = options.quiet;
  TIERD_ASSIGN(runtime->machine_, VirtualMachine::create(runtime->plan_.config));
  TIERD_TRY(runtime->make_dispatcher());
  TIERD_TRY(runtime->make_dram());
  TIERD_TRY(runtime->make_strategies());
  TIERD_TRY(runtime->make_flash(options));
  TIERD_TRY(runtime->make_kernel(options));
  TIERD_TRY(runtime->load_tensors());
  // Manifest and data were opened one after the other.
  TIERD_TRY(runtime->plan_.store.unchanged());
  // Last, because a thread inherits the binding of the one that makes it.
  if (runtime->binds_workers() && runtime->dram_threads_.empty()) (void)bind_this_thread(0);
  return runtime;
}

Runtime::~Runtime() {
  // The threads end before what they use.
  dram_threads_.clear();
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

uint64_t Runtime::whole_arena() const {
  std::vector<uint32_t> all;
  for (const Edition& edition : plan_.model.sites.editions) all.push_back(edition.n);
  const uint64_t bytes = align_up(arena_offsets(plan_.model.sites.editions, all).back(), kArenaAlignment);
  const uint64_t beside = plan_.memory.staging / plan_.memory.model.units + plan_.memory.tensors;
  return bytes + beside < kMostMemoryBytes ? bytes : 0;
}

// Before the strategies, which may ask for products from the first moment on. How much of the arena they will
// use is not known yet, and may change: there are addresses for every neuron, which cost nothing. Where spans
// cannot name so many, there are those that the plan allows.
Status Runtime::make_dram() {
  const Config& config = plan_.config;
  const MemoryPlan& memory = plan_.memory;
  threads_ = config.threads != 0 ? config.threads : available_cores();
  ComputeTask task;
  const uint64_t whole = whole_arena();
  most_arena_ = whole != 0 ? memory.whole : memory.arena;
  // An edition's beginning is aligned.
  const uint64_t part =
      align_up(memory.arena, kArenaAlignment) + plan_.model.sites.editions.size() * kArenaAlignment;
  task.arena_bytes = whole != 0 ? whole : part;
  if (task.arena_bytes + memory.staging / memory.model.units + memory.tensors > kMostMemoryBytes) {
    return Error{Code::no_space, kCapacity,
                 fmt::format("{} for weights are more than messages can name; at most {} can be",
                             format_bytes(static_cast<double>(memory.arena)),
                             format_bytes(static_cast<double>(kMostMemoryBytes)))};
  }
  task.staging_bytes = memory.staging / memory.model.units;
  task.kernels = config.kernels;
  staging_offset_ = task.arena_bytes;
  for (uint32_t unit = 0; unit < memory.model.units; ++unit) {
    AgentContext context{
        .number = dram_number(unit), .table = "tiers.dram", .pools = pools_, .clock = clock()};
    const UnitPlan& plan = plan_.model.units[unit];
    task.plan = plan.compute;
    task.memory = dram_memory(unit);
    task.cores = cores_of(unit);
    task.threads = static_cast<uint32_t>(task.cores.size());
    if (!binds_workers()) task.cores.clear();
    place_tensors(plan.tensors, task);
    context.compute = task;
    TIERD_ASSIGN(dram_.emplace_back(), make_agent(plan_.agents.dram, context));
  }
  return {};
}

// Units that run side by side divide the threads; those that the kernel's thread drives take turns with all.
std::vector<uint32_t> Runtime::cores_of(uint32_t unit) const {
  const uint32_t units = plan_.memory.model.units;
  std::vector<uint32_t> cores(threads_);
  std::iota(cores.begin(), cores.end(), 0U);
  if (plan_.config.dram.thread != "own" || units == 1) return cores;
  if (threads_ < units) return {unit % threads_};
  const auto share = [&](uint32_t u) { return cores.begin() + uint64_t{threads_} * u / units; };
  return {share(unit), share(unit + 1)};
}

void Runtime::place_tensors(std::span<const uint32_t> resident, ComputeTask& task) {
  const Manifest& manifest = plan_.store.manifest();
  const uint64_t first = task.arena_bytes + task.staging_bytes;
  uint64_t offset = first;
  task.tensors.clear();
  std::vector<PlacedTensor>& placed = tensors_.emplace_back();
  for (const uint32_t tensor : resident) {
    task.tensors.push_back(offset);
    placed.push_back({tensor, offset});
    offset += manifest.extents[manifest.resident[tensor].extent].bytes;
  }
  task.tensor_bytes = offset - first;
}

Status Runtime::make_strategies() {
  const auto linear = [this](const PluginTensors::Tensor& tensor, const float* x, uint32_t rows, float* y) {
    dram_.front().products->linear({tensor.encoding, static_cast<uint32_t>(tensor.dims[0]),
                                    static_cast<uint32_t>(tensor.dims[1]), tensor.packed.get()},
                                   x, rows, y);
  };
  StrategySet::Options options;
  options.units = plan_.memory.model.units;
  options.seed = plan_.config.seed;
  options.deadline_ns = uint64_t{plan_.config.plugin_deadline_ms} * 1'000'000;
  options.linear = linear;
  options.measure_every = plan_.config.measure_every;
  TIERD_ASSIGN(strategies_, StrategySet::create(plan_.strategies, plan_.model.sites, options));
  plan_.strategies = {};  // the instances hold what they need: tensors must not outlive a swap
  TIERD_ASSIGN(slots_, strategies_->share(plan_.memory.arena));

  const MemoryPlan& memory = plan_.memory;
  TIERD_TRY(budget_.reserve("KV cache", memory.kv));
  TIERD_TRY(budget_.reserve("activations", memory.activations));
  TIERD_TRY(budget_.reserve("small tensors", memory.tensors));
  TIERD_TRY(budget_.reserve(kPluginTables, memory.tables));
  TIERD_TRY(budget_.reserve("staging", memory.staging));
  if (memory.bounce != 0) TIERD_TRY(budget_.reserve("bounce buffer", memory.bounce));
  return budget_.reserve(kResident, resident_bytes());
}

Status Runtime::make_flash(const RuntimeOptions& options) {
  AgentContext context{.number = flash_number(), .table = "tiers.flash", .pools = pools_, .clock = clock()};
  for (const StoredSite& site : plan_.store.manifest().sites) {
    if (site.pieces == 1) continue;
    extent_pieces_.push_back(
        {site.first_extent, site.neurons(), site.pieces, static_cast<uint32_t>(site.extent_bytes(0))});
  }
  context.read = {.path = plan_.store.data_path(),
                  .extents = plan_.store.manifest().extents,
                  .pieces = extent_pieces_,
                  .landing = pools_.memory(kDramMemory)
                                 .subspan(staging_offset_, plan_.memory.staging / plan_.memory.model.units),
                  .memory_bytes = plan_.memory.arena + plan_.memory.staging,
                  .bounce_bytes = plan_.memory.bounce,
                  .open_device = options.open_device};
  if (machine_) context.read->described = machine_->disk(plan_.config.flash.thread == "own");
  TIERD_ASSIGN(flash_, make_agent(plan_.agents.flash, context));
  return {};
}

bool Runtime::binds_workers() const {
  return plan_.config.bind && plan_.config.threads <= available_cores();
}

Result<Agent*> Runtime::on_thread(Agent& agent, const std::string& thread, const std::string& core,
                                  const char* key, std::unique_ptr<AgentThread>& owner) {
  TIERD_ASSIGN(const std::optional<uint64_t> number, parse_number(core, key));
  if (thread != "own" || machine_) return &agent;
  AgentThread::Options options;
  if (number) options.core = static_cast<uint32_t>(*number);
  if (available_cores() > threads_) options.spin_ns = kSpinNs;
  owner = std::make_unique<AgentThread>(agent, options);
  return owner.get();
}

Status Runtime::make_kernel(const RuntimeOptions& asked) {
  const MemoryPlan& memory = plan_.memory;
  const SiteTable& sites = plan_.model.sites;
  const Config& config = plan_.config;
  // The thread that drives a DRAM agent is worker 0 of its team.
  const auto core_of = [&](uint32_t unit) {
    if (config.dram.core.empty()) return binds_workers() ? std::to_string(cores_of(unit).front()) : "";
    return unit == 0 ? config.dram.core : "";
  };
  std::vector<const Agent*> agents;
  TIERD_ASSIGN(Agent * flash, on_thread(*flash_.agent, config.flash.thread, config.flash.core,
                                        "tiers.flash.core", flash_thread_));
  TIERD_CHECK(dispatcher_->add_agent(*flash) == flash_number());
  agents.push_back(flash);
  for (uint32_t unit = 0; unit < memory.model.units; ++unit) {
    std::unique_ptr<AgentThread> thread;
    Agent* computing = dram_[unit].agent.get();
    if (machine_) {
      const double share = static_cast<double>(cores_of(unit).size()) / threads_;
      TIERD_ASSIGN(computing,
                   machine_->unit(*computing, plan_.model, unit, share, config.dram.thread == "own"));
    }
    TIERD_ASSIGN(Agent * agent,
                 on_thread(*computing, config.dram.thread, core_of(unit), "tiers.dram.core", thread));
    if (thread) dram_threads_.push_back(std::move(thread));
    TIERD_CHECK(dispatcher_->add_agent(*agent) == dram_number(unit));
    agents.push_back(agent);
    residencies_.emplace_back(sites.editions, slots_[unit]);
  }
  strategies_->set_residencies(residencies_);
  if (machine_ && asked.recording == nullptr)
    TIERD_TRY(machine_->can_play(plan_.model, strategies_->strategies()));

  Scheduler::Options options;
  Topology& topology = options.topology;
  const bool whole = whole_arena() != 0;
  const std::vector<uint64_t> parts = strategies_->parts(memory.arena);
  const uint32_t needed = serves(Op::move) | serves(Op::resize);
  const bool resizes = (plan_.agents.dram.entry->serves & needed) == needed;
  for (uint32_t unit = 0; unit < memory.model.units; ++unit) {
    Memory& to = topology.memories.emplace_back();
    to.agent = dram_number(unit);
    to.arena_bytes = parts[unit];
    to.reserved = slots_[unit];
    for (EditionId e = 0; e < sites.editions.size() && whole; ++e) to.reserved[e] = sites.editions[e].n;
    to.arena_offset = arena_offsets(sites.editions, to.reserved);
    to.resizes = resizes;
    to.staging_offset = staging_offset_;
    to.staging_blocks = memory.blocks;
    to.block_bytes = memory.block_bytes;
    const auto id = static_cast<MemoryId>(topology.memories.size());
    topology.links.push_back({.from = kStore, .to = id, .agent = flash_number()});
    topology.units.push_back({.agent = to.agent, .memory = id});
  }
  arena_offset_ = topology.memories.front().arena_offset;
  options.prefetch = config.prefetch;
  options.recording = asked.recording;
  options.max_rows = memory.model.max_rows;
  options.measure_every = config.measure_every;
  options.describe_extent = [this](uint32_t extent) {
    return plan_.store.data_path() + ": " + plan_.store.describe(extent);
  };
  scheduler_ = std::make_unique<Scheduler>(*dispatcher_, sites, strategies_->strategies(),
                                           strategies_->placement(), residencies_, options);

  TIERD_TRY(make_recording(asked, options, agents));
  const UnitId head = sites.all.back().flow.output.front().unit;
  engine_ = std::make_unique<Engine>(*dispatcher_, *scheduler_, plan_.model, dram_number(head),
                                     [this] { return recover(); });
  return {};
}

// One at most: a recorder that listens beside another would be in its times.
Status Runtime::make_recording(const RuntimeOptions& asked, const Scheduler::Options& scheduler,
                               const std::vector<const Agent*>& agents) {
  const Config& config = plan_.config;
  const auto refuse = [](const char* key, const char* why) {
    return Error{Code::invalid_argument, key, why};
  };
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
  for (uint32_t unit = 0; unit < tensors_.size(); ++unit) {
    const std::span<std::byte> memory = pools_.memory(dram_memory(unit));
    for (const auto& [tensor, offset] : tensors_[unit]) {
      const uint32_t extent = manifest.resident[tensor].extent;
      const std::span<std::byte> bytes = memory.subspan(offset, manifest.extents[extent].bytes);
      TIERD_TRY(file.read_exact(manifest.extents[extent].offset, bytes));
      TIERD_TRY(plan_.store.verify(extent, bytes));
    }
  }
  file.forget();
  return {};
}

}  // namespace tierd
