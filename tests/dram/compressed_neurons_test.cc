// Neurons kept as bitmaps give the bits of dense ones; malformed ones are refused.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "tests/dram/pruned_neurons.h"
#include "tiers/dram/executor.h"

namespace tierd {
namespace {

constexpr BufferId kSiteIn = 0, kSiteOut = 1;
constexpr uint32_t kPassRows = 3;

// Returns the site's results for some random rows, or nothing on failure.
std::optional<std::vector<float>> results(const PrunedNeurons& neurons, bool gather, uint32_t workers) {
  const ComputePlan plan = plan_of_pruned(neurons, gather, kPassRows);
  const uint32_t width = std::max(inputs(neurons.cut), outputs(neurons.cut));
  Team team({.workers = workers});
  auto executor = Executor::create(plan, best_kernels(), team);
  EXPECT_TRUE(executor.ok());
  const auto at = [&](BufferId b, uint32_t i) {
    return reinterpret_cast<float*>(executor->activations().data() + buffer_offsets(plan)[b]) +
           uint64_t{i} * buffer_stride(plan.buffers[b]);
  };
  Random random(9);
  std::vector<RowInfo> rows;
  for (uint32_t i = 0; i < kPassRows; ++i) {
    for (uint32_t c = 0; c < width; ++c) at(kSiteIn, i)[c] = random.symmetric();
    rows.push_back({7 * i, 0, 0, i});
  }
  executor->before(0, rows);
  executor->clear(0, kPassRows);
  if (!executor->neurons(0, 0, rows, neurons.units, neurons.data(), {})) return std::nullopt;
  std::vector<float> out;
  for (uint32_t i = 0; i < kPassRows; ++i)
    out.insert(out.end(), at(kSiteOut, i), at(kSiteOut, i) + outputs(neurons.cut));
  return out;
}

TEST(CompressedNeurons, GiveTheBitsOfTheDenseOnes) {
  for (const PrunedCase& tried : pruned_cases()) {
    const PrunedNeurons dense(tried.cut, false, Random(1)), compressed(tried.cut, true, Random(1));
    for (const uint32_t workers : {1U, 3U}) {
      const auto expected = results(dense, tried.gather, workers);
      const auto found = results(compressed, tried.gather, workers);
      ASSERT_TRUE(expected && found) << tried.name;
      EXPECT_EQ(std::memcmp(expected->data(), found->data(), expected->size() * sizeof(float)), 0)
          << tried.name;
    }
  }
}

// A forged store's bitmaps that claim more or fewer values than there are. AddressSanitizer shows that
// nothing beyond is read.
TEST(CompressedNeurons, AreRefusedWhereTheirBitsSayOtherwise) {
  for (const PrunedCase& tried : pruned_cases()) {
    if (tried.gather) continue;  // a gather reads only what it needs
    for (const bool more : {true, false}) {
      PrunedNeurons neurons(tried.cut, true, Random(2));
      std::byte* const bits = neurons.memory[neurons.units.back().place].bytes;
      std::memset(bits, more ? 0xff : 0, 8);
      EXPECT_FALSE(results(neurons, false, 2).has_value()) << tried.name << (more ? ", more" : ", fewer");
    }
  }
}

TEST(CompressedNeurons, OfWhichAGatheredRowEndsEarlyAreRefused) {
  PrunedNeurons neurons(Rows{.n_in = 72, .stacked = {16}, .rows = 16}, true, Random(3));
  std::memset(neurons.memory.front().bytes, 0xff, 2 * 72);
  EXPECT_FALSE(results(neurons, true, 1).has_value());
}

}  // namespace
}  // namespace tierd
