// Predictors that read a site's inputs: low-rank tables, a network's own gate, the largest inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/random.h"
#include "tests/plugins/table.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Predictor = Plugged<tierd_predictor_1>;
constexpr uint32_t kFfnNeurons = 90;
constexpr uint32_t kWidth = 24;
constexpr uint32_t kRank = 7;
constexpr uint32_t kRows = 70;  // two words of a mask
const std::vector<TestSite> kFfnSites = {{4, 64},
                                         {kFfnNeurons, 64, false, TIERD_NO_SITE, TIERD_AXIS_NEURON, kWidth}};
constexpr uint32_t kFfn = 1;

std::vector<float> draw_values(Random& random, size_t n) {
  std::vector<float> values(n);
  for (float& value : values) value = random.symmetric();
  return values;
}
TestMatrix matrix(Random& random, uint32_t rows, uint32_t cols) {
  return {rows, cols, draw_values(random, uint64_t{rows} * cols)};
}

struct Answer {
  bool all = false;
  std::vector<uint32_t> neurons;
  std::vector<uint64_t> row_masks;
  std::vector<float> scores;
};
Answer answer_to(Predictor& predictor, uint32_t site, const std::vector<float>& x, uint32_t width = kWidth) {
  const auto rows = static_cast<uint32_t>(x.size() / width);
  const uint32_t words = (rows + 63) / 64;
  const std::vector<uint64_t> sequences(rows, 0);
  tierd_rows_view view{sizeof view, rows, width, x.data(), sequences.data()};
  Answer answer;
  answer.neurons.resize(kFfnNeurons);
  answer.row_masks.assign(uint64_t{kFfnNeurons} * words, ~uint64_t{0});
  tierd_set_out out{sizeof out, kFfnNeurons, 0, 0, answer.neurons.data(), answer.row_masks.data(), nullptr,
                    0};
  answer.scores.resize(kFfnNeurons);
  out.score = answer.scores.data();
  EXPECT_EQ(predictor.table.predict(predictor.self, site, &view, &out), TIERD_OK);
  answer.all = out.all != 0;
  answer.neurons.resize(out.n);
  answer.row_masks.resize(uint64_t{out.n} * words);
  answer.scores.resize(out.n);
  EXPECT_EQ(out.scored != 0, !answer.all);
  return answer;
}

// `fires(row, neuron)` returns the right answer, or nothing where rounding may decide.
template <class Fires>
void expect_fires(const Answer& answer, uint32_t rows, Fires fires) {
  ASSERT_FALSE(answer.all);
  const uint32_t words = (rows + 63) / 64;
  uint32_t listed = 0;
  for (uint32_t i = 0; i < kFfnNeurons; ++i) {
    const bool here = listed < answer.neurons.size() && answer.neurons[listed] == i;
    for (uint32_t r = 0; r < rows; ++r) {
      const bool said = here && (answer.row_masks[uint64_t{listed} * words + r / 64] >> (r % 64) & 1) != 0;
      ASSERT_EQ(said, fires(r, i).value_or(said)) << "row " << r << " neuron " << i;
    }
    listed += here ? 1 : 0;
  }
  EXPECT_EQ(listed, answer.neurons.size());
}

TEST(LowRank, KeepsTheGreatestScoresOfEachRow) {
  Random random(4);
  const TestMatrix a = matrix(random, kRank, kWidth), b = matrix(random, kFfnNeurons, kRank);
  const std::vector<float> x = draw_values(random, kRows * kWidth);
  for (const double keep : {0.001, 0.1, 0.5, 1.0}) {
    Predictor predictor("predictor", "low-rank", kFfnSites, {{"keep", keep, "test"}}, {},
                        {{"site 1.a", a}, {"site 1.b", b}});
    const auto kept = std::max<size_t>(1, static_cast<size_t>(std::lround(keep * kFfnNeurons)));
    std::vector<std::vector<float>> scores(kRows, std::vector<float>(kFfnNeurons));
    for (uint32_t r = 0; r < kRows; ++r) {
      std::vector<float> inner;
      for (uint32_t k = 0; k < kRank; ++k)
        inner.push_back(static_cast<float>(a.dot(k, x.data() + r * kWidth)));
      for (uint32_t i = 0; i < kFfnNeurons; ++i) scores[r][i] = static_cast<float>(b.dot(i, inner.data()));
    }
    const auto fires = [&](uint32_t row, uint32_t neuron) -> std::optional<bool> {
      std::vector<float> sorted = scores[row];
      std::ranges::sort(sorted, std::greater<>());
      return scores[row][neuron] >= sorted[kept - 1];
    };
    expect_fires(answer_to(predictor, kFfn, x), kRows, fires);
    const std::vector<float> one(x.begin(), x.begin() + kWidth);
    const Answer alone = answer_to(predictor, kFfn, one);
    EXPECT_EQ(alone.neurons.size(), kept);
    expect_fires(alone, 1, fires);
  }
}

// Two networks of one width and one of another width. The input of the first network and the tables of the
// second one predict the second.
TEST(LowRank, LooksAheadByTheTablesOfLaterLayers) {
  Random random(9);
  const std::vector<TestSite> sites = {{kFfnNeurons, 64, false, TIERD_NO_SITE, TIERD_AXIS_NEURON, kWidth},
                                       {4, 64},
                                       {kFfnNeurons, 64, false, TIERD_NO_SITE, TIERD_AXIS_NEURON, kWidth},
                                       {kFfnNeurons, 64, false, TIERD_NO_SITE, TIERD_AXIS_NEURON, kWidth}};
  TestMatrices tables;
  for (const char* site : {"site 0", "site 2", "site 3"}) {
    tables[std::string(site) + ".a"] = matrix(random, kRank, kWidth);
    tables[std::string(site) + ".b"] = matrix(random, kFfnNeurons, kRank);
  }
  const std::vector<float> x = draw_values(random, 17 * kWidth);
  const auto wishes = [&](int64_t layers, uint32_t site, uint32_t rows) {
    Predictor predictor("predictor", "low-rank", sites,
                        {{"keep", 0.1, "test"}, {"layers_ahead", layers, "test"}}, {}, tables);
    const std::vector<uint64_t> sequences(rows, 0);
    const tierd_rows_view view{sizeof view, rows, kWidth, x.data(), sequences.data()};
    EXPECT_EQ(predictor.table.look_ahead(predictor.self, site, &view), TIERD_OK);
    for (const Predictor::Wish& wish : predictor.wishes) {
      EXPECT_EQ(wish.site, site + wish.distance);
      const Answer known = answer_to(predictor, wish.site, {x.begin(), x.begin() + rows * kWidth});
      EXPECT_EQ(wish.neurons, known.neurons) << "what that site's tables say of this input";
      EXPECT_EQ(wish.scores, known.scores);
    }
    std::vector<uint32_t> asked;
    for (const Predictor::Wish& wish : predictor.wishes) asked.push_back(wish.site);
    return asked;
  };
  EXPECT_THAT(wishes(0, 0, 1), IsEmpty());
  EXPECT_THAT(wishes(1, 0, 1), ElementsAre(2));
  EXPECT_THAT(wishes(2, 0, 1), ElementsAre(2, 3));
  EXPECT_THAT(wishes(1, 1, 1), IsEmpty()) << "nothing is known of its input";
  EXPECT_THAT(wishes(1, 3, 1), IsEmpty()) << "the next token is another one";
  EXPECT_THAT(wishes(1, 2, 16), ElementsAre(3));
  EXPECT_THAT(wishes(1, 2, 17), IsEmpty()) << "a prompt";
}

// A recording of two passes: three neurons, then all. Later passes are unknown.
TEST(Oracle, KnowsThePassesThatWereRecorded) {
  HeatOfSites recording = {
      {"site 1.rows", {1, 1}}, {"site 1.counts", {3, -1}}, {"site 1.neurons", {2, 5, 89}}};
  const std::vector<float> x(kWidth, 1);
  // With scores in the recording, the predictor declares and returns them.
  const auto passes = [&](bool scored) {
    Predictor predictor("predictor", "oracle", kFfnSites, {}, recording);
    EXPECT_EQ((predictor.table.caps(predictor.self) & TIERD_PREDICTOR_SCORES) != 0, scored);
    std::vector<std::vector<float>> found;
    for (const bool all : {false, true, true}) {
      std::vector<uint32_t> neurons(kFfnNeurons);
      std::vector<float> scores(kFfnNeurons, 0.0F);
      const uint64_t sequence = 0;
      tierd_rows_view view{sizeof view, 1, kWidth, x.data(), &sequence};
      tierd_set_out out{sizeof out, kFfnNeurons, 0, 0, neurons.data(), nullptr, scores.data(), 0};
      EXPECT_EQ(predictor.table.predict(predictor.self, kFfn, &view, &out), TIERD_OK);
      EXPECT_EQ(out.all != 0, all);
      EXPECT_TRUE(all || std::vector(neurons.begin(), neurons.begin() + out.n) == std::vector({2U, 5U, 89U}));
      found.emplace_back(scores.begin(), scores.begin() + (out.scored != 0 ? out.n : 0));
    }
    return found;
  };
  EXPECT_THAT(passes(false), testing::Each(testing::IsEmpty()));
  recording["site 1.scores"] = {0.5, 3, 0.25};
  const auto scored = passes(true);
  EXPECT_THAT(scored[0], testing::ElementsAre(0.5, 3, 0.25));
  EXPECT_THAT(scored[1], testing::IsEmpty());  // a set of all neurons has no scores
}

// Beside 4 x 64 bytes used whole, the memory holds `kept` neurons of the network. A neuron of two editions
// takes 25 % of 64 and 75 % of 16 bytes.
TEST(LowRank, KeepsWhatTheMemoryHolds) {
  Random random(5);
  const TestMatrices tables = {{"site 1.a", matrix(random, kRank, kWidth)},
                               {"site 1.b", matrix(random, kFfnNeurons, kRank)}};
  std::vector<TestSite> sites = kFfnSites;
  sites[kFfn].lower = {16};
  const std::vector<float> x = draw_values(random, kWidth);
  const std::vector<Setting> settings = {{"fit_memory", true, "test"}, {"mix", std::string("25/75"), "test"}};
  const HeatOfSites curves = {{"site 1.kept", {0, 0.8, 1}}};
  for (const auto& [bytes, kept] :
       std::vector<std::pair<uint64_t, size_t>>{{4 * 64 + 1, 1},
                                                {4 * 64 + 28 * 30, 30},
                                                {4 * 64 + 28 * kFfnNeurons, kFfnNeurons},
                                                {1 << 20, kFfnNeurons}}) {
    const TestMachine machine{{{"dram", 0, bytes}}, TIERD_NO_MEMORY};
    Predictor predictor("predictor", "low-rank", sites, settings, curves, tables, 1, machine);
    EXPECT_EQ(answer_to(predictor, kFfn, x).neurons.size(), kept) << bytes;
    predictor.set_bytes(1, 4 * 64 + 28 * 9);
    EXPECT_EQ(answer_to(predictor, kFfn, x).neurons.size(), 9u) << bytes;
  }
  // A memory without room for a neuron is refused.
  Predictor predictor("predictor", "low-rank", sites, settings, curves, tables, 1,
                      {{{"dram", 0, 4 * 64}}, TIERD_NO_MEMORY});
  predictor.expects_lines = true;
  const uint64_t sequence = 0;
  const tierd_rows_view view{sizeof view, 1, kWidth, x.data(), &sequence};
  std::vector<uint32_t> neurons(kFfnNeurons);
  tierd_set_out out{sizeof out, kFfnNeurons, 0, 0, neurons.data(), nullptr, nullptr, 0};
  EXPECT_EQ(predictor.table.fits(predictor.self), TIERD_E_NO_SPACE);
  predictor.lines.clear();
  EXPECT_EQ(predictor.table.predict(predictor.self, kFfn, &view, &out), TIERD_E_NO_SPACE);
  ASSERT_EQ(predictor.lines.size(), 1u);
  EXPECT_NE(predictor.lines.front().find("fit_memory: dram lacks 0 MiB"), std::string::npos);
  predictor.set_bytes(1, 4 * 64 + 28);
  EXPECT_EQ(predictor.table.fits(predictor.self), TIERD_OK);
}

TEST(LowRank, ScoresByTwoThinMatricesForEachRow) {
  Random random(1);
  const TestMatrix a = matrix(random, kRank, kWidth), b = matrix(random, kFfnNeurons, kRank);
  const std::vector<float> bias = draw_values(random, kFfnNeurons), x = draw_values(random, kRows * kWidth);
  for (const bool with_bias : {false, true}) {
    for (const double threshold : {0.3, 0.5, 0.9}) {
      HeatOfSites vectors;
      if (with_bias) vectors["site 1.bias"] = bias;
      Predictor predictor("predictor", "low-rank", kFfnSites, {{"threshold", threshold, "test"}}, vectors,
                          {{"site 1.a", a}, {"site 1.b", b}});
      EXPECT_EQ(predictor.table.reads_x(predictor.self, 0), 0);
      EXPECT_EQ(predictor.table.reads_x(predictor.self, kFfn), 1);
      EXPECT_TRUE(answer_to(predictor, 0, {}).all);
      const auto fires = [&](uint32_t row, uint32_t neuron) -> std::optional<bool> {
        std::vector<float> inner;
        for (uint32_t k = 0; k < kRank; ++k) inner.push_back(static_cast<float>(a.dot(k, &x[row * kWidth])));
        const double score = b.dot(neuron, inner.data()) + (with_bias ? bias[neuron] : 0);
        const double probability = 1 / (1 + std::exp(-score));
        if (std::abs(probability - threshold) < 1e-5) return std::nullopt;
        return probability > threshold;
      };
      expect_fires(answer_to(predictor, kFfn, x), kRows, fires);
      for (uint32_t r = 0; r < 3; ++r) {
        const std::vector<float> row(x.begin() + r * kWidth, x.begin() + (r + 1) * kWidth);
        expect_fires(answer_to(predictor, kFfn, row), 1,
                     [&](uint32_t, uint32_t neuron) { return fires(r, neuron); });
      }
    }
  }
}

TEST(LowRank, TheEndsOfTheThreshold) {
  Random random(2);
  const TestMatrices tables = {{"site 1.a", matrix(random, kRank, kWidth)},
                               {"site 1.b", matrix(random, kFfnNeurons, kRank)}};
  const std::vector<float> x = draw_values(random, 2 * kWidth);
  Predictor all("predictor", "low-rank", kFfnSites, {{"threshold", 0.0, "test"}}, {}, tables);
  EXPECT_EQ(all.table.reads_x(all.self, kFfn), 0);
  EXPECT_TRUE(answer_to(all, kFfn, x).all);
  Predictor none("predictor", "low-rank", kFfnSites, {{"threshold", 1.0, "test"}}, {}, tables);
  EXPECT_TRUE(answer_to(none, kFfn, x).neurons.empty());
}

TEST(Gate, FiresAboveTheCutAndALittleBelow) {
  Random random(3);
  const TestMatrix gate = matrix(random, kFfnNeurons, kWidth);
  const std::vector<float> bias = draw_values(random, kFfnNeurons), x = draw_values(random, kRows * kWidth);
  for (const double threshold : {0.0, 0.4}) {
    Predictor predictor("predictor", "gate", kFfnSites,
                        {{"threshold", threshold, "test"}, {"margin", 0.05, "test"}}, {{"site 1.bias", bias}},
                        {{"site 1.gate", gate}});
    expect_fires(answer_to(predictor, kFfn, x), kRows, [&](uint32_t row, uint32_t neuron) {
      const auto value = [&](uint32_t i) { return gate.dot(i, &x[row * kWidth]) + bias[i]; };
      double largest = 0;
      for (uint32_t i = 0; i < kFfnNeurons; ++i) largest = std::max(largest, std::abs(value(i)));
      const double over = value(neuron) - (threshold - 0.05 * largest);
      return std::abs(over) < 1e-5 ? std::nullopt : std::optional<bool>(over > 0);
    });
  }
}

// From here on: operators that are cut into channels.
const std::vector<TestSite> kOperators = {
    {4, 64}, {kFfnNeurons, 64, false, TIERD_NO_SITE, TIERD_AXIS_CHANNEL, kFfnNeurons}};
constexpr uint32_t kOperator = 1;

TEST(TopK, TakesTheLargestInputsOfEachRow) {
  Random random(4);
  std::vector<float> x = draw_values(random, kRows * kFfnNeurons);
  for (const double sparsity : {0.1, 0.5, 0.8}) {
    Predictor predictor("predictor", "top-k", kOperators, {{"sparsity", sparsity, "test"}});
    EXPECT_EQ(predictor.table.reads_x(predictor.self, 0), 0);
    EXPECT_EQ(predictor.table.reads_x(predictor.self, kOperator), 1);
    EXPECT_TRUE(answer_to(predictor, 0, {}).all);
    const auto kept = static_cast<long>(kFfnNeurons - std::lround(sparsity * kFfnNeurons));
    expect_fires(answer_to(predictor, kOperator, x, kFfnNeurons), kRows, [&](uint32_t row, uint32_t channel) {
      const float* inputs = &x[row * kFfnNeurons];
      const auto larger = std::count_if(inputs, inputs + kFfnNeurons, [&](float value) {
        return std::abs(value) > std::abs(inputs[channel]);
      });
      return std::optional(larger < kept);
    });
  }
}

// With several rows, a neuron's score is its greatest one.
TEST(TopK, ScoresByMagnitude) {
  Random random(6);
  const std::vector<float> x = draw_values(random, kRows * kFfnNeurons);
  Predictor predictor("predictor", "top-k", kOperators, {{"sparsity", 0.5, "test"}});
  for (const uint32_t rows : {1u, kRows}) {
    const std::vector<float> some(x.begin(), x.begin() + rows * kFfnNeurons);
    const Answer answer = answer_to(predictor, kOperator, some, kFfnNeurons);
    ASSERT_FALSE(answer.neurons.empty());
    for (size_t i = 0; i < answer.neurons.size(); ++i) {
      float greatest = 0;
      for (uint32_t r = 0; r < rows; ++r)
        greatest = std::max(greatest, std::abs(x[r * kFfnNeurons + answer.neurons[i]]));
      EXPECT_EQ(answer.scores[i], greatest);
    }
  }
}

TEST(TopK, ZerosAreNeverActiveAndEqualsAlike) {
  std::vector<float> x(kFfnNeurons, 0.0F);
  x[7] = -1;
  x[8] = 2;
  x[9] = 1;
  const auto active = [&](double sparsity) {
    Predictor predictor("predictor", "top-k", kOperators, {{"sparsity", sparsity, "test"}});
    return answer_to(predictor, kOperator, x, kFfnNeurons).neurons;
  };
  using Neurons = std::vector<uint32_t>;
  EXPECT_EQ(active(0), (Neurons{7, 8, 9}));
  EXPECT_EQ(active(0.5), (Neurons{7, 8, 9}));
  EXPECT_EQ(active(1 - 2.0 / kFfnNeurons), (Neurons{7, 8, 9}));
  EXPECT_EQ(active(1 - 1.0 / kFfnNeurons), (Neurons{8}));
  EXPECT_EQ(active(1), Neurons{});
}

TEST(TopK, ThresholdsOfATableAreTheSameForAllRows) {
  Random random(5);
  const std::vector<float> x = draw_values(random, kRows * kFfnNeurons);
  const HeatOfSites tables = {{"site 1.thresholds", {0, 0.5F, 1}}};
  Predictor predictor("predictor", "top-k", kOperators, {{"sparsity", 0.75, "test"}}, tables);
  expect_fires(answer_to(predictor, kOperator, x, kFfnNeurons), kRows, [&](uint32_t row, uint32_t channel) {
    return std::optional(std::abs(x[row * kFfnNeurons + channel]) > 0.75F);
  });
}

}  // namespace
}  // namespace tierd
