#include "tests/e2e/declared_parameters.h"

#include <gtest/gtest.h>

#include "core/strategy/agent_file.h"
#include "core/strategy/parameters.h"
#include "core/strategy/plugin_file.h"
#include "core/strategy/plugin_path.h"

namespace tierd {

std::vector<DeclaredParameter> declared_parameters(const std::string& plugin) {
  const std::string kind = plugin.substr(0, plugin.find('-'));
  const std::string name = plugin.substr(kind.size() + 1);
  const auto file = PluginPath({TIERD_PLUGIN_DIR}).find(kind, name);
  EXPECT_TRUE(file.ok()) << file.error().line();
  std::vector<DeclaredParameter> all;
  const auto add = [&](const tierd_param& one) {
    const std::string standard = one.standard;
    all.push_back({one.name, one.type == TIERD_PARAM_TEXT ? "\"" + standard + "\"" : standard,
                   one.choices == nullptr ? "" : one.choices});
  };
  if (kind == "agent") {
    const auto entry = load_agent(*file, name);
    EXPECT_TRUE(entry.ok()) << entry.error().line();
    for (uint32_t i = 0; i < (*entry)->n_params; ++i) add((*entry)->params[i]);
  } else {
    const auto loaded = load_plugin(*file, kind, name);
    EXPECT_TRUE(loaded.ok()) << loaded.error().line();
    for (uint32_t i = 0; i < (*loaded)->n_params; ++i) add(param(**loaded, i));
  }
  return all;
}

}  // namespace tierd
