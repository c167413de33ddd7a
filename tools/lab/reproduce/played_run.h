// Plays a described run: kernel and plugins are those of any run, time is its machine's.
#pragma once

#include <map>
#include <string>

#include "core/base/result.h"
#include "tools/lab/reproduce/reproduction.h"

namespace tierd {

// What a run has come to, by name; of the tokens that count, a step each:
//
//   step_ms            from one token of each sequence to the next
//   tokens_per_second  of all sequences together
//   compute_ms         of a step, with at least one unit computing
//   network_ms         of a step, in its feed-forward networks: computing, and what it waits for
//   (network_time.h) prompt_ms          of all prompts prompt_percent     of the time of prompts and texts
//   (`text`), and of both together: text_tokens_per_second FROM>TO_ms         of a step, with something under
//   way from a tier to a tier FROM>TO_gb         of a step, 1e9 bytes TIER_percent       of the weights, held
//   in the tier's memories at the end TIER_used_percent  those, and what a step fetched into them store_gb
//   1e9 bytes of weights network_percent    of them, of the feed-forward networks loaded_percent     of the
//   neurons that were used, fetched for it foreseen_percent   of the neurons that were expected ahead, used
//   TIER_METRIC        what the cache of the tier says of itself: dram_k of a residency-window
using Figures = std::map<std::string, double>;

// Errors: those of load_config, plan_run, Runtime::create and Engine::step, from the run's name.
Result<Figures> play_run(const DescribedRun& run);

}  // namespace tierd
