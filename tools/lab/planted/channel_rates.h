// Writes the planted rates of channels as a table for a store's order and for plugins.
#pragma once

#include <string>

#include "core/base/result.h"
#include "tools/lab/planted/channel_source.h"

namespace tierd {

// Writes a safetensors file in f32 with SITE.rates [inputs] for qkv, o, up and down of each layer, or of each
// of its experts: the rates that tier-profile --thresholds would measure on a long text. Errors: no_space,
// io_error.
Status write_channel_rates(const ChannelSource& source, const std::string& path);

}  // namespace tierd
