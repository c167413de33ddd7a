// The rules of all agents over a real file, for each device.
#include "tests/tier/conform/agent_cases.h"

namespace tierd {
namespace {

INSTANTIATE_TEST_SUITE_P(Uring, AgentConformance,
                         testing::ValuesIn(rule_cases("flash", {{"device", "io_uring", "test"}})), case_name);
INSTANTIATE_TEST_SUITE_P(Pread, AgentConformance,
                         testing::ValuesIn(rule_cases("flash", {{"device", "pread", "test"}})), case_name);
// Many messages wait for few reads.
INSTANTIATE_TEST_SUITE_P(Shallow, AgentConformance,
                         testing::ValuesIn(rule_cases("flash", {{"depth", int64_t{1}, "test"},
                                                                {"max_read", int64_t{8192}, "test"}})),
                         case_name);

}  // namespace
}  // namespace tierd
