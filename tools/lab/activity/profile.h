// The statistics of a paper's model, as constants of a process that draws active neurons. A profile is an
// input of measurements, never a finding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// The beta distribution of rates; a neuron's rate is how often it is active.
struct BetaRates {
  double a = 1;
  double b = 1;
};

// Relative mean rates of layers, scaled so that their mean is that of the rates. Linear between the first
// layer, the middle one and the last.
struct DepthShares {
  double first = 1;
  double middle = 1;
  double last = 1;
};

// The keys of the file, by section.
struct ActivityProfile {
  std::string name;

  // [rates]
  BetaRates rates;

  // [time]
  double lambda = 0;  // share of neurons that keep their event from one token to the next

  // [text]
  double chi = 0;       // share of neurons with another rate in each sequence
  double eta = 0;       // share of a rate's variance that a block of neurons shares in a sequence
  uint32_t blocks = 1;  // of a layer, each of consecutive neurons

  // [layers]
  double kappa = 0;  // share of neurons that copy one of the layer before
  double shift = 0;  // largest difference of a copy's event

  // [depth], optional.
  std::optional<DepthShares> depth;

  // [hidden], optional.
  std::optional<double> cosine;  // between hidden states of consecutive layers
};

// `name`: such as "llm-in-a-flash", a file of the folder activity/ of configs, or the path of a file ending
// in .toml. Errors: not_found (listing the profiles), invalid_argument naming file, line and key.
Result<ActivityProfile> read_activity_profile(const std::string& name);

// Returns the names that read_activity_profile knows, sorted.
std::vector<std::string> known_activity_profiles();

// Returns the rates of each layer, [n_layers]. `by_depth`: their mean follows [depth] with a + b unchanged,
// so that overlaps hardly change; else all are the same. Error: invalid_argument if a profile has no depth,
// or if nearly all neurons of a layer would be active.
Result<std::vector<BetaRates>> layer_rates(const ActivityProfile& profile, uint32_t n_layers, bool by_depth);

}  // namespace tierd
