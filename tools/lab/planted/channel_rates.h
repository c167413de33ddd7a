// The rates of channels that were planted, as a table for a store's order and for plugins.
#pragma once

#include <string>

#include "core/base/result.h"
#include "tools/lab/planted/channel_source.h"

namespace tierd {

// A safetensors file in f32 with SITE.rates [inputs] for qkv, o, up and down of each layer, or of each of its
// experts: what tier-profile --thresholds finds, where a text is long enough. Errors: no_space, io_error.
Status write_channel_rates(const ChannelSource& source, const std::string& path);

}  // namespace tierd
