#include "tools/tier-compare/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/units.h"

namespace tierd {
namespace {

using nlohmann::json;

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// `n`: neurons times rows.
json use_json(const std::string& name, const SiteUse& use, uint64_t n) {
  return {{"site", name},
          {"rows", use.measured_rows},
          {"active", share(use.active, n)},
          {"predicted", share(use.predicted, n)},
          {"recall", use.recall()},
          {"precision", use.precision()},
          {"false_negatives", 1 - use.recall()},
          {"false_positives", share(use.predicted - (use.active - use.missed), n - use.active)},
          {"missed_mass", use.missed_share()}};
}

json sites_json(const Runtime& subject) {
  json list = json::array();
  SiteUse all;
  uint64_t n_all = 0;
  const SiteTable& sites = subject.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteUse& use = subject.scheduler().use()[s];
    if (use.measured_rows == 0) continue;
    const uint64_t n = use.measured_rows * sites[s].n;
    list.push_back(use_json(sites[s].name, use, n));
    n_all += n;
    all.measured_rows = use.measured_rows;
    all.predicted += use.predicted;
    all.active += use.active;
    all.missed += use.missed;
    all.mass += use.mass;
    all.missed_mass += use.missed_mass;
  }
  if (!list.empty()) list.push_back(use_json("all", all, n_all));
  return list;
}

}  // namespace

json comparison_json(const Runtime& subject, const Loss& loss) {
  const RunPlan& plan = subject.plan();
  const ModelConfig& config = plan.store.manifest().config;
  const double reference = loss.reference_perplexity(), lossy = loss.subject_perplexity();
  return {{"model", config.name.empty() ? config.architecture : config.name},
          {"predictor", plan.config.predictor.name},
          {"quantizer", plan.config.quantizer.name},
          {"dram_bytes", subject.budget().capacity()},
          {"tensor_bytes", plan.store.manifest().tensor_bytes},
          {"kernels", subject.compute_backend()},
          {"context", plan.memory.model.context},
          {"tokens", loss.tokens()},
          {"reference_perplexity", reference},
          {"perplexity", lossy},
          {"perplexity_change", reference > 0 ? lossy / reference - 1 : 0},
          {"divergence",
           {{"mean", loss.mean_divergence()},
            {"p99", loss.divergence_quantile(0.99)},
            {"most", loss.divergence_quantile(1)}}},
          {"largest_logit_difference", loss.largest_difference()},
          {"sites", sites_json(subject)}};
}

std::string comparison_text(const json& c) {
  const auto percent = [](const json& value) { return fmt::format("{:.2f}", 100 * value.get<double>()); };
  std::string text =
      fmt::format("{}, {} of {} in DRAM; {} tokens in windows of {}\n", c["model"].get<std::string>(),
                  format_bytes(c["dram_bytes"].get<double>()), format_bytes(c["tensor_bytes"].get<double>()),
                  c["tokens"].get<uint64_t>(), c["context"].get<int>());
  text += fmt::format("  reference   perplexity {:.4f}, nothing left out\n",
                      c["reference_perplexity"].get<double>());
  text += fmt::format("  {:<11} perplexity {:.4f} ({:+.3f} %)\n", c["predictor"].get<std::string>(),
                      c["perplexity"].get<double>(), 100 * c["perplexity_change"].get<double>());
  const json& d = c["divergence"];
  if (c["largest_logit_difference"].get<double>() == 0) {
    text += "  logits      the same bits\n";
  } else {
    text += fmt::format("  KL          {:.3g} nats a token, 99 % below {:.3g}, most {:.3g}\n",
                        d["mean"].get<double>(), d["p99"].get<double>(), d["most"].get<double>());
  }
  if (c["sites"].empty()) return text;
  text += fmt::format("\n  {:<16} {:>8} {:>10} {:>8} {:>10} {:>6} {:>6} {:>12}\n", "%", "active", "predicted",
                      "recall", "precision", "FN", "FP", "missed mass");
  for (const json& s : c["sites"]) {
    text += fmt::format("  {:<16} {:>8} {:>10} {:>8} {:>10} {:>6} {:>6} {:>12}\n",
                        s["site"].get<std::string>(), percent(s["active"]), percent(s["predicted"]),
                        percent(s["recall"]), percent(s["precision"]), percent(s["false_negatives"]),
                        percent(s["false_positives"]), percent(s["missed_mass"]));
  }
  return text;
}

}  // namespace tierd
