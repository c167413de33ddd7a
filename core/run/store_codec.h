// These find the codec of a store: the one that it is to be written with, and the one that its neurons were
// compressed by.
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

// Sets the compression of that name: "none", "bitmap", or a codec's, which is loaded and told `settings`.
// Errors begin with `key`, where the name comes from: not_found with the codecs that there are,
// invalid_argument for settings without a codec; those of Codec::load.
Status choose_compression(std::string_view name, const PluginPath& path, const std::vector<Setting>& settings,
                          std::string_view key, WriteOptions& options);

// The codec that expands the store's neurons, told `settings`; NULL where the store is written without one.
// Errors: not_found, naming the store and the codec; those of Codec::load.
Result<std::shared_ptr<const NeuronCodec>> codec_of(const Store& store, const PluginPath& path,
                                                    const std::vector<Setting>& settings = {});
// The same on the configuration's plugin path, told what its table [codec] says where that is about this
// codec.
Result<std::shared_ptr<const NeuronCodec>> codec_of(const Store& store, const Config& config);

}  // namespace tierd
