// Recorded routings: hostile files, and the results of caches on them.
#include "tools/lab/activity/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/run/run_trace.h"
#include "core/run/strategy_choices.h"
#include "tests/base/temp_folder.h"
#include "tests/peak_memory.h"
#include "tests/sanitized.h"
#include "tools/lab/activity/expert_caches.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr const char* kCsv =
    "# route_trace v1\n"
    "# model=/some/where/small.gguf arch=qwen3moe n_layer=2 n_expert=8 n_expert_used=2\n"
    "# layer=0 expert_bytes=5000 dense_bytes=9\n"
    "# layer=1 expert_bytes=9000 dense_bytes=9\n"
    "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n"
    "0,0,0,0,0,7,0.6,0,5000\n"
    "0,0,0,0,1,2,0.4,0,5000\n"
    "0,1,1,0,0,3,0.6,0,5000\n"
    "0,1,1,0,1,1,0.4,0,5000\n"
    "0,1,1,1,0,4,0.6,0,9000\n"
    "0,1,2,0,0,3,0.6,1,5000\n"
    "0,1,2,1,0,0,0.6,0,9000\n";

Routing read(const TempFolder& folder, const std::string& text, uint32_t experts = 0) {
  auto routing = read_routing(folder.write("routing", text), experts);
  EXPECT_TRUE(routing.ok()) << routing.error().line();
  return routing.ok() ? std::move(*routing) : Routing{};
}

TEST(Routing, OfOneLineAnExpert) {
  const TempFolder folder;
  const Routing routing = read(folder, kCsv);
  EXPECT_EQ(routing.model, "small.gguf");
  EXPECT_EQ(routing.layers, 2u);
  EXPECT_EQ(routing.experts, 8u);
  EXPECT_EQ(routing.expert_bytes, (std::vector<uint64_t>{5000, 9000}));
  EXPECT_EQ(routing.prompt, (std::vector<Routing::Token>{{{0, {2, 7}}}}));
  EXPECT_EQ(routing.generated, (std::vector<Routing::Token>{{{0, {1, 3}}, {1, {4}}}, {{0, {3}}, {1, {0}}}}));
}

TEST(Routing, OfOneLineAToken) {
  const TempFolder folder;
  const std::string text =
      "{\"tok\": 1, \"layers\": [[3, 1], [4, 0]]}\n\n{\"tok\": 2, \"layers\": [[3, 2], [1, 0]]}";
  const Routing routing = read(folder, text);
  EXPECT_EQ(routing.experts, 5u);
  EXPECT_EQ(routing.generated,
            (std::vector<Routing::Token>{{{0, {1, 3}}, {1, {0, 4}}}, {{0, {2, 3}}, {1, {0, 1}}}}));
  EXPECT_EQ(read(folder, text, 64).experts, 64u);
}

TEST(Routing, BadLinesAreNamed) {
  const TempFolder folder;
  const std::string csv = kCsv;
  const auto with = [&](const std::string& last) { return csv + last + "\n"; };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with("0,1,3,0,0,3"), "routing:13: 6 fields, expected one for each of 9 columns"},
      {with("0,1,3,0,0,three,0.1,0,0"), "routing:13: expert is 'three', expected a number"},
      {with("0,1,3,0,0,-1,0.1,0,0"), "routing:13: expert is '-1'"},
      {with("0,1,3,99999,0,1,0.1,0,0"), "routing:13: layer is '99999', expected a number up to 4095"},
      {with("0,2,3,0,0,1,0.1,0,0"), "routing:13: phase is '2'"},
      {with("0,1,2,0,1,3,0.1,0,0"), "routing:13: expert 3 is chosen twice"},
      {with("0,0,2,0,1,4,0.1,0,0"),
       "routing:13: phase is 0, another line of turn 0 and step 2 has the other"},
      {with("0,1,3,0,0,8,0.1,0,0"),
       "routing:13: expert 8 was chosen, expected a number below the 8 of a layer"},
      {"# n_expert=many\n", "routing:1: n_expert is 'many', expected a number"},
      {"# n_expert=0\n", "routing:1: n_expert is 0, expected 1 to"},
      {"# layer=0 expert_bytes=4294967296\nstep,layer,expert\n0,0,0\n",
       "routing:1: expert_bytes is 4294967296, expected at most 4294963200"},
      {"# layer=0 expert_bytes=18446744073709547520\nstep,layer,expert\n0,0,0\n",
       "routing:1: expert_bytes is 18446744073709547520, expected at most 4294963200"},
      {"step,layer,expert\n0,0,0\n0,4095,65535\n",
       "routing:3: layer 4095 of 65536 experts: 4096 layers have 268435456 experts, expected at most 262181 "
       "in "
       "a file of 37 bytes"},
      {"a,b,c\n1,2,3\n", "routing:1: no column 'step' among: a,b,c"},
      {"", "routing:0: the line with the columns' names is missing"},
      {csv.substr(0, csv.find("0,1,1")), "routing: has no generated token"},
      {"{\"tok\": 1}", "routing:1: expected a JSON object with a list \"layers\""},
      {"{\"layers\": [[1]]}\n{\"layers\": [[1]", "routing:2: expected a JSON object"},
      {"{\"layers\": []}", "routing:1: 0 layers, expected 1 to"},
      {"{\"layers\": [[1]]}\n{\"layers\": [[1], [2]]}",
       "routing:2: 2 layers, expected 1 as in the first line"},
      {"{\"layers\": [7]}", "routing:1: a layer is not a list of experts"},
      {"{\"layers\": [[-7]]}", "routing:1: an expert is -7"},
      {"{\"layers\": [[70000]]}", "routing:1: an expert is 70000"},
      {"{\"layers\": [[1, 1]]}", "routing:1: expert 1 is chosen twice"},
      {"{\"layers\": [[[[[[1]]]]]]}", "routing:1: "},
  };
  for (const auto& [text, expected] : cases) {
    const auto routing = read_routing(folder.write("routing", text), 0);
    ASSERT_FALSE(routing.ok()) << expected;
    EXPECT_THAT(routing.error().line(), HasSubstr(expected));
    EXPECT_THAT(routing.error().line(), testing::Not(HasSubstr("\n")));
  }
  EXPECT_FALSE(read_routing(folder.path() + "/nowhere", 0).ok());
}

// Lines may have any order. An error names the first wrong line.
TEST(Routing, LinesInAnyOrder) {
  const TempFolder folder;
  const Routing routing = read(folder, "step,layer,expert\n1,2,7\n1,0,5\n0,1,9\n1,2,3\n0,1,4\n");
  EXPECT_EQ(routing.generated, (std::vector<Routing::Token>{{{1, {4, 9}}}, {{0, {5}}, {2, {3, 7}}}}));
  const auto twice =
      read_routing(folder.write("twice", "step,layer,expert\n9,0,1\n9,0,1\n0,0,5\n0,0,5\n0,0,5\n"), 0);
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().line(), HasSubstr("twice:3: expert 1 is chosen twice"));
}

// The largest possible slot.
TEST(Routing, TheMostBytesOfAnExpert) {
  const TempFolder folder;
  const Routing routing =
      read(folder, "# layer=0 expert_bytes=4294963200\nstep,layer,expert\n0,0,0\n1,0,1\n");
  Config config;
  config.plugin_path = TIERD_PLUGIN_DIR;
  const auto result =
      expert_caches(routing, {.memory = {50}, .caches = {}}, strategies_on(plugin_path(config)));
  EXPECT_TRUE(result.ok()) << result.error().line();
}

// A token that names a late layer allocates nothing for the layers before it, and a token with many experts
// is sorted once.
TEST(Routing, TakesMemoryAsTheFileHasLines) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const TempFolder folder;
  std::string late = "step,layer,expert\n", backwards = late;
  for (int i = 0; i < 10'000; ++i) late += std::to_string(i) + ",4095,0\n";
  for (int i = 65'535; i >= 0; --i) backwards += "0,0," + std::to_string(i) + "\n";
  for (const std::string& text : {late, backwards}) {
    const std::string path = folder.write("routing", text);
    const uint64_t grown = peak_growth_bytes([&] { (void)read_routing(path, 0); });
    EXPECT_LT(grown, 100 * text.size());
  }
}

// Sorting the experts of a token at each of its lines took ten seconds for each of these tokens.
TEST(Routing, ManyExpertsInFallingOrder) {
  constexpr uint32_t kTokens = 32, kExperts = 65'536;
  std::string text = "step,layer,expert\n";
  for (uint32_t token = 0; token < kTokens; ++token) {
    for (uint32_t i = kExperts; i-- > 0;) text += std::to_string(token) + ",0," + std::to_string(i) + "\n";
  }
  const TempFolder folder;
  const Routing routing = read(folder, text);
  ASSERT_EQ(routing.generated.size(), kTokens);
  for (const Routing::Token& token : routing.generated) {
    ASSERT_EQ(token.size(), 1u);
    EXPECT_EQ(token.front().experts.size(), kExperts);
    EXPECT_TRUE(std::ranges::is_sorted(token.front().experts));
  }
}

// Experts a, b, c, a, b, c, …, with room for two. LRU never hits. A cache that keeps one expert hits every
// third time; the best possible one every second time.
TEST(Routing, CachesAgainstWhatIsPossible) {
  Routing routing;
  routing.layers = 1;
  routing.experts = 4;
  routing.expert_bytes = {4096};
  for (uint32_t t = 0; t < 30; ++t) routing.generated.push_back({{0, {t % 3}}});
  LayerChoices choices;
  for (const Routing::Token& token : routing.generated) choices.push_back(&token.front().experts);
  EXPECT_EQ(best_possible_hits(choices, 2), 18u);
  EXPECT_EQ(best_possible_hits(choices, 1), 9u);
  EXPECT_EQ(best_possible_hits(choices, 3), 27u);
  Config config;
  config.plugin_path = TIERD_PLUGIN_DIR;
  const auto result =
      expert_caches(routing, {.memory = {50, 75}, .caches = {}}, strategies_on(plugin_path(config)));
  ASSERT_TRUE(result.ok()) << result.error().line();
  const auto hits = [&](uint32_t percent, const std::string& policy) -> int64_t {
    for (const ExpertCacheRow& row : result->rows) {
      if (row.memory_percent == percent && row.policy == policy) return static_cast<int64_t>(row.hits);
    }
    return -1;
  };
  EXPECT_EQ(hits(50, "lru"), 0);
  EXPECT_EQ(hits(50, "fifo"), 0);
  EXPECT_EQ(hits(50, "static, hindsight"), 20);  // two of three, resident from the start
  EXPECT_EQ(hits(50, "best possible"), 18);      // begins empty
  EXPECT_EQ(hits(50, "random"), 15);
  EXPECT_EQ(hits(75, "lru"), 27);
  EXPECT_EQ(hits(75, "lfu"), 27);
  EXPECT_EQ(hits(75, "best possible"), 27);
  EXPECT_THAT(expert_caches_text(*result), HasSubstr("best possible"));
  EXPECT_THAT(expert_caches(routing, {.memory = {50}, .caches = {"cache.name=lru,arena=4096"}},
                            strategies_on(plugin_path(config)))
                  .error()
                  .line(),
              HasSubstr("set the room with --memory"));
}

}  // namespace
}  // namespace tierd
