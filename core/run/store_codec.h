// Finds the codec of a store: the one to write it with, and the one that compressed its neurons.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/setting.h"
#include "core/config/config.h"
#include "core/model/layout/neuron_codec.h"
#include "core/store/store.h"
#include "core/store/write_options.h"
#include "core/strategy/plugin_path.h"

namespace tierd {

// Sets the compression of that name: "none", "bitmap", or a codec, which is loaded with `settings`. Errors
// begin with `key`, the source of the name: not_found with the existing codecs, invalid_argument for settings
// without a codec; those of Codec::load.
Status choose_compression(std::string_view name, const PluginPath& path, const std::vector<Setting>& settings,
                          std::string_view key, WriteOptions& options);

// Returns the codec that expands the store's neurons, with `settings`; NULL if the store uses none. Errors:
// not_found, naming the store and the codec; those of Codec::load.
Result<std::shared_ptr<const NeuronCodec>> codec_of(const Store& store, const PluginPath& path,
                                                    const std::vector<Setting>& settings = {});
// As above on the configuration's plugin path, with the settings of its table [codec] if that is about this
// codec.
Result<std::shared_ptr<const NeuronCodec>> codec_of(const Store& store, const Config& config);

}  // namespace tierd
