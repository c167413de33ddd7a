#include "tools/lab/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/units.h"
#include "core/run/plugin_tensors.h"
#include "core/store/source.h"
#include "tools/lab/plan/cache_aware_plan.h"
#include "tools/lab/plan/cost_model.h"
#include "tools/lab/plan/mixture_plan.h"
#include "tools/lab/plan/plan_machine.h"

namespace tierd {
namespace {

using nlohmann::json;

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

json to_json(const CostEstimate& cost) {
  return {{"layer_group", cost.group},
          {"group_bytes", cost.group_bytes},
          {"cache_bytes", cost.cache_bytes},
          {"hits", cost.hits},
          {"load_ms", cost.load * 1e3},
          {"on_demand_ms", cost.on_demand * 1e3},
          {"preload_ms", cost.preload * 1e3},
          {"compute_ms", cost.compute * 1e3},
          {"hidden", cost.hidden},
          {"flash_bytes_per_token", cost.flash_bytes},
          {"equation_1_tokens_per_second", 1 / cost.literal_token},
          {"steady_tokens_per_second", 1 / cost.steady_token}};
}

std::string row_of(const json& cost, bool chosen) {
  const auto bytes = [&](const char* key) { return format_bytes(cost[key].get<double>()); };
  const auto number = [&](const char* key) { return cost[key].get<double>(); };
  return fmt::format("  {:>3} {:>9} {:>9} {:>5.1f} % {:>9.3g} {:>9.3g} {:>9.3g} {:>9} {:>8.3g} {:>8.3g}{}\n",
                     cost["layer_group"].get<int>(), bytes("group_bytes"), bytes("cache_bytes"),
                     100 * number("hits"), number("on_demand_ms"), number("preload_ms"), number("compute_ms"),
                     bytes("flash_bytes_per_token"), number("equation_1_tokens_per_second"),
                     number("steady_tokens_per_second"), chosen ? "  <-" : "");
}

}  // namespace

Result<json> find_plan(const RunPlan& of, const PlanAssumptions& assumed) {
  const Manifest& manifest = of.store.manifest();
  const Config& config = of.config;
  if (manifest.config.is_mixture()) {
    TIERD_ASSIGN(const PlanMachine machine, measure_machine(of));
    return find_mixture_plan(of, assumed, machine);
  }
  if (manifest.layout != Layout::channel_group) {
    return Error{Code::unsupported, "tier-plan",
                 fmt::format("is about layout channel-group, the store has layout {} (--config "
                             "configs/activeflow.toml, or --set model.layout=channel-group)",
                             name(manifest.layout))};
  }
  const uint64_t budget = of.memory.tiers.front().capacity;
  const double asked = 1 - static_cast<double>(budget) / static_cast<double>(manifest.tensor_bytes);
  TIERD_ASSIGN(const Foretold foretold,
               Foretold::read(config, manifest, assumed.sparsity.value_or(std::max(0.0, asked))));

  TIERD_ASSIGN(const PlanMachine machine, measure_machine(of));
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
  const double cache_bytes =
      static_cast<double>(of.memory.tiers.front().arena) - static_cast<double>(model.head_bytes);
  model.fixed_bytes = budget - of.memory.tiers.front().arena - of.memory.tiers.front().staging;
  model.hits = assumed.hits;

  const CostChoice choice =
      choose_fastest(model, budget, manifest.tensor_bytes, assumed.sparsity, assumed.least_gain);
  const CostEstimate& chosen = choice.chosen;
  TIERD_TRY(read_rates(of, model.operators));
  const bool by_rate = manifest.config.channel_order;
  const double ahead = by_rate ? number_of(config.predictor.settings, "missing_ahead", kMissingAhead) : 0;
  const CacheAwareRun run = {cache_bytes, chosen.sparsity, by_rate, ahead};
  const CacheAwareCost aware = cache_aware_cost(model, run);
  const double lossless = lossless_token(model, budget);
  const bool by_mask = aware.steady_token < chosen.steady_token;
  const char* const mask = by_mask ? "cache-aware" : "largest";
  const double lossy = by_mask ? aware.steady_token : chosen.steady_token;
  json found = {{"model", manifest.config.name},
                {"tensor_bytes", manifest.tensor_bytes},
                {"budget_bytes", budget},
                {"fixed_bytes", model.fixed_bytes + model.head_bytes},
                {"sparsity_from", assumed.sparsity ? "--sparsity" : "1 - budget / weights"},
                {"hits_from", model.hits ? "--hits" : "the share in memory"},
                {"similarity_from", assumed.similarity ? "--similarity"
                                    : foretold.known() ? "the predictor's tables"
                                                       : "the paper"},
                {"operators", json::array()},
                {"groups", json::array()},
                {"chosen", to_json(chosen)},
                {"why", choice.why},
                {"mask", mask},
                {"lossless_tokens_per_second", 1 / lossless},
                {"fastest", lossless < lossy ? "lossless" : mask},
                {"store_layer_group", manifest.layer_group},
                {"tier", of.tiers.memories.front().config.name},
                {"store_given", is_store(config.model)}};
  add_cache_aware(found, aware, run);
  add_machine(found, machine);
  for (const ChannelOperator& each : model.operators) {
    found["operators"].push_back(
        {{"name", each.name},
         {"channel_bytes", each.channel_bytes},
         {"small_bytes_per_second", model.flash.rate(each.channel_bytes, each.aligned)},
         {"large_bytes_per_second",
          model.flash.rate(each.channel_bytes * std::max(1u, chosen.group), each.aligned)},
         {"similarity", each.similarity ? json(*each.similarity) : json(nullptr)}});
  }
  std::vector<uint32_t> groups(std::begin(kShownGroups), std::end(kShownGroups));
  for (const uint32_t other : {chosen.group, manifest.layer_group}) {
    if (std::ranges::find(groups, other) == groups.end()) groups.push_back(other);
  }
  std::ranges::sort(groups);
  for (const uint32_t group : groups) {
    if (group > model.layers) continue;
    if (const auto cost = estimate_cost(model, budget, chosen.sparsity, group)) {
      found["groups"].push_back(to_json(*cost));
      if (group == manifest.layer_group) found["of_store"] = to_json(*cost);
    }
  }
  return found;
}

namespace {

bool is_cache_aware(const json& found) {
  return found["mask"] == "cache-aware";
}

// Returns the layers of a group in the store that the plan asks for.
int group_of(const json& found) {
  return is_cache_aware(found) ? 1 : std::max(found["chosen"]["layer_group"].get<int>(), 1);
}

}  // namespace

std::string plan_text(const json& found) {
  if (found.contains("mixture")) return mixture_plan_text(found);
  std::string text = fmt::format(
      "{}, {} of weights, {} of memory, of it {} for other things than channels\n",
      found["model"].get<std::string>(), format_bytes(found["tensor_bytes"].get<double>()),
      format_bytes(found["budget_bytes"].get<double>()), format_bytes(found["fixed_bytes"].get<double>()));
  text += machine_text(found);
  text += "\n  operator   channel       alone    together  foretold\n";
  for (const json& each : found["operators"]) {
    text += fmt::format("  {:<8} {:>9} {:>11} {:>11} {:>9}\n", each["name"].get<std::string>(),
                        format_bytes(each["channel_bytes"].get<double>()),
                        format_rate(each["small_bytes_per_second"].get<double>()),
                        format_rate(each["large_bytes_per_second"].get<double>()),
                        each["similarity"].is_null()
                            ? "no"
                            : fmt::format("{:.1f} %", 100 * each["similarity"].get<double>()));
  }
  text += fmt::format("  foretold: from {}; hits: {}\n", found["similarity_from"].get<std::string>(),
                      found["hits_from"].get<std::string>());
  text += fmt::format("\nsparsity {:.3g} ({})\n", found["sparsity"].get<double>(),
                      found["sparsity_from"].get<std::string>());
  text +=
      "    N  channels     cache    hits  on demand     ahead   compute   flash a    eq. 1   steady\n"
      "       of group                    ms a group        ms        ms     token  tokens/s\n";
  const int chosen = found["chosen"]["layer_group"].get<int>();
  for (const json& cost : found["groups"]) text += row_of(cost, cost["layer_group"].get<int>() == chosen);
  text += fmt::format("N = {}: {}\n", chosen, found["why"].get<std::string>());
  text += cache_aware_text(found);
  const double lossless = found["lossless_tokens_per_second"].get<double>();
  text +=
      found["fastest"] == "lossless"
          ? fmt::format(
                "Lossless is faster here: {:.3g} tokens/s (--config configs/hybrid.toml), and it "
                "leaves nothing out\n",
                lossless)
          : fmt::format("Lossless would write {:.3g} tokens/s (--config configs/hybrid.toml)\n", lossless);
  text += "\n  ";
  if (is_cache_aware(found)) {
    text += cache_aware_settings_text(found);
  } else {
    text += fmt::format(
        "--set predictor.sparsity={:.3g} --set predictor.mask=largest --set cache.name=context-lfu --set "
        "tiers.dram.staging={}",
        found["sparsity"].get<double>(), static_cast<uint64_t>(found["chosen"]["group_bytes"].get<double>()));
    if (chosen == 0) text += " --set predictor.ahead=none";
  }
  const int group = group_of(found);
  if (!found["store_given"].get<bool>()) {
    text += fmt::format(" --set model.layer_group={}", group);
  } else if (group != found["store_layer_group"].get<int>()) {
    text += fmt::format(
        "\n  (this store has groups of {}; tier-convert --layout channel-group --layer-group {} makes "
        "another)",
        found["store_layer_group"].get<int>(), group);
  }
  return text + "\n";
}

}  // namespace tierd
