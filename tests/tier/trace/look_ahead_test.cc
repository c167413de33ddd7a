// Prefetches that depend on activations cannot be predicted again without weights, so a trace records them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/writer.h"
#include "core/watch/trace/what_if.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/mixture.h"
#include "tests/store/memory_source.h"
#include "tests/tier/trace/recorded_run.h"

namespace tierd {
namespace {

class LookAheadTraces : public testing::Test {
 protected:
  // Packs four layers cut into channels.
  std::string channels(uint32_t layer_group) const {
    ModelConfig model = small_llama();
    model.n_layers = 4;
    return packed(MemorySource(model, Encoding::f32), "channels-" + std::to_string(layer_group),
                  {.layout = Layout::channel_group, .layer_group = layer_group, .quiet = true});
  }
  std::string experts(Layout layout) const {
    const auto source = SyntheticSource::make(mixture("olmoe"), Encoding::q8_0, 7);
    EXPECT_TRUE(source.ok()) << source.error().line();
    write_routers(**source, routers());
    return packed(**source, "experts-" + std::to_string(static_cast<int>(layout)),
                  {.layout = layout, .quiet = true});
  }
  std::string routers() const { return folder_.path() + "/routers.safetensors"; }

  Config config(std::string store, StrategyConfig predictor) const {
    Config config;
    config.model = std::move(store);
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    config.tier("dram").capacity = "60%";
    config.cache.name = "lru";
    config.predictor = std::move(predictor);
    config.trace = folder_.path() + "/run.trace";
    return config;
  }
  static StrategyConfig top_k(const char* ahead = "all") {
    StrategyConfig predictor{"top-k"};
    predictor.settings = {{"ahead", std::string(ahead), "test"}};
    return predictor;
  }
  static uint64_t count_looks(const std::string& path) {
    auto trace = TraceReader::open(path);
    EXPECT_TRUE(trace.ok()) << trace.error().line();
    uint64_t looks = 0;
    for (; const Event* event = trace->peek(); trace->next()) looks += event->as<LookedAhead>() ? 1 : 0;
    return looks;
  }
  static void expect_replayed(const Config& config) {
    History history;
    run(config, history);
    EXPECT_GT(count_looks(config.trace), 0u);
    EXPECT_GT(history.counters.staged + history.counters.hits, 0u);
    expect_the_same(config, history);
  }

 private:
  std::string packed(const TensorSource& source, const std::string& name, const WriteOptions& options) const {
    const std::string store = folder_.path() + "/" + name;
    const Status written = write_store(source, store, options);
    EXPECT_TRUE(written.ok()) << written.error().line();
    return store;
  }

  TempFolder folder_;
};

TEST_F(LookAheadTraces, TheNextGroupsChannels) {
  for (const uint32_t layers : {1u, 2u}) {
    const std::string store = channels(layers);
    for (const char* cache : {"lru", "context-lfu", "none"}) {
      SCOPED_TRACE(std::string(cache) + ", groups of " + std::to_string(layers));
      Config plain = config(store, top_k());
      plain.cache.name = cache;
      expect_replayed(plain);
      plain.shuffle = "7";
      expect_replayed(plain);
    }
  }
}

TEST_F(LookAheadTraces, OnThreadsOfTheirOwnAndOnTwoUnits) {
  Config threads = config(channels(2), top_k());
  threads.tier("flash").thread = threads.tier("dram").thread = "own";
  expect_replayed(threads);
  Config units = config(channels(1), top_k());
  units.tier("dram").count = 2;
  units.balancer.name = "round-robin";
  expect_replayed(units);
}

TEST_F(LookAheadTraces, TheNextRoutersExperts) {
  for (const Layout layout : {Layout::row, Layout::channel_group}) {
    Config whole = config(experts(layout), StrategyConfig{"router"});
    whole.predictor.tensors = routers();
    expect_replayed(whole);
  }
}

// Another policy gets the same wishes, and decides itself which neurons it keeps.
TEST_F(LookAheadTraces, WhatIfKnowsThem) {
  const Config recorded = config(channels(1), top_k());
  History history;
  run(recorded, history);
  auto trace = TraceReader::open(recorded.trace);
  ASSERT_TRUE(trace.ok()) << trace.error().line();
  const auto asked = read_asked(*trace);
  ASSERT_TRUE(asked.ok()) << asked.error().line();
  TraceHeader header = trace->header();
  const auto ask = [&](const char* cache) {
    header.cache = StrategyConfig{cache};
    const auto choices = choose_recorded(header, choose());
    EXPECT_TRUE(choices.ok());
    const auto result = what_if(header, *asked, *choices, header.arena_bytes());
    EXPECT_TRUE(result.ok()) << result.error().line();
    return result->counters;
  };
  EXPECT_GT(ask("none").staged, 0u);
  EXPECT_GT(ask("lru").hits, 0u);
  header.scheduler.prefetch = false;
  EXPECT_EQ(ask("none").staged, 0u);
}

}  // namespace
}  // namespace tierd
