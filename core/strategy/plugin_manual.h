// What a plugin says of itself, for people.
#pragma once

#include <string>
#include <vector>

#include "core/agent/agent_entry.h"
#include "core/strategy/plugin_path.h"
#include "tierd/plugin.h"

namespace tierd {

// Name, kind, what it does, its parameters with types, defaults and help.
std::string plugin_manual(const tierd_plugin& plugin, const std::string& file);

// The same of an agent.
std::string agent_manual(const AgentEntry& entry, const std::string& file);

// One line a plugin: kind, name, file. By file names: nothing is loaded.
std::string plugin_list(const PluginPath& path);

}  // namespace tierd
