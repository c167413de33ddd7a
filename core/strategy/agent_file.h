// Loads the agent of one shared object, makes sure that it was built for this very host, and makes it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent/agent_entry.h"
#include "core/base/result.h"
#include "core/base/setting.h"
#include "tierd/plugin.h"

namespace tierd {

// The entry of a file, for good: an agent is never unloaded. Its symbols stay its own (RTLD_LOCAL). Errors
// name the file, what was expected and what was found: not_found, plugin_fault.
Result<const AgentEntry*> load_agent(const std::string& path, std::string_view name);

// What `load_agent` does with an entry; `origin` is named in errors. Nothing behind `build_id` is read before
// that is known to be the host's. Error: plugin_fault.
Status check_agent(const AgentEntry& entry, const std::string& origin, std::string_view name);

// An agent, and what it is told.
struct AgentChoice {
  const AgentEntry* entry = nullptr;
  std::string origin;                  // its file
  std::vector<Setting> settings = {};  // every parameter that it declares, in that order

  // A parameter, if the agent has one of that name and type.
  template <class T>
  std::optional<T> get(std::string_view key) const {
    for (const Setting& setting : settings) {
      if (setting.key == key && std::holds_alternative<T>(setting.value)) return std::get<T>(setting.value);
    }
    return std::nullopt;
  }
};
// The defaults, and over them what a table ("tiers.flash") of the configuration says. Errors as those of
// Parameters::read; `other_keys` are the host's own in that table.
Result<AgentChoice> choose_settings(const AgentEntry& entry, const std::string& origin,
                                    std::string_view table, const std::vector<Setting>& settings,
                                    std::span<const std::string_view> other_keys = {});

// Makes it; context.settings are set here. An error that it returns is handed on, an exception or an agent
// that is none becomes plugin_fault with the file's name.
Result<MadeAgent> make_agent(const AgentChoice& choice, AgentContext& context);

// The entry as the descriptor of a plugin: for what is the same of both, their parameters.
tierd_plugin as_plugin(const AgentEntry& entry, const char* kind = "agent");

}  // namespace tierd
