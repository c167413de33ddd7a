// A DIMM's worker fails or stops answering in the middle of a text. The run continues without it: its neurons
// are read from the store again, its keys and values are computed again from the tokens, and the text equals
// that of the resident run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "core/engine/batcher.h"
#include "core/run/run_trace.h"
#include "core/watch/trace/replay.h"
#include "tests/e2e/shipped_configuration.h"
#include "tests/kernel/mortal_agent.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<uint32_t>;

constexpr uint32_t kPrompt = 12;
constexpr uint32_t kMore = 14;

// Blocks a worker that has stopped answering.
class Stall {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    begun_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return over_; });
    left_ = true;
    changed_.notify_all();
  }
  // Releases the worker and waits until it has continued.
  void end() {
    std::unique_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return left_ || !begun_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false, over_ = false, left_ = false;
};

enum class Fails : uint8_t { completes_as_lost, throws, stalls };

// A worker that fails at a given message.
class FailingWorker final : public Agent {
 public:
  FailingWorker(std::unique_ptr<Agent> agent, Fails how, uint32_t at, Stall* stall)
      : agent_(std::move(agent)), mortal_(*agent_), how_(how), at_(at), stall_(stall) {
    if (how == Fails::completes_as_lost) mortal_.dies_at = at;
  }
  std::string_view name() const override { return agent_->name(); }
  uint32_t credits() const override { return agent_->credits(); }
  Submit submit(const Message& message, const Payload& payload) override {
    const Submit submitted = mortal_.submit(message, payload);
    if (submitted == Submit::ok) ++sent_;
    return submitted;
  }
  Drive drive() override {
    if (how_ == Fails::throws && sent_ >= at_) throw std::runtime_error("out of its memory");
    if (how_ == Fails::stalls && sent_ >= at_ && !std::exchange(stalled_, true)) stall_->wait();
    return mortal_.drive();
  }
  size_t poll(std::span<Done> done) override { return mortal_.poll(done); }
  int wait_fd() const override { return agent_->wait_fd(); }
  bool waiting() const override { return mortal_.waiting(); }

 private:
  std::unique_ptr<Agent> agent_;
  MortalAgent mortal_;
  Fails how_;
  uint32_t at_;
  Stall* stall_;
  uint32_t sent_ = 0;
  bool stalled_ = false;
};

struct Failure {
  uint16_t agent = 0;  // 0: no agent fails
  uint32_t at = 0;     // which of its messages
  Fails how = Fails::completes_as_lost;
};

class Greedy final : public Continuation {
 public:
  explicit Greedy(size_t most) : most_(most) {}
  Result<std::optional<uint32_t>> next(std::span<const float> logits) override {
    last.assign(logits.begin(), logits.end());
    tokens.push_back(static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    if (tokens.size() == most_) return std::optional<uint32_t>();
    return std::optional(tokens.back());
  }
  void ended(TextEnd how, const Status& why) override {
    end = how;
    if (!why.ok()) error = why.error().line();
  }
  Tokens tokens;
  std::vector<float> last;
  TextEnd end = TextEnd::cancelled;
  std::string error;

 private:
  size_t most_;
};

class LostWorker : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = use_test_cache();
    Config config;
    config.model = kDemo;
    config.layout = "neuron";
    resident_ = new Said(say(config, {}));
    ASSERT_EQ(resident_->losses.agents, 0u);
  }
  static void TearDownTestSuite() {
    delete resident_;
    std::filesystem::remove_all(cache_);
  }

  struct Said {
    std::vector<Tokens> texts;
    std::vector<std::vector<float>> logits;  // the last logits of each text
    std::vector<std::string> errors;
    Losses losses;
    uint32_t workers = 0;  // at the end
    uint64_t sent = 0;     // messages
    StepTimes decode;
    SchedulerCounters counters;
  };
  static Config hermes() {
    Config config = configuration("hermes", kDemo, true);
    config.tier("gpu").capacity = "60%";
    config.tier("ndp").count = 4;
    return config;
  }
  // Agents are numbered from the store's agent on, then by the height and name of their tiers.
  static constexpr uint16_t kFirstWorker = 3;

  // Generates two texts at once; the second begins later.
  static Said say(Config config, std::vector<Failure> failures) {
    config.threads = 1;
    config.bind = false;
    config.context = 64;
    config.sequences = 2;
    config.kv = "f32";
    config.activations = "f32";
    RuntimeOptions options;
    options.quiet = true;
    options.fit = true;
    options.logit_rows = 2;
    Stall stall;
    options.wrap_agent = [&](MadeAgent& agent, uint16_t number) {
      const auto fails = std::ranges::find(failures, number, &Failure::agent);
      if (fails == failures.end()) return;
      agent.agent = std::make_unique<FailingWorker>(std::move(agent.agent), fails->how, fails->at, &stall);
      *fails = {};  // an agent made in place of a lost one does not fail
    };
    Said said;
    auto made = make_runtime(config, options);
    EXPECT_TRUE(made.ok()) << made.error().line();
    if (!made.ok()) return said;
    Runtime& runtime = **made;
    runtime.go_on_without_lost_agents();
    EXPECT_TRUE(runtime.load().ok());
    {
      Batcher batcher(runtime.engine(), {2, 4});
      std::vector<std::shared_ptr<Greedy>> texts;
      for (uint32_t t = 0; t < 2; ++t) {
        Text text;
        std::vector<uint32_t> prompt;
        for (uint32_t i = 0; i < kPrompt; ++i) prompt.push_back(300 + (i + 5 * t) * 97 % 1200);
        text.prompt = std::make_shared<const std::vector<uint32_t>>(std::move(prompt));
        text.continuation = texts.emplace_back(std::make_shared<Greedy>(kMore));
        EXPECT_TRUE(batcher.add(std::move(text)).ok());
        if (t == 0) {
          for (int steps = 0; steps < 5; ++steps) EXPECT_TRUE(batcher.step().ok());
        }
      }
      while (batcher.busy()) EXPECT_TRUE(batcher.step().ok());
      for (const auto& text : texts) {
        said.texts.push_back(text->tokens);
        said.logits.push_back(text->last);
        said.errors.push_back(text->error);
      }
    }
    stall.end();
    said.losses = runtime.engine().losses();
    const Tier* ndp = runtime.plan().tiers.find("ndp");
    said.workers = ndp != nullptr ? ndp->config.count : 0;
    said.sent = runtime.dispatcher().messages();
    said.decode = runtime.engine().decode_times();
    said.counters = runtime.scheduler().counters();
    return said;
  }
  static void check(const Said& said) {
    EXPECT_EQ(said.texts, resident_->texts);
    for (size_t t = 0; t < said.logits.size(); ++t) {
      ASSERT_EQ(said.logits[t].size(), resident_->logits[t].size());
      float most = 0, worst = 0;
      for (size_t i = 0; i < said.logits[t].size(); ++i) {
        most = std::max(most, std::fabs(resident_->logits[t][i]));
        worst = std::max(worst, std::fabs(said.logits[t][i] - resident_->logits[t][i]));
      }
      EXPECT_LT(worst, most * 1e-3) << "of logits up to " << most;
    }
  }

  static inline Said* resident_ = nullptr;
  static inline std::string cache_;
};

TEST_F(LostWorker, TheTextsGoOnWhenItFails) {
  const std::vector<uint32_t> moments =
      kSanitized ? std::vector<uint32_t>{9, 120} : std::vector<uint32_t>{2, 9, 30, 65, 120, 200};
  for (const uint32_t at : moments) {
    SCOPED_TRACE(at);
    const Said said = say(hermes(), {{kFirstWorker + 1, at}});
    check(said);
    EXPECT_EQ(said.losses.agents, 1u);
    EXPECT_EQ(said.workers, 3u);
    EXPECT_EQ(said.decode.tokens, resident_->decode.tokens) << "what is computed again is nobody's text";
  }
}

TEST_F(LostWorker, WhileWhatIsResidentIsLoaded) {
  const Said said = say(hermes(), {{kFirstWorker + 2, 1}});
  check(said);
  EXPECT_EQ(said.losses.agents, 1u);
  EXPECT_EQ(said.losses.tokens, 0u);
}

TEST_F(LostWorker, KeysAndValuesAreComputedAgain) {
  const Said said = say(hermes(), {{kFirstWorker, 200}});
  check(said);
  EXPECT_GE(said.losses.tokens, kPrompt);
  EXPECT_LE(said.losses.tokens, 2 * (kPrompt + kMore));
  EXPECT_GT(said.losses.ns, 0u);
}

TEST_F(LostWorker, AnotherMayFailAfterIt) {
  // After a loss agents are numbered anew: the third worker becomes the second.
  const Said said = say(hermes(), {{kFirstWorker, 40}, {kFirstWorker + 2, 120}});
  check(said);
  EXPECT_GE(said.losses.agents, 1u);
  EXPECT_EQ(said.workers, 4u - said.losses.agents);
}

TEST_F(LostWorker, AThreadThatThrows) {
  Config config = hermes();
  config.tier("ndp").thread = "own";
  const Said said = say(config, {{kFirstWorker + 1, 60, Fails::throws}});
  check(said);
  EXPECT_EQ(said.losses.agents, 1u);
}

TEST_F(LostWorker, AThreadThatStallsIsLeftBehind) {
  Config config = hermes();
  config.tier("ndp").thread = "own";
  config.agent_deadline_ms = kSanitized ? 5'000 : 2'000;
  const Said said = say(config, {{kFirstWorker + 1, 60, Fails::stalls}});
  check(said);
  EXPECT_EQ(said.losses.agents, 1u);
}

// The trace can be replayed up to the step that was lost.
TEST_F(LostWorker, ATraceEndsWithIt) {
  Config config = hermes();
  config.trace = cache_ + "/lost.trace";
  check(say(config, {{kFirstWorker + 1, 65}}));
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok()) << trace.error().line();
  const auto replayed = replay(*trace, strategies_on(PluginPath({TIERD_PLUGIN_DIR})));
  ASSERT_TRUE(replayed.ok()) << replayed.error().line();
  EXPECT_EQ(replayed->difference.value_or(""), "");
  EXPECT_TRUE(replayed->whole);
  EXPECT_GE(replayed->steps, 1u);
}

TEST_F(LostWorker, WhatNobodyElseCanDoEndsTheTexts) {
  // The failing agent belongs to the tier that computes the dense segments.
  const Said said = say(hermes(), {{kFirstWorker + 4, 600}});
  ASSERT_EQ(said.errors.size(), 2u);
  for (const std::string& error : said.errors) {
    EXPECT_THAT(error, HasSubstr("is lost"));
    EXPECT_THAT(error, HasSubstr("tiers.gpu has no other"));
  }
}

}  // namespace
}  // namespace tierd
