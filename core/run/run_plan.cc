#include "core/run/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"
#include "core/run/asked_store.h"
#include "core/run/checked_keys.h"
#include "core/run/process_memory.h"
#include "core/run/store_codec.h"
#include "core/store/cache_folder.h"
#include "core/store/encoding_choice.h"
#include "core/system/cores.h"

namespace tierd {
namespace {

constexpr uint32_t kDefaultContext = 4096;

// Chooses the power description of a configuration, see RunPlan::power. Errors: those of choose_power;
// invalid_argument for a GPU that computes and is not described.
Result<std::optional<PowerDescription>> plan_power(const Config& config, const TierTable& tiers) {
  if (!config.machine.empty()) {
    if (const auto machine = read_machine(config.machine); !machine.ok())
      return machine.error().below("run.machine");
  }
  auto power = choose_power(config.energy, config.machine);
  if (!power.ok() && !config.energy.empty()) return power.error().below("run.energy");
  if (power.code() == Code::not_found && config.energy.empty()) return std::optional<PowerDescription>();
  TIERD_TRY(power);
  const auto gpu = std::ranges::find_if(tiers.memories, &Tier::computes_apart);
  if (!power->gpu && gpu != tiers.memories.end()) {
    return Error{Code::invalid_argument, power->path,
                 fmt::format("'energy.gpu' is missing, but {} computes on a GPU", gpu->config.table())};
  }
  return std::optional(std::move(*power));
}

// Returns the memory request of a tier, without the extra memory of the lowest tier.
Result<TierRequest> request_of(const Tier& tier) {
  TierRequest request;
  request.name = tier.config.name;
  TIERD_ASSIGN(request.capacity, parse_capacity(tier.config.capacity, tier.key("capacity")));
  TIERD_ASSIGN(const Capacity staging, parse_capacity(tier.config.staging, tier.key("staging")));
  if (staging.kind == Capacity::Kind::share) {
    request.staging_share = staging.share;
  } else if (staging.kind == Capacity::Kind::bytes) {
    request.most_staging = staging.bytes;
  } else {
    return Error{Code::invalid_argument, tier.key("staging"),
                 fmt::format("'{}' is neither a size nor a share; expected one such as 64 MiB or 30%",
                             tier.config.staging)};
  }
  request.memories = tier.config.count;
  request.expands = tier.expands;
  request.recodes = tier.recodes;
  for (uint32_t i = 0; i < tier.config.count && tier.config.compute; ++i)
    request.units.push_back(static_cast<UnitId>(tier.first_unit + i));
  request.bounces = false;
  return request;
}

// Returns the editions that tiers make of stored ones.
Result<std::vector<StoredSite>> plan_recoding(TierTable& tiers, const Manifest& manifest) {
  TIERD_ASSIGN(const Recoding recoding, tiers.choose_recoding());
  if (recoding.encodings.empty()) return std::vector<StoredSite>();
  if (manifest.editions.empty() && manifest.compression == Compression::none)
    return editions_of(manifest, recoding.encodings, recoding.key);
  return Error{
      Code::invalid_argument, recoding.key,
      manifest.editions.empty()
          ? fmt::format(
                "the store is compressed ({}), and compressed neurons cannot be recoded; expected \"none\"",
                manifest.compression_name())
          : std::string("the store already has several editions (model.editions); expected \"none\"")};
}

// Rows contribute to every token, and a router chooses experts, so neither fires.
Status check_heat(const Config& config, const Manifest& manifest) {
  const auto tells = [](const StoredSite& site) { return site.n_column_parts() != 0; };
  if (config.heat.name.empty() || std::ranges::any_of(manifest.sites, tells)) return {};
  return Error{Code::unsupported, "heat.name",
               fmt::format("{} has no neurons that fire, because it is stored in rows or in whole experts; "
                           "set model.layout=neuron, or turn heat off with --set heat.name=",
                           config.model)};
}

// Refuses a given measure_every if no site can be measured.
Status check_measured(const Config& config, const ModelPlan& model, Layout layout) {
  if (config.measure_every == 0 || !config.given.contains("scheduler.measure_every")) return {};
  for (SiteId site = 0; site < model.sites.size(); ++site) {
    if (model.sites[site].contribution.there()) return {};
  }
  return Error{Code::unsupported, "scheduler.measure_every",
               fmt::format("missed mass is measured in bundled FFNs, but this model in layout '{}' has none; "
                           "set scheduler.measure_every=0",
                           name(layout))};
}

// Opens or plans the store, and checks that it is as the configuration asks.
Result<FoundStore> open_store(const Config& config, const RuntimeOptions& options) {
  TIERD_ASSIGN(const WriteOptions write, store_options(config, options));
  TIERD_ASSIGN(FoundStore found,
               find_store(config.model,
                          SourceOptions{.tokenizer = config.tokenizer,
                                        .zeros_percent = config.zeros,
                                        .order = config.order,
                                        .layer_group = config.layer_group,
                                        .expert_order = write.experts == ExpertCut::channels},
                          write));
  if (options.counted && !found.store.made())
    found.store = Store::planned(found.store.directory(), *options.counted);
  TIERD_TRY(check_asked_store(config, found.store));
  return found;
}

// Chooses the units of the dense part and of attention.
Status place_dense_part(const Config& config, const ModelConfig& model, const TierTable& tiers,
                        ModelOptions& request) {
  TIERD_ASSIGN(const std::vector<uint32_t> dense, tiers.units_named(config.dense, "run.dense"));
  if (!dense.empty()) request.dense = dense.front();
  TIERD_ASSIGN(request.attention, tiers.units_named(config.attention, "run.attention"));
  const std::vector<uint32_t>& attention = request.attention;
  if (attention.size() > 1 && model.qk_norm && model.qk_norm_wide) {
    return Error{Code::unsupported, "run.attention",
                 "this model normalizes the queries of all heads together, so one unit must have all heads; "
                 "expected one unit"};
  }
  const bool apart = attention.size() > 1 || (attention.size() == 1 && attention.front() != request.dense);
  if (!apart || !model.channel_order) return {};
  return Error{Code::unsupported, "run.attention",
               "the store has an order of channels (model.order), so the unit of the dense part must compute "
               "attention; expected the unit of run.dense"};
}

Result<ModelOptions> request_of_model(const Config& config, const RuntimeOptions& options,
                                      const Manifest& manifest, TierTable& tiers) {
  ModelOptions request;
  TIERD_ASSIGN(request.recoded, plan_recoding(tiers, manifest));
  const uint32_t most = manifest.config.context_length;
  request.context = config.context != 0 ? config.context : std::min(most, kDefaultContext);
  if (request.context > most) {
    return Error{Code::invalid_argument, "run.context",
                 fmt::format("{}, expected at most the {} positions of this model", config.context, most)};
  }
  request.sequences = config.sequences;
  request.max_rows = std::max(config.sequences, std::min(config.ubatch, request.context));
  request.logit_rows = std::max(config.sequences, std::min(options.logit_rows, request.max_rows));
  request.kv = config.kv == "f32" ? KvEncoding::f32 : KvEncoding::f16;
  const auto has_blocks = [](const StoredSite* site) { return site->encodings.has_blocks(); };
  const bool blocks =
      std::ranges::any_of(manifest.stored(), has_blocks) ||
      std::ranges::any_of(request.recoded, [&](const StoredSite& site) { return has_blocks(&site); });
  request.int8_activations = blocks && config.activations == "int8";
  request.units = static_cast<uint32_t>(tiers.topology.units.size());
  request.expands = std::ranges::any_of(tiers.memories, &Tier::expands);
  TIERD_TRY(place_dense_part(config, manifest.config, tiers, request));
  return request;
}

// Returns the memory requests of all tiers; the lowest one has the strategies' tables and serves the others.
Result<std::vector<TierRequest>> request_of_tiers(const TierTable& tiers, std::vector<TableRequest> tables) {
  std::vector<TierRequest> requests;
  for (const Tier& tier : tiers.memories) {
    TIERD_ASSIGN(requests.emplace_back(), request_of(tier));
  }
  TierRequest& lowest = requests.front();
  lowest.bounces = true;
  lowest.bounces_compressed = std::ranges::any_of(tiers.topology.links, [&](const Link& link) {
    return link.from == kStore && tiers.tier_of(link.to).expands;
  });
  lowest.tables = std::move(tables);
  for (const Tier& tier : tiers.memories) {
    lowest.giving_units += tier.computes_apart() ? tier.config.count : 0;
    lowest.direct_readers += tier.reads_directly() ? tier.config.count : 0;
  }
  return requests;
}

// Enters the divided memory and the model's editions into the topology.
void fill_topology(const MemoryPlan& memory, ModelPlan& model, TierTable& tiers) {
  for (size_t m = 0; m < tiers.topology.memories.size(); ++m) {
    const auto id = static_cast<MemoryId>(m + 1);
    const Tier& tier = tiers.tier_of(id);
    const TierMemory& part = memory.tiers[static_cast<size_t>(&tier - tiers.memories.data())];
    Memory& of = tiers.topology.memories[m];
    of.staging_blocks = part.blocks;
    of.block_bytes = part.block_bytes;
    hold_editions(model, of, tiers.topology.unit_of(id), {.expands = tier.expands, .recodes = tier.recodes});
  }
}

// Returns the configuration with the chosen values, so that a second plan (a forecast) uses the same.
Config with_chosen(Config config, const TierTable& tiers, const MemoryPlan& memory, uint32_t context) {
  for (size_t t = 0; t < tiers.memories.size(); ++t) {
    if (memory.tiers[t].automatic)
      config.tier(tiers.memories[t].config.name).capacity = std::to_string(memory.tiers[t].capacity);
  }
  if (memory.model.context != context) config.context = memory.model.context;
  return config;
}

// Returns the values that were changed to fit.
std::vector<std::string> fitted(const TierTable& tiers, const MemoryPlan& memory, uint32_t context) {
  std::vector<std::string> lines;
  if (memory.model.context != context)
    lines.push_back(fmt::format("run.context: {} positions instead of {}, so that the KV cache fits",
                                memory.model.context, context));
  for (size_t t = 0; t < tiers.memories.size(); ++t) {
    if (memory.tiers[t].raised_to_least)
      lines.push_back(fmt::format("{}: {} (the minimum) instead of {}", tiers.memories[t].key("capacity"),
                                  format_bytes(static_cast<double>(memory.tiers[t].capacity)),
                                  tiers.memories[t].config.capacity));
  }
  return lines;
}

}  // namespace

Result<WriteOptions> store_options(const Config& config, const RuntimeOptions& options) {
  WriteOptions write;
  write.quiet = options.quiet;
  write.layout = *by_name<Layout>(config.layout);
  write.layer_group = config.layer_group;
  write.experts = *by_name<ExpertCut>(config.experts);
  write.bundling = *by_name<Bundling>(config.bundling);
  TIERD_TRY(
      choose_compression(config.compression, plugin_path(config), config.codec, "model.compression", write));
  write.refuse_vain_compression = true;
  write.tokenizer = config.tokenizer;
  TIERD_ASSIGN(write.editions, parse_editions(config.editions, "model.editions"));
  write.encoding = by_name<Encoding>(config.encoding);
  write.head_encoding =
      config.head_encoding == "same" ? write.encoding : by_name<Encoding>(config.head_encoding);
  return write;
}

Result<RunPlan> plan_run(const Config& config, const RuntimeOptions& options) {
  TIERD_TRY(check_keys(config));
  TIERD_ASSIGN(TierTable tiers, choose_tiers(config));
  TIERD_ASSIGN(std::optional<PowerDescription> power, plan_power(config, tiers));
  if (config.model.empty())
    return Error{Code::invalid_argument, "model.path", "no model is set; name one with -m"};
  TIERD_ASSIGN(FoundStore found, open_store(config, options));
  TIERD_ASSIGN(std::shared_ptr<const NeuronCodec> codec, codec_of(found.store, config));
  const Manifest& manifest = found.store.manifest();
  TIERD_TRY(tiers.choose_forms(manifest.codec));
  MemoryRequest request;
  TIERD_ASSIGN(request.model, request_of_model(config, options, manifest, tiers));
  // Read before either is moved into the plan.
  const auto of_model = std::make_shared<const ModelTensors>(found.store, found.source.get());
  TIERD_ASSIGN(ChosenStrategies chosen, choose_strategies(config, of_model));
  TIERD_TRY(chosen.check_model(manifest.config));
  TIERD_TRY(check_heat(config, manifest));
  request.model.measure = config.measure_every != 0 || chosen.keep_heat();
  request.measures_beside = options.measures_beside && !chosen.keep_heat();
  TIERD_ASSIGN(StrategyChoices fallbacks, choose_fallbacks(config));
  TIERD_ASSIGN(request.tiers, request_of_tiers(tiers, chosen.tables()));
  request.fit = options.fit;
  // A run without weights allocates no memory for them.
  request.force = options.force || config.execute == "trace";
  uint64_t memories = 0;
  for (const TierRequest& tier : request.tiers) memories += tier.memories;
  request.most =
      memory_for_tiers(manifest, memories, config.threads != 0 ? config.threads : available_cores());
  const uint32_t context = request.model.context;
  if (config.context == 0 && (options.shorten || options.fit))
    request.shortest_context = options.shortest_context;
  TIERD_ASSIGN(MemoryPlan memory, plan_memory(manifest, request));
  ModelPlan model = plan_model(manifest, memory.model);
  TIERD_TRY(check_measured(config, model, manifest.layout));
  fill_topology(memory, model, tiers);
  TIERD_ASSIGN(StrategyChoices strategies, read_tensors(std::move(chosen)));
  Config as_planned = with_chosen(config, tiers, memory, context);
  std::vector<std::string> changes = fitted(tiers, memory, context);
  return RunPlan{.config = std::move(as_planned),
                 .fitted = std::move(changes),
                 .store = std::move(found.store),
                 .codec = std::move(codec),
                 .source = std::move(found.source),
                 .tiers = std::move(tiers),
                 .memory = std::move(memory),
                 .model = std::move(model),
                 .strategies = std::move(strategies),
                 .fallbacks = std::move(fallbacks),
                 .power = std::move(power)};
}

}  // namespace tierd
