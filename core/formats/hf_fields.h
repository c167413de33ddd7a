// The fields of config.json that families share.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/json_fields.h"
#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

// Error: unsupported, of the key, if a condition does not hold.
Status unless(bool supported, const JsonFields& f, const char* key, std::string_view detail);

// Reads the sizes that every architecture has; head_dim is hidden_size / heads unless the file has it.
Status read_hf_sizes(const JsonFields& f, ModelConfig& c);
// Reads them, the heads of keys, the context and the width of networks.
Status read_hf_shape(const JsonFields& f, const char* ff_key, ModelConfig& c);

// Reads the activation, and FATReLU's threshold from the key that ProSparse and MiniCPM-S use.
Status read_hf_activation(const JsonFields& f, const char* key, const char* fallback, ModelConfig& c);

// Reads the rotary settings: up to transformers 4 rope_theta at the top and rope_scaling, from 5 on all of
// them in rope_parameters. `rotary`: the share of a head that is rotated if the file does not say.
Status read_hf_rope(const JsonFields& f, float rotary, ModelConfig& c);

// Reads layer_types, which transformers writes from 4.5x on.
Status read_hf_layer_types(const JsonFields& f, ModelConfig& c);
// Sets the layers without a window, in a configuration without layer_types: of each `period` the last.
void set_window_period(uint32_t period, ModelConfig& c);

}  // namespace tierd
