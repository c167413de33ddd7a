#include "core/engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/model/sampling/logprobs.h"
#include "tests/engine/model_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<uint32_t>;
const Tokens kTokens = {1, 17, 250, 33, 33, 299, 4, 90, 12, 61, 7};

std::vector<float> copy(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

class SessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { world_ = new ModelWorld(small_llama()); }
  static void TearDownTestSuite() {
    delete world_;
    world_ = nullptr;
  }
  static std::unique_ptr<Runtime> start(const ModelWorld::Change& change = {}, uint32_t logit_rows = 1) {
    auto runtime = world_->start(change, true, logit_rows);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    return std::move(*runtime);
  }
  static inline ModelWorld* world_ = nullptr;
};

TEST_F(SessionTest, ChunksOfAnyLengthGiveTheSameLogits) {
  const auto runtime = start();
  Session whole(runtime->engine(), 0);
  const auto expected = whole.append(kTokens);
  ASSERT_TRUE(expected.ok());
  const std::vector<float> want = copy(*expected);
  EXPECT_EQ(want.size(), 300u);
  EXPECT_EQ(whole.position(), kTokens.size());
  for (const size_t step : {1u, 2u, 3u, 10u}) {
    Session session(runtime->engine(), 0);
    std::vector<float> got;
    for (size_t at = 0; at < kTokens.size(); at += step) {
      const auto logits = session.append(std::span(kTokens).subspan(at, std::min(step, kTokens.size() - at)));
      ASSERT_TRUE(logits.ok());
      got = copy(*logits);
    }
    EXPECT_EQ(got, want) << step;
  }
  const auto small = start([](Config& c) { c.ubatch = 4; });  // the engine splits the prompt
  Session session(small->engine(), 0);
  std::vector<size_t> fed;
  EXPECT_EQ(copy(*session.append(kTokens, [&](size_t tokens) { fed.push_back(tokens); })), want);
  EXPECT_THAT(fed, testing::ElementsAre(4, 4, 3));
  whole.clear();
  EXPECT_EQ(whole.position(), 0u);
  EXPECT_EQ(copy(*whole.append(kTokens)), want);
}

TEST_F(SessionTest, BadTokensAndAFullContextAreErrorsAndChangeNothing) {
  const auto runtime = start([](Config& c) { c.context = 8, c.ubatch = 3; });
  Session session(runtime->engine(), 0);
  const Tokens bad = {1, 300};
  const auto refused = session.append(bad);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_EQ(refused.error().line(), "token: 300 is not below the vocabulary's size 300");
  const auto full = session.append(std::span(kTokens).first(9));
  EXPECT_EQ(full.code(), Code::no_space);
  EXPECT_EQ(full.error().line(), "context: 9 tokens do not fit a context of 8; give a larger one (-c)");
  EXPECT_EQ(session.position(), 0u);  // although earlier chunks were computed
  ASSERT_TRUE(session.append(std::span(kTokens).first(8)).ok());
  EXPECT_FALSE(session.append(std::span(kTokens).first(1)).ok());
  EXPECT_EQ(session.position(), 8u);
}

TEST_F(SessionTest, LogitsOfEveryTokenAreThoseOfSingleTokens) {
  const auto one = start();
  Session session(one->engine(), 0);
  double want = 0;
  for (size_t i = 0; i + 1 < kTokens.size(); ++i) {
    const auto logits = session.append(std::span(kTokens).subspan(i, 1));
    ASSERT_TRUE(logits.ok());
    double sum = 0;
    for (const float x : *logits) sum += std::exp(static_cast<double>(x));
    want += std::log(sum) - (*logits)[kTokens[i + 1]];
  }
  for (const uint32_t rows : {1u, 4u, 64u}) {
    const auto runtime = start({}, rows);
    Session scored(runtime->engine(), 0);
    double found = 0;
    size_t next = 0;
    const Status appended = scored.append_with_logits(
        std::span(kTokens).first(kTokens.size() - 1), [&](size_t i, std::span<const float> logits) {
          EXPECT_EQ(i, next++);
          found -= logprobs_of(logits, kTokens[i + 1], 0).chosen.logprob;
        });
    ASSERT_TRUE(appended.ok());
    EXPECT_NEAR(found, want, 1e-5);
    EXPECT_EQ(next, kTokens.size() - 1);
  }
}

TEST_F(SessionTest, DrainLeavesNothingInFlight) {
  for (const char* cache : {"none", "lru", "pinned"}) {
    for (const char* thread : {"kernel", "own"}) {
      for (const char* shuffle : {"", "3"}) {
        const auto runtime = start([&](Config& c) {
          c.cache.name = cache, c.tier("flash").thread = thread, c.shuffle = shuffle,
          c.tier("dram").capacity = "60%";
        });
        Session session(runtime->engine(), 0);
        for (const uint32_t token : kTokens) ASSERT_TRUE(session.append({&token, 1}).ok());
        ASSERT_TRUE(runtime->engine().drain().ok());
        EXPECT_EQ(runtime->dispatcher().in_flight(), 0u);
        EXPECT_LE(runtime->budget().used(), runtime->budget().capacity());
      }
    }
  }
}

TEST_F(SessionTest, AnInterruptionLeavesTheSessionWhereItWas) {
  const auto runtime = start([](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "50%"; });
  Session session(runtime->engine(), 0);
  ASSERT_TRUE(session.append(std::span(kTokens).first(5)).ok());
  runtime->waiter().stop();
  EXPECT_EQ(session.append(std::span(kTokens).subspan(5, 3)).code(), Code::cancelled);
  EXPECT_EQ(session.position(), 5u);
  runtime->waiter().clear_stop();
  const auto logits = session.append(std::span(kTokens).subspan(5));
  ASSERT_TRUE(logits.ok());
  Session whole(runtime->engine(), 0);
  const std::vector<float> got = copy(*logits);
  EXPECT_EQ(got, copy(*whole.append(kTokens)));
  ASSERT_TRUE(runtime->engine().drain().ok());
}

// A strategy that depends on residency must be judged as in decoding, so caches receive a prompt's single
// rows.
TEST_F(SessionTest, APromptOfSingleRowsMovesWhatDecodingMoves) {
  const auto rows_at_once = [](uint32_t rows) {
    return [rows](Config& c) { c.tier("dram").capacity = "60%", c.cache.name = "lru", c.ubatch = rows; };
  };
  const auto moved = [](Runtime& runtime) {
    const StepTimes &prompt = runtime.engine().prefill_times(), &decode = runtime.engine().decode_times();
    return std::pair(prompt.resident_bytes + decode.resident_bytes,
                     prompt.streamed_bytes + decode.streamed_bytes);
  };
  const auto decoded = start(rows_at_once(1)), scored = start(rows_at_once(1));
  Session decode(decoded->engine(), 0), score(scored->engine(), 0);
  for (const uint32_t token : kTokens) ASSERT_TRUE(decode.append({&token, 1}).ok());
  ASSERT_TRUE(score.append_with_logits(kTokens, [](size_t, std::span<const float>) {}).ok());
  EXPECT_EQ(moved(*scored), moved(*decoded));

  const auto at_once = start(rows_at_once(512));
  Session whole(at_once->engine(), 0);
  ASSERT_TRUE(whole.append(kTokens).ok());
  EXPECT_NE(moved(*at_once), moved(*decoded)) << "the budget leaves nothing to be cached";
}

TEST_F(SessionTest, TimesAreCounted) {
  const auto runtime = start();
  Session session(runtime->engine(), 0);
  ASSERT_TRUE(session.append(std::span(kTokens).first(5)).ok());
  ASSERT_TRUE(session.append(std::span(kTokens).first(1)).ok());
  const StepTimes& prefill = runtime->engine().prefill_times();
  const StepTimes& decode = runtime->engine().decode_times();
  EXPECT_EQ(prefill.steps, 1u);
  EXPECT_EQ(prefill.tokens, 5u);
  EXPECT_EQ(decode.steps, 1u);
  EXPECT_EQ(decode.messages, runtime->plan().model.sites.size());  // all resident: one message a site
  EXPECT_GE(decode.wall_ns, decode.compute_ns);
  EXPECT_EQ(decode.streamed_bytes, 0u);
  runtime->engine().reset_times();
  EXPECT_EQ(prefill.steps + decode.steps, 0u);
}

// The smallest accepted budget runs.
TEST(LeastBudget, IsRefusedBelowAndRunsAt) {
  for (const ModelConfig& config : {small_llama(), small_opt()}) {
    const ModelWorld world(config);
    const auto resident = world.start();
    ASSERT_TRUE(resident.ok());
    Tokens tokens = kTokens;
    for (uint32_t& token : tokens) token %= config.vocab_size;
    Session whole((*resident)->engine(), 0);
    const std::vector<float> want = copy(*whole.append(tokens));

    const uint64_t least = (*resident)->plan().memory.tiers.front().least;
    for (const char* cache : {"none", "pinned", "lru"}) {
      const auto sized = [&](uint64_t bytes) {
        return [=](Config& c) { c.tier("dram").capacity = std::to_string(bytes), c.cache.name = cache; };
      };
      const auto refused = world.start(sized(least - 1));
      EXPECT_EQ(refused.code(), Code::no_space);
      EXPECT_THAT(refused.error().line(), HasSubstr("(" + std::to_string(least) + " bytes"));
      for (const auto& runtime : {world.start(sized(least)), world.start(sized(least - 1), true),
                                  world.start(sized(least + 4096)), world.start(sized(least + 50'000))}) {
        ASSERT_TRUE(runtime.ok()) << runtime.error().line();
        Session session((*runtime)->engine(), 0);
        const auto logits = session.append(tokens);
        ASSERT_TRUE(logits.ok()) << logits.error().line();
        EXPECT_EQ(copy(*logits), want);
        EXPECT_LE((*runtime)->budget().used(), (*runtime)->budget().capacity());
        ASSERT_TRUE((*runtime)->engine().drain().ok());
      }
    }
  }
}

// The disk goes bad under a running model: the step fails with an error that names file and extent. Once the
// bytes are right again, the same session continues.
TEST(DamagedStore, FailsTheStepAndNothingElse) {
  const ModelWorld world(small_llama());
  const auto runtime = world.start(
      [](Config& c) {
        c.cache.name = "none", c.tier("dram").capacity = "60%",
        c.tier("flash").settings = {{"direct", false, "test"}};
      },
      true);
  ASSERT_TRUE(runtime.ok());
  Session session((*runtime)->engine(), 0);
  ASSERT_TRUE(session.append(std::span(kTokens).first(4)).ok());
  ASSERT_TRUE((*runtime)->engine().drain().ok());
  const Manifest& manifest = (*runtime)->plan().store.manifest();
  const uint32_t extent = manifest.sites[3].first_extent + 1;
  const auto flip = [&] {
    std::fstream data(world.folder() + "/" + std::string(kDataFile),
                      std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(manifest.extents[extent].offset + 99);
    data.seekg(at);
    const auto byte = static_cast<char>(data.get() ^ 0x10);
    data.seekp(at);
    data.put(byte);
  };
  flip();
  const auto failed = session.append(std::span(kTokens).subspan(4, 1));
  EXPECT_EQ(failed.code(), Code::corrupt);
  EXPECT_THAT(failed.error().line(), HasSubstr(std::string(kDataFile)));
  EXPECT_THAT(failed.error().line(), HasSubstr("extent " + std::to_string(extent)));
  EXPECT_THAT(failed.error().line(), HasSubstr(manifest.sites[3].name));
  EXPECT_EQ(session.position(), 4u);
  flip();
  const auto logits = session.append(std::span(kTokens).subspan(4));
  ASSERT_TRUE(logits.ok()) << logits.error().line();
  const std::vector<float> got = copy(*logits);
  Session whole((*runtime)->engine(), 0);
  EXPECT_EQ(got, copy(*whole.append(kTokens)));
  ASSERT_TRUE((*runtime)->engine().drain().ok());
}

}  // namespace
}  // namespace tierd
