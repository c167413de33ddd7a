// Neurons that are kept as bitmaps give the bits of the dense ones, and are refused where they are malformed.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "core/layout/bitmap.h"
#include "core/layout/codec.h"
#include "tiers/dram/executor.h"

namespace tierd {
namespace {

constexpr BufferId kIn = 0, kOut = 1, kHidden = 2, kUp = 3;
constexpr uint32_t kRows = 3;

struct alignas(64) Line {
  std::byte bytes[64];
};

// The neurons of a site in f16, half zero, one behind the other.
struct Neurons {
  Neurons(const Cut& cut_, bool compressed, Random random) : cut(cut_), encodings(3, Encoding::f16) {
    const Bitmap halves = *Bitmap::of(cut, encodings);
    CompressedNeurons sizes{halves, {}};
    for (uint32_t n = 0; n < neurons(cut); ++n) {
      std::vector<float> values(neuron_bytes(cut, encodings, n) / 2);
      for (float& value : values) value = random.below(2) == 0 ? 0.0F : random.symmetric();
      std::vector<std::byte> dense(values.size() * 2);
      encode(Encoding::f16, values, dense);
      std::vector<std::byte> kept = dense;
      if (compressed) {
        kept.resize(compressed_bytes(halves, dense));
        compress(halves, dense, kept);
      }
      sizes.bytes.push_back(static_cast<uint32_t>(kept.size()));
      units.push_back({n, static_cast<uint32_t>(memory.size())});
      memory.resize(memory.size() + divide_up(kept.size(), sizeof(Line)));
      std::memcpy(memory[units.back().place].bytes, kept.data(), kept.size());
    }
    if (compressed) compression = std::move(sizes);
  }
  const std::byte* data() const { return memory.data()->bytes; }

  Cut cut;
  Encodings encodings;
  std::optional<CompressedNeurons> compression;
  std::vector<Line> memory;
  std::vector<Unit> units;
};

// What the site gives to some random rows, or nothing.
std::optional<std::vector<float>> results(const Neurons& neurons, bool gather, uint32_t workers) {
  ComputePlan plan;
  const uint32_t width = std::max(inputs(neurons.cut), outputs(neurons.cut));
  plan.buffers = {{"in", width, 0},
                  {"out", width, 0},
                  {"hidden", tierd::neurons(neurons.cut), 0},
                  {"up", tierd::neurons(neurons.cut), 0}};
  plan.max_rows = kRows;
  plan.context = 1;
  SiteWork site;
  site.cut = neurons.cut;
  site.editions = {0};
  site.gather = gather;
  site.in = gather ? kNoBuffer : kIn;
  site.out = kOut;
  site.ffn.activation = Activation::relu;
  site.ffn.hidden = kHidden;
  site.ffn.up = kUp;
  plan.editions = {neurons.encodings};
  plan.compressed = {neurons.compression};
  plan.sites = {site};
  Team team({.workers = workers});
  auto executor = Executor::create(plan, best_kernels(), team);
  EXPECT_TRUE(executor.ok());
  const auto at = [&](BufferId b, uint32_t i) {
    return reinterpret_cast<float*>(executor->activations().data() + buffer_offsets(plan)[b]) +
           uint64_t{i} * buffer_stride(plan.buffers[b]);
  };
  Random random(9);
  std::vector<RowInfo> rows;
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t c = 0; c < width; ++c) at(kIn, i)[c] = random.symmetric();
    rows.push_back({7 * i, 0, 0, i});
  }
  executor->before(0, rows);
  executor->clear(0, kRows);
  if (!executor->neurons(0, 0, rows, neurons.units, neurons.data(), {})) return std::nullopt;
  std::vector<float> out;
  for (uint32_t i = 0; i < kRows; ++i) out.insert(out.end(), at(kOut, i), at(kOut, i) + outputs(neurons.cut));
  return out;
}

struct Case {
  const char* name;
  Cut cut;
  bool gather = false;
};
std::vector<Case> cases() {
  return {{"rows", Rows{.n_in = 72, .stacked = {100, 28, 22}, .rows = 48}},
          {"gathered rows", Rows{.n_in = 72, .stacked = {40}, .rows = 32}, true},
          {"bundles", Bundles{72, 150, true}},
          {"bundles without gate", Bundles{40, 64, false}},
          {"columns", Columns{130, 72}}};
}

TEST(CompressedNeurons, GiveTheBitsOfTheDenseOnes) {
  for (const Case& tried : cases()) {
    const Neurons dense(tried.cut, false, Random(1)), compressed(tried.cut, true, Random(1));
    for (const uint32_t workers : {1U, 3U}) {
      const auto expected = results(dense, tried.gather, workers);
      const auto found = results(compressed, tried.gather, workers);
      ASSERT_TRUE(expected && found) << tried.name;
      EXPECT_EQ(std::memcmp(expected->data(), found->data(), expected->size() * sizeof(float)), 0)
          << tried.name;
    }
  }
}

// What a forged store could hold: bits that say more values than there are, or fewer. Nothing beyond is read,
// as AddressSanitizer knows.
TEST(CompressedNeurons, AreRefusedWhereTheirBitsSayOtherwise) {
  for (const Case& tried : cases()) {
    if (tried.gather) continue;  // reads what it needs alone
    for (const bool more : {true, false}) {
      Neurons neurons(tried.cut, true, Random(2));
      std::byte* const bits = neurons.memory[neurons.units.back().place].bytes;
      std::memset(bits, more ? 0xff : 0, 8);
      EXPECT_FALSE(results(neurons, false, 2).has_value()) << tried.name << (more ? ", more" : ", fewer");
    }
  }
}

TEST(CompressedNeurons, OfWhichAGatheredRowEndsEarlyAreRefused) {
  Neurons neurons(Rows{.n_in = 72, .stacked = {16}, .rows = 16}, true, Random(3));
  std::memset(neurons.memory.front().bytes, 0xff, 2 * 72);
  EXPECT_FALSE(results(neurons, true, 1).has_value());
}

}  // namespace
}  // namespace tierd
