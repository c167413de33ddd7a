// Loads the agent of one shared object, checks that it was built for this very host, and constructs it.
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

// Loads a file for good (an agent is never unloaded) and returns its entry. Its symbols stay its own
// (RTLD_LOCAL). Errors name the file, the expected and the found value: not_found, plugin_fault.
Result<const AgentEntry*> load_agent(const std::string& path, std::string_view name);

// Checks an entry, as `load_agent` does; errors name `origin`. Reads no field after `build_id` before that
// equals the host's. Error: plugin_fault.
Status check_agent(const AgentEntry& entry, const std::string& origin, std::string_view name);

// An agent, and its configured parameters.
struct AgentChoice {
  const AgentEntry* entry = nullptr;
  std::string origin;                  // its file
  std::vector<Setting> settings = {};  // every declared parameter, in that order

  // Returns a parameter, if the agent has one of that name and type.
  template <class T>
  std::optional<T> get(std::string_view key) const {
    for (const Setting& setting : settings) {
      if (setting.key == key && std::holds_alternative<T>(setting.value)) return std::get<T>(setting.value);
    }
    return std::nullopt;
  }
};
// Returns the defaults, overridden by a table ("tiers.flash") of the configuration. `other_keys` are the
// host's own keys in that table. Errors: those of Parameters::read.
Result<AgentChoice> choose_settings(const AgentEntry& entry, const std::string& origin,
                                    std::string_view table, const std::vector<Setting>& settings,
                                    std::span<const std::string_view> other_keys = {});

// Constructs an agent; sets context.settings. Passes on an error that `make` returns; an exception or an
// invalid agent becomes plugin_fault with the file's name.
Result<MadeAgent> make_agent(const AgentChoice& choice, AgentContext& context);

// Returns the entry as the descriptor of a plugin, for code that handles the parameters of both.
tierd_plugin as_plugin(const AgentEntry& entry, const char* kind = "agent");

}  // namespace tierd
