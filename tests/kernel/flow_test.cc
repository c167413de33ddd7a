// Dense work of several units: which unit has a site's input, and which takes its results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/base/random.h"
#include "tests/kernel/scripted_world.h"

namespace tierd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Assigns neuron i to unit unit_of(i).
void assign(ScriptedWorld& world, const std::function<uint8_t(uint32_t)>& unit_of) {
  world.script.assign = [unit_of](const tierd_set_view* set, uint8_t* unit) {
    for (uint32_t i = 0; i < set->n; ++i) unit[i] = unit_of(set->idx == nullptr ? i : set->idx[i]);
    return 0;
  };
}

WorldOptions of(uint32_t units, Flow flow) {
  return {.neurons = {4}, .slots = {0}, .neurons_per_block = 4, .units = units, .flows = {std::move(flow)}};
}

TEST(Flows, AnyUnitDoesTheDenseWork) {
  ScriptedWorld world(of(2, {.input = {{1}}, .before = true, .output = {{1}}}));
  assign(world, [](uint32_t neuron) { return neuron % 2; });
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.order.front(), "2 run B");
  EXPECT_EQ(world.order.back(), "2 compute 1,3 takes 0,2 of 1 A");
  EXPECT_THAT(world.order, Contains("1 compute 0,2 takes input of 2"));
  world.order.clear();
  assign(world, [](uint32_t) { return uint8_t{1}; });
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_THAT(world.order, ElementsAre("2 run B", "2 compute 0,1,2,3 A"));
  world.expect_nothing_lost();
}

TEST(Flows, OneHasTheInputAndAnotherTakesTheResults) {
  ScriptedWorld world(of(3, {.input = {{0}}, .before = true, .output = {{2}}}));
  assign(world, [](uint32_t) { return uint8_t{0}; });
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.order, ElementsAre("1 run B", "1 compute 0,1,2,3", "3 run takes 0,1,2,3 of 1 A"));
  world.order.clear();
  assign(world, [](uint32_t neuron) { return static_cast<uint8_t>(neuron == 0 ? 0 : 2); });
  ASSERT_TRUE(world.pass(0, 1).ok());
  EXPECT_EQ(world.order.front(), "1 run B");
  EXPECT_THAT(world.order, Contains("3 compute 1,2,3 takes input of 1"));
  EXPECT_EQ(world.order.back(), "3 run takes 0 of 1 A");
  world.expect_nothing_lost();
}

// Without a segment before, no unit waits for the input.
TEST(Flows, InputThatIsThereIsTakenAtOnce) {
  ScriptedWorld world(of(2, {.input = {{0}}, .before = false, .output = {{0}}}));
  assign(world, [](uint32_t) { return uint8_t{1}; });
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.order, ElementsAre("2 compute 0,1,2,3 takes input of 1", "1 run takes 0,1,2,3 of 2 B A"));
  world.expect_nothing_lost();
}

// Attention by heads leaves its output in parts; the next operator takes each part from its unit.
TEST(Flows, PartsOfTheInputComeFromWhereTheyAre) {
  ScriptedWorld world(of(3, {.input = {{1, 0, 2}, {2, 2, 1}}, .before = false, .output = {{0}}}));
  assign(world, [](uint32_t neuron) { return static_cast<uint8_t>(neuron % 2); });
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.order, Contains("1 compute 0,2 takes input in 0-1 of 2; input in 2-2 of 3"));
  EXPECT_THAT(world.order, Contains("2 compute 1,3 takes input in 2-2 of 3"));
  EXPECT_EQ(world.order.back(), "1 run takes 1,3 of 2 A");
  world.expect_nothing_lost();
}

TEST(Flows, EachTakesTheColumnsThatItNeeds) {
  WorldOptions options = of(3, {.input = {{0}}, .before = true, .output = {{1, 0, 2}, {2, 2, 1}, {1, 3, 3}}});
  options.bundles = true;
  ScriptedWorld world(options);
  assign(world, [](uint32_t neuron) { return static_cast<uint8_t>(neuron % 2); });
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_EQ(world.order.front(), "1 run B");
  // The unit's own neurons first and separately, because the third unit takes some of their results.
  EXPECT_THAT(world.order, Contains("2 compute 1,3 takes input of 1"));
  EXPECT_THAT(world.order, Contains("2 run takes sums in 0-1 of 1; sums in 3-5 of 1 A"));
  EXPECT_THAT(world.order, Contains("3 run takes sums in 2-2 of 1; sums in 2-2 of 2 A"));
  EXPECT_EQ(world.order.size(), 5u);
  world.expect_nothing_lost();
}

// One unit takes results after another has run its segment after.
TEST(Flows, NobodyWaitsForTheSegmentAfterOfAnother) {
  ScriptedWorld world(of(2, {.input = {{0}}, .before = true, .output = {{0, 0, 3}, {1, 3, 3}}}));
  assign(world, [](uint32_t neuron) { return static_cast<uint8_t>(neuron % 2); });
  world.idle = [&] {
    if (!world.flash.open.empty()) return world.flash.finish();
    world.computes[0].hold = false;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  const auto at = [&](const char* line) {
    return std::ranges::find(world.order, line) - world.order.begin();
  };
  EXPECT_LT(at("2 compute 1,3 takes input of 1"), at("1 run takes 1,3 in 0-2 of 2 A"));
  EXPECT_LT(at("1 compute 0,2"), at("2 run takes 0,2 in 3-5 of 1 A"));
  world.expect_nothing_lost();
}

TEST(Flows, APassWithoutNeuronsRunsItsSegments) {
  WorldOptions options = of(3, {.input = {{1}}, .before = true, .output = {{0, 0, 3}, {2, 3, 3}}});
  ScriptedWorld world(options);
  world.script.predict = [](SiteId, tierd_set_out* out) {
    out->n = 0;
    return 0;
  };
  ASSERT_TRUE(world.pass(0, 0).ok());
  EXPECT_THAT(world.order, UnorderedElementsAre("1 run A", "2 run B", "3 run A"));
  world.expect_nothing_lost();
}

Flow draw_flow(Random& random, uint32_t units) {
  const auto unit = [&] { return static_cast<UnitId>(random.below(units)); };
  const auto parts = [&](uint32_t columns) {
    std::vector<UnitColumns> drawn;
    for (uint32_t first = 0; first < columns;) {
      const uint32_t count = 1 + random.below(columns - first);
      drawn.push_back({unit(), first, count});
      first += count;
    }
    return drawn;
  };
  Flow flow;
  flow.input = random.below(2) == 0 ? std::vector<UnitColumns>{{unit()}} : parts(kInputs);
  flow.before = flow.holder() != kNoUnit && random.below(2) == 0;
  flow.output = random.below(2) == 0 ? std::vector<UnitColumns>{{unit()}} : parts(kOutputs);
  return flow;
}

// Returns a unit's take as the log shows it.
std::string taken(const std::string& what, const UnitColumns& part, uint32_t from, uint32_t width) {
  const uint32_t count = std::min(part.count, width - part.first);
  std::string text = what;
  if (part.first != 0 || count != width)
    text += " in " + std::to_string(part.first) + "-" + std::to_string(part.first + count - 1);
  return text + " of " + std::to_string(from + 1);
}

// Drawn flows, assignments and delivery orders. Each computing unit has all input before its first neuron.
// Each unit that needs results takes them from all others in order, before its segment after, which is its
// last message. Nothing is lost.
TEST(Flows, AnyHistoryKeepsTheOrder) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    WorldOptions options;
    options.units = 1 + random.below(4);
    options.neurons = {1 + random.below(6), 1 + random.below(6)};
    options.slots = {std::min(random.below(4), options.neurons[0]),
                     std::min(random.below(4), options.neurons[1])};
    options.blocks = 1 + random.below(5);
    options.neurons_per_block = 1 + random.below(3);
    options.messages = 4 + random.below(30);
    options.credits = 1 + random.below(8);
    if (random.below(2) == 0) options.seed = seed;
    for (int s = 0; s < 2; ++s) options.flows.push_back(draw_flow(random, options.units));
    ScriptedWorld world(options);
    std::map<uint32_t, uint8_t> assigned;
    world.script.assign = [&](const tierd_set_view* set, uint8_t* unit) {
      assigned.clear();
      for (uint32_t i = 0; i < set->n; ++i) {
        unit[i] = static_cast<uint8_t>(random.below(options.units));
        assigned[set->idx == nullptr ? i : set->idx[i]] = unit[i];
      }
      return 0;
    };
    for (uint32_t step = 0; step < 3; ++step) {
      for (SiteId site = 0; site < 2; ++site) {
        for (RecordingCompute& unit : world.computes) unit.log.clear();
        if (options.units == 1) {
          assigned.clear();
          for (uint32_t i = 0; i < options.neurons[site]; ++i) assigned[i] = 0;
        }
        ASSERT_TRUE(world.pass(site, step).ok());
        const Flow& flow = options.flows[site];
        const auto neurons_of = [&](uint32_t u) {
          std::string text;
          for (const auto& [neuron, unit] : assigned) {
            if (unit == u) text += (text.empty() ? "" : ",") + std::to_string(neuron);
          }
          return text;
        };
        for (uint32_t u = 0; u < options.units; ++u) {
          SCOPED_TRACE("unit " + std::to_string(u));
          std::vector<std::string> input, results, took_input, took_results;
          for (const UnitColumns& part : flow.input) {
            if (part.unit != u && !neurons_of(u).empty())
              input.push_back(taken("input", part, part.unit, kInputs));
          }
          for (uint32_t other = 0; other < options.units; ++other) {
            for (const UnitColumns& part : flow.output) {
              if (other == u || part.unit != u || neurons_of(other).empty()) continue;
              results.push_back(taken(neurons_of(other), part, other, kOutputs));
            }
          }
          const bool merges = std::ranges::count(flow.output, u, &UnitColumns::unit) != 0;
          const std::vector<Computed>& log = world.computes[u].log;
          for (size_t i = 0; i < log.size(); ++i) {
            EXPECT_EQ(log[i].before, i == 0 && flow.holder() == u);
            EXPECT_EQ(log[i].after, i + 1 == log.size() && merges);
            for (const std::string& take : log[i].takes)
              (take.starts_with("input") ? took_input : took_results).push_back(take);
            EXPECT_TRUE(log[i].neurons.empty() || took_input == input) << "before the first neuron";
            EXPECT_TRUE(took_results.empty() || log[i].after);
          }
          EXPECT_EQ(took_input, input);
          EXPECT_EQ(took_results, results);
          EXPECT_TRUE(!merges || !log.empty());
        }
      }
      ASSERT_TRUE(world.end_step(step).ok());
    }
    world.expect_nothing_lost();
  }
}

}  // namespace
}  // namespace tierd
