// Runs a whole benchmark of a small model, and tests the contents of its report, not the speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tools/measurement/course.h"
#include "tools/measurement/report.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class Whole : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = testing::TempDir() + "tier-bench-cache-" + std::to_string(getpid());
    setenv("TIERD_CACHE", cache_.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  static Arguments arguments() {
    Arguments arguments;
    arguments.config.model =
        TIERD_SOURCE_DIR "/tests/golden/models/gguf-llama-q8_0/model-00001-of-00002.gguf";
    arguments.config.context = 16;
    arguments.config.threads = 1;
    arguments.config.bind = false;
    arguments.rounds = 2;
    arguments.fit = true;
    arguments.quiet = true;
    return arguments;
  }
  static inline std::string cache_;
};

TEST_F(Whole, ResidentPrefillAndDecode) {
  const Arguments given = arguments();
  Course course(given);
  ASSERT_TRUE(course.load().ok());
  const auto prefill = course.measure({Workload::Kind::prefill, 8});
  ASSERT_TRUE(prefill.ok()) << prefill.error().line();
  ASSERT_EQ(prefill->rounds.size(), 2u);
  EXPECT_EQ(prefill->rounds[0].ours.tokens, 8u);
  // More tokens than the context has room for, so that it is cleared in between.
  const auto decode = course.measure({Workload::Kind::decode, 40});
  ASSERT_TRUE(decode.ok()) << decode.error().line();
  const Block& block = decode->rounds[0].ours;
  EXPECT_EQ(block.tokens, 40u);
  EXPECT_EQ(block.times.steps, 40u);
  EXPECT_EQ(block.times.read_bytes, 0u);
  EXPECT_EQ(block.traffic.must_read, 0);
  EXPECT_GT(block.traffic.weights, 0);
  EXPECT_GT(block.bandwidths.memory, 0);
  EXPECT_TRUE(decode->rounds[0].disk.empty());
  EXPECT_EQ(course.runtime().plan().memory.model.context, 16u);
  EXPECT_GT(course.memory_use().peak_rss_bytes, 0u);
}

TEST_F(Whole, WhatStreamsIsHeldAgainstTheDisk) {
  Arguments given = arguments();
  given.config.tier("dram").capacity = "50%";
  Course course(given);
  ASSERT_TRUE(course.load().ok());
  const auto decode = course.measure({Workload::Kind::decode, 6});
  ASSERT_TRUE(decode.ok()) << decode.error().line();
  const Block& block = decode->rounds[0].ours;
  EXPECT_GT(block.traffic.must_read, 0);
  EXPECT_GT(block.times.read_bytes, 0u);
  EXPECT_EQ(block.flash_steps, block.times.steps + 1);
  EXPECT_GT(block.bandwidths.flash, 0);
  ASSERT_EQ(decode->rounds[0].disk.size(), 1u);
  const auto limit = test_figures(*decode, 2).limit;
  ASSERT_TRUE(limit);
  EXPECT_GT(limit->flash_ms, 0);
  EXPECT_GT(limit->ratio.median, 0);
}

TEST_F(Whole, ATextIsContinued) {
  Arguments given = arguments();
  given.rounds = 1;
  given.config.model = TIERD_SOURCE_DIR "/configs/models/demo";
  given.config.context = 0;
  given.tests = {{Workload::Kind::decode, 6}};
  given.text = TextArguments{"sea.txt", "The sea was calm and the"};
  Course course(given);
  ASSERT_TRUE(course.load().ok());
  const auto tokens = static_cast<uint32_t>(course.subject().prompt_tokens());
  EXPECT_GT(tokens, 2u);
  EXPECT_EQ(course.subject().uncounted(Workload::Kind::decode), 16u);
  EXPECT_EQ(course.runtime().plan().memory.model.context, tokens + 16 + 6);
  const auto decode = course.measure(given.tests.front());
  ASSERT_TRUE(decode.ok()) << decode.error().line();
  const Block& block = decode->rounds[0].ours;
  EXPECT_EQ(block.tokens, 6u);
  EXPECT_EQ(block.times.steps, 6u);
  EXPECT_TRUE(block.foreseen.empty());
  const auto text = run_figures(given, course.subject()).text;
  ASSERT_TRUE(text);
  EXPECT_EQ(text->file, "sea.txt");
  EXPECT_EQ(text->tokens, tokens);
}

TEST_F(Whole, TextsThatCannotBeContinued) {
  Arguments given = arguments();
  given.config.model = TIERD_SOURCE_DIR "/configs/models/demo";
  given.tests = {{Workload::Kind::decode, 6}};
  const auto refusal = [&](const std::string& text, uint32_t context) {
    given.text = TextArguments{"sea.txt", text};
    given.config.context = context;
    Course course(given);
    const Status loaded = course.load();
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? "" : loaded.error().line();
  };
  EXPECT_THAT(refusal("", 0), HasSubstr("sea.txt: is too short"));
  EXPECT_THAT(refusal("The sea was calm", 20), HasSubstr("found 20 (-c)"));
  given.config.model = TIERD_SOURCE_DIR "/tests/golden/models/llama2";
  EXPECT_THAT(refusal("The sea", 0), HasSubstr("model.tokenizer"));
}

TEST_F(Whole, PeerTakesTurns) {
  Arguments given = arguments();
  auto rate = RatePattern::compile("rate ([0-9.]+)");
  ASSERT_TRUE(rate.ok());
  given.peer = PeerArguments{"echo rate 4", *rate, false};
  Course course(given);
  const auto decode = course.measure({Workload::Kind::decode, 3});
  ASSERT_TRUE(decode.ok()) << decode.error().line();
  ASSERT_EQ(decode->rounds.size(), 2u);
  EXPECT_EQ(decode->rounds[1].peer->rate, 4);

  given.peer->command = "echo out of luck; exit 1";
  Course unlucky(given);
  const auto failed = unlucky.measure({Workload::Kind::decode, 3});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().line(), HasSubstr("out of luck"));
}

TEST_F(Whole, AMissingModelIsAnError) {
  Arguments given = arguments();
  given.config.model = "/does/not/exist";
  Course course(given);
  const Status loaded = course.load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().line(), HasSubstr("/does/not/exist"));
}

}  // namespace
}  // namespace tierd
