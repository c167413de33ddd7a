#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/host/plugin_path.h"
#include "tests/plugins/choose.h"
#include "tools/tier-conform/suites.h"

namespace tierd {
namespace {

StrategyChoice load(const std::string& path) {
  const std::string file = std::filesystem::path(path).stem().string();
  const size_t dash = file.find('-');
  StrategyChoice choice;
  choice.origin = path;
  const auto plugin = load_plugin(path, file.substr(0, dash), file.substr(dash + 1));
  EXPECT_TRUE(plugin.ok()) << plugin.error().line();
  choice.plugin = *plugin;
  choice.parameters = *Parameters::read(*choice.plugin, {});
  return choice;
}

std::string broken_rules(const StrategyChoice& choice, const SuiteOptions& options) {
  Report report;
  run_suite(choice, options, report);
  return report.text(false);
}

TEST(Conformance, OurPluginsKeepTheRules) {
  const auto all = PluginPath({TIERD_PLUGIN_DIR}).list();
  EXPECT_GE(all.size(), 9u);
  for (const PluginPath::Found& found : all) {
    for (const uint64_t seed : {1u, 2u, 3u}) {
      SuiteOptions options;
      options.seed = seed;
      EXPECT_EQ(broken_rules(choose(found.kind, found.name), options), "") << found.path << " seed " << seed;
    }
  }
}

// A suite that lets a mistake pass is no suite.
TEST(Conformance, EveryMutantIsCaught) {
  uint32_t mutants = 0;
  for (const auto& folder : std::filesystem::directory_iterator(TIERD_MUTANT_DIR)) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      SuiteOptions options;
      EXPECT_NE(broken_rules(load(file.path().string()), options), "") << folder.path().filename();
      ++mutants;
    }
  }
  EXPECT_GE(mutants, 15u);
}

// Those that are told from sound ones only when they are asked.
TEST(Conformance, BadPluginsAreCaught) {
  for (const char* name : {"short_table", "no_admit", "create_fails", "create_nothing", "create_throws",
                           "share_too_much", "share_throws", "throws", "fails", "too_many_victims",
                           "false_victim", "no_victims", "false_verdict", "refuses"}) {
    SuiteOptions options;
    EXPECT_NE(broken_rules(load(std::string(TIERD_BAD_PLUGIN_DIR) + "/cache-" + name + ".so"), options), "")
        << name;
  }
  EXPECT_EQ(broken_rules(load(TIERD_BAD_PLUGIN_DIR "/cache-sound.so"), {}), "");
}

TEST(Conformance, AReportNamesTheRuleAndTheFirstExample) {
  Report report;
  report.check("one", true, [] { return ""; });
  report.check("two", false, [] { return "first"; });
  report.check("two", false, [] { return "second"; });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.text(false), "BROKEN  two: first\n");
  EXPECT_EQ(report.text(true), "ok      one (1 checks)\nBROKEN  two: first\n");
}

}  // namespace
}  // namespace tierd
