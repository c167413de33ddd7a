#include "core/run/agent_choices.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "core/run/strategy_choices.h"

namespace tierd {
namespace {

// What the host reads in a tier's table beside the agent's parameters; the last two of DRAM alone.
constexpr std::array<std::string_view, 5> kKeysOfAgent = {"agent", "thread", "core", "capacity", "staging"};
constexpr std::span<const std::string_view> kDramKeys = kKeysOfAgent;
constexpr std::span<const std::string_view> kFlashKeys = kDramKeys.first(3);

Result<AgentChoice> choose_agent(const PluginPath& path, const std::string& table, const TierConfig& tier,
                                 uint32_t needed, const char* work,
                                 std::span<const std::string_view> own_keys) {
  const std::string key = table + ".agent";
  TIERD_ASSIGN(const std::string file, path.find("agent", tier.agent, key));
  TIERD_ASSIGN(const AgentEntry* const entry, load_agent(file, tier.agent));
  if ((entry->serves & needed) != needed) {
    return Error{Code::invalid_argument, key, fmt::format("agent '{}' does not serve {}", tier.agent, work)};
  }
  return choose_settings(*entry, file, table, tier.settings, own_keys);
}

}  // namespace

Result<AgentChoices> choose_agents(const Config& config) {
  const PluginPath path = plugin_path(config);
  AgentChoices choices;
  TIERD_ASSIGN(choices.flash,
               choose_agent(path, "tiers.flash", config.flash, serves(Op::read), "'read'", kFlashKeys));
  TIERD_ASSIGN(choices.dram,
               choose_agent(path, "tiers.dram", config.dram, serves(Op::run), "'run'", kDramKeys));
  return choices;
}

}  // namespace tierd
