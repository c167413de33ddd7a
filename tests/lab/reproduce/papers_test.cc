// Checks this kernel against published figures: rows that pass must keep passing, and the rows that miss are
// listed. ci/nightly runs Hermes' rows, which take minutes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tools/lab/reproduce/outcome.h"

namespace tierd {
namespace {

struct Known {
  const char* paper;
  std::set<std::string> misses;
  bool is_long = false;
};

class Papers : public testing::TestWithParam<Known> {};

TEST_P(Papers, ComeOutAsTheyDid) {
  if (GetParam().is_long && std::getenv("TIERD_LONG_TESTS") == nullptr) GTEST_SKIP() << "of ci/nightly";
  auto reproduction = read_reproduction(GetParam().paper);
  ASSERT_TRUE(reproduction.ok()) << reproduction.error().line();
  std::map<std::string, Figures> runs;
  for (DescribedRun& run : reproduction->runs) {
    run.settings.emplace_back("run.seed=1");
    auto figures = play_run(run);
    ASSERT_TRUE(figures.ok()) << figures.error().line();
    runs[run.name] = std::move(*figures);
  }
  std::set<std::string> misses;
  for (const Row& row : reproduction->rows) {
    const auto outcome = judge(row, runs);
    ASSERT_TRUE(outcome.ok()) << outcome.error().line();
    if (outcome->passes) continue;
    misses.insert(row.what);
    EXPECT_FALSE(row.why.empty()) << row.what << ": what misses has a reason";
  }
  EXPECT_EQ(misses, GetParam().misses);
}

INSTANTIATE_TEST_SUITE_P(
    , Papers,
    testing::Values(Known{"llm-in-a-flash",
                          {"OPT-6.7B f32 on the CPU, computing what is active",
                           "Falcon-7B f32 on the CPU, computing what is active",
                           "Phi-2 f32 on the CPU, computing what is active",
                           "Llama-2-7B with FATReLU f32 on the CPU, computing what is active"}},
                    Known{"endor", {"a layer on the SSD, directly to the GPU"}},
                    Known{"m2cache", {"ZeRO-Infinity, LLaMA-2-70B from the SSD"}},
                    Known{"activeflow",
                          {"layers in groups of four, read ahead, over no group; mean of three devices",
                           "one layer read ahead over none; mean of three devices"}},
                    Known{"hermes",
                          {"networks' time, placed by lot over all of Hermes, OPT-66B",
                           "networks' time, placed by lot over the offline partition, OPT-66B",
                           "networks' time, the partition alone over adjustment",
                           "networks' time, adjustment alone over remapping",
                           "Hermes over Hermes-base, OPT-66B", "Hermes over Hermes-host, OPT-66B",
                           "the RTX 4090 over an RTX 3090, OPT-13B"},
                          true}),
    [](const auto& test) {
      std::string name = test.param.paper;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace tierd
