// Compares a feed-forward network cut into neurons with plain loops. Its bits depend only on the neurons.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/base/align.h"
#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "tiers/dram/executor.h"

namespace tierd {
namespace {

constexpr uint32_t kNeurons = 300;  // the last run of 64 is incomplete
constexpr uint32_t kWidth = 96;
constexpr uint32_t kTokens = 3;
constexpr BufferId kFfnIn = 0, kFfnOut = 1, kHidden = 2, kUp = 3, kContribution = 4;
const std::vector<RowInfo> kTokenRows(kTokens);

struct Ffn {
  Ffn(Encoding e, bool gated, Random& random) : bundle{e, kWidth, gated} {
    const auto values = [&](size_t n) {
      std::vector<float> drawn(n);
      for (float& v : drawn) v = random.symmetric();
      return drawn;
    };
    memory.resize(kNeurons * stride() / sizeof(Line));
    for (uint32_t neuron = 0; neuron < kNeurons; ++neuron) {
      std::byte* at = bytes() + place(neuron) * kPlaceUnit;
      for (const uint64_t offset : {uint64_t{0}, bundle.up_offset()})
        encode(e, values(kWidth), {at + offset, bundle.row_bytes()});
      encode_column(e, values(kWidth), {at + bundle.down_offset(), bundle.row_bytes()});
    }
    gate_bias = values(kNeurons);
    up_bias = values(kNeurons);
    x = values(kTokens * kWidth);
  }
  uint64_t stride() const { return align_up(bundle.bytes(), kPlaceUnit); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.data()); }
  uint32_t place(uint32_t neuron) const {
    return static_cast<uint32_t>((neuron * 7 + 5) % kNeurons * stride() / kPlaceUnit);
  }
  std::vector<float> weights(uint32_t neuron, uint64_t offset) {
    std::vector<float> row(kWidth);
    const auto decode_one = offset == bundle.down_offset() ? decode_column : decode;
    decode_one(bundle.encoding, {bytes() + place(neuron) * kPlaceUnit + offset, bundle.row_bytes()}, row);
    return row;
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  Bundle bundle;
  std::vector<Line> memory;
  std::vector<float> gate_bias, up_bias, x;
};

// One call with each list of neurons.
using Calls = std::vector<std::vector<uint32_t>>;

struct Sums {
  std::vector<float> out;           // [tokens][kWidth]
  std::vector<float> contribution;  // [tokens][kNeurons], where it was measured
};
Sums compute(Ffn& ffn, const Calls& calls, Executor::Asked asked, uint32_t workers = 1,
             uint32_t tokens = kTokens, uint32_t first_token = 0) {
  ComputePlan plan;
  plan.buffers = {{"in", kWidth, 0},
                  {"out", kWidth, 0},
                  {"hidden", kNeurons, 0},
                  {"up", kNeurons, 0},
                  {"contribution", kNeurons, 0}};
  plan.max_rows = kTokens;
  SiteWork& site = plan.sites.emplace_back();
  site.cut = Bundles{.width = kWidth, .inner = kNeurons, .gated = ffn.bundle.gated};
  site.editions = {0};
  plan.editions = {Encodings(ffn.bundle.pieces(), ffn.bundle.encoding)};
  site.in = kFfnIn;
  site.out = kFfnOut;
  site.ffn = {.activation = Activation::relu,
              .threshold = 0.125f,
              .gate_bias = ffn.bundle.gated ? 0 : kNoTensor,
              .up_bias = 1,
              .hidden = kHidden,
              .up = kUp};
  site.contribution = kContribution;
  const std::vector<uint64_t> offsets = buffer_offsets(plan);
  Team team({.workers = workers});
  auto executor = Executor::create(plan, best_kernels(), team);
  EXPECT_TRUE(executor.ok());
  executor->set_tensor(0, ffn.gate_bias.data());
  executor->set_tensor(1, ffn.up_bias.data());
  const std::span rows = std::span(kTokenRows).first(tokens);
  std::memcpy(executor->activations().data() + offsets[kFfnIn], &ffn.x[first_token * kWidth],
              tokens * kWidth * sizeof(float));
  executor->clear(0, tokens);
  for (const auto& neurons : calls) {
    std::vector<Unit> units;
    for (const uint32_t neuron : neurons) units.push_back({neuron, ffn.place(neuron)});
    EXPECT_EQ(executor->neurons(0, 0, rows, units, ffn.bytes(), asked), neurons.size() * ffn.bundle.bytes());
  }
  const auto* out = reinterpret_cast<const float*>(executor->activations().data() + offsets[kFfnOut]);
  const auto* gave = reinterpret_cast<const float*>(executor->activations().data() + offsets[kContribution]);
  Sums sums{{out, out + tokens * kWidth}, {}};
  const uint32_t stride = buffer_stride(plan.buffers[kContribution]);
  for (uint32_t t = 0; t < tokens && asked.measure; ++t)
    sums.contribution.insert(sums.contribution.end(), gave + t * stride, gave + t * stride + kNeurons);
  return sums;
}
std::vector<float> summed(Ffn& ffn, const Calls& calls, uint32_t workers = 1, uint32_t tokens = kTokens,
                          uint32_t first_token = 0) {
  return compute(ffn, calls, {}, workers, tokens, first_token).out;
}

std::vector<uint32_t> some_neurons(Random& random, double share) {
  std::vector<uint32_t> some;
  for (uint32_t neuron = 0; neuron < kNeurons; ++neuron) {
    if (random.uniform() < share) some.push_back(neuron);
  }
  return some;
}

TEST(NeuronSums, ComputeTheNetworkOfTheActiveNeurons) {
  Random random(1);
  for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
    for (const bool gated : {false, true}) {
      for (const double share : {1.0, 0.1}) {
        Ffn ffn(e, gated, random);
        const auto active = some_neurons(random, share);
        std::vector<double> want(kTokens * kWidth);
        for (const uint32_t neuron : active) {
          const auto gate = ffn.weights(neuron, 0), up = ffn.weights(neuron, ffn.bundle.up_offset()),
                     down = ffn.weights(neuron, ffn.bundle.down_offset());
          for (uint32_t t = 0; t < kTokens; ++t) {
            double g = ffn.gate_bias[neuron], u = ffn.up_bias[neuron];
            for (uint32_t c = 0; c < kWidth; ++c) g += double{gate[c]} * ffn.x[t * kWidth + c];
            for (uint32_t c = 0; c < kWidth; ++c) u += double{up[c]} * ffn.x[t * kWidth + c];
            const double of = gated ? g : u;
            const double hidden = of > 0.125 ? of * (gated ? u : 1) : 0;
            for (uint32_t c = 0; c < kWidth; ++c) want[t * kWidth + c] += hidden * down[c];
          }
        }
        const auto got = summed(ffn, {active});
        for (size_t i = 0; i < want.size(); ++i)
          ASSERT_NEAR(got[i], want[i], 2e-4) << name(e) << gated << ' ' << i;
      }
    }
  }
}

TEST(NeuronSums, BitsDependOnNeitherCallsNorWorkersNorBatch) {
  Random random(2);
  Ffn ffn(Encoding::f16, true, random);
  const auto active = some_neurons(random, 0.4);
  const auto whole = summed(ffn, {active});
  Calls runs;
  for (const uint32_t neuron : active) {
    if (runs.empty() || runs.back().back() / kPartialNeurons != neuron / kPartialNeurons) runs.emplace_back();
    runs.back().push_back(neuron);
  }
  EXPECT_EQ(summed(ffn, runs), whole);
  EXPECT_EQ(summed(ffn, runs, 3), whole);
  EXPECT_EQ(summed(ffn, {active}, 2), whole);
  for (uint32_t t = 0; t < kTokens; ++t) {
    EXPECT_EQ(summed(ffn, {active}, 1, 1, t),
              std::vector<float>(whole.begin() + t * kWidth, whole.begin() + (t + 1) * kWidth));
  }
}

// A neuron whose sum is below the threshold adds nothing, and does not even change the sign of a zero.
TEST(NeuronSums, InactiveNeuronsChangeNoBit) {
  Random random(3);
  Ffn ffn(Encoding::f32, false, random);
  std::fill(ffn.up_bias.begin(), ffn.up_bias.end(), -1.5f);
  std::vector<uint32_t> all(kNeurons), firing;
  std::iota(all.begin(), all.end(), 0u);
  for (const uint32_t neuron : all) {
    const auto up = ffn.weights(neuron, 0);
    bool fires = false;
    for (uint32_t t = 0; t < kTokens; ++t) {
      double sum = ffn.up_bias[neuron];
      for (uint32_t c = 0; c < kWidth; ++c) sum += double{up[c]} * ffn.x[t * kWidth + c];
      fires |= sum > 0.124;
    }
    if (fires) firing.push_back(neuron);
  }
  ASSERT_LT(firing.size(), all.size());
  ASSERT_GT(firing.size(), 0u);
  const auto dense = summed(ffn, {all}), sparse = summed(ffn, {firing});
  EXPECT_EQ(0, std::memcmp(dense.data(), sparse.data(), dense.size() * sizeof(float)));
}

// Each row has the bits that it has alone, with only its own neurons.
TEST(NeuronSums, RowsUseTheirOwnNeurons) {
  Random random(4);
  Ffn ffn(Encoding::f16, true, random);
  std::vector<uint32_t> all(kNeurons);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<std::vector<uint32_t>> of_row;
  std::vector<uint64_t> masks(kNeurons, 0);
  for (uint32_t t = 0; t < kTokens; ++t) {
    of_row.push_back(some_neurons(random, 0.3));
    for (const uint32_t neuron : of_row.back()) masks[neuron] |= uint64_t{1} << t;
  }
  const Sums together = compute(ffn, {all}, {.row_masks = masks.data(), .measure = false}, 2);
  for (uint32_t t = 0; t < kTokens; ++t) {
    EXPECT_EQ(summed(ffn, {of_row[t]}, 1, 1, t),
              std::vector<float>(together.out.begin() + t * kWidth, together.out.begin() + (t + 1) * kWidth));
  }
}

TEST(NeuronSums, WhatEachNeuronGivesIsMeasuredWhoeverUsesIt) {
  Random random(5);
  for (const bool gated : {false, true}) {
    Ffn ffn(Encoding::f16, gated, random);
    std::vector<uint32_t> all(kNeurons);
    std::iota(all.begin(), all.end(), 0u);
    const std::vector<uint64_t> nobody(kNeurons, 0);
    const Sums sums = compute(ffn, {all}, {.row_masks = nobody.data(), .measure = true}, 2);
    EXPECT_EQ(sums.out, std::vector<float>(kTokens * kWidth, 0.0f));
    for (const uint32_t neuron : all) {
      const auto down = ffn.weights(neuron, ffn.bundle.down_offset());
      double length = 0;
      for (const float value : down) length += double{value} * value;
      for (uint32_t t = 0; t < kTokens; ++t) {
        // A neuron computed alone gives its contribution.
        const auto out = summed(ffn, {{neuron}}, 1, 1, t);
        double squares = 0;
        for (const float value : out) squares += double{value} * value;
        const float gave = sums.contribution[t * kNeurons + neuron];
        ASSERT_NEAR(gave, std::sqrt(squares), 1e-3 * std::sqrt(length)) << neuron;
        ASSERT_EQ(gave == 0, squares == 0);
      }
    }
  }
}

}  // namespace
}  // namespace tierd
