#include "tools/lab/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/units.h"
#include "core/run/plugin_tensors.h"
#include "core/store/source.h"
#include "tools/lab/plan/cache_aware_plan.h"
#include "tools/lab/plan/cost_model.h"
#include "tools/lab/plan/mixture_plan.h"
#include "tools/lab/plan/plan_machine.h"

namespace tierd {
namespace {

constexpr uint32_t kShownGroups[] = {0, 1, 2, 4, 8};
// Top-K precision of neighbouring layers, "over 80 %" (ActiveFlow, 3.1). It applies to operators whose input
// is the residual stream; for others it is at chance (small models).
constexpr double kPaperSimilarity = 0.8;
constexpr size_t kLevels = 9;  // of SITE.ahead: sparsity 0.1, 0.2, ... 0.9

// Means of SITE.ahead over the layers and the distances within a group, by operator.
class Foretold {
 public:
  static Result<Foretold> read(const Config& config, const Manifest& manifest, double sparsity) {
    Foretold found;
    if (config.predictor.tensors.empty() || config.predictor.tensors == ModelTensors::kName) return found;
    TIERD_ASSIGN(const PluginTensorFile file, PluginTensorFile::open(config.predictor.tensors));
    TIERD_ASSIGN(const auto tables, file.read());
    const size_t level =
        static_cast<size_t>(std::lround(std::clamp(sparsity * 10, 1.0, double{kLevels}))) - 1;
    for (const PluginTensors::Tensor& tensor : tables->tensors) {
      const auto site = std::ranges::find_if(
          manifest.sites, [&](const StoredSite& each) { return tensor.name == each.name + ".ahead"; });
      if (site == manifest.sites.end() || tensor.data.size() < kLevels) continue;
      const size_t distances =
          std::min<size_t>(tensor.data.size() / kLevels, std::max(1u, manifest.layer_group));
      Mean& mean = found.means_[site->group];
      for (size_t distance = 0; distance < distances; ++distance) {
        const float share = tensor.data[distance * kLevels + level];
        if (share <= 0) continue;  // there is no layer at this distance
        mean.sum += share;
        ++mean.count;
      }
    }
    return found;
  }
  bool known() const { return !means_.empty(); }
  std::optional<double> of(OpGroup group) const {
    const auto mean = means_.find(group);
    if (mean == means_.end() || mean->second.count == 0) return std::nullopt;
    return mean->second.sum / static_cast<double>(mean->second.count);
  }

 private:
  struct Mean {
    double sum = 0;
    size_t count = 0;
  };
  std::map<OpGroup, Mean> means_;
};

bool is_word(const std::vector<Setting>& settings, std::string_view key, std::string_view word) {
  return std::ranges::any_of(settings, [&](const Setting& setting) {
    const auto* text = std::get_if<std::string>(&setting.value);
    return setting.key == key && text != nullptr && *text == word;
  });
}

// Returns the precision of the predictor's prefetches for a group, or no value without prefetching.
std::optional<double> similarity_of(const Config& config, const PlanAssumptions& assumed,
                                    const Foretold& foretold, OpGroup group) {
  if (is_word(config.predictor.settings, "ahead", "none") || !config.prefetch) return std::nullopt;
  const bool all = is_word(config.predictor.settings, "ahead", "all");
  const bool residual = group == OpGroup::qkv || group == OpGroup::up;
  if (assumed.similarity) return all || residual ? assumed.similarity : std::nullopt;
  if (!foretold.known()) return residual ? std::optional(kPaperSimilarity) : std::nullopt;
  const auto share = foretold.of(group);
  const double least = number_of(config.predictor.settings, "least_precision", 0.7);
  return share && (all || *share >= least) ? share : std::nullopt;
}

std::vector<ChannelOperator> operators_of(const RunPlan& plan, const PlanAssumptions& assumed,
                                          const Foretold& foretold) {
  std::vector<ChannelOperator> operators;
  for (const StoredSite& site : plan.store.manifest().sites) {
    if (!is_cut_into<Columns>(site.cut) || site.layer != 0) continue;
    operators.push_back({std::string(name(site.group)), site.neurons(), site.extent_bytes(0), site.aligned(),
                         similarity_of(plan.config, assumed, foretold, site.group)});
  }
  return operators;
}

LayerGroupFigures group_figures(const CostEstimate& cost) {
  return {.layer_group = cost.group,
          .group_bytes = cost.group_bytes,
          .cache_bytes = cost.cache_bytes,
          .hits = cost.hits,
          .hidden = cost.hidden,
          .load_ms = cost.load * 1e3,
          .on_demand_ms = cost.on_demand * 1e3,
          .preload_ms = cost.preload * 1e3,
          .compute_ms = cost.compute * 1e3,
          .flash_bytes_per_token = cost.flash_bytes,
          .equation_1_tokens_per_second = 1 / cost.literal_token,
          .steady_tokens_per_second = 1 / cost.steady_token};
}

CostModel model_of(const RunPlan& of, const PlanAssumptions& assumed, const Foretold& foretold,
                   const PlanMachine& machine) {
  const Manifest& manifest = of.store.manifest();
  const auto& memory = of.memory.tiers.front();
  CostModel model{.layers = manifest.config.n_layers,
                  .operators = operators_of(of, assumed, foretold),
                  .memory_rate = machine.memory_rate,
                  .flash = machine.flash,
                  .first_read = machine.first_read,
                  .joins_reads = true};
  for (const StoredSite& site : manifest.sites) {
    // An embedding that is not also the head is read one row a token.
    const bool whole = site.group != OpGroup::embed || manifest.config.tied_embeddings;
    if (whole && is_cut_into<Rows>(site.cut) && site.alias_of == kNoSite)
      model.head_bytes += site.tensor_bytes();
  }
  model.fixed_bytes = memory.capacity - memory.arena - memory.staging;
  model.hits = assumed.hits;
  return model;
}

std::vector<OperatorFigures> operator_figures(const CostModel& model, uint32_t group) {
  std::vector<OperatorFigures> operators;
  for (const ChannelOperator& each : model.operators) {
    operators.push_back(
        {.name = each.name,
         .channel_bytes = each.channel_bytes,
         .small_bytes_per_second = model.flash.rate(each.channel_bytes, each.aligned),
         .large_bytes_per_second = model.flash.rate(each.channel_bytes * std::max(1u, group), each.aligned),
         .similarity = each.similarity});
  }
  return operators;
}

// Adds the costs of some numbers of layers, of the chosen one, and of the store's.
void add_groups(const CostModel& model, const CostEstimate& chosen, DensePlan& found) {
  std::set<uint32_t> groups(std::begin(kShownGroups), std::end(kShownGroups));
  groups.insert({chosen.group, found.store_layer_group});
  for (const uint32_t group : groups) {
    if (group > model.layers) continue;
    const auto cost = estimate_cost(model, found.budget_bytes, chosen.sparsity, group);
    if (!cost) continue;
    found.groups.push_back(group_figures(*cost));
    if (group == found.store_layer_group) found.of_store = found.groups.back();
  }
}

// Adds the cost under a cache-aware mask, and names the fastest way.
Status add_fastest(const RunPlan& of, CostModel& model, const CostEstimate& chosen, DensePlan& found) {
  TIERD_TRY(read_rates(of, model.operators));
  const bool by_rate = of.store.manifest().config.channel_order;
  const CacheAwareRun run = {
      .cache_bytes =
          static_cast<double>(of.memory.tiers.front().arena) - static_cast<double>(model.head_bytes),
      .sparsity = chosen.sparsity,
      .by_rate = by_rate,
      .ahead = by_rate ? number_of(of.config.predictor.settings, "missing_ahead", kMissingAhead) : 0};
  const CacheAwareCost aware = cache_aware_cost(model, run);
  add_cache_aware(found, aware, run);
  const double lossless = lossless_token(model, found.budget_bytes);
  found.mask = aware.steady_token < chosen.steady_token ? "cache-aware" : "largest";
  found.lossless_tokens_per_second = 1 / lossless;
  found.fastest = lossless < std::min(aware.steady_token, chosen.steady_token) ? "lossless" : found.mask;
  return {};
}

Result<DensePlan> find_dense_plan(const RunPlan& of, const PlanAssumptions& assumed) {
  const Manifest& manifest = of.store.manifest();
  DensePlan found;
  found.model = manifest.config.name;
  found.tensor_bytes = manifest.tensor_bytes;
  found.budget_bytes = of.memory.tiers.front().capacity;
  found.store_layer_group = manifest.layer_group;
  found.tier = of.tiers.memories.front().config.name;
  found.store_given = is_store(of.config.model);
  const double required =
      1 - static_cast<double>(found.budget_bytes) / static_cast<double>(found.tensor_bytes);
  TIERD_ASSIGN(const Foretold foretold,
               Foretold::read(of.config, manifest, assumed.sparsity.value_or(std::max(0.0, required))));
  found.sparsity_from = assumed.sparsity ? "--sparsity" : "1 - budget / weights";
  found.hits_from = assumed.hits ? "--hits" : "the share in memory";
  found.similarity_from = assumed.similarity ? "--similarity"
                          : foretold.known() ? "the predictor's tables"
                                             : "the paper";
  TIERD_ASSIGN(const PlanMachine machine, measure_machine(of));
  add_machine(found, machine);
  CostModel model = model_of(of, assumed, foretold, machine);
  found.fixed_bytes = model.fixed_bytes + model.head_bytes;
  const CostChoice choice =
      choose_fastest(model, found.budget_bytes, found.tensor_bytes, assumed.sparsity, assumed.least_gain);
  found.chosen = group_figures(choice.chosen);
  found.why = choice.why;
  TIERD_TRY(add_fastest(of, model, choice.chosen, found));
  found.operators = operator_figures(model, choice.chosen.group);
  add_groups(model, choice.chosen, found);
  return found;
}

std::string operators_text(const DensePlan& found) {
  std::string text = "\n  operator   channel       alone    together  foretold\n";
  for (const OperatorFigures& each : found.operators) {
    text += fmt::format("  {:<8} {:>9} {:>11} {:>11} {:>9}\n", each.name,
                        format_bytes(static_cast<double>(each.channel_bytes)),
                        format_rate(each.small_bytes_per_second), format_rate(each.large_bytes_per_second),
                        each.similarity ? fmt::format("{:.1f} %", 100 * *each.similarity) : "no");
  }
  return text + fmt::format("  foretold: from {}; hits: {}\n", found.similarity_from, found.hits_from);
}

std::string groups_text(const DensePlan& found) {
  std::string text =
      "    N  channels     cache    hits  on demand     ahead   compute   flash a    eq. 1   steady\n"
      "       of group                    ms a group        ms        ms     token  tokens/s\n";
  for (const LayerGroupFigures& cost : found.groups) {
    text += fmt::format(
        "  {:>3} {:>9} {:>9} {:>5.1f} % {:>9.3g} {:>9.3g} {:>9.3g} {:>9} {:>8.3g} {:>8.3g}{}\n",
        cost.layer_group, format_bytes(cost.group_bytes), format_bytes(cost.cache_bytes), 100 * cost.hits,
        cost.on_demand_ms, cost.preload_ms, cost.compute_ms, format_bytes(cost.flash_bytes_per_token),
        cost.equation_1_tokens_per_second, cost.steady_tokens_per_second,
        cost.layer_group == found.chosen.layer_group ? "  <-" : "");
  }
  return text + fmt::format("N = {}: {}\n", found.chosen.layer_group, found.why);
}

// Returns the flags for tierd, and whether a given store would have to be another.
std::string settings_text(const DensePlan& found) {
  std::string text = "\n  ";
  if (found.is_cache_aware()) {
    text += cache_aware_settings_text(found);
  } else {
    text += fmt::format(
        "--set predictor.sparsity={:.3g} --set predictor.mask=largest --set cache.name=context-lfu --set "
        "tiers.dram.staging={}",
        found.sparsity, static_cast<uint64_t>(found.chosen.group_bytes));
    if (found.chosen.layer_group == 0) text += " --set predictor.ahead=none";
  }
  const uint32_t group = found.is_cache_aware() ? 1 : std::max(found.chosen.layer_group, 1u);
  if (!found.store_given) {
    text += fmt::format(" --set model.layer_group={}", group);
  } else if (group != found.store_layer_group) {
    text += fmt::format(
        "\n  (this store has groups of {}; tier-convert --layout channel-group --layer-group {} makes "
        "another)",
        found.store_layer_group, group);
  }
  return text + "\n";
}

std::string text_of(const DensePlan& found) {
  const std::string lossless =
      found.is_lossless()
          ? fmt::format(
                "Lossless is faster here: {:.3g} tokens/s (--config configs/hybrid.toml), and it "
                "leaves nothing out\n",
                found.lossless_tokens_per_second)
          : fmt::format("Lossless would write {:.3g} tokens/s (--config configs/hybrid.toml)\n",
                        found.lossless_tokens_per_second);
  return fmt::format("{}, {} of weights, {} of memory, of it {} for other things than channels\n",
                     found.model, format_bytes(static_cast<double>(found.tensor_bytes)),
                     format_bytes(static_cast<double>(found.budget_bytes)),
                     format_bytes(static_cast<double>(found.fixed_bytes))) +
         machine_text(found) + operators_text(found) +
         fmt::format("\nsparsity {:.3g} ({})\n", found.sparsity, found.sparsity_from) + groups_text(found) +
         cache_aware_text(found) + lossless + settings_text(found);
}
std::string text_of(const MixturePlan& found) {
  return mixture_plan_text(found);
}

}  // namespace

Result<FoundPlan> find_plan(const RunPlan& of, const PlanAssumptions& assumed) {
  const Manifest& manifest = of.store.manifest();
  if (manifest.config.is_mixture()) {
    TIERD_ASSIGN(const PlanMachine machine, measure_machine(of));
    TIERD_ASSIGN(MixturePlan found, find_mixture_plan(of, assumed, machine));
    return FoundPlan(std::move(found));
  }
  if (manifest.layout != Layout::channel_group) {
    return Error{Code::unsupported, "tier-plan",
                 fmt::format("is about layout channel-group, the store has layout {} (--config "
                             "configs/activeflow.toml, or --set model.layout=channel-group)",
                             name(manifest.layout))};
  }
  TIERD_ASSIGN(DensePlan found, find_dense_plan(of, assumed));
  return FoundPlan(std::move(found));
}

std::string plan_text(const FoundPlan& found) {
  return std::visit([](const auto& plan) { return text_of(plan); }, found);
}

}  // namespace tierd
