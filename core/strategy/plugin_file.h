// Loads one plugin and makes sure that it is what it says.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "tierd/plugin.h"

namespace tierd {

// The descriptor of a file, for good: a plugin is never unloaded. Its symbols stay its own (RTLD_LOCAL).
// Errors name the file, what was expected and what was found: not_found, plugin_fault.
Result<const tierd_plugin*> load_plugin(const std::string& path, std::string_view kind,
                                        std::string_view name);

// What `load_plugin` does with a descriptor; `origin` is named in errors. Error: plugin_fault.
Status check_plugin(const tierd_plugin& plugin, const std::string& origin, std::string_view kind,
                    std::string_view name);

// The table of a strategy or codec as this host knows it: functions that the plugin is too old to have are
// NULL. Errors: plugin_fault for an extension that is missing, a table that is too short or lacks what every
// plugin of its kind must have.
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_predictor_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_heat_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_levels_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_cache_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_balancer_1& table);
Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_codec_1& table);

// Whether a predictor keeps the neurons' heat, too.
bool offers_heat(const tierd_plugin& plugin);

}  // namespace tierd
