// Plays a described run: kernel and plugins are those of any run, time is its machine's.
#pragma once

#include <map>
#include <string>

#include "core/base/result.h"
#include "tools/lab/reproduce/reproduction.h"

namespace tierd {

// The figures of a run, by name. Averages are over the steps of the counted tokens.
//
//   step_ms             from one token of each sequence to the next
//   tokens_per_second   of all sequences together
//   compute_ms          of a step, with at least one unit computing
//   network_ms          of a step, in its feed-forward networks (network_time.h)
//   prompt_ms           of all prompts
//   prompt_percent      of the time of prompts and texts (`text`)
//   text_tokens_per_second  of prompts and texts together
//   FROM>TO_ms          of a step, with a message under way from tier to tier
//   FROM>TO_gb          of a step, 1e9 bytes
//   store_gb            1e9 bytes of weights
//   network_gb, network_percent  of those, the feed-forward networks
//   TIER_gb, TIER_percent  of the weights, held in the tier's memories at the end
//   TIER_used_percent   those, and the bytes that a step fetched into them
//   loaded_percent      of the used neurons, those fetched for the step
//   foreseen_percent    of the neurons predicted ahead, those used
//   TIER_METRIC         a gauge of the tier's cache: dram_k of a residency-window
using Figures = std::map<std::string, double>;

// Errors: those of load_config, plan_run, Runtime::create and Engine::step, prefixed by the run's name.
Result<Figures> play_run(const DescribedRun& run);

}  // namespace tierd
