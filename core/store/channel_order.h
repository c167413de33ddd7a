// The order in which the channels of each operator are stored on flash: the most used first, so that the
// channels that a token uses are adjacent more often than by chance. The order is a part of the model: a
// resident tensor names it, the operator takes its inputs in that order, and its neuron i is the i-th channel
// of the order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Returns whether the values are a permutation of 0 to values.size() - 1.
bool is_order(std::span<const float> values);

struct ChannelOrderOptions {
  std::string file;
  uint32_t layer_group = 1;
  bool experts = false;  // up and down of a mixture's experts are cut into channels, too
};

// Returns `of` with its channels ordered by the rates in a file: SITE.rates [inputs], as tier-profile
// --thresholds writes them for qkv, o, up and down of each layer. If layer_group > 1, all layers have one
// order, by the sum of their rates, because one read loads a channel of all layers of a group; experts keep
// their own orders. Errors: those of safetensors files; not_found, invalid_argument, naming file and tensor.
Result<std::unique_ptr<TensorSource>> in_order_of_use(std::shared_ptr<const TensorSource> of,
                                                      const ChannelOrderOptions& options);

// Returns the channels of a site in their order, if the source has one.
std::optional<std::vector<uint32_t>> channel_order(const TensorSource& source, std::string_view site);

}  // namespace tierd
