// Plugins that end a program, or never come back, as its user sees it.
#include <gmock/gmock.h>

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
  EXPECT_THAT(run.err, HasSubstr("has called exit() in the middle of the run"));
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
  const Ended ended = program_->wait();  // in a moment: thirty times the deadline
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("cache 'loops': admit has not returned for"));
  EXPECT_THAT(ended.err, HasSubstr("the server ends"));
}

}  // namespace
}  // namespace tierd
