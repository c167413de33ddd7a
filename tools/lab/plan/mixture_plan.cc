#include "tools/lab/plan/mixture_plan.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "core/run/plugin_tensors.h"
#include "core/store/planner.h"
#include "core/store/source.h"
#include "tools/lab/plan/cache_aware_plan.h"
#include "tools/lab/plan/mixture_cost.h"

namespace tierd {
namespace {

// Returns the first layer with experts, which stands for all of them.
uint32_t layer_of_experts(const ModelConfig& config) {
  uint32_t layer = 0;
  while (!config.has_experts(layer)) ++layer;
  return layer;
}

MixtureModel model_of(const RunPlan& of, const PlanAssumptions& assumed, const PlanMachine& machine) {
  const Manifest& manifest = of.store.manifest();
  const ModelConfig& config = manifest.config;
  const auto dense = static_cast<uint32_t>(config.dense_layers.size());
  MixtureModel model{.layers = config.n_layers - dense,
                     .experts = config.n_experts,
                     .used = config.experts_per_token,
                     .memory_rate = machine.memory_rate,
                     .flash = machine.flash,
                     .first_read = machine.first_read};
  for (const StoredSite& site : manifest.sites) {
    if (site.edition_of != kNoSite) continue;
    if (site.group == OpGroup::experts) {
      model.expert_bytes = site.neuron_bytes(0);
    } else if (site.expert != kNoExpert) {
      if (site.layer == layer_of_experts(config) && site.expert == 0)
        model.expert_bytes += site.tensor_bytes();
    } else if (site.group != OpGroup::embed || config.tied_embeddings) {
      if (site.alias_of == kNoSite) model.shared_bytes += site.tensor_bytes();
    }
  }
  const auto& memory = of.memory.tiers.front();
  model.fixed_bytes = memory.capacity - memory.arena - memory.staging;
  model.hits = assumed.hits;
  return model;
}

// Prefetching the experts that the next layer's router would choose hides computing, and reads wrong guesses
// in vain. It is faster where more than this share of the guesses is right.
double least_precision(const MixtureCost& cost) {
  return cost.disk > 0 ? std::max(0.0, 1 - cost.compute / cost.disk) : 0;
}

// Returns the sites of a store whose layers, experts included, are cut into channels: those of this store, or
// of another store of the same model.
std::vector<StoredSite> sites_in_channels(const Manifest& manifest) {
  std::vector<StoredSite> sites;
  const uint32_t layer = layer_of_experts(manifest.config);
  for (StoredSite& site :
       site_shapes(manifest.config, Layout::channel_group, Bundling::row_column, 1, ExpertCut::channels)) {
    if (site.layer != layer || (site.expert != kNoExpert && site.expert != 0)) continue;
    const OpGroup of =
        site.expert != kNoExpert && manifest.experts == ExpertCut::whole ? OpGroup::experts : site.group;
    const auto stored = std::ranges::find(manifest.sites, of, &StoredSite::group);
    const Encoding encoding = stored->encodings.front();
    site.encodings = Encodings(site.parts.size(), has_columns(encoding) ? encoding : Encoding::q4_0);
    sites.push_back(std::move(site));
  }
  return sites;
}

// Adds the cost of a token with experts cut into channels.
Status add_channels(const RunPlan& of, const PlanAssumptions& assumed, const PlanMachine& machine,
                    MixturePlan& found) {
  const Manifest& manifest = of.store.manifest();
  CostModel model{.layers = manifest.config.n_layers,
                  .operators = {},
                  .memory_rate = machine.memory_rate,
                  .flash = machine.flash,
                  .first_read = machine.first_read,
                  .joins_reads = true};
  for (const StoredSite& site : sites_in_channels(manifest)) {
    const bool of_expert = site.expert != kNoExpert;
    model.operators.push_back({.name = std::string(name(site.group)),
                               .channels = site.neurons(),
                               .channel_bytes = site.extent_bytes(0),
                               .aligned = site.aligned(),
                               .copies = of_expert ? manifest.config.n_experts : 1,
                               .passed = of_expert ? manifest.config.experts_per_token : 1});
  }
  TIERD_TRY(read_rates(of, model.operators));
  uint64_t rows = 0;
  for (const StoredSite& site : manifest.sites) {
    if (site.alias_of != kNoSite || site.layer != kNoLayer) continue;
    if (site.group == OpGroup::head || manifest.config.tied_embeddings) rows += site.tensor_bytes();
  }
  model.head_bytes = rows;
  const std::vector<Setting>& settings = of.config.predictor.settings;
  const bool cut = manifest.experts == ExpertCut::channels;
  CacheAwareRun run;
  run.cache_bytes = static_cast<double>(of.memory.tiers.front().arena) - static_cast<double>(rows);
  run.sparsity = assumed.sparsity.value_or(number_of(settings, "sparsity", 0.5));
  run.by_rate = !cut || manifest.config.expert_order;
  run.ahead = run.by_rate ? number_of(settings, "missing_ahead", kMissingAhead) : 0;
  const CacheAwareCost cost = cache_aware_cost(model, run);
  add_cache_aware(found, cost, run);
  if (1 / cost.steady_token > found.lossless_tokens_per_second) found.fastest = "cache-aware";
  return {};
}

MixtureFigures mixture_figures(const MixtureModel& model, const MixtureCost& cost) {
  return {.layers = model.layers,
          .experts = model.experts,
          .used = model.used,
          .expert_bytes = model.expert_bytes,
          .shared_bytes = model.shared_bytes,
          .kept = cost.kept,
          .hits = cost.hits,
          .hits_from = model.hits ? "--hits" : "the share in memory",
          .reads_per_token = cost.reads,
          .flash_bytes_per_token = cost.flash_bytes,
          .streamed_bytes_per_token = cost.streamed_bytes,
          .disk_ms = cost.disk * 1e3,
          .compute_ms = cost.compute * 1e3,
          .least_precision = least_precision(cost)};
}

// Returns the flags for tierd, and whether a given store would have to be another.
std::string settings_text(const MixturePlan& found) {
  const bool lossless = found.is_lossless();
  std::string text =
      lossless
          ? fmt::format(
                "Whole experts, lossless, are faster here:\n\n  --config configs/moe-streaming.toml --set "
                "predictor.least_precision={:.2f}\n",
                found.mixture.least_precision)
          : "\n  --config configs/activeflow.toml --set model.experts=channels " +
                cache_aware_settings_text(found) + "\n";
  if (found.store_given && (found.experts_of_store == "whole") != lossless) {
    text += lossless
                ? "  (this store has experts in channels; tier-convert makes one of whole experts)\n"
                : "  (this store has whole experts; tier-convert --layout channel-group --experts channels "
                  "--order TABLES makes another)\n";
  }
  return text;
}

}  // namespace

Result<MixturePlan> find_mixture_plan(const RunPlan& of, const PlanAssumptions& assumed,
                                      const PlanMachine& machine) {
  const MixtureModel model = model_of(of, assumed, machine);
  const uint64_t budget = of.memory.tiers.front().capacity;
  const auto cost = mixture_cost(model, budget);
  if (!cost) {
    return Error{
        Code::no_space, "tier-plan",
        fmt::format("{} do not hold the {} that are no weights", format_bytes(static_cast<double>(budget)),
                    format_bytes(static_cast<double>(model.fixed_bytes)))};
  }
  MixturePlan found;
  found.model = of.store.manifest().config.name;
  found.tensor_bytes = of.store.manifest().tensor_bytes;
  found.budget_bytes = budget;
  found.fixed_bytes = model.fixed_bytes;
  found.mixture = mixture_figures(model, *cost);
  found.lossless_tokens_per_second = 1 / cost->token;
  found.fastest = "lossless";
  found.mask = "cache-aware";
  found.store_given = is_store(of.config.model);
  found.experts_of_store = name(of.store.manifest().experts);
  add_machine(found, machine);
  TIERD_TRY(add_channels(of, assumed, machine, found));
  return found;
}

std::string mixture_plan_text(const MixturePlan& found) {
  const MixtureFigures& mixture = found.mixture;
  std::string text = fmt::format("{}, {} of weights, {} of memory, of it {} for other things than weights\n",
                                 found.model, format_bytes(static_cast<double>(found.tensor_bytes)),
                                 format_bytes(static_cast<double>(found.budget_bytes)),
                                 format_bytes(static_cast<double>(found.fixed_bytes)));
  text += machine_text(found);
  text += fmt::format("\nEvery token uses {}, and {} of {} experts of {} in each of {} layers\n",
                      format_bytes(static_cast<double>(mixture.shared_bytes)), mixture.used, mixture.experts,
                      format_bytes(static_cast<double>(mixture.expert_bytes)), mixture.layers);
  text += fmt::format("Memory holds {:.1f} % of the experts; of the chosen ones it has {:.1f} % ({})\n",
                      100 * mixture.kept, 100 * mixture.hits, mixture.hits_from);
  text += fmt::format(
      "A token reads {} in {:.3g} experts, {:.3g} ms, and computes for {:.3g} ms: {:.3g} tokens/s\n",
      format_bytes(mixture.flash_bytes_per_token), mixture.reads_per_token, mixture.disk_ms,
      mixture.compute_ms, found.lossless_tokens_per_second);
  text += mixture.streamed_bytes_per_token > 0
              ? fmt::format("{} of that are used by every token, and do not fit\n",
                            format_bytes(mixture.streamed_bytes_per_token))
              : "The weights that every token uses are in memory, so that leaving inputs of attention out "
                "would save no reading\n";
  text += fmt::format(
      "Reading ahead what the next layer's router would choose pays where more than {:.0f} % of that is "
      "right: where less is, predictor router ends it\n",
      100 * mixture.least_precision);
  return text + "Experts in channels, a part of which is left out. " + cache_aware_text(found) +
         settings_text(found);
}

}  // namespace tierd
