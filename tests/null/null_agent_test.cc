#include "tiers/null/null_agent.h"

#include <gtest/gtest.h>

#include "tests/tier/conform/agent_cases.h"

namespace tierd {
namespace {

INSTANTIATE_TEST_SUITE_P(Null, AgentConformance, testing::ValuesIn(rule_cases("null")), case_name);
INSTANTIATE_TEST_SUITE_P(FewCredits, AgentConformance,
                         testing::ValuesIn(rule_cases("null", {{"credits", int64_t{3}, "test"}})), case_name);

}  // namespace
}  // namespace tierd
