#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tier-conform/agent_cases.h"

namespace tierd {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgentConformance);  // here they are tried as a whole

namespace {

AgentChoice load(const std::string& path) {
  const std::string file = std::filesystem::path(path).stem().string();
  const auto entry = load_agent(path, file.substr(file.find('-') + 1));
  EXPECT_TRUE(entry.ok()) << entry.error().line();
  return *choose_settings(**entry, path, "test", {});
}

std::string broken_rules(const AgentChoice& choice, uint64_t seed) {
  Report report;
  SuiteOptions options;
  options.seed = seed;
  run_agent_suite(choice, options, report);
  return report.text(false);
}

TEST(AgentRules, OurAgentsKeepThem) {
  uint32_t agents = 0;
  for (const PluginPath::Found& found : PluginPath({TIERD_PLUGIN_DIR}).list()) {
    if (found.kind != "agent") continue;
    ++agents;
    for (const uint64_t seed : {1, 2, 3}) {
      EXPECT_EQ(broken_rules(choose_agent(found.name), seed), "") << found.path << " seed " << seed;
    }
  }
  EXPECT_EQ(agents, 5u);
}

// A suite that lets a mistake pass is no suite.
TEST(AgentRules, EveryMutantIsCaught) {
  if (!TIERD_MUTANTS) GTEST_SKIP() << "mutants are built without sanitizers";
  uint32_t mutants = 0;
  for (const auto& folder : std::filesystem::directory_iterator(TIERD_MUTANT_DIR)) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      EXPECT_NE(broken_rules(load(file.path().string()), 1), "") << folder.path().filename();
      ++mutants;
    }
  }
  EXPECT_GE(mutants, 29u);
}

TEST(AgentRules, BrokenOnesAreNamedWithAnExample) {
  if (!TIERD_MUTANTS) GTEST_SKIP() << "mutants are built without sanitizers";
  const auto broken = [](const char* mistake, const char* agent) {
    return broken_rules(load(std::string(TIERD_MUTANT_DIR "/") + mistake + "/agent-" + agent + ".so"), 1);
  };
  EXPECT_THAT(broken("waits", "null"), testing::HasSubstr("BROKEN  no call waits: "));
  EXPECT_THAT(broken("loses_one", "null"), testing::HasSubstr("idle, nothing awaited, and yet "));
  EXPECT_THAT(broken("skips_checksums", "flash"), testing::HasSubstr("a wrong checksum: status 0 at unit 0"));
  // What it hits first depends on the device: memory that nobody uses, or what another message has brought.
  EXPECT_THAT(broken("writes_after_completion", "flash"),
              testing::AnyOf(testing::HasSubstr("memory was written to after its message had completed"),
                             testing::HasSubstr("BROKEN  what a completion says is there")));
}

// Nothing is asked of what cannot be made.
TEST(AgentRules, WhatCannotBeMadeBreaksThem) {
  EXPECT_THAT(broken_rules(load(TIERD_BAD_PLUGIN_DIR "/agent-make_throws.so"), 1),
              testing::HasSubstr("an agent can be made, and has a name: " TIERD_BAD_PLUGIN_DIR
                                 "/agent-make_throws.so: could not be made"));
  // It takes no message.
  EXPECT_THAT(broken_rules(load(TIERD_BAD_PLUGIN_DIR "/agent-sound.so"), 1),
              testing::HasSubstr("busy with 0 of 4 credits in use"));
}

}  // namespace
}  // namespace tierd
