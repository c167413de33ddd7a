// The part of --check and of reports on editions that are recoded on the way into a tier, and on their cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "core/run/run_plan.h"
#include "tools/tierd/report_lines.h"

namespace tierd {

// An encoding that tiers recode to. The rate is measured now.
struct RecodingFigures {
  std::string to;
  std::vector<std::string> sites;  // groups of operators
  std::vector<std::string> in;
  uint64_t unstored_bytes = 0, read_bytes = 0, moved_bytes = 0;
  std::optional<double> error, encoded_bytes_per_second;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = RecodingFigures;
    return std::tuple(
        Figure{&F::to, "to", text, latest, "the encoding"},
        Figure{&F::sites, "sites", text, latest, "groups of operators"},
        Figure{&F::in, "in", text, latest, "tiers"},
        Figure{&F::unstored_bytes, "unstored_bytes", bytes, latest, "that a store with it would add"},
        Figure{&F::read_bytes, "read_bytes", bytes, latest, "of a neuron, of the stored edition"},
        Figure{&F::moved_bytes, "moved_bytes", bytes, latest, "of a neuron, over the link"},
        Figure{&F::error, "error", Quantity::ratio, latest, "relative, of a sample", kOrNull},
        Figure{&F::encoded_bytes_per_second, "encoded_bytes_per_second", bytes_per_second, latest,
               "of the bytes read, by one thread; null without a store", kOrNull});
  }
};

// Errors: those of the files.
Result<std::vector<RecodingFigures>> recoding_figures(const RunPlan& plan);

// Returns no line where no edition is recoded.
ReportLines recoding_lines(const std::vector<RecodingFigures>& recoded);

}  // namespace tierd
