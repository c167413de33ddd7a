// Predictors are called for each sequence from a session's first token until it ends or is cleared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/run/run_trace.h"
#include "core/watch/trace/replay.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/probe.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SequencesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = use_test_cache();
    golden_ = read_golden("llama2");
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  void SetUp() override {
    config_ = golden_config("llama2");
    use_probe(config_);
    Probe& probe = the_probe();
    probe.begin_sequence = [this](uint64_t sequence) { return told("begin", sequence, begin_answers_); };
    probe.end_sequence = [this](uint64_t sequence) { return told("end", sequence, end_answers_); };
    probe.predict = [this](uint32_t, const tierd_rows_view& rows) {
      for (uint32_t i = 0; i < rows.rows; ++i) rows_of_[rows.seq[i]] += 1;
      if (predict_throws_) throw std::runtime_error("no idea");
    };
  }
  void TearDown() override { the_probe() = {}; }

  std::unique_ptr<Runtime> start() {
    RuntimeOptions options;
    options.quiet = true;
    auto runtime = make_runtime(config_, options);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    EXPECT_TRUE((*runtime)->load().ok());
    return std::move(*runtime);
  }
  // Appends the golden tokens from `first` on. Returns the error, or "".
  static std::string append(Session& session, uint32_t first, uint32_t count) {
    const auto logits = session.append(std::span(golden_.tokens).subspan(first, count));
    return logits.ok() ? "" : logits.error().line();
  }
  std::vector<std::string> calls() { return std::exchange(calls_, {}); }

  Config config_;
  int begin_answers_ = TIERD_OK;
  int end_answers_ = TIERD_OK;
  bool predict_throws_ = false;
  std::map<uint64_t, uint32_t> rows_of_;  // rows seen, by sequence
  static inline Golden golden_;

 private:
  int told(const char* what, uint64_t sequence, int answer) {
    calls_.push_back(what + (" " + std::to_string(sequence)));
    return answer;
  }
  std::vector<std::string> calls_;
  static inline std::string cache_;
};

TEST_F(SequencesTest, BeginWithTheFirstTokenAndEndWithTheSession) {
  const auto runtime = start();
  {
    Session session(runtime->engine(), 0);
    session.clear();
    EXPECT_THAT(calls(), IsEmpty());  // nothing was appended
    EXPECT_EQ(append(session, 0, 5), "");
    EXPECT_EQ(append(session, 5, 1), "");
    EXPECT_THAT(calls(), ElementsAre("begin 0"));
    session.clear();
    session.clear();
    EXPECT_THAT(calls(), ElementsAre("end 0"));
    const std::vector<uint32_t> too_many(runtime->engine().context() + 1, 1);
    EXPECT_FALSE(session.append(too_many).ok());
    EXPECT_THAT(calls(), IsEmpty());  // no token reached the predictor
    const auto ignore = [](size_t, std::span<const float>) {};
    EXPECT_TRUE(
        session.append_with_logits(std::span(golden_.tokens).first(golden_.tokens.size() - 1), ignore).ok());
    EXPECT_THAT(calls(), ElementsAre("begin 0"));
  }
  EXPECT_THAT(calls(), ElementsAre("end 0"));
  { const Session unused(runtime->engine(), 0); }
  EXPECT_THAT(calls(), IsEmpty());
  ASSERT_EQ(rows_of_.size(), 1u);
  EXPECT_GT(rows_of_[0], 5u + 1u + kGoldenTokens - 1);
}

TEST_F(SequencesTest, AFaultAtTheBeginningFailsTheAppend) {
  for (const char* fallback : {"", "dense"}) {
    SCOPED_TRACE(fallback);
    config_.predictor.fallback = fallback;
    begin_answers_ = TIERD_E_INTERNAL;
    const auto runtime = start();
    Session session(runtime->engine(), 0);
    EXPECT_EQ(append(session, 0, 3), "predictor 'probe': begin_sequence: answered -4: told so");
    EXPECT_EQ(session.position(), 0u);
    const std::string second = append(session, 0, 3);
    if (*fallback == '\0') {
      EXPECT_THAT(second, HasSubstr("is quarantined (begin_sequence: answered -4: told so)"));
    } else {
      EXPECT_EQ(second, "");
      EXPECT_EQ(runtime->strategies().strategies().predictor.name, fallback);
    }
    EXPECT_THAT(calls(), ElementsAre("begin 0"));
  }
}

TEST_F(SequencesTest, AFaultAtTheEndFailsTheNextAppend) {
  for (const char* fallback : {"", "dense"}) {
    SCOPED_TRACE(fallback);
    config_.predictor.fallback = fallback;
    end_answers_ = TIERD_E_INTERNAL;
    const auto runtime = start();
    Session session(runtime->engine(), 0);
    EXPECT_EQ(append(session, 0, 3), "");
    session.clear();
    EXPECT_EQ(append(session, 0, 3), "predictor 'probe': end_sequence: answered -4: told so");
    const std::string second = append(session, 0, 3);
    if (*fallback == '\0') {
      EXPECT_THAT(second, HasSubstr("is quarantined (end_sequence: answered -4: told so)"));
    } else {
      EXPECT_EQ(second, "");
    }
    EXPECT_THAT(calls(), ElementsAre("begin 0", "end 0"));
  }
}

TEST_F(SequencesTest, AQuarantinedPredictorIsNotToldOfTheEnd) {
  config_.predictor.fallback = "dense";
  const auto runtime = start();
  Session session(runtime->engine(), 0);
  predict_throws_ = true;
  EXPECT_EQ(append(session, 0, 3), "predictor 'probe': predict: answered -4: no idea");
  session.clear();
  EXPECT_EQ(append(session, 0, 3), "");  // its single fault failed one request
  EXPECT_THAT(calls(), ElementsAre("begin 0"));
}

// The calls about sequences are part of a trace.
TEST_F(SequencesTest, AReplayTellsThemAgain) {
  const TempFolder folder;
  config_.trace = folder.path() + "/run.trace";
  {
    const auto runtime = start();
    Session session(runtime->engine(), 0);
    EXPECT_EQ(append(session, 0, 5), "");
    session.clear();
    EXPECT_EQ(append(session, 0, 3), "");
    EXPECT_EQ(append(session, 3, 1), "");
    session.clear();
    ASSERT_TRUE(runtime->engine().drain().ok());
    ASSERT_TRUE(runtime->end_recording().ok());
  }
  EXPECT_THAT(calls(), ElementsAre("begin 0", "end 0", "begin 0", "end 0"));
  const auto rows = std::exchange(rows_of_, {});
  auto trace = TraceReader::open(config_.trace);
  ASSERT_TRUE(trace.ok()) << trace.error().line();
  const auto result = replay(*trace, strategies_on(PluginPath({TIERD_PROBE_DIR, TIERD_PLUGIN_DIR})));
  ASSERT_TRUE(result.ok()) << result.error().line();
  EXPECT_EQ(result->difference.value_or(""), "");
  EXPECT_THAT(calls(), ElementsAre("begin 0", "end 0", "begin 0", "end 0"));
  EXPECT_EQ(rows_of_, rows);
}

TEST_F(SequencesTest, OneThatComesInTheMiddleHearsOfTheEnd) {
  config_.predictor.name = "dense";
  const auto runtime = start();
  Session session(runtime->engine(), 0);
  EXPECT_EQ(append(session, 0, 3), "");
  ASSERT_TRUE(runtime->swap("predictor", StrategyConfig{"probe"}).ok());
  EXPECT_EQ(append(session, 3, 1), "");
  session.clear();
  EXPECT_THAT(calls(), ElementsAre("end 0"));
}

}  // namespace
}  // namespace tierd
