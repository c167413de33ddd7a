// What is planted into the weights of a model without ReLU: how often a channel is among the largest inputs
// of its operator, and how little a layer changes the hidden state.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"

namespace tierd {

// The keys of the file, by section.
struct ChannelProfile {
  std::string name;

  // [rates]: Beta(a, b) over the channels of an operator.
  double a = 1;
  double b = 1;

  // [hidden]: of a layer's hidden state with that of the layer before, at least.
  double cosine = 0;

  // [attention]: of the scores that the softmax gets.
  double score_variance = 0;
};

// `name`: as of read_planted_profile. Returns nothing where the file plants neurons instead, which it says by
// a section [activity]. Errors: not_found (with the profiles there are), invalid_argument naming file, line
// and key.
Result<std::optional<ChannelProfile>> read_channel_profile(const std::string& name);

}  // namespace tierd
