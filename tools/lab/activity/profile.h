// What is active, as statistics of a paper's model: the constants of a process that draws it. A profile is an
// input of what is measured with it, never a finding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// How often a neuron is active, its rate, is one of a beta distribution.
struct BetaRates {
  double a = 1;
  double b = 1;
};

// How mean rates of layers compare; their mean is that of the rates. Linear between the first layer, the
// middle one and the last.
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
  double lambda = 0;  // the share of neurons that keep their event from one token to the next

  // [text]
  double chi = 0;       // the share of neurons whose rate is another one in each sequence
  double eta = 0;       // the share of a rate's variance that a block of neurons has in common in a sequence
  uint32_t blocks = 1;  // of a layer, of neurons that follow each other

  // [layers]
  double kappa = 0;  // the share of neurons that copy one of the layer before
  double shift = 0;  // a copy's event differs by so much

  // [depth], which may be missing.
  std::optional<DepthShares> depth;

  // [hidden], which may be missing.
  std::optional<double> cosine;  // of a layer's hidden state with that of the layer before
};

// `name`: such as "llm-in-a-flash", looked up in the folder activity/ of configs, or the path of a file
// ending in .toml. Errors: not_found (with the profiles there are), invalid_argument naming file, line and
// key.
Result<ActivityProfile> read_activity_profile(const std::string& name);

// The names that read_activity_profile knows, sorted.
std::vector<std::string> known_activity_profiles();

// The rates of each layer, [n_layers]. `by_depth`: their mean follows [depth], where a + b stays, so that
// overlaps hardly change; else all are the same. Error: invalid_argument, where a profile has no depth or a
// layer of it would have nearly every neuron active.
Result<std::vector<BetaRates>> layer_rates(const ActivityProfile& profile, uint32_t n_layers, bool by_depth);

}  // namespace tierd
