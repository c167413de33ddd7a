// The order in which the channels of each operator lie on flash: those that are used most come first, so that
// what a token uses lies side by side more often than by chance. It is a part of the model then: an operator
// takes its inputs in that order, which a resident tensor names, and its neuron i is the channel that comes
// i-th.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Whether the values are 0 to their number less one, each once.
bool is_order(std::span<const float> values);

struct ChannelOrderOptions {
  std::string file;
  uint32_t layer_group = 1;
  bool experts = false;  // up and down of a mixture's experts are in channels, too
};

// `of`, whose channels are to lie by the rates in a file: SITE.rates [inputs], as tier-profile --thresholds
// writes them for qkv, o, up and down of each layer. Layers of a group lie side by side, and what one of them
// uses foretells the next: where there are groups, of more than one layer, all layers have one order, but not
// their experts. Errors: those of safetensors files; not_found, invalid_argument, naming file and tensor.
Result<std::unique_ptr<TensorSource>> in_order_of_use(std::shared_ptr<const TensorSource> of,
                                                      const ChannelOrderOptions& options);

// The channels of a site in their order, where the source has one.
std::optional<std::vector<uint32_t>> channel_order(const TensorSource& source, std::string_view site);

}  // namespace tierd
