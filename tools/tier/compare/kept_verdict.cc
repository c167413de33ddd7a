#include "tools/tier/compare/kept_verdict.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "core/base/checksum.h"
#include "core/base/file.h"
#include "tools/evaluation/text_windows.h"
#include "tools/evaluation/used_share.h"

namespace tierd {
namespace {

MeasuredLoss loss_of(const Runtime& subject, const Verdict& verdict, const VerdictFacts& facts) {
  const Loss& of = verdict.published ? *verdict.published : verdict.subject;
  MeasuredLoss loss;
  loss.divergence = of.mean_divergence();
  loss.reference_perplexity = of.reference_perplexity();
  loss.perplexity = of.subject_perplexity();
  loss.tokens = of.tokens();
  loss.text = std::filesystem::path(facts.text).filename().string();
  if (const UsedCounts used = used_counts(subject); used.any()) {
    loss.used_neurons = std::min(1.0, used.neuron_share());
    loss.used_bytes = std::min(1.0, used.byte_share());
  }
  loss.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  loss.against_store = facts.against_store;
  return loss;
}

}  // namespace

Result<KeptVerdict> keep_verdict(const Runtime& subject, const std::optional<LossSettings>& settings,
                                 const Verdict& verdict, const VerdictFacts& facts) {
  if (!settings) return KeptVerdict{};
  if (!facts.as_decoding)
    return KeptVerdict{"", "several tokens of a step were judged together, which decoding passes one by one"};
  MeasuredLoss loss = loss_of(subject, verdict, facts);
  if (!std::isfinite(loss.divergence) || !std::isfinite(loss.perplexity) ||
      !std::isfinite(loss.reference_perplexity))
    return KeptVerdict{"", "a run gave logits that are no numbers"};
  TIERD_ASSIGN(const std::string text, read_whole_file(facts.text, kLongestText));
  loss.text_checksum = checksum_text(checksum(text));
  const auto kept = keep_loss(subject.plan().store.directory(), *settings, loss);
  return kept.ok() ? KeptVerdict{*kept, ""} : KeptVerdict{"", kept.error().line()};
}

}  // namespace tierd
