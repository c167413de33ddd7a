// Plays a recorded run in the time of a described machine. Activity that only weights could give is the
// trace's.
#include "tools/tier/trace/play.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/report/figure_json.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/described_machine.h"
#include "tests/e2e/mixture.h"
#include "tests/store/memory_source.h"
#include "tests/tier/trace/recorded_run.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class Played : public testing::Test {
 protected:
  void SetUp() override { write_machine(machine_); }
  Config recorded(const std::string& store, StrategyConfig predictor) const {
    Config config;
    config.model = store;
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    config.tier("dram").capacity = "60%";
    config.cache.name = "lru";
    config.predictor = std::move(predictor);
    config.trace = folder_.path() + "/run.trace";
    return config;
  }
  std::string channels() const {
    return packed(MemorySource(small_llama(), Encoding::f32), "channels",
                  {.layout = Layout::channel_group, .quiet = true});
  }
  std::string packed(const TensorSource& source, const std::string& name, const WriteOptions& options) const {
    const std::string store = folder_.path() + "/" + name;
    const Status written = write_store(source, store, options);
    EXPECT_TRUE(written.ok()) << written.error().line();
    return store;
  }
  Result<PlayedFigures> play_it(Config config) const {
    TIERD_ASSIGN(TraceReader trace, TraceReader::open(folder_.path() + "/run.trace"));
    if (config.machine.empty()) config.machine = machine_;
    RuntimeOptions options;
    options.quiet = options.fit = true;
    return play(trace, std::move(config), options);
  }
  const std::string& machine() const { return machine_; }
  const TempFolder folder_;

 private:
  const std::string machine_ = folder_.path() + "/machine.toml";
};

TEST_F(Played, ChannelsOfThen) {
  StrategyConfig top_k{"top-k"};
  top_k.settings = {{"sparsity", 0.5, "test"}, {"ahead", std::string("all"), "test"}};
  const Config config = recorded(channels(), top_k);
  History history;
  run(config, history);
  const auto first = play_it(config), second = play_it(config);
  ASSERT_TRUE(first.ok()) << first.error().line();
  EXPECT_EQ(figures_json(*first), figures_json(*second)) << "virtual time is always the same";
  const PlayedTimes& decode = first->decode;
  EXPECT_EQ(first->prefill.tokens, kPrompt);
  EXPECT_EQ(decode.steps, kTokens.size() - kPrompt);
  EXPECT_GT(decode.tokens_per_second, 0.0);
  EXPECT_GT(decode.wanted_bytes, 0.0);
  EXPECT_THAT(played_text(*first), HasSubstr("decode"));

  Config more = config;
  more.tier("dram").capacity = "all";
  const auto resident = play_it(more);
  ASSERT_TRUE(resident.ok()) << resident.error().line();
  EXPECT_GT(resident->decode.tokens_per_second, decode.tokens_per_second);
  // Neurons that the recorded run left out are left out again, so it is faster than a dense run.
  more.cache.name = "pinned";
  const auto kept = play_it(more);
  ASSERT_TRUE(kept.ok()) << kept.error().line();
  Config dense = more;
  dense.predictor = StrategyConfig{"dense"};
  const auto all = play_it(dense);
  ASSERT_TRUE(all.ok()) << all.error().line();
  EXPECT_GT(kept->decode.tokens_per_second, all->decode.tokens_per_second);
}

TEST_F(Played, ExpertsOfThen) {
  const auto source = SyntheticSource::make(mixture("olmoe"), Encoding::q8_0, 7);
  ASSERT_TRUE(source.ok());
  const Config config = recorded(packed(**source, "experts", {.quiet = true}), StrategyConfig{"dense"});
  History history;
  run(config, history);
  const auto played = play_it(config);
  ASSERT_TRUE(played.ok()) << played.error().line();
  EXPECT_EQ(played->decode.steps, kTokens.size() - kPrompt);
  EXPECT_GT(played->decode.tokens_per_second, 0.0);
}

TEST_F(Played, WhatDoesNotFitIsRefused) {
  const Config config = recorded(channels(), StrategyConfig{"dense"});
  History history;
  run(config, history);
  Config other = config;
  other.model = packed(MemorySource(small_llama(), Encoding::f32), "rows", {.quiet = true});
  const auto layout = play_it(other);
  ASSERT_FALSE(layout.ok());
  EXPECT_THAT(layout.error().line(), HasSubstr("run.trace: is of another model or layout: "));
  other.model = packed(MemorySource(small_opt(), Encoding::f32), "opt", {.quiet = true});
  EXPECT_THAT(play_it(other).error().line(), HasSubstr("run.trace: is of another model or layout: "));
  Config nowhere = config;
  nowhere.machine = folder_.path() + "/none.toml";
  EXPECT_EQ(play_it(nowhere).code(), Code::not_found);
}

}  // namespace
}  // namespace tierd
