#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>

#include "core/run/plugin_tensors.h"
#include "core/strategy/plugin_path.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/plugins/choose.h"
#include "tests/sanitized.h"
#include "tierd/plugin.hpp"
#include "tools/tier/conform/suites.h"

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

// Returns heat for the site of ten neurons that many worlds have.
std::shared_ptr<const PluginTensors> heat_of_ten() {
  const TempFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float heat[10] = {3, nan, 9, 1, 1, -2, nan, 8, 0, 4};
  SafetensorsBuilder file;
  file.add("layers.1.site", "F32", {10}, {reinterpret_cast<const char*>(heat), sizeof heat});
  return *PluginTensorFile::open(folder.write("heat.safetensors", file.bytes()))->read();
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
    if (found.kind == "agent") continue;  // tested by agent_conformance_test.cc
    for (uint64_t seed = 1; seed <= (kSanitized ? 1 : 3); ++seed) {
      SuiteOptions options;
      options.seed = seed;
      EXPECT_EQ(broken_rules(choose(found.kind, found.name), options), "") << found.path << " seed " << seed;
    }
  }
  SuiteOptions options;
  options.tensors = heat_of_ten();
  EXPECT_EQ(broken_rules(choose("cache", "static"), options), "");
}

// A suite that accepts a mistake is useless.
TEST(Conformance, EveryMutantIsCaught) {
  if (!TIERD_MUTANTS) GTEST_SKIP() << "mutants are built without sanitizers";
  uint32_t mutants = 0;
  for (const auto& folder : std::filesystem::directory_iterator(TIERD_MUTANT_DIR)) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      SuiteOptions options;
      if (folder.path().filename() == "sorts_only_what_is_cold") {
        EXPECT_EQ(broken_rules(load(file.path().string()), options), "");
        options.tensors = heat_of_ten();
      }
      EXPECT_NE(broken_rules(load(file.path().string()), options), "") << folder.path().filename();
      ++mutants;
    }
  }
  EXPECT_GE(mutants, 33u);
}

// Bad plugins whose mistakes show only when they are called.
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

// A predictor that needs a matrix of 17 x 3 with the numbers from 0 on, and checks products with it.
class Multiplying {
 public:
  explicit Multiplying(const tierd::Host& host) : host_(host), matrix_(host.tensor("matrix").tensor) {}
  void predict(uint32_t, const tierd_rows_view&, tierd_set_out& out) {
    const float x[6] = {1, 2, 3, -1, 0, 1};
    float y[34];
    host_.linear(matrix_, x, 2, y);
    for (int i = 0; i < 17; ++i) {
      const auto first = static_cast<float>(3 * i);
      if (y[i] != 6 * first + 8 || y[17 + i] != 2) throw Failure(TIERD_E_INTERNAL, "that is not x W^T");
    }
    out.all = 1;
  }

 private:
  Host host_;
  uint32_t matrix_;
};

// A predictor that needs tensors for a value other than its default.
template <int kCode>
class Choosy {
 public:
  explicit Choosy(const tierd::Host& host) {
    if (std::string(host.text("by")) == "tables") throw Failure(kCode, "there are no tables");
  }
  void predict(uint32_t, const tierd_rows_view&, tierd_set_out& out) { out.all = 1; }

  static std::string broken() {
    static constexpr tierd_param kBy[] = {text("by", "nothing", "nothing|tables", "what it goes by")};
    static constexpr tierd_plugin kPlugin = with_params(predictor<Choosy>("choosy", "1.0", ""), kBy);
    return broken_rules({&kPlugin, "", *Parameters::read(kPlugin, {}), nullptr}, {});
  }
};

TEST(Conformance, WhatIsNotTheDefaultMayNeedTensors) {
  EXPECT_EQ(Choosy<TIERD_E_UNSUPPORTED>::broken(), "");
  EXPECT_THAT(Choosy<TIERD_E_INVALID>::broken(), testing::HasSubstr("there are no tables"));
}

TEST(Conformance, APluginThatNeedsTensorsIsTriedWithThem) {
  static constexpr tierd_plugin kPlugin = predictor<Multiplying>("multiplying", "1.0", "");
  const StrategyChoice choice = {&kPlugin, "", *Parameters::read(kPlugin, {}), nullptr};
  SuiteOptions options;
  EXPECT_THAT(broken_rules(choice, options),
              testing::StartsWith("BROKEN  an instance can be created with any allowed parameters: predictor "
                                  "'multiplying': could not be created: there is no tensor 'matrix'"));
  const TempFolder folder;
  for (const bool fits : {true, false}) {
    std::string values;
    for (int i = 0; i < 17 * 3; ++i) {
      const auto value = static_cast<float>(i);
      values.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    SafetensorsBuilder file;
    file.add(fits ? "matrix" : "another", "F32", {17, 3}, values);
    options.tensors = *PluginTensorFile::open(folder.write("matrix.safetensors", file.bytes()))->read();
    const std::string broken = broken_rules(choice, options);
    EXPECT_EQ(
        broken,
        fits ? ""
             : "BROKEN  an instance can be created with the tensors, for some sites: refused everywhere: "
               "predictor 'multiplying': could not be created: there is no tensor 'matrix'\n");
  }
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
