// Records a run and replays it: the same decisions without weights, whatever the cache, the threads and the
// order of completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/checksum.h"
#include "core/watch/trace/codec.h"
#include "core/watch/trace/file_format.h"
#include "core/watch/trace/what_if.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/model_world.h"
#include "tests/formats/files.h"
#include "tests/tier/trace/recorded_run.h"
#include "tools/lab/activity/truth.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class Traces : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    llama_ = new ModelWorld(small_llama());
    opt_ = new ModelWorld(small_opt());  // its embedding is tied to the head
  }
  static void TearDownTestSuite() {
    delete llama_;
    delete opt_;
  }

  Config config(const std::string& cache, const ModelWorld& world = *llama_) const {
    Config config;
    config.model = world.folder();
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    config.tier("dram").capacity = "75%";
    config.tier("dram").staging = "48 KiB";
    config.cache.name = cache;
    config.trace = folder_.path() + "/run.trace";
    return config;
  }
  static void make_lossy(Config& config) {
    config.predictor.name = "random";
    config.predictor.settings = {{"p", 0.6, "test"}};
  }
  static void make_two_units(Config& config) {
    config.tier("dram").count = 2;
    config.balancer.name = "round-robin";
  }
  // Steps use different neurons, so that caches differ.
  Config lossy(const std::string& cache) const {
    Config config = Traces::config(cache);
    make_lossy(config);
    return config;
  }
  // Writes a trace of any events, with correct checksums.
  static void write_events(const std::string& path, const TraceHeader& header,
                           const std::vector<Event>& events) {
    const std::string text = header_json(header);
    std::ofstream out(path, std::ios::binary);
    const auto put = [&](const auto& head) { out.write(reinterpret_cast<const char*>(&head), sizeof head); };
    TraceFileHead head;
    head.header_bytes = static_cast<uint32_t>(text.size());
    head.header_checksum = checksum(text);
    put(head);
    out << text;
    EventEncoder block;
    for (const Event& event : events) block.add({0, event.what});
    TraceBlockHead block_head;
    block_head.bytes = static_cast<uint32_t>(block.bytes().size());
    block_head.events = block.events();
    block_head.checksum = checksum(block.bytes());
    put(block_head);
    out.write(reinterpret_cast<const char*>(block.bytes().data()), block_head.bytes);
    put(TraceBlockHead{});
  }

  TempFolder folder_;
  static inline ModelWorld* llama_ = nullptr;
  static inline ModelWorld* opt_ = nullptr;
};

TEST_F(Traces, AReplayDecidesTheSame) {
  struct Variant {
    const char* name;
    const char* cache;
    std::function<void(Config&)> change;
  };
  const Variant variants[] = {
      {"pinned", "pinned", {}},
      {"lru", "lru", {}},
      {"lfu", "lfu", {}},
      {"none", "none", {}},
      {"without prefetch", "fifo", [](Config& c) { c.prefetch = false; }},
      {"resident", "pinned", [](Config& c) { c.tier("dram").capacity = "all"; }},
      {"threads", "lru",
       [](Config& c) {
         c.tier("flash").thread = "own";
         c.tier("dram").thread = "own";
       }},
      {"shuffled", "lru", [](Config& c) { c.shuffle = "11"; }},
      {"shuffled again", "fifo", [](Config& c) { c.shuffle = "12"; }},
      {"lossy", "lru", make_lossy},
      {"two units", "lru", make_two_units},
      {"two units, heads divided, dense segments at the second", "lru",
       [](Config& c) {
         make_two_units(c);
         c.attention = "dram";
         c.dense = "dram.1";
       }},
      {"two units, pinned, shuffled", "pinned",
       [](Config& c) {
         make_two_units(c);
         c.shuffle = "5";
       }},
      {"few staging blocks", "lru", [](Config& c) { c.tier("dram").staging = "1"; }},
  };
  uint64_t evictions = 0;
  for (const ModelWorld* world : {llama_, opt_}) {
    for (const Variant& variant : variants) {
      SCOPED_TRACE(variant.name);
      Config config = Traces::config(variant.cache, *world);
      if (variant.change) variant.change(config);
      History history;
      run(config, history);
      expect_the_same(config, history);
      evictions += history.counters.evictions;
      // Recording must not change the results.
      config.trace.clear();
      History untold;
      run(config, untold);
      expect_the_same_bits(untold.logits, history.logits);
    }
  }
  EXPECT_GT(evictions, 100u);  // few, since sites requested whole keep their neurons
}

TEST_F(Traces, SwapsAreReplayed) {
  const Config config = Traces::config("lru");
  History history;
  const char* const caches[] = {"lfu", "static", "none", "fifo", "lru"};
  run(config, history, [&](Runtime& runtime, uint32_t token) {
    if (token % 3 != 0 || token == 0) return;
    ASSERT_TRUE(runtime.swap("cache", StrategyConfig{caches[token / 3 % std::size(caches)]}).ok());
  });
  expect_the_same(config, history);
}

// Swaps the cache of one tier alone, which has a cache of its own.
TEST_F(Traces, SwapsInATierAreReplayed) {
  Config config = Traces::config("lru");
  config.tier("dram").cache.name = "lfu";
  History history;
  run(config, history, [&](Runtime& runtime, uint32_t token) {
    const Status nowhere = runtime.swap("cache", StrategyConfig{"fifo"});
    EXPECT_THAT(nowhere.error().line(), HasSubstr("cache: every tier has a cache of its own"));
    EXPECT_THAT(runtime.swap("cache", StrategyConfig{"fifo"}, "flash").error().line(),
                HasSubstr("tiers.flash.cache: the tier has no cache of its own"));
    if (token != 3) return;
    ASSERT_TRUE(runtime.swap("cache", StrategyConfig{"fifo"}, "dram").ok());
    EXPECT_EQ(runtime.strategies().cache_of(1).choice().plugin->name, std::string("fifo"));
  });
  expect_the_same(config, history);
}

TEST_F(Traces, FailedReadsAreReplayed) {
  const Config config = Traces::config("lru");
  auto made = make_runtime(config, quiet());
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  std::vector<float> logits;
  ASSERT_TRUE(feed(runtime.engine(), kTokens, 0, 1, logits).ok());
  // Truncates the store to its first half.
  const std::string data = runtime.plan().store.data_path();
  const auto size = std::filesystem::file_size(data);
  const std::string kept = file_text(data);
  std::filesystem::resize_file(data, size / 2);
  uint32_t failed = 0;
  for (uint32_t i = 1; i < 4; ++i) failed += feed(runtime.engine(), kTokens, i, 1, logits).ok() ? 0 : 1;
  std::ofstream(data, std::ios::binary).write(kept.data(), static_cast<std::streamsize>(kept.size()));
  EXPECT_GT(failed, 0u);
  EXPECT_TRUE(feed(runtime.engine(), kTokens, 1, 1, logits).ok());
  ASSERT_TRUE(runtime.engine().drain().ok());
  ASSERT_TRUE(runtime.end_recording().ok());
  const auto result = replay_file(config.trace);
  ASSERT_TRUE(result.ok()) << result.error().line();
  EXPECT_EQ(result->difference.value_or(""), "");
}

TEST_F(Traces, TheResidencyHistoryIsInTheTrace) {
  const Config config = Traces::lossy("lru");
  History history;
  run(config, history);
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok());
  // The replay checks each digest; this test checks that digests of different histories differ.
  std::vector<uint64_t> digests;
  for (; const Event* event = trace->peek(); trace->next()) {
    if (const auto* settled = event->as<Settled>()) digests.push_back(settled->residency);
  }
  ASSERT_EQ(digests.size(), history.slots.size());
  for (size_t a = 0; a < digests.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (history.slots[a] == history.slots[b]) continue;
      EXPECT_NE(digests[a], digests[b]) << a << " " << b;
    }
  }
}

// Another policy, or another kernel, is reported at the first decision that differs.
TEST_F(Traces, AnotherDecisionIsNamed) {
  const Config config = Traces::lossy("lru");
  History history;
  run(config, history);
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok());
  const auto result = replay(*trace, [](std::string_view kind, const StrategyConfig& strategy) {
    return choose()(kind, kind == "cache" ? StrategyConfig{"fifo"} : strategy);
  });
  ASSERT_TRUE(result.ok()) << result.error().line();
  ASSERT_TRUE(result->difference.has_value());
  EXPECT_THAT(*result->difference, testing::MatchesRegex("event [0-9]+: recorded: evict .*; now: evict .*"));
}

TEST_F(Traces, OneThatWasCutOffIsReplayedUpToThere) {
  Config config = Traces::config("lru");
  History history;
  run(config, history);
  const std::string bytes = file_text(config.trace);
  for (const size_t size : {bytes.size() - 1, bytes.size() / 2, bytes.size() / 5}) {
    const auto result = replay_file(folder_.write("cut", std::string_view(bytes).substr(0, size)));
    ASSERT_TRUE(result.ok()) << result.error().line();
    EXPECT_EQ(result->difference.value_or(""), "");
    EXPECT_FALSE(result->whole);
  }
}

// A trace with correct checksums and wrong events cannot harm the kernel.
TEST_F(Traces, EventsThatMakeNoSenseAreADifference) {
  const Config config = Traces::config("lru");
  History history;
  run(config, history);
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok());
  std::vector<Event> events;
  for (; trace->peek() != nullptr && events.size() < 4000; trace->next()) events.push_back(*trace->peek());
  Random random(3);
  uint32_t different = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<Event> damaged = events;
    const auto at = [&] { return random.below(static_cast<uint32_t>(damaged.size())); };
    switch (i % 4) {
      case 0:
        damaged.erase(damaged.begin() + at());
        break;
      case 1:
        std::swap(damaged[at()], damaged[at()]);
        break;
      case 2:
        damaged.insert(damaged.begin() + at(), damaged[at()]);
        break;
      default:
        if (auto* pass = std::get_if<PassBegins>(&damaged[at()].what)) pass->site = random.below(1000);
        if (auto* done = std::get_if<Delivered>(&damaged[at()].what))
          done->done.status = DoneStatus::io_error;
        if (auto* sent = std::get_if<Sent>(&damaged[at()].what)) ++sent->id.slot;
    }
    const std::string path = folder_.path() + "/damaged";
    write_events(path, trace->header(), damaged);
    const auto result = replay_file(path);
    different += !result.ok() || result->difference ? 1 : 0;
  }
  EXPECT_GT(different, 30u);
}

// The predictor oracle knows the active neurons of the recorded run: the same bits, and no read is wasted.
TEST_F(Traces, AnOracleKnowsWhatWasRecorded) {
  Config config = Traces::lossy("none");
  History recorded;
  run(config, recorded);
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok());
  const std::string truth = folder_.path() + "/truth.safetensors";
  const Status written = write_truth(*trace, truth);
  ASSERT_TRUE(written.ok()) << written.error().line();

  config.trace.clear();
  config.predictor = StrategyConfig{"oracle"};
  config.predictor.tensors = truth;
  for (const char* cache : {"none", "lru"}) {
    config.cache.name = cache;
    History known;
    run(config, known);
    expect_the_same_bits(known.logits, recorded.logits);
  }
  config.cache.name = "none";
  History known;
  run(config, known);
  EXPECT_GT(known.counters.staged, recorded.counters.staged);
  EXPECT_EQ(known.counters.wasted, 0u);
  EXPECT_EQ(known.counters.read_bytes, recorded.counters.read_bytes);

  // Without a recording the oracle is refused.
  config.predictor.tensors.clear();
  EXPECT_THAT(make_runtime(config, quiet()).error().line(), HasSubstr("no site has a recording"));
}

// Also for a cache that is swapped in after the change, and for units with arenas of their own.
TEST_F(Traces, ABudgetThatMovesIsReplayed) {
  for (const char* cache : {"lru", "pinned", "lfu"}) {
    for (const bool units : {false, true}) {
      SCOPED_TRACE(cache);
      Config config = lossy(cache);
      if (units) make_two_units(config);
      History history;
      run(config, history, [&](Runtime& runtime, uint32_t i) {
        Status status;
        if (i == 7) status = runtime.set_capacity("50%", true);
        if (i == 9) status = runtime.set_capacity("80%", true);
        if (i == 11) status = runtime.swap("cache", StrategyConfig{"lru"});
        if (i == 13) status = runtime.set_capacity("1", true);
        if (i == 15) status = runtime.set_capacity("all", true);
        EXPECT_TRUE(status.ok()) << status.error().line();
      });
      EXPECT_GT(history.counters.evictions, 0u);
      expect_the_same(config, history);
    }
  }
  auto trace = TraceReader::open(config("lru").trace);
  ASSERT_TRUE(trace.ok());
  const auto asked = read_asked(*trace);
  EXPECT_EQ(asked.code(), Code::unsupported);
  EXPECT_THAT(asked.error().line(), HasSubstr("the budget changed here"));
}

TEST_F(Traces, WhatIfAnswersForThePolicy) {
  Config config = Traces::config("pinned");
  History history;
  run(config, history);
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok());
  const auto asked = read_asked(*trace);
  ASSERT_TRUE(asked.ok());
  TraceHeader header = trace->header();
  const auto ask = [&](const char* cache, uint64_t arena_bytes) {
    header.cache = StrategyConfig{cache};
    const auto choices = choose_recorded(header, choose());
    EXPECT_TRUE(choices.ok());
    const auto result = what_if(header, *asked, *choices, arena_bytes);
    EXPECT_TRUE(result.ok()) << result.error().line();
    EXPECT_EQ(result->steps, history.slots.size());
    EXPECT_EQ(result->decode_steps, history.slots.size() - 1);
    return *result;
  };
  const WhatIf pinned = ask("pinned", header.arena_bytes());
  const WhatIf none = ask("none", header.arena_bytes());
  const WhatIf all = ask("pinned", UINT64_MAX >> 20);
  EXPECT_EQ(none.counters.hits, 0u);
  EXPECT_EQ(all.counters.misses + all.counters.staged, 0u);
  EXPECT_EQ(all.counters.read_bytes, 0u);
  EXPECT_GT(pinned.counters.hits, 0u);
  EXPECT_LT(pinned.counters.read_bytes, none.counters.read_bytes);
  // The same question has the same answer.
  EXPECT_EQ(ask("lru", header.arena_bytes()).counters.read_bytes,
            ask("lru", header.arena_bytes()).counters.read_bytes);
}

}  // namespace
}  // namespace tierd
