// Hermes' state table: four bits a neuron, and parents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Neurons = std::vector<uint32_t>;

HeatOfSites one_parent_each() {
  return {{"site 1.parents", {0, 1, 1, 0, 0, 1}}};
}

class States : public Plugged<tierd_heat_1> {
 public:
  explicit States(const std::vector<TestSite>& sites, const std::vector<Setting>& settings = {},
                  const HeatOfSites& tensors = {})
      : Plugged("predictor", "state-table", sites, settings, tensors) {
    EXPECT_TRUE(read_table(*choose("predictor", "state-table").plugin, "test", predictor_).ok());
  }
  void fired(uint32_t site, const Neurons& neurons, uint32_t rows = 1, bool prompt = false,
             bool knows_all = true) {
    tierd_fired_view view{};
    view.size = sizeof view;
    view.site = site;
    view.rows = rows;
    view.n = static_cast<uint32_t>(neurons.size());
    view.known = knows_all ? TIERD_KNOWN_ALL : TIERD_KNOWN_COMPUTED;
    view.prompt = prompt ? 1 : 0;
    view.idx = neurons.data();
    const Neurons counts(neurons.size(), rows);
    view.count = counts.data();
    EXPECT_EQ(table.fired(self, &view), TIERD_OK);
  }
  std::vector<uint32_t> heat(uint32_t site, uint32_t n) {
    std::vector<uint8_t> heat(n, 99);
    EXPECT_EQ(table.heat(self, site, heat.data()), TIERD_OK);
    return {heat.begin(), heat.end()};
  }
  // Returns nothing if all are predicted.
  std::optional<Neurons> predicted(uint32_t site, uint32_t n) {
    Neurons neurons(n);
    tierd_set_out out{sizeof out, n, 0, 0, neurons.data(), nullptr, nullptr, 0};
    const uint64_t sequence = 0;
    const tierd_rows_view rows{sizeof rows, 1, 8, nullptr, &sequence};
    EXPECT_EQ(predictor_.predict(self, site, &rows, &out), TIERD_OK);
    if (out.all != 0) return std::nullopt;
    neurons.resize(out.n);
    return neurons;
  }

  // Returns whether the table can decide which neurons are computed.
  int fits() { return predictor_.fits(self); }

 private:
  tierd_predictor_1 predictor_{};
};

// The host reports a model without a ReLU. An older host reports nothing.
TEST(StateTable, AModelWhoseNeuronsAllFireIsRefused) {
  for (const char* name : {"state-table", "firing-rate"}) {
    const auto refused = [&](std::vector<bool> never_silent) {
      SiteTable sites;
      for (const bool never : never_silent) {
        Site& site = sites.all.emplace_back();
        site.name = "layers." + std::to_string(sites.size() - 1) + ".ffn";
        site.label = TIERD_AXIS_NEURON;
        site.n = 4;
        site.never_silent = never;
        site.editions = {static_cast<EditionId>(sites.editions.size())};
        Edition& edition = sites.editions.emplace_back();
        edition.owner = static_cast<SiteId>(sites.size() - 1);
        edition.n = 4;
        edition.slot_bytes = 64;
      }
      StrategyChoices choices = choose_all();
      choices.heat = choose("predictor", name);
      const auto made = StrategySet::create(choices, sites, {.topology = Topology::over_store(1)});
      return made.ok() ? std::string("accepted") : made.error().line();
    };
    EXPECT_THAT(refused({true, true}),
                testing::AllOf(testing::HasSubstr("heat '" + std::string(name) + "': could not be created: "),
                               testing::HasSubstr("no neuron of MODEL is ever silent"),
                               testing::EndsWith(" --set heat.name=")));
    EXPECT_EQ(refused({true, false}), "accepted");
    EXPECT_EQ(refused({}), "accepted");
  }
}

// The published rule: 15 + 6 * 0 is not above 15.
TEST(StateTable, WithoutParentsTheRuleOfThePaperIsRefused) {
  const auto refused = [](const std::vector<Setting>& settings, const HeatOfSites& tables = {}) {
    States table({network(3), network(3)}, settings, tables);
    table.expects_lines = true;
    const int answer = table.fits();
    EXPECT_TRUE(answer == TIERD_OK || answer == TIERD_E_UNSUPPORTED) << answer;
    return answer == TIERD_OK ? std::string() : table.lines.back();
  };
  EXPECT_THAT(refused({}), testing::HasSubstr("--set predictor.name=dense"));
  EXPECT_THAT(
      refused({}),
      testing::HasSubstr("make tables of parents with tier profile -m MODEL TEXT -o parents.safetensors "
                         "--parents and use them with --set predictor.tensors=parents.safetensors, or "));
  EXPECT_EQ(refused({}, one_parent_each()), "");
  EXPECT_EQ(refused({{"rule", std::string("reaches"), "test"}}), "");
  EXPECT_EQ(refused({{"threshold", int64_t{14}, "test"}}), "");
  EXPECT_NE(refused({{"threshold", int64_t{40}, "test"}}, one_parent_each()), "");
  EXPECT_NE(refused({{"by", std::string("tokens"), "test"}}, one_parent_each()), "");
  EXPECT_NE(refused({{"by", std::string("layers"), "test"}}), "");
  States rows({{.n = 4, .axis = TIERD_AXIS_ROW}});
  EXPECT_EQ(rows.fits(), TIERD_OK) << "it gates nothing";
}

TEST(StateTable, StatesFollowWhatFires) {
  States table({network(3)});
  table.fired(0, {0, 1});
  EXPECT_THAT(table.heat(0, 3), ElementsAre(4, 4, 0));
  table.fired(0, {0});
  EXPECT_THAT(table.heat(0, 3), ElementsAre(8, 3, 0));
  for (int i = 0; i < 5; ++i) table.fired(0, {0});
  EXPECT_THAT(table.heat(0, 3), ElementsAre(15, 0, 0));
}

// Figure 7: 7 becomes 11, 10 becomes 9.
TEST(StateTable, StepsAreThePapers) {
  States table({network(2)});
  table.fired(0, {0}, 100, true);
  for (int i = 0; i < 8; ++i) table.fired(0, {});
  EXPECT_THAT(table.heat(0, 2), ElementsAre(7, 0));
  table.fired(0, {0});
  EXPECT_THAT(table.heat(0, 2), ElementsAre(11, 0));
  table.fired(0, {});
  EXPECT_THAT(table.heat(0, 2), ElementsAre(10, 0));
}

// A byte has two states, and neurons that do not fire are cooled together.
TEST(StateTable, StatesAreThoseOfEachNeuronByItself) {
  Random random(5);
  for (const uint32_t n : {1u, 2u, 3u, 16u, 31u, 200u}) {
    for (const auto& [up, down] : {std::pair{4, 1}, {15, 3}, {1, 15}}) {
      SCOPED_TRACE(std::to_string(n) + ", +" + std::to_string(up) + ", -" + std::to_string(down));
      States table({network(n)}, {{"up", int64_t{up}, "test"}, {"down", int64_t{down}, "test"}});
      std::vector<uint32_t> states(n, 0);
      for (int step = 0; step < 40; ++step) {
        Neurons fires;
        for (uint32_t i = 0; i < n; ++i) {
          const bool fired = random.below(4) == 0;
          if (fired) fires.push_back(i);
          const int next = static_cast<int>(states[i]) + (fired ? up : -down);
          states[i] = static_cast<uint32_t>(std::clamp(next, 0, 15));
        }
        table.fired(0, fires);
        ASSERT_EQ(table.heat(0, n), states) << "step " << step;
      }
    }
  }
}

// In any order of firing and reading.
TEST(StateTable, HeatIsTheStateAndTheParentsThatHaveFired) {
  Random random(6);
  const std::vector<uint32_t> n = {5, 64, 9, 33};
  std::vector<TestSite> sites;
  HeatOfSites tables;
  for (uint32_t s = 0; s < n.size(); ++s) {
    sites.push_back(network(n[s]));
    std::vector<float>& parents = tables["site " + std::to_string(s) + ".parents"];
    for (uint32_t i = 0; s != 0 && i < 2 * n[s]; ++i)
      parents.push_back(static_cast<float>(random.below(n[s - 1] + 1)) - 1);
  }
  const HeatOfSites all = tables;
  tables.erase("site 0.parents");
  States table(sites, {}, tables);
  std::vector<std::vector<uint32_t>> states, has_fired;
  for (const uint32_t of : n) states.emplace_back(of, 0), has_fired.emplace_back(of, 0);
  for (int step = 0; step < 400; ++step) {
    const uint32_t s = random.below(static_cast<uint32_t>(n.size()));
    if (random.below(2) == 0) {
      Neurons fires;
      for (uint32_t i = 0; i < n[s]; ++i) {
        has_fired[s][i] = random.below(3) == 0 ? 1 : 0;
        if (has_fired[s][i] != 0) fires.push_back(i);
        states[s][i] = has_fired[s][i] != 0 ? std::min(states[s][i] + 4, 15u)
                                            : states[s][i] - std::min(states[s][i], 1u);
      }
      table.fired(s, fires);
      continue;
    }
    std::vector<uint32_t> expected = states[s];
    for (uint32_t i = 0; s != 0 && i < 2 * n[s]; ++i) {
      const float parent = all.at("site " + std::to_string(s) + ".parents")[i];
      if (parent >= 0) expected[i / 2] += 6 * has_fired[s - 1][static_cast<uint32_t>(parent)];
    }
    for (uint32_t& heat : expected) heat = std::min(heat, 15u);
    ASSERT_EQ(table.heat(s, n[s]), expected) << "step " << step;
  }
}

TEST(StateTable, BeginsWithTheShareOfThePrompt) {
  States table({network(4)});
  const auto prompt = [&](const std::vector<uint32_t>& counts) {
    tierd_fired_view view{};
    Neurons neurons, of;
    for (uint32_t i = 0; i < counts.size(); ++i) {
      if (counts[i] != 0) neurons.push_back(i), of.push_back(counts[i]);
    }
    view.size = sizeof view;
    view.rows = 100;
    view.n = static_cast<uint32_t>(neurons.size());
    view.prompt = 1;
    view.idx = neurons.data();
    view.count = of.data();
    EXPECT_EQ(table.table.fired(table.self, &view), TIERD_OK);
  };
  prompt({90, 1, 46, 2});
  EXPECT_THAT(table.heat(0, 4), ElementsAre(15, 0, 8, 1));
  prompt({0, 100, 0, 0});
  prompt({0, 100, 100, 0});
  EXPECT_THAT(table.heat(0, 4), ElementsAre(0, 15, 8, 0))
      << "both parts of the next prompt, and nothing before";
}

TEST(StateTable, ParentsOfTheSiteBeforeCount) {
  const HeatOfSites parents = {{"site 2.parents", {0, 1, 1, -1, -1, -1}}};
  const std::vector<TestSite> sites = {network(2), {4, 64}, network(3)};
  States table(sites, {}, parents);
  table.fired(0, {1});
  EXPECT_THAT(table.heat(2, 3), ElementsAre(6, 6, 0));
  table.fired(0, {0, 1});
  EXPECT_THAT(table.heat(2, 3), ElementsAre(12, 6, 0));
  EXPECT_EQ(table.predicted(0, 2), std::nullopt) << "the first one is computed whole";
  EXPECT_THAT(*table.predicted(2, 3), IsEmpty());
  table.fired(2, {0});
  EXPECT_THAT(*table.predicted(2, 3), ElementsAre(0)) << "4 + 2 * 6";

  States by_tokens(sites, {{"by", std::string("tokens"), "test"}}, parents);
  by_tokens.fired(0, {0, 1});
  EXPECT_THAT(by_tokens.heat(2, 3), ElementsAre(0, 0, 0));
  States by_layers(sites, {{"by", std::string("layers"), "test"}}, parents);
  by_layers.fired(0, {0, 1});
  by_layers.fired(2, {0, 1, 2});
  EXPECT_THAT(by_layers.heat(2, 3), ElementsAre(12, 6, 0));
}

// With the published rule, state + 6 * parents > 15, no four-bit state is enough without parents.
TEST(StateTable, ThePapersRuleNeedsAParent) {
  const std::vector<Setting> predicts = {{"first", std::string("predicted"), "test"}};
  std::vector<Setting> reaches = predicts;
  reaches.push_back({"rule", std::string("reaches"), "test"});
  States literal({network(2)}, predicts), repaired({network(2)}, reaches);
  for (States* table : {&literal, &repaired}) {
    for (int i = 0; i < 9; ++i) table->fired(0, {0});
  }
  EXPECT_THAT(*literal.predicted(0, 2), IsEmpty());
  EXPECT_THAT(*repaired.predicted(0, 2), ElementsAre(0));
  EXPECT_EQ(literal.metrics["recall"], 0);
  EXPECT_EQ(literal.metrics["accuracy"], 0.5) << "half of the neurons never fire";
}

TEST(StateTable, TakesHalfAByteANeuronAndFourForItsParents) {
  std::vector<TestSite> sites;
  HeatOfSites parents;
  for (int layer = 0; layer < 32; ++layer) {
    sites.push_back(network(4096));
    sites.push_back(network(10752));
  }
  for (size_t s = 1; s < sites.size(); ++s)
    parents["site " + std::to_string(s) + ".parents"] = std::vector<float>(size_t{2} * sites[s].n, 7);
  States table(sites, {}, parents);
  EXPECT_EQ(table.metrics["state bytes"], 232 * 1024) << "LLaMA-7B, section 4.2.1";
  // Two numbers below 4096 or 10752 for each neuron: 2 bytes for at least 12 or 14 bits.
  EXPECT_EQ(table.metrics["parents bytes"], 4 * (32 * (4096 + 10752) - 4096));
}

}  // namespace
}  // namespace tierd
