// Compares the neurons of a site with plain loops.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "tests/dram/executor_rows.h"
#include "tiers/dram/executor.h"

namespace tierd {
namespace {

struct Weights {
  Encoding encoding;
  uint32_t rows, cols, rows_per_neuron;
  std::vector<Row> values;                     // as decoded
  std::vector<std::vector<std::byte>> packed;  // by neuron
};

Weights make_weights(Encoding encoding, uint32_t rows, uint32_t cols, uint32_t rows_per_neuron,
                     Random& random) {
  Weights w{encoding, rows, cols, rows_per_neuron, {}, {}};
  std::vector<std::vector<std::byte>> plain;
  for (uint32_t r = 0; r < rows; ++r) {
    std::vector<std::byte> bytes(encoded_bytes(encoding, cols));
    encode(encoding, random_row(random, cols), bytes);
    Row decoded(cols);
    decode(encoding, bytes, decoded);
    plain.push_back(bytes);
    w.values.push_back(decoded);
  }
  const uint64_t group = group_bytes(encoding, cols);
  for (uint32_t first = 0; first < rows; first += rows_per_neuron) {
    const uint32_t end = std::min(rows, first + rows_per_neuron);
    std::vector<std::byte>& bytes = w.packed.emplace_back();
    for (uint32_t r = first; r < end; r += kGroupRows) {
      const uint32_t n = std::min(kGroupRows, end - r);
      std::vector<std::byte> rows_of_group;
      for (uint32_t k = 0; k < n; ++k) {
        rows_of_group.insert(rows_of_group.end(), plain[r + k].begin(), plain[r + k].end());
      }
      bytes.resize(bytes.size() + group);
      pack_row_group(encoding, n, cols, rows_of_group, std::span(bytes).last(group));
    }
  }
  return w;
}

// A memory with the neurons in arbitrary order, far apart.
struct Placed {
  explicit Placed(const Weights& w) {
    uint64_t slot = 0;
    for (const auto& bytes : w.packed) slot = std::max<uint64_t>(slot, (bytes.size() + 63) / 64 * 64);
    memory.resize((slot * w.packed.size()) / 64 + 1);
    for (uint32_t i = 0; i < w.packed.size(); ++i) {
      const uint64_t at = (w.packed.size() - 1 - i) * slot;
      std::memcpy(reinterpret_cast<std::byte*>(memory.data()) + at, w.packed[i].data(), w.packed[i].size());
      units.push_back({i, static_cast<uint32_t>(at / kPlaceUnit)});
    }
  }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(memory.data()); }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  std::vector<Unit> units;
};

// `encodings`: one for each edition; empty: one edition in the weights' encoding.
Executor site_executor(const Weights& w, bool gather, bool int8, Team& team, const ComputeKernels& kernels,
                       const std::vector<Encoding>& encodings = {}) {
  ComputePlan plan;
  plan.buffers = {{"in", w.cols, 0}, {"out", std::max(w.rows, w.cols), 0}};
  plan.max_rows = 4;
  plan.context = 1;
  plan.int8_activations = int8;
  SiteWork site;
  site.cut = Rows{.n_in = w.cols, .stacked = {w.rows}, .rows = w.rows_per_neuron};
  for (const Encoding encoding : encodings.empty() ? std::vector{w.encoding} : encodings) {
    site.editions.push_back(static_cast<uint32_t>(plan.editions.size()));
    plan.editions.push_back({encoding});
  }
  site.gather = gather;
  site.in = gather ? kNoBuffer : kA;
  site.out = kB;
  plan.sites = {site};
  auto made = Executor::create(plan, kernels, team);
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

TEST(Executor, NeuronsInAnyOrderAndNumberGiveTheSameBits) {
  Random random(5);
  for (const Encoding encoding : kAllEncodings) {
    for (const bool int8 : {false, true}) {
      if (int8 && !is_quantized(encoding)) continue;
      const Weights w =
          make_weights(encoding, 150, kSuperBlock, 32, random);  // 5 neurons, the last of 22 rows
      const Placed placed(w);
      std::vector<Row> x;
      for (uint32_t i = 0; i < 4; ++i) x.push_back(random_row(random, w.cols));
      const std::vector<RowInfo> rows = {{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 2}, {0, 0, 0, 3}};
      std::vector<Row> first;
      for (const uint32_t workers : {1u, 3u}) {
        for (const uint32_t a_message : {5u, 1u, 2u}) {
          Team team({.workers = workers});
          Executor executor = site_executor(w, false, int8, team, best_kernels());
          const ComputePlan& plan = executor.plan();
          const auto at = [&](BufferId b, uint32_t i) {
            return reinterpret_cast<float*>(executor.activations().data() + buffer_offsets(plan)[b]) +
                   uint64_t{i} * buffer_stride(plan.buffers[b]);
          };
          for (uint32_t i = 0; i < 4; ++i) std::copy(x[i].begin(), x[i].end(), at(kA, i));
          executor.before(0, rows);
          std::vector<Unit> units = placed.units;
          if (a_message != 5) std::swap(units[0], units[4]);
          uint64_t bytes = 0;
          for (size_t u = 0; u < units.size(); u += a_message) {
            const size_t n = std::min<size_t>(a_message, units.size() - u);
            bytes += *executor.neurons(0, 0, rows, std::span(units).subspan(u, n), placed.data(), {});
          }
          executor.after(0, rows);
          EXPECT_EQ(bytes, 10 * group_bytes(encoding, w.cols));
          std::vector<Row> got;
          for (uint32_t i = 0; i < 4; ++i) got.emplace_back(at(kB, i), at(kB, i) + w.rows);
          if (first.empty()) {
            first = got;
            for (uint32_t i = 0; i < 4; ++i) {
              for (uint32_t r = 0; r < w.rows; ++r) {
                double want = 0;
                for (uint32_t c = 0; c < w.cols; ++c) want += double{w.values[r][c]} * x[i][c];
                EXPECT_NEAR(got[i][r], want, int8 ? 0.1 : 1e-4) << name(encoding) << " row " << r;
              }
            }
            EXPECT_EQ(executor.activation_error() > 0, int8);
            EXPECT_LT(executor.activation_error(), 0.02);
          }
          for (uint32_t i = 0; i < 4; ++i) {
            EXPECT_EQ(std::memcmp(got[i].data(), first[i].data(), w.rows * sizeof(float)), 0)
                << name(encoding);
          }
        }
      }
    }
  }
}

// Each message has one edition. A neuron's results equal those where that edition is the only one.
TEST(Executor, NeuronsOfSeveralEditions) {
  Random random(7);
  const std::vector<Encoding> encodings = {Encoding::f16, Encoding::q8_0, Encoding::q4_0};
  std::vector<Weights> weights;
  for (const Encoding encoding : encodings)
    weights.push_back(make_weights(encoding, 150, kSuperBlock, 32, random));
  const std::deque<Placed> placed(weights.begin(), weights.end());
  const Row x = random_row(random, kSuperBlock);
  const std::vector<RowInfo> rows = {{0, 0, 0, 0}};
  Team team({.workers = 2});
  const auto result = [&](Executor& executor, auto compute) {
    const std::vector<uint64_t> offsets = buffer_offsets(executor.plan());
    std::byte* const memory = executor.activations().data();
    std::copy(x.begin(), x.end(), reinterpret_cast<float*>(memory + offsets[kA]));
    executor.before(0, rows);
    compute();
    const auto* out = reinterpret_cast<const float*>(memory + offsets[kB]);
    return Row(out, out + 150);
  };
  for (const bool int8 : {false, true}) {
    std::vector<Row> alone;  // [editions], of all neurons
    for (size_t e = 0; e < encodings.size(); ++e) {
      Executor executor = site_executor(weights[e], false, int8, team, best_kernels());
      alone.push_back(
          result(executor, [&] { executor.neurons(0, 0, rows, placed[e].units, placed[e].data(), {}); }));
    }
    Executor executor = site_executor(weights[0], false, int8, team, best_kernels(), encodings);
    const Row got = result(executor, [&] {
      for (const uint32_t e : {2u, 0u, 1u}) {
        std::vector<Unit> units;
        for (const Unit& unit : placed[e].units) {
          if (unit.unit % 3 == e) units.push_back(unit);
        }
        executor.neurons(0, e, rows, units, placed[e].data(), {});
      }
    });
    for (uint32_t r = 0; r < 150; ++r) EXPECT_EQ(got[r], alone[r / 32 % 3][r]) << "row " << r;
  }
}

TEST(Executor, GatherPicksTheRowsOfTheTokens) {
  Random random(6);
  for (const Encoding encoding : kAllEncodings) {
    const Weights w = make_weights(encoding, 75, kSuperBlock, 32, random);
    const Placed placed(w);
    Team team({.workers = 2});
    Executor executor = site_executor(w, true, true, team, best_kernels());
    const std::vector<RowInfo> rows = {{74, 0, 0, 0}, {0, 0, 0, 1}, {33, 0, 0, 2}, {74, 0, 0, 3}};
    executor.before(0, rows);
    // neurons 0 and 1 first, the last one later
    executor.neurons(0, 0, rows, std::span(placed.units).first(2), placed.data(), {});
    executor.neurons(0, 0, rows, std::span(placed.units).last(1), placed.data(), {});
    const ComputePlan& plan = executor.plan();
    for (uint32_t i = 0; i < 4; ++i) {
      const auto* out =
          reinterpret_cast<const float*>(executor.activations().data() + buffer_offsets(plan)[kB]) +
          uint64_t{i} * buffer_stride(plan.buffers[kB]);
      EXPECT_EQ(Row(out, out + w.cols), w.values[rows[i].token]) << name(encoding) << " " << i;
    }
  }
}

}  // namespace
}  // namespace tierd
