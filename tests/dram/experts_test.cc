// Compares whole experts with plain loops. A row's bits depend only on the experts it uses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "tiers/dram/choose_experts.h"
#include "tiers/dram/executor.h"

namespace tierd {
namespace {

constexpr uint32_t kExperts = 6;
constexpr uint32_t kExpertWidth = 64;
constexpr uint32_t kInner = 96;  // a multiple of a block, not of two row groups' columns
constexpr uint32_t kMixtureTokens = 5;
enum : BufferId { kMixtureIn, kMixtureOut, kExpertHidden, kExpertUp, kChoice, kInputs, kResults };
const std::vector<RowInfo> kMixtureRows(kMixtureTokens);

// Packed weights, and the same weights in plain order.
struct Mixture {
  Mixture(Encoding e, Random& random) : Mixture(e, e, random) {}
  Mixture(Encoding e, Encoding of_down, Random& random) : matrices{kExpertWidth, kInner, e, e, of_down} {
    memory.resize(kExperts * stride() / sizeof(Line));
    for (uint32_t expert = 0; expert < kExperts; ++expert) {
      add(expert, e, 0, kInner, kExpertWidth, random);
      add(expert, e, matrices.up_offset(), kInner, kExpertWidth, random);
      add(expert, of_down, matrices.down_offset(), kExpertWidth, kInner, random);
    }
    x.resize(kMixtureTokens * kExpertWidth);
    for (float& value : x) value = random.symmetric();
    // Each row uses some experts, none uses all, and one expert has no row.
    choice.resize(kMixtureTokens * kExperts);
    for (uint32_t t = 0; t < kMixtureTokens; ++t) {
      for (uint32_t expert = 0; expert + 1 < kExperts; ++expert)
        choice[t * kExperts + expert] = (t + expert) % 3 == 0 ? 0 : 0.25f + static_cast<float>(expert);
    }
  }
  uint64_t stride() const { return align_up(matrices.bytes(), kPlaceUnit); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.data()); }
  uint32_t place(uint32_t expert) const {
    return static_cast<uint32_t>((expert * 5 + 2) % kExperts * stride() / kPlaceUnit);
  }
  void add(uint32_t expert, Encoding e, uint64_t offset, uint32_t rows, uint32_t cols, Random& random) {
    const uint64_t row_bytes = encoded_bytes(e, cols);
    std::vector<std::byte> plain_rows(rows * row_bytes);
    for (uint32_t r = 0; r < rows; ++r) {
      std::vector<float> values(cols);
      for (float& value : values) value = random.symmetric();
      const std::span<std::byte> row(&plain_rows[r * row_bytes], row_bytes);
      encode(e, values, row);
      decode(e, row, values);
      plain.insert(plain.end(), values.begin(), values.end());
    }
    std::byte* at = bytes() + place(expert) * kPlaceUnit + offset;
    for (uint32_t r = 0; r < rows; r += kGroupRows) {
      pack_row_group(e, kGroupRows, cols,
                     std::span(plain_rows).subspan(r * row_bytes, kGroupRows * row_bytes),
                     {at + r * row_bytes, kGroupRows * row_bytes});
    }
  }
  // Returns row r of gate (0), up (1) or down (2).
  const float* row(uint32_t expert, uint32_t matrix, uint32_t r) const {
    const uint32_t cols = matrix == 2 ? kInner : kExpertWidth;
    return &plain[(uint64_t{expert} * 3 + matrix) * kInner * kExpertWidth + uint64_t{r} * cols];
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  ExpertMatrices matrices;
  std::vector<Line> memory;
  std::vector<float> plain, x, choice;
};

// Makes one call with each list of experts. `most`: lines of scratch and of a batch.
using Calls = std::vector<std::vector<uint32_t>>;
std::vector<float> mixed(Mixture& mixture, const Calls& calls, uint32_t workers = 1,
                         uint32_t tokens = kMixtureTokens, uint32_t first_token = 0,
                         uint32_t most = kMixtureTokens) {
  ComputePlan plan;
  const uint32_t up = 2 * static_cast<uint32_t>(align_up(kInner, kGroupRows));
  plan.buffers = {
      {"in", kExpertWidth, 0}, {"out", kExpertWidth, 0},    {"hidden", kInner, 0},       {"up", up, 0},
      {"choice", kExperts, 0}, {"inputs", kExpertWidth, 0}, {"results", kExpertWidth, 0}};
  plan.max_rows = most;
  SiteWork& site = plan.sites.emplace_back();
  site.cut = Experts{.width = kExpertWidth, .inner = kInner, .experts = kExperts};
  site.editions = {0};
  plan.editions = {{mixture.matrices.gate, mixture.matrices.up, mixture.matrices.down}};
  site.in = kMixtureIn;
  site.out = kMixtureOut;
  site.ffn = {.activation = Activation::silu, .hidden = kExpertHidden, .up = kExpertUp};
  site.experts = {.choice = kChoice, .inputs = kInputs, .results = kResults};
  const std::vector<uint64_t> offsets = buffer_offsets(plan);
  const uint32_t choice_stride = buffer_stride(plan.buffers[kChoice]);
  Team team({.workers = workers});
  auto executor = Executor::create(plan, best_kernels(), team);
  EXPECT_TRUE(executor.ok());
  auto* floats = reinterpret_cast<float*>(executor->activations().data());
  for (uint32_t t = 0; t < tokens; ++t) {
    std::copy_n(&mixture.x[(first_token + t) * kExpertWidth], kExpertWidth,
                floats + offsets[kMixtureIn] / sizeof(float) + uint64_t{t} * kExpertWidth);
    std::copy_n(&mixture.choice[(first_token + t) * kExperts], kExperts,
                floats + offsets[kChoice] / sizeof(float) + uint64_t{t} * choice_stride);
  }
  executor->clear(0, tokens);
  for (const auto& experts : calls) {
    std::vector<Unit> units;
    for (const uint32_t expert : experts) units.push_back({expert, mixture.place(expert)});
    EXPECT_EQ(executor->neurons(0, 0, std::span(kMixtureRows).first(tokens), units, mixture.bytes(), {}),
              experts.size() * mixture.matrices.tensor_bytes());
  }
  const float* out = floats + offsets[kMixtureOut] / sizeof(float);
  return {out, out + tokens * kExpertWidth};
}

TEST(Experts, AreAddedAsMuchAsTheyWereChosen) {
  Random random(1);
  for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
    Mixture mixture(e, e == Encoding::q4_0 ? Encoding::q8_0 : e,
                    random);  // as in files named Q4_K_M, down has more bits
    const auto dot = [](const float* a, const auto& b, uint32_t n) {
      double sum = 0;
      for (uint32_t i = 0; i < n; ++i) sum += double{a[i]} * b[i];
      return sum;
    };
    const auto got = mixed(mixture, {{0, 1, 2, 3, 4, 5}});
    for (uint32_t t = 0; t < kMixtureTokens; ++t) {
      std::vector<double> want(kExpertWidth);
      for (uint32_t expert = 0; expert < kExperts; ++expert) {
        const float* x = &mixture.x[t * kExpertWidth];
        std::vector<double> hidden(kInner);
        for (uint32_t i = 0; i < kInner; ++i) {
          const double gate = dot(mixture.row(expert, 0, i), x, kExpertWidth);
          hidden[i] = gate / (1 + std::exp(-gate)) * dot(mixture.row(expert, 1, i), x, kExpertWidth);
        }
        for (uint32_t c = 0; c < kExpertWidth; ++c) {
          want[c] += double{mixture.choice[t * kExperts + expert]} *
                     dot(mixture.row(expert, 2, c), hidden.data(), kInner);
        }
      }
      for (uint32_t c = 0; c < kExpertWidth; ++c)
        ASSERT_NEAR(got[t * kExpertWidth + c], want[c], 1e-4 * std::abs(want[c]) + 2e-3)
            << name(e) << ' ' << t << ' ' << c;
    }
  }
}

TEST(Experts, BitsDependOnNeitherCallsNorWorkersNorBatchNorScratch) {
  Random random(2);
  Mixture mixture(Encoding::q8_0, random);
  const auto whole = mixed(mixture, {{0, 1, 2, 3, 4, 5}});
  EXPECT_EQ(mixed(mixture, {{0}, {1, 2}, {3}, {4, 5}}), whole);
  EXPECT_EQ(mixed(mixture, {{0, 1, 2, 3, 4}}), whole) << "of the last one no row gets anything";
  EXPECT_EQ(mixed(mixture, {{0, 1}, {2, 3, 4}}, 3), whole);
  EXPECT_EQ(mixed(mixture, {{0, 1, 2, 3, 4, 5}}, 2, kMixtureTokens, 0, 64), whole) << "all computed together";
  for (uint32_t t = 0; t < kMixtureTokens; ++t) {
    const std::vector<float> alone(whole.begin() + t * kExpertWidth, whole.begin() + (t + 1) * kExpertWidth);
    EXPECT_EQ(mixed(mixture, {{0, 1, 2, 3, 4, 5}}, 1, 1, t), alone);
    EXPECT_EQ(mixed(mixture, {{0, 1, 2, 3, 4, 5}}, 1, 1, t, 1), alone) << "one after the other";
  }
}

std::vector<float> choose(std::vector<float> scores, uint32_t picks, bool sum_to_one) {
  choose_experts(scores, {.picks = picks, .sum_to_one = sum_to_one}, nullptr);
  return scores;
}

TEST(Experts, TheLargestAreChosen) {
  const float e = std::exp(1.0f);
  const float whole = 2 + 2 * e;
  const auto as_they_are = choose({0, 1, 0, 1}, 3, false);
  EXPECT_FLOAT_EQ(as_they_are[0], 1 / whole);
  EXPECT_FLOAT_EQ(as_they_are[1], e / whole);
  EXPECT_EQ(as_they_are[2], 0) << "of equals the first";
  EXPECT_FLOAT_EQ(as_they_are[3], e / whole);
  const auto of_one = choose({0, 1, 0, 1}, 2, true);
  EXPECT_EQ(of_one, (std::vector<float>{0, 0.5f, 0, 0.5f}));
  EXPECT_EQ(choose({1000, -1000}, 1, true), (std::vector<float>{1, 0}));
  EXPECT_EQ(choose({3}, 1, true), (std::vector<float>{1}));
  const auto all = choose({-1, 2, 0.5f}, 3, true);
  EXPECT_NEAR(all[0] + all[1] + all[2], 1, 1e-6);
}

TEST(Experts, WhatIsNoNumberIsSeen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto chosen = choose({0, nan, 1}, 1, false);
  uint32_t used = 0;
  for (const float weight : chosen) used += weight != 0 ? 1 : 0;
  EXPECT_EQ(used, 1u);
  for (const float weight : chosen) EXPECT_TRUE(weight == 0 || std::isnan(weight));
}

TEST(Experts, TheCorrectionIsForTheChoiceAlone) {
  std::vector<float> scores = {0, 0, 0, 0};
  const std::vector<float> correction = {0, 0.25F, -1, 0.5F};
  choose_experts(scores, {.score = RouterScore::sigmoid, .picks = 2, .scale = 3}, correction.data());
  EXPECT_EQ(scores, (std::vector<float>{0, 1.5F, 0, 1.5F}));
}

TEST(Experts, OnlyThoseOfTheBestGroupsAreChosen) {
  // Expert 0 has the highest score, but the sum of the two best ones is higher in the other groups.
  const std::vector<float> products = {3, -9, -9, 2, 2, 0, 2, 1, 1};
  const ExpertChoice routing = {
      .score = RouterScore::sigmoid, .picks = 3, .groups = 3, .groups_used = 2, .group_best = 2};
  std::vector<float> scores = products;
  choose_experts(scores, routing, nullptr);
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_EQ(scores, (std::vector<float>{0, 0, 0, sigmoid(2), sigmoid(2), 0, sigmoid(2), 0, 0}));
  ExpertChoice of_best = routing;
  of_best.group_best = 1;
  of_best.groups_used = 1;
  scores = products;
  choose_experts(scores, of_best, nullptr);
  EXPECT_EQ(scores[0], sigmoid(3));
  EXPECT_EQ(scores[3], 0) << "the best group alone has the highest score";
}

}  // namespace
}  // namespace tierd
