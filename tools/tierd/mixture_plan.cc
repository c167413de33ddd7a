#include "tools/tierd/mixture_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/units.h"
#include "core/run/plugin_tensors.h"
#include "tools/cost_model/mixture_cost.h"

namespace tierd {
namespace {

using nlohmann::json;

MixtureModel model_of(const RunPlan& of, const PlanMachine& machine) {
  const Manifest& manifest = of.store.manifest();
  MixtureModel model{.experts = manifest.config.n_experts,
                     .used = manifest.config.experts_per_token,
                     .memory_rate = machine.memory_rate,
                     .flash = machine.flash,
                     .first_read = machine.first_read};
  for (const StoredSite& site : manifest.sites) {
    if (site.edition_of != kNoSite) continue;
    if (site.group == OpGroup::experts) {
      ++model.layers;
      model.expert_bytes = site.neuron_bytes(0);
    } else if (site.group != OpGroup::embed || manifest.config.tied_embeddings) {
      if (site.alias_of == kNoSite) model.shared_bytes += site.tensor_bytes();
    }
  }
  const auto& memory = of.memory.tiers.front();
  model.fixed_bytes = memory.capacity - memory.arena - memory.staging;
  if (of.config.plan.hits > 0) model.hits = of.config.plan.hits;
  return model;
}

}  // namespace

Result<json> find_mixture_plan(const RunPlan& of, const PlanMachine& machine) {
  const MixtureModel model = model_of(of, machine);
  const uint64_t budget = of.memory.tiers.front().capacity;
  const auto cost = mixture_cost(model, budget);
  if (!cost) {
    return Error{
        Code::no_space, "--plan",
        fmt::format("{} do not hold the {} that are no weights", format_bytes(static_cast<double>(budget)),
                    format_bytes(static_cast<double>(model.fixed_bytes)))};
  }
  json found = {{"model", of.store.manifest().config.name},
                {"tensor_bytes", of.store.manifest().tensor_bytes},
                {"budget_bytes", budget},
                {"fixed_bytes", model.fixed_bytes},
                {"mixture",
                 {{"layers", model.layers},
                  {"experts", model.experts},
                  {"used", model.used},
                  {"expert_bytes", model.expert_bytes},
                  {"shared_bytes", model.shared_bytes},
                  {"kept", cost->kept},
                  {"hits", cost->hits},
                  {"hits_from", model.hits ? "plan.hits" : "the share in memory"},
                  {"reads_per_token", cost->reads},
                  {"flash_bytes_per_token", cost->flash_bytes},
                  {"streamed_bytes_per_token", cost->streamed_bytes},
                  {"disk_ms", cost->disk * 1e3},
                  {"compute_ms", cost->compute * 1e3}}},
                {"lossless_tokens_per_second", 1 / cost->token},
                {"fastest", "lossless"}};
  add_machine(found, machine);
  return found;
}

std::string mixture_plan_text(const json& found) {
  const json& mixture = found["mixture"];
  const auto number = [&](const char* key) { return mixture[key].get<double>(); };
  const auto bytes = [&](const char* key) { return format_bytes(number(key)); };
  std::string text = fmt::format(
      "{}, {} of weights, {} of memory, of it {} for other things than weights\n",
      found["model"].get<std::string>(), format_bytes(found["tensor_bytes"].get<double>()),
      format_bytes(found["budget_bytes"].get<double>()), format_bytes(found["fixed_bytes"].get<double>()));
  text += machine_text(found);
  text += fmt::format("\nEvery token uses {}, and {} of {} experts of {} in each of {} layers\n",
                      bytes("shared_bytes"), mixture["used"].get<int>(), mixture["experts"].get<int>(),
                      bytes("expert_bytes"), mixture["layers"].get<int>());
  text += fmt::format("Memory holds {:.1f} % of the experts; of the chosen ones it has {:.1f} % ({})\n",
                      100 * number("kept"), 100 * number("hits"), mixture["hits_from"].get<std::string>());
  text += fmt::format(
      "A token reads {} in {:.3g} experts, {:.3g} ms, and computes for {:.3g} ms: {:.3g} tokens/s\n",
      bytes("flash_bytes_per_token"), number("reads_per_token"), number("disk_ms"), number("compute_ms"),
      found["lossless_tokens_per_second"].get<double>());
  text += number("streamed_bytes_per_token") > 0
              ? fmt::format("{} of that are used by every token, and do not fit\n",
                            bytes("streamed_bytes_per_token"))
              : "What every token uses is in memory, so that leaving inputs of attention out would save no "
                "reading\n";
  return text + "Whole experts, lossless:\n\n  --config configs/moe-streaming.toml\n";
}

void stream_experts(Config& config) {
  config.predictor = {};
  config.predictor.name = "router";
  config.predictor.tensors = ModelTensors::kName;
  config.cache = {.name = "lru"};
}

}  // namespace tierd
