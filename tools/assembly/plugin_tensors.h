// Reads the tensors that a configuration names for a plugin.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/host/plugin_world.h"

namespace tierd {

// All tensors of a safetensors file in F32, F16 or BF16. Errors name the file: those of File, corrupt,
// unsupported for another dtype.
Result<std::shared_ptr<const PluginTensors>> read_plugin_tensors(const std::string& path);

}  // namespace tierd
