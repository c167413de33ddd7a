// The planted statistics of a model without ReLU: how often a channel is among the largest inputs of its
// operator, and how little a layer changes the hidden state.
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

  // [hidden]: least cosine between a layer's hidden state and that of the layer before.
  double cosine = 0;

  // [attention]: variance of the scores before the softmax.
  double score_variance = 0;
};

// Reads a profile by `name`, as read_planted_profile does. Returns nothing if the file plants neurons, as its
// section [activity] shows. Errors: not_found (listing the profiles), invalid_argument naming file, line and
// key.
Result<std::optional<ChannelProfile>> read_channel_profile(const std::string& name);

}  // namespace tierd
