#include "core/host/plugin_manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/host/parameters.h"

namespace tierd {

std::string plugin_manual(const tierd_plugin& plugin, const std::string& file) {
  std::string text = fmt::format("{} {} {}: {}\n  {}, plugin interface {}.{}{}\n", plugin.kind, plugin.name,
                                 plugin.version, plugin.summary, file, plugin.abi_major, plugin.abi_minor,
                                 plugin.lossy != 0 ? "; lossy: it may change results" : "; lossless");
  if (plugin.manual != nullptr) text += fmt::format("\n{}\n", plugin.manual);
  if (plugin.n_params == 0) return text + "\nIt has no parameters.\n";
  text += fmt::format("\nParameters, in the table [{}]:\n", plugin.kind);
  for (uint32_t i = 0; i < plugin.n_params; ++i) {
    const tierd_param& p = param(plugin, i);
    const std::string standard =
        p.type == TIERD_PARAM_TEXT ? fmt::format("\"{}\"", p.standard) : std::string(p.standard);
    text += fmt::format("  {:<18} {:<10} {} ({}{})\n", p.name, standard, p.help, describe_values(p),
                        p.lossy != 0 ? "; lossy" : "");
  }
  return text;
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
