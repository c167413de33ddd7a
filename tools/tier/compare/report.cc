#include "tools/tier/compare/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/units.h"
#include "core/report/figure_json.h"
#include "tools/evaluation/used_share.h"
#include "tools/tier/compare/site_uses.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr size_t kMostSiteLines = 16;  // with more sites the text has one line for each kind of operator

json divergence_json(const Loss& loss) {
  return {{"mean", loss.mean_divergence()},
          {"p99", loss.divergence_quantile(0.99)},
          {"most", loss.divergence_quantile(1)}};
}

// Returns the figures of one run against another.
json loss_json(const Loss& loss) {
  const double reference = loss.reference_perplexity(), subject = loss.subject_perplexity();
  return {{"reference_perplexity", reference},
          {"perplexity", subject},
          {"perplexity_change", reference > 0 ? subject / reference - 1 : 0},
          {"divergence", divergence_json(loss)},
          {"largest_logit_difference", loss.largest_difference()}};
}

std::string percent(double share) {
  return fmt::format("{:.2f}", 100 * share);
}

// "0.0512, 99 % below 0.41, most 2.2"
std::string divergence_text(const json& loss) {
  if (loss["largest_logit_difference"].get<double>() == 0) return "the same bits";
  const json& d = loss["divergence"];
  return fmt::format("{:.3g}, 99 % below {:.3g}, most {:.3g}", d["mean"].get<double>(),
                     d["p99"].get<double>(), d["most"].get<double>());
}

std::string change_text(const json& loss) {
  return fmt::format("{:+.3f} %", 100 * loss["perplexity_change"].get<double>());
}

std::string line(std::string_view run, double perplexity, std::string_view change,
                 std::string_view divergence, std::string_view against = {}) {
  std::string text = fmt::format("  {:<25} {:>10.4f} {:>12}   {}", run, perplexity, change, divergence);
  if (!against.empty()) text += fmt::format(" ({})", against);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string losses_text(const json& c) {
  std::string text = fmt::format("  {:<25} {:>10} {:>12}   {}\n", "", "perplexity", "", "KL, nats a token");
  const json& published = c["published"];
  if (published.is_null()) {
    text += line("store, nothing left out", c["reference_perplexity"].get<double>(), "", "");
    text += line("as configured", c["perplexity"].get<double>(), change_text(c), divergence_text(c));
    return text + fmt::format("  the file as published was not run: {}\n",
                              c["why_without_published"].get<std::string>());
  }
  const json& store = published["store"];
  text += line("file as published", published["reference_perplexity"].get<double>(), "", "");
  text += line("store, nothing left out", c["reference_perplexity"].get<double>(), change_text(store),
               divergence_text(store));
  text += line("as configured", c["perplexity"].get<double>(), change_text(published),
               divergence_text(published), "against the file");
  return text +
         fmt::format("  {:<36} {:>12}   {} (against the store)\n", "", change_text(c), divergence_text(c));
}

std::string used_line(const json& c) {
  if (c["used"].is_null()) return "";
  return "  used " + used_text(c["used"], c["predictor"].get<std::string>()) + "\n";
}

std::string kept_line(const json& c) {
  if (!c["kept"].is_null()) return fmt::format("  kept in {}\n", c["kept"].get<std::string>());
  const auto why = c["why_not_kept"].get<std::string>();
  return why.empty() ? "" : fmt::format("  the verdict was not kept: {}\n", why);
}

std::string measured_text(const json& c) {
  const json& sites = c["sites"].size() <= kMostSiteLines ? c["sites"] : c["operators"];
  if (sites.empty()) return "";
  std::string text = fmt::format("\n  {:<16} {:>8} {:>10} {:>8} {:>10} {:>6} {:>6} {:>12}   of {} tokens\n",
                                 "%", "active", "predicted", "recall", "precision", "FN", "FP", "missed mass",
                                 sites.back()["rows"].get<uint64_t>());
  const auto cell = [](const json& value) { return percent(value.get<double>()); };
  for (const json& s : sites) {
    text +=
        fmt::format("  {:<16} {:>8} {:>10} {:>8} {:>10} {:>6} {:>6} {:>12}\n", s["site"].get<std::string>(),
                    cell(s["active"]), cell(s["predicted"]), cell(s["recall"]), cell(s["precision"]),
                    cell(s["false_negatives"]), cell(s["false_positives"]), cell(s["missed_mass"]));
  }
  return text;
}

}  // namespace

json comparison_json(const Runtime& subject, const Verdict& verdict, const ComparisonFacts& facts) {
  const RunPlan& plan = subject.plan();
  const ModelConfig& config = plan.store.manifest().config;
  json c = loss_json(verdict.subject);
  c.update({{"model", config.name.empty() ? config.architecture : config.name},
            {"predictor", plan.config.predictor.name},
            {"quantizer", plan.config.quantizer.name},
            {"dram_bytes", subject.budget().capacity() - plan.memory.tiers.front().beside},
            {"tensor_bytes", plan.store.manifest().tensor_bytes},
            {"kernels", subject.compute_backend()},
            {"context", plan.memory.model.context},
            {"tokens", verdict.tokens()},
            {"step_tokens", facts.step_tokens},
            {"used", figures::value_json(used_figures(used_counts(subject), plan.config.predictor))},
            {"published", nullptr},
            {"why_without_published", facts.why_without_published},
            {"kept", facts.kept.path.empty() ? json(nullptr) : json(facts.kept.path)},
            {"why_not_kept", facts.kept.why_not},
            {"sites", measured_sites(subject)},
            {"operators", measured_operators(subject)}});
  if (verdict.published) {
    c["published"] = loss_json(*verdict.published);
    c["published"]["path"] = facts.published;
    c["published"]["store"] = loss_json(*verdict.store_itself);
  }
  return c;
}

std::string comparison_text(const json& c) {
  const auto step_tokens = c["step_tokens"].get<uint32_t>();
  return fmt::format("{}, {} of {} in DRAM; {} tokens in windows of {}, {}\n", c["model"].get<std::string>(),
                     format_bytes(c["dram_bytes"].get<double>()),
                     format_bytes(c["tensor_bytes"].get<double>()), c["tokens"].get<uint64_t>(),
                     c["context"].get<int>(),
                     step_tokens == 1 ? std::string("one a step, as in decoding")
                                      : fmt::format("{} a step", step_tokens)) +
         losses_text(c) + used_line(c) + kept_line(c) + measured_text(c);
}

}  // namespace tierd
