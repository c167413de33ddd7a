#include "tools/tier/compare/report.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace tierd {
namespace {

constexpr size_t kMostSiteLines = 16;  // with more sites the text has one line for each kind of operator

LossFigures loss_figures(const Loss& loss) {
  const double reference = loss.reference_perplexity(), subject = loss.subject_perplexity();
  return {.reference_perplexity = reference,
          .perplexity = subject,
          .perplexity_change = reference > 0 ? subject / reference - 1 : 0,
          .divergence = {loss.mean_divergence(), loss.divergence_quantile(0.99), loss.divergence_quantile(1)},
          .largest_logit_difference = loss.largest_difference()};
}

std::string percent(double share) {
  return fmt::format("{:.2f}", 100 * share);
}

// "0.0512, 99 % below 0.41, most 2.2"
std::string divergence_text(const LossFigures& loss) {
  if (loss.largest_logit_difference == 0) return "the same bits";
  const DivergenceFigures& d = loss.divergence;
  return fmt::format("{:.3g}, 99 % below {:.3g}, most {:.3g}", d.mean, d.p99, d.most);
}

std::string change_text(const LossFigures& loss) {
  return fmt::format("{:+.3f} %", 100 * loss.perplexity_change);
}

std::string line(std::string_view run, double perplexity, std::string_view change,
                 std::string_view divergence, std::string_view against = {}) {
  std::string text = fmt::format("  {:<25} {:>10.4f} {:>12}   {}", run, perplexity, change, divergence);
  if (!against.empty()) text += fmt::format(" ({})", against);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string losses_text(const ComparisonFigures& c) {
  std::string text = fmt::format("  {:<25} {:>10} {:>12}   {}\n", "", "perplexity", "", "KL, nats a token");
  if (!c.published) {
    text += line("store, nothing left out", c.reference_perplexity, "", "");
    text += line("as configured", c.perplexity, change_text(c), divergence_text(c));
    return text + fmt::format("  the file as published was not run: {}\n", c.why_without_published);
  }
  const PublishedFigures& published = *c.published;
  text += line("file as published", published.reference_perplexity, "", "");
  text += line("store, nothing left out", c.reference_perplexity, change_text(published.store),
               divergence_text(published.store));
  text += line("as configured", c.perplexity, change_text(published), divergence_text(published),
               "against the file");
  return text +
         fmt::format("  {:<36} {:>12}   {} (against the store)\n", "", change_text(c), divergence_text(c));
}

std::string used_line(const ComparisonFigures& c) {
  return c.used ? "  used " + used_text(*c.used, c.predictor) + "\n" : "";
}

std::string kept_line(const ComparisonFigures& c) {
  if (c.kept) return fmt::format("  kept in {}\n", *c.kept);
  return c.why_not_kept.empty() ? "" : fmt::format("  the verdict was not kept: {}\n", c.why_not_kept);
}

std::string measured_text(const ComparisonFigures& c) {
  const std::vector<SiteFigures>& sites = c.sites.size() <= kMostSiteLines ? c.sites : c.operators;
  if (sites.empty()) return "";
  std::string text =
      fmt::format("\n  {:<16} {:>8} {:>10} {:>8} {:>10} {:>6} {:>6} {:>12}   of {} tokens\n", "%", "active",
                  "predicted", "recall", "precision", "FN", "FP", "missed mass", sites.back().rows);
  for (const SiteFigures& s : sites) {
    text += fmt::format("  {:<16} {:>8} {:>10} {:>8} {:>10} {:>6} {:>6} {:>12}\n", s.site, percent(s.active),
                        percent(s.predicted), percent(s.recall), percent(s.precision),
                        percent(s.false_negatives), percent(s.false_positives), percent(s.missed_mass));
  }
  return text;
}

}  // namespace

ComparisonFigures comparison_figures(const Runtime& subject, const Verdict& verdict,
                                     const ComparisonFacts& facts) {
  const RunPlan& plan = subject.plan();
  const ModelConfig& config = plan.store.manifest().config;
  ComparisonFigures c;
  static_cast<LossFigures&>(c) = loss_figures(verdict.subject);
  c.model = config.name.empty() ? config.architecture : config.name;
  c.predictor = plan.config.predictor.name;
  c.quantizer = plan.config.quantizer.name;
  c.dram_bytes = subject.budget().capacity() - plan.memory.tiers.front().beside;
  c.tensor_bytes = plan.store.manifest().tensor_bytes;
  c.kernels = subject.compute_backend();
  c.context = plan.memory.model.context;
  c.tokens = verdict.tokens();
  c.step_tokens = facts.step_tokens;
  c.used = used_figures(used_counts(subject), plan.config.predictor);
  c.why_without_published = facts.why_without_published;
  if (!facts.kept.path.empty()) c.kept = facts.kept.path;
  c.why_not_kept = facts.kept.why_not;
  c.sites = measured_sites(subject);
  c.operators = measured_operators(subject);
  if (verdict.published) {
    c.published = PublishedFigures{loss_figures(*verdict.published), facts.published,
                                   loss_figures(*verdict.store_itself)};
  }
  return c;
}

std::string comparison_text(const ComparisonFigures& c) {
  return fmt::format("{}, {} of {} in DRAM; {} tokens in windows of {}, {}\n", c.model,
                     format_bytes(static_cast<double>(c.dram_bytes)),
                     format_bytes(static_cast<double>(c.tensor_bytes)), c.tokens, c.context,
                     c.step_tokens == 1 ? std::string("one a step, as in decoding")
                                        : fmt::format("{} a step", c.step_tokens)) +
         losses_text(c) + used_line(c) + kept_line(c) + measured_text(c);
}

}  // namespace tierd
