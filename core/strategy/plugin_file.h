// Loads one plugin and checks its descriptor and tables.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "tierd/plugin.h"

namespace tierd {

// Loads a file for good (a plugin is never unloaded) and returns its descriptor. Its symbols stay its own
// (RTLD_LOCAL). Errors name the file, the expected and the found value: not_found, plugin_fault.
Result<const tierd_plugin*> load_plugin(const std::string& path, std::string_view kind,
                                        std::string_view name);

// Checks a descriptor, as `load_plugin` does; errors name `origin`. Error: plugin_fault.
Status check_plugin(const tierd_plugin& plugin, const std::string& origin, std::string_view kind,
                    std::string_view name);

// Copies the table of a strategy or codec; functions that an older plugin does not have are NULL. Error:
// plugin_fault for a missing extension, a table that is too short or lacks a required function.
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_predictor_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_heat_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_levels_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_cache_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_balancer_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_codec_1& table);

// Returns whether a predictor also keeps the neurons' heat.
bool offers_heat(const tierd_plugin& plugin);

}  // namespace tierd
