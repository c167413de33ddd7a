// The rules of all agents as test cases. The test program of an agent includes this and names the agent:
//   INSTANTIATE_TEST_SUITE_P(Flash, AgentConformance, testing::ValuesIn(rule_cases("flash")), case_name);
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/strategy/plugin_path.h"
#include "tools/tier/conform/agent_suite.h"

namespace tierd {

// Loads an agent of this build.
inline AgentChoice choose_agent(const std::string& name, const std::vector<Setting>& settings = {}) {
  const auto file = PluginPath({TIERD_PLUGIN_DIR}).find("agent", name);
  EXPECT_TRUE(file.ok()) << file.error().line();
  const auto entry = load_agent(*file, name);
  EXPECT_TRUE(entry.ok()) << entry.error().line();
  auto choice = choose_settings(**entry, *file, "test", settings);
  EXPECT_TRUE(choice.ok()) << choice.error().line();
  return *choice;
}

struct AgentRuleCase {
  std::string name;
  AgentCase tried;
  AgentRule rule;
};

inline std::vector<AgentRuleCase> rule_cases(const std::vector<AgentCase>& all) {
  std::vector<AgentRuleCase> cases;
  for (const AgentCase& tried : all) {
    for (const AgentRule& rule : agent_rules()) cases.push_back({tried.name + "_" + rule.name, tried, rule});
  }
  return cases;
}
inline std::vector<AgentRuleCase> rule_cases(const std::string& name,
                                             const std::vector<Setting>& settings = {}) {
  return rule_cases(agent_cases(choose_agent(name, settings)));
}
inline std::string case_name(const testing::TestParamInfo<AgentRuleCase>& info) {
  return info.param.name;
}

class AgentConformance : public testing::TestWithParam<AgentRuleCase> {};

TEST_P(AgentConformance, Keeps) {
  for (const uint64_t seed : {1, 2, 3}) {
    Report report;
    GetParam().rule.check(GetParam().tried, seed, report);
    EXPECT_EQ(report.text(false), "") << "seed " << seed;
    EXPECT_FALSE(report.rules().empty());
  }
}

}  // namespace tierd
