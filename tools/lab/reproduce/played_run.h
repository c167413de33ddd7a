// Plays a described run: kernel and plugins are those of any run, time is its machine's.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/report/figure.h"
#include "tools/lab/reproduce/reproduction.h"

namespace tierd {

// The figures of a run that every run has. Averages are over the steps of the counted tokens; 1 GB is 1e9
// bytes.
struct PlayedRunFigures {
  double step_ms = 0, tokens_per_second = 0, compute_ms = 0, network_ms = 0, prompt_ms = 0;
  std::optional<double> prompt_percent, text_tokens_per_second;  // with a `text`
  double store_gb = 0, network_gb = 0, network_percent = 0;
  std::optional<double> loaded_percent, foreseen_percent;  // if there are such neurons

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = PlayedRunFigures;
    return std::tuple(
        Figure{&F::step_ms, "step_ms", ms, latest, "from one token of each sequence to the next"},
        Figure{&F::tokens_per_second, "tokens_per_second", Quantity::tokens_per_second, latest,
               "of all sequences together"},
        Figure{&F::compute_ms, "compute_ms", ms, latest, "of a step, with at least one unit computing"},
        Figure{&F::network_ms, "network_ms", ms, latest,
               "of a step, in its feed-forward networks (network_time.h)"},
        Figure{&F::prompt_ms, "prompt_ms", ms, latest, "of all prompts"},
        Figure{&F::prompt_percent, "prompt_percent", percent, latest, "of the time of prompts and texts"},
        Figure{&F::text_tokens_per_second, "text_tokens_per_second", Quantity::tokens_per_second, latest,
               "of prompts and texts together"},
        Figure{&F::store_gb, "store_gb", bytes, latest, "GB of weights"},
        Figure{&F::network_gb, "network_gb", bytes, latest, "GB of feed-forward networks"},
        Figure{&F::network_percent, "network_percent", percent, latest, "of the weights"},
        Figure{&F::loaded_percent, "loaded_percent", percent, latest,
               "of the used neurons, those fetched for the step"},
        Figure{&F::foreseen_percent, "foreseen_percent", percent, latest,
               "of the neurons predicted ahead, those used"});
  }
};

// The figures of PlayedRunFigures, and those of links, tiers and caches, by name:
//
//   FROM>TO_ms          of a step, with a message under way from tier to tier
//   FROM>TO_gb          of a step, GB
//   TIER_gb, TIER_percent  of the weights, held in the tier's memories at the end
//   TIER_used_percent   those, and the bytes that a step fetched into them
//   TIER_METRIC         a gauge of the tier's cache: dram_k of a residency-window
using Figures = std::map<std::string, double>;

// Errors: those of load_config, plan_run, Runtime::create and Engine::step, prefixed by the run's name.
Result<Figures> play_run(const DescribedRun& run);

}  // namespace tierd
