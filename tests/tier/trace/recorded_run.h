// Records a run and replays it; the replay must make the same decisions.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/run/run_trace.h"
#include "core/watch/trace/replay.h"
#include "tests/e2e/golden_model.h"

namespace tierd {

inline constexpr uint32_t kPrompt = 6;
inline const std::vector<uint32_t> kTokens = {1,  17, 250, 33,  33, 299, 4, 90, 12,
                                              61, 7,  8,   200, 31, 5,   5, 77, 270};

inline RuntimeOptions quiet() {
  RuntimeOptions options;
  options.quiet = true;
  options.fit = true;
  options.logit_rows = kPrompt;
  return options;
}
// The slots of all neurons at the end of each step, and the counters.
struct History {
  std::vector<std::vector<uint32_t>> slots;
  SchedulerCounters counters;
  std::vector<float> logits;
};
inline std::vector<uint32_t> slots(const Runtime& runtime) {
  std::vector<uint32_t> slots;
  const std::vector<Edition>& editions = runtime.plan().model.sites.editions;
  for (const Residency& residency : runtime.residencies()) {
    for (EditionId e = 0; e < editions.size(); ++e) {
      for (uint32_t i = 0; i < editions[e].n; ++i)
        slots.push_back(residency.valid(e, i) ? residency.slot(e, i) : kNoSlot);
    }
  }
  return slots;
}
// Runs a prompt, then token by token. Calls `between` before each.
inline void run(const Config& config, History& history,
                const std::function<void(Runtime&, uint32_t)>& between = {}) {
  auto made = make_runtime(config, quiet());
  ASSERT_TRUE(made.ok()) << made.error().line();
  Runtime& runtime = **made;
  ASSERT_TRUE(runtime.load().ok());
  for (uint32_t i = 0; i < kTokens.size();) {
    if (between) between(runtime, i);
    const uint32_t count = i == 0 ? kPrompt : 1;
    ASSERT_TRUE(feed(runtime.engine(), kTokens, i, count, history.logits).ok());
    history.slots.push_back(slots(runtime));
    i += count;
  }
  ASSERT_TRUE(runtime.engine().drain().ok());
  ASSERT_TRUE(runtime.end_recording().ok());
  history.counters = runtime.scheduler().counters();
}
inline ChooseStrategy choose() {
  return strategies_on(PluginPath({TIERD_PLUGIN_DIR}));
}
inline Result<ReplayResult> replay_file(const std::string& path) {
  TIERD_ASSIGN(TraceReader trace, TraceReader::open(path));
  return replay(trace, choose());
}
inline void expect_the_same(const Config& config, const History& history) {
  const auto result = replay_file(config.trace);
  ASSERT_TRUE(result.ok()) << result.error().line();
  EXPECT_EQ(result->difference.value_or(""), "");
  EXPECT_TRUE(result->whole);
  EXPECT_EQ(result->steps, history.slots.size());
  EXPECT_EQ(result->counters.hits, history.counters.hits);
  EXPECT_EQ(result->counters.staged, history.counters.staged);
  EXPECT_EQ(result->counters.misses, history.counters.misses);
  EXPECT_EQ(result->counters.evictions, history.counters.evictions);
  EXPECT_EQ(result->counters.wasted, history.counters.wasted);
  EXPECT_EQ(result->counters.read_bytes, history.counters.read_bytes);
}

}  // namespace tierd
