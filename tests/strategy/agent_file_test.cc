// Refusals before an agent runs, by its file, build, entry or declarations, and errors that an agent returns
// when it is made.
#include "core/strategy/agent_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/kernel/post/clocks.h"
#include "core/strategy/plugin_manual.h"
#include "core/strategy/plugin_path.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string bad_agent(const std::string& name) {
  return TIERD_BAD_PLUGIN_DIR "/agent-" + name + ".so";
}

Result<AgentChoice> choose_agent(const std::string& name, const std::vector<Setting>& settings = {}) {
  TIERD_ASSIGN(const AgentEntry* const entry, load_agent(bad_agent(name), name));
  return choose_settings(*entry, bad_agent(name), "tiers.flash", settings);
}

Result<MadeAgent> make(const std::string& name, const std::vector<Setting>& settings = {}) {
  TIERD_ASSIGN(const AgentChoice choice, choose_agent(name, settings));
  PoolTable pools;
  WallClock clock;
  AgentContext context{.number = 1, .table = "tiers.flash", .pools = pools, .clock = clock};
  if ((choice.entry->serves & serves(Op::run)) != 0) {
    context.compute.emplace();
    context.compute->arena_bytes = context.compute->staging_bytes = 4096;
  }
  return make_agent(choice, context);
}

TEST(AgentFile, ASoundOneIsLoadedAndMade) {
  const auto entry = load_agent(bad_agent("sound"), "sound");
  ASSERT_TRUE(entry.ok()) << entry.error().line();
  EXPECT_STREQ((*entry)->name, "sound");
  EXPECT_EQ(*load_agent(bad_agent("sound"), "sound"), *entry);  // the library stays loaded
  const auto made = make("sound");
  ASSERT_TRUE(made.ok()) << made.error().line();
  EXPECT_EQ(made->agent->credits(), 4u);
}

struct RefusedAgentCase {
  const char* name;
  const char* line;
};

class RefusedAgent : public testing::TestWithParam<RefusedAgentCase> {};

TEST_P(RefusedAgent, IsOneLineThatNamesTheFileAndWhatWasExpected) {
  const auto made = make(GetParam().name);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.code(), Code::plugin_fault);
  const std::string line = made.error().line();
  EXPECT_THAT(line, StartsWith(bad_agent(GetParam().name) + ": "));
  EXPECT_THAT(line, HasSubstr(GetParam().line));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedAgent,
    testing::Values(
        RefusedAgentCase{"no_symbol", "does not export 'tierd_agent_entry'"},
        RefusedAgentCase{"other_build",
                         "was built for [tierd 0.0.9 headers 0, another compiler], expected [" TIERD_BUILD_ID
                         "]; build it again"},
        RefusedAgentCase{"no_build", "was built for [nothing], expected ["},
        RefusedAgentCase{"short_of_the_id", "its entry has 12 B, 56 B were expected"},
        RefusedAgentCase{"short_entry", "its entry has 24 B, 56 B were expected"},
        RefusedAgentCase{"wrong_name",
                         "its name is agent 'another', expected agent 'wrong_name' by its file name"},
        RefusedAgentCase{"no_name", "its entry has no name"},
        RefusedAgentCase{"no_summary", "its entry has no summary"},
        RefusedAgentCase{"no_make", "its entry has no function 'make'"},
        RefusedAgentCase{"no_params", "declares parameters, but has no list of them"},
        RefusedAgentCase{"param_default",
                         "has the default '65', a whole number within 0 and 64 was expected"},
        RefusedAgentCase{"make_throws", "could not be created: make threw an exception: not today"},
        RefusedAgentCase{"make_throws_a_number", "could not be created: make threw an exception"},
        RefusedAgentCase{"make_nothing", "could not be created: make returned no agent"},
        RefusedAgentCase{"no_credits", "could not be created: it has no credits"},
        RefusedAgentCase{
            "no_pools",
            "could not be created: its arena, staging and tensors have 0 B, expected 8192 B at a "
            "multiple of 4096"},
        RefusedAgentCase{"no_products", "could not be created: it serves 'run', but has no products"}),
    [](const testing::TestParamInfo<RefusedAgentCase>& refused) { return refused.param.name; });

// The agent's own error is passed on: it names a device or a key.
TEST(AgentFile, WhatItCannotDoItSaysItself) {
  const auto made = make("make_fails");
  EXPECT_EQ(made.code(), Code::io_error);
  EXPECT_EQ(made.error().line(), "/dev/moon: is full");
  EXPECT_EQ(make("sound", {{"size", int64_t{61}, "--set"}}).error().line(), "tiers.flash: that is too large");
}

TEST(AgentFile, SettingsAreCheckedAgainstWhatItDeclares) {
  const auto choice = choose_agent("sound", {{"path", int64_t{7}, "--set"}});
  ASSERT_TRUE(choice.ok()) << choice.error().line();
  EXPECT_EQ(choice->get<int64_t>("size"), 8);
  EXPECT_EQ(choice->get<std::string>("path"), "7");  // a text may be written as a number
  EXPECT_EQ(choice->get<bool>("size"), std::nullopt);
  EXPECT_EQ(choice->get<int64_t>("depth"), std::nullopt);
  EXPECT_EQ(choose_agent("sound", {{"size", int64_t{65}, "a.toml:3"}}).error().line(),
            "a.toml:3: 'tiers.flash.size' is 65, a whole number within 0 and 64 was expected");
  EXPECT_EQ(choose_agent("sound", {{"sise", int64_t{1}, "a.toml:3"}}).error().line(),
            "a.toml:3: tiers.flash 'sound' has no parameter 'sise'; did you mean 'size'?");
}

TEST(AgentFile, WhatIsNoSharedObject) {
  const std::string path = testing::TempDir() + "agent-text.so";
  std::ofstream(path) << "not an ELF file";
  EXPECT_THAT(load_agent(path, "text").error().line(), StartsWith(path + ": cannot be loaded as an agent: "));
  EXPECT_EQ(load_agent(testing::TempDir() + "agent-nothing.so", "nothing").code(), Code::not_found);
  EXPECT_EQ(load_agent("libc.so.6", "c").code(), Code::not_found);
}

TEST(AgentFile, IsFoundByNameAndKey) {
  const PluginPath path({TIERD_BAD_PLUGIN_DIR});
  EXPECT_EQ(*path.find("agent", "sound", "tiers.flash.kind"), bad_agent("sound"));
  EXPECT_THAT(path.find("agent", "sond", "tiers.flash.kind").error().line(),
              StartsWith("tiers.flash.kind: there is no agent 'sond' in "));
}

TEST(AgentFile, Manual) {
  const auto entry = load_agent(bad_agent("sound"), "sound");
  ASSERT_TRUE(entry.ok());
  const std::string manual = agent_manual(**entry, "FILE");
  EXPECT_THAT(manual,
              StartsWith("agent sound: of the tests\n  FILE, " TIERD_BUILD_ID "\n  serves nothing\n"));
  EXPECT_THAT(manual, HasSubstr("in the table [tiers.TIER]:\n  size "));
}

}  // namespace
}  // namespace tierd
