// Loads this project's strategies from the build's plugin folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/strategy/plugin_file.h"
#include "core/strategy/plugin_path.h"
#include "core/strategy/strategy_set.h"

namespace tierd {

// Returns a setting of a parameter that takes whole numbers.
inline Setting integer(const char* key, int64_t value) {
  return {key, value, "test"};
}

inline StrategyChoice choose(const std::string& kind, const std::string& name,
                             const std::vector<Setting>& settings = {}) {
  StrategyChoice choice;
  const auto file = PluginPath({TIERD_PLUGIN_DIR}).find(kind, name);
  EXPECT_TRUE(file.ok()) << file.error().line();
  choice.origin = *file;
  const auto plugin = load_plugin(*file, kind, name);
  EXPECT_TRUE(plugin.ok()) << plugin.error().line();
  choice.plugin = *plugin;
  auto parameters = Parameters::read(**plugin, settings);
  EXPECT_TRUE(parameters.ok()) << parameters.error().line();
  choice.parameters = std::move(*parameters);
  return choice;
}

// Returns the strategies of a dense model with this cache.
inline StrategyChoices choose_all(const std::string& cache = "pinned") {
  return {choose("predictor", "dense"), choose("quantizer", "plain"), choose("cache", cache),
          choose("balancer", "single")};
}

}  // namespace tierd
