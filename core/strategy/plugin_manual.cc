#include "core/strategy/plugin_manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/strategy/agent_file.h"
#include "core/strategy/parameters.h"

namespace tierd {

namespace {

std::string parameter_list(const tierd_plugin& plugin, std::string_view table) {
  if (plugin.n_params == 0) return "\nIt has no parameters.\n";
  std::string text = fmt::format("\nParameters, in the table [{}]:\n", table);
  for (uint32_t i = 0; i < plugin.n_params; ++i) {
    const tierd_param& p = param(plugin, i);
    const std::string standard =
        p.type == TIERD_PARAM_TEXT ? fmt::format("\"{}\"", p.standard) : std::string(p.standard);
    text += fmt::format("  {:<18} {:<10} {} ({}{})\n", p.name, standard, p.help, describe_values(p),
                        p.lossy != 0 ? "; lossy" : "");
  }
  return text;
}

}  // namespace

std::string plugin_manual(const tierd_plugin& plugin, const std::string& file) {
  std::string text = fmt::format("{} {} {}: {}\n  {}, plugin interface {}.{}{}\n", plugin.kind, plugin.name,
                                 plugin.version, plugin.summary, file, plugin.abi_major, plugin.abi_minor,
                                 plugin.lossy != 0 ? "; lossy: it may change results" : "; lossless");
  if (plugin.manual != nullptr) text += fmt::format("\n{}\n", plugin.manual);
  return text + parameter_list(plugin, plugin.kind);
}

std::string agent_manual(const AgentEntry& entry, const std::string& file) {
  constexpr std::pair<Op, const char*> kWork[] = {
      {Op::read, "read"}, {Op::move, "move"}, {Op::run, "run"}, {Op::resize, "resize"}};
  std::vector<const char*> work;
  for (const auto& [op, name] : kWork) {
    if ((entry.serves & serves(op)) != 0) work.push_back(name);
  }
  return fmt::format("agent {}: {}\n  {}, {}\n  serves {}\n", entry.name, entry.summary, file, entry.build_id,
                     work.empty() ? "nothing" : fmt::format("{}", fmt::join(work, ", "))) +
         parameter_list(as_plugin(entry), "tiers.TIER");
}

std::string plugin_list(const PluginPath& path) {
  std::string text;
  for (const PluginPath::Found& found : path.list()) {
    text += fmt::format("{:<10} {:<16} {}\n", found.kind, found.name, found.path);
  }
  if (text.empty()) text = fmt::format("no plugins in {}\n", fmt::join(path.folders(), ", "));
  return text;
}

}  // namespace tierd
