// The figures of periods of a run add up to those of the whole.
#include <gtest/gtest.h>

#include "core/report/figure_json.h"
#include "tests/e2e/virtual_run.h"
#include "tools/tierd/report.h"

namespace tierd {
namespace {

class FiguresOfARun : public VirtualRun {
 protected:
  FiguresOfARun() : VirtualRun(1, 64) {}
  // Makes `steps` steps from position `from`, and returns the figures since the start.
  static RunFigures after(Runtime& run, RunEnergy& energy, uint32_t from, uint32_t steps) {
    RunResult result;
    for (uint32_t i = from; i < from + steps; ++i) {
      const RowInfo row{.token = i, .position = i};
      const uint32_t wanted = 0;
      EXPECT_TRUE(run.engine().step({&row, 1}, {&wanted, 1}, i == 0).ok());
    }
    result.generated_tokens = from + steps;
    energy.look_now(progress_of(run, result));
    result.energy = energy.totals();
    result.links_before = std::vector<TierLink>(run.links().size());
    return run_figures(run, result);
  }
};

// Compares all numbers, named by their paths.
void expect_near(const nlohmann::json& sum, const nlohmann::json& whole) {
  const nlohmann::json flat = sum.flatten(), expected = whole.flatten();
  ASSERT_EQ(flat.size(), expected.size());
  for (const auto& [path, value] : expected.items()) {
    ASSERT_TRUE(flat.contains(path)) << path;
    const nlohmann::json& is = flat[path];
    if (value.is_number())
      EXPECT_NEAR(is.get<double>(), value.get<double>(), 1e-9 * (1 + std::abs(value.get<double>()))) << path;
    else
      EXPECT_EQ(is, value) << path;
  }
}

TEST_F(FiguresOfARun, OfTwoPeriodsAddUpToTheWhole) {
  const auto run = runtime();
  ASSERT_NE(run, nullptr);
  RunEnergy energy(*run);
  ASSERT_TRUE(run->load().ok());
  energy.loaded();
  ASSERT_TRUE(run->engine().begin_sequence(0).ok());
  const RunFigures first = after(*run, energy, 0, 8), whole = after(*run, energy, 8, 20);
  const RunFigures second = figures_between(first, whole);
  EXPECT_EQ(second.decode.all.times.steps, 20u);
  EXPECT_GT(second.flash.reads.reads, 0u);
  EXPECT_GT(second.links.front().link.counters.bytes, 0u);
  EXPECT_LT(second.links.front().link.counters.bytes, whole.links.front().link.counters.bytes);
  RunFigures sum = first;
  add_figures(sum, second);
  expect_near(figures_json(sum), figures_json(whole));
  ASSERT_TRUE(run->engine().drain().ok());
  run->engine().end_sequence(0);
}

}  // namespace
}  // namespace tierd
