#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/tier/conform/agent_cases.h"

namespace tierd {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgentConformance);  // the tests below run whole suites

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

// A suite that accepts a mistake is useless.
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
  EXPECT_THAT(broken("loses_one", "null"), testing::HasSubstr("idle, but "));
  EXPECT_THAT(broken("skips_checksums", "flash"), testing::HasSubstr("a wrong checksum: status 0 at unit 0"));
  // The device decides which memory is hit first: unused memory, or bytes of another message.
  EXPECT_THAT(broken("writes_after_completion", "flash"),
              testing::AnyOf(testing::HasSubstr("memory was written after its message had completed"),
                             testing::HasSubstr("BROKEN  the results that a completion names")));
}

// Wraps the agent of a world so that some calls sleep, as a thread without a core does while another one
// needs its lock.
class Delayed final : public Agent {
 public:
  Delayed(Agent& agent, uint32_t& delays) : agent_(agent), delays_(delays) {}
  std::string_view name() const override { return agent_.name(); }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override {
    if (delays_ != 0) --delays_, std::this_thread::sleep_for(std::chrono::milliseconds(6));
    return agent_.submit(message, payload);
  }
  Drive drive() override { return agent_.drive(); }
  size_t poll(std::span<Done> done) override { return agent_.poll(done); }
  int wait_fd() const override { return agent_.wait_fd(); }
  bool waiting() const override { return agent_.waiting(); }

 private:
  Agent& agent_;
  uint32_t& delays_;
};

class DelayedWorld final : public AgentWorld {
 public:
  DelayedWorld(std::unique_ptr<AgentWorld> world, uint32_t& delays)
      : world_(std::move(world)), agent_(world_->agent(), delays) {}
  Agent& agent() override { return agent_; }
  Request work() override { return world_->work(); }
  bool promises() const override { return world_->promises(); }
  Request control(Op op, const MessageId& about) override { return world_->control(op, about); }
  std::string completed(const Message& message, const Done& done) override {
    return world_->completed(message, done);
  }
  std::string trespass() override { return world_->trespass(); }

 private:
  std::unique_ptr<AgentWorld> world_;
  Delayed agent_;
};

// Runs the rule that submits the most, in worlds whose first calls sleep, and returns the broken rules.
// `worlds`: how many of the trials' worlds have such calls.
std::string broken_with_delays(uint32_t worlds) {
  constexpr uint32_t kDelays = 12;
  const AgentCase sound = agent_cases(choose_agent("null")).front();
  uint32_t delays = 0;
  const AgentCase delayed = {"delayed", [&](uint64_t seed) -> Result<std::unique_ptr<AgentWorld>> {
                               TIERD_ASSIGN(auto world, sound.make(seed));
                               delays = worlds == 0 ? 0 : kDelays;
                               worlds -= worlds == 0 ? 0 : 1;
                               return {std::make_unique<DelayedWorld>(std::move(world), delays)};
                             }};
  Report report;
  for (const AgentRule& rule : agent_rules()) {
    if (std::string_view(rule.name) == "CompletesEachMessageExactlyOnce") rule.check(delayed, 1, report);
  }
  EXPECT_FALSE(report.rules().empty());
  return report.text(false);
}

TEST(AgentRules, AMachineUnderLoadBreaksNone) {
  EXPECT_EQ(broken_with_delays(2), "");
  EXPECT_THAT(
      broken_with_delays(UINT32_MAX),
      testing::HasSubstr("BROKEN  no call waits: 12 calls or more slept for more than 5 ms in each of"));
}

// An agent that cannot be created is not tested further.
TEST(AgentRules, WhatCannotBeMadeBreaksThem) {
  EXPECT_THAT(broken_rules(load(TIERD_BAD_PLUGIN_DIR "/agent-make_throws.so"), 1),
              testing::HasSubstr("an agent can be created, and has a name: " TIERD_BAD_PLUGIN_DIR
                                 "/agent-make_throws.so: could not be created"));
  // This agent accepts no message.
  EXPECT_THAT(broken_rules(load(TIERD_BAD_PLUGIN_DIR "/agent-sound.so"), 1),
              testing::HasSubstr("busy with 0 of 4 credits in use"));
}

}  // namespace
}  // namespace tierd
