// Plugins that end the process or never return, as the user of the program sees them.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/e2e/server.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::vector<std::string> with_cache(const std::string& cache) {
  return {"--plugin-path", TIERD_BAD_PLUGIN_DIR,      "--set", "cache.name=" + cache,
          "--set",         "plugins.deadline_ms=100", "--set", "tiers.dram.capacity=50%"};
}

class BadPlugins : public Server {};

TEST_F(BadPlugins, AnExitIsNoEnd) {
  std::vector<std::string> arguments = with_cache("exits");
  for (const char* argument : {"-m", kDemo.c_str(), "-p", "The sea", "-n", "8", "-t", "1"})
    arguments.emplace_back(argument);
  const Ended run = run_tierd(arguments);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("tierd: a plugin or a library called exit() during the run"));
}

TEST_F(BadPlugins, OneThatLoopsIsNamedAndTheServerEnds) {
  start(with_cache("loops"));
  HttpClient waits(port_);
  waits.post("/v1/completions", R"({"prompt": "The sea", "max_tokens": 8})");
  HttpAnswer health;
  for (int i = 0; i < 1000 && health.status != 503; ++i) {
    health = get("/health");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(health.status, 503u);
  EXPECT_THAT(health.body, HasSubstr("cache 'loops': admit has not returned for"));
  program_->kill(SIGTERM);
  const Ended ended = program_->wait();  // within thirty deadlines
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("cache 'loops': admit has not returned for"));
  EXPECT_THAT(ended.err, HasSubstr("the server ends"));
}

TEST_F(BadPlugins, OneThatLoopsIsNamedInTheTerminalToo) {
  std::vector<std::string> arguments = with_cache("loops");
  for (const char* argument : {"-m", kDemo.c_str(), "-p", "The sea", "-n", "8", "-t", "1"})
    arguments.emplace_back(argument);
  const Ended run = run_tierd(arguments);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("cache 'loops': admit has not returned for"));
  EXPECT_THAT(run.err, HasSubstr("the run ends"));
}

// The deadline does not run while the whole process is stopped, as when its virtual machine is paused.
TEST_F(BadPlugins, APauseOfTheProcessIsNoFault) {
  std::vector<std::string> arguments = with_cache("slow");  // each call takes 120 ms of processor time
  arguments.insert(arguments.end(), {"--set", "plugins.deadline_ms=250"});
  start(arguments);
  HttpClient waits(port_, 120);
  waits.post("/v1/completions", R"({"prompt": [5], "max_tokens": 2})");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  program_->kill(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2600));  // more than ten deadlines
  program_->kill(SIGCONT);
  const HttpAnswer answer = waits.read();
  EXPECT_EQ(answer.status, 200u) << answer.body;
  EXPECT_EQ(get("/health").status, 200u);
}

TEST_F(BadPlugins, AQuarantineIsToldByHealthAndEndedBySighup) {
  std::vector<std::string> arguments = with_cache("fails_once");
  start(arguments);
  EXPECT_EQ(get("/health").status, 200u);
  const std::string text = R"({"prompt": [5], "max_tokens": 2})";
  EXPECT_EQ(post("/v1/completions", nlohmann::json::parse(text)).status, 500u);
  HttpAnswer health;
  for (int i = 0; i < 1000 && health.status != 503; ++i) {
    health = get("/health");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(health.status, 503u);
  EXPECT_THAT(health.body, HasSubstr("cache 'fails_once': is quarantined"));
  program_->kill(SIGHUP);
  for (int i = 0; i < 1000 && health.status != 200; ++i) {
    health = get("/health");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(health.status, 200u) << health.body;
  EXPECT_EQ(post("/v1/completions", nlohmann::json::parse(text)).status, 200u);
}

// At SIGHUP, the configuration file names another strategy.
TEST_F(BadPlugins, SighupPutsTheFilesStrategyInTheOldOnesPlace) {
  const std::string toml = folder().path() + "/tierd.toml";
  const auto name_cache = [&](const std::string& name) {
    std::ofstream(toml, std::ios::trunc) << "[cache]\nname = \"" << name << "\"\n";
  };
  name_cache("fails");
  start({"--config", toml, "--plugin-path", TIERD_BAD_PLUGIN_DIR, "--set", "tiers.dram.capacity=50%"});
  const nlohmann::json text = {{"prompt", {5}}, {"max_tokens", 2}};
  EXPECT_EQ(post("/v1/completions", text).status, 500u);
  name_cache("lru");
  program_->kill(SIGHUP);
  HttpAnswer answer;
  for (int i = 0; i < 1000 && answer.status != 200; ++i) {
    answer = post("/v1/completions", text);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(answer.status, 200u) << answer.body;
  EXPECT_EQ(get("/health").status, 200u);
  EXPECT_THAT(end().err, HasSubstr("cache 'lru' is now used"));
}

}  // namespace
}  // namespace tierd
