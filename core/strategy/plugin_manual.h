// A plugin's description of itself, for people.
#pragma once

#include <string>

#include "core/agent/agent_entry.h"
#include "core/strategy/plugin_path.h"
#include "tierd/plugin.h"

namespace tierd {

// Returns its name, kind, summary, and parameters with types, defaults and help.
std::string plugin_manual(const tierd_plugin& plugin, const std::string& file);

// As above for an agent.
std::string agent_manual(const AgentEntry& entry, const std::string& file);

// Returns one line a plugin: kind, name, file. Uses file names; loads nothing.
std::string plugin_list(const PluginPath& path);

}  // namespace tierd
