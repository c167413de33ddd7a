// The reference runs of a comparison.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/run/run_plan.h"

namespace tierd {

// Returns a configuration of the subject's store that uses all neurons: one DRAM tier computes, in f32, from
// the best edition of every neuron. From `subject` it takes the store, the tokenizer, the precision of keys
// and values, and the settings of the machine.
Config store_reference(const Config& subject);

// Returns whether every tensor of the store has the values of the file from which it was converted.
bool keeps_values(const Manifest& manifest);

// The file from which the subject's weights were taken.
struct Published {
  // A run of that file, each tensor in its published encoding. Empty: nothing can be run, for the reason
  // `why`.
  std::optional<Config> config;
  std::string why;
};
// `named`: the file that the user names; "none": no such run; empty: the model of the subject or, for a
// store, the model that its manifest names.
Published published_reference(const Config& subject, const RunPlan& plan, const std::string& named);

}  // namespace tierd
