// The runs that a configuration is judged against.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/run_plan.h"

namespace tierd {

// Returns a configuration of the subject's store in which nothing is left out: one DRAM tier computes, in
// f32, from the best edition of every neuron. Of `subject` it keeps what names the store, the tokenizer, the
// precision of keys and values, and the machine.
Config store_reference(const Config& subject);

// Returns whether every tensor of the store has the values of the file that it was converted from.
bool keeps_values(const Manifest& manifest);

// The file from which the subject's weights were taken.
struct Published {
  // A run of that file, each tensor in the encoding that it is published in. None: there is nothing to run,
  // and `why` says for what reason.
  std::optional<Config> config;
  std::string why;
};
// `named`: the file, where the user names it; "none" for no such run; empty: the model of the subject, or of
// a store the model that its manifest names.
Published published_reference(const Config& subject, const RunPlan& plan, const std::string& named);

}  // namespace tierd
