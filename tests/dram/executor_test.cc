// Every kind of step, and the neurons of a site, against plain loops.
#include "tiers/dram/executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

#include "core/base/random.h"
#include "core/layout/codec.h"

namespace tierd {
namespace {

using Row = std::vector<float>;

constexpr BufferId kA = 0;
constexpr BufferId kB = 1;
constexpr uint32_t kWidth = 40;  // not a multiple of a row group

struct Machine {
  // One site whose segment before is `program`; two buffers of kWidth.
  explicit Machine(Program program, AttentionShape attention = {}, KvEncoding kv = KvEncoding::f32,
                   uint32_t workers = 1, const ComputeKernels& kernels = best_kernels())
      : team({.workers = workers}) {
    ComputePlan plan;
    plan.buffers = {{"a", kWidth, 0}, {"b", kWidth, 0}};
    plan.attention = std::move(attention);
    plan.max_rows = 3;
    plan.context = 16;
    plan.sequences = 2;
    plan.kv = kv;
    SiteWork site;
    site.cut = Rows{.n_in = kWidth, .stacked = {kWidth}, .rows = 16};
    site.editions = {0};
    plan.editions = {{Encoding::f32}};
    site.in = kA;
    site.out = kB;
    site.before = program;
    site.after = std::move(program);
    plan.sites = {site};
    auto made = Executor::create(plan, kernels, team);
    EXPECT_TRUE(made.ok());
    executor = std::make_unique<Executor>(std::move(*made));
  }
  float* row(BufferId buffer, uint32_t i) {
    const ComputePlan& plan = executor->plan();
    auto* start = reinterpret_cast<float*>(executor->activations().data() + buffer_offsets(plan)[buffer]);
    return start + uint64_t{i} * buffer_stride(plan.buffers[buffer]);
  }
  Row get(BufferId buffer, uint32_t i) { return Row(row(buffer, i), row(buffer, i) + kWidth); }
  void set(BufferId buffer, uint32_t i, const Row& values) {
    std::copy(values.begin(), values.end(), row(buffer, i));
  }
  Team team;
  std::unique_ptr<Executor> executor;
};

Row random_row(Random& random, uint32_t n = kWidth) {
  Row row(n);
  for (float& x : row) x = random.symmetric();
  return row;
}

void expect_near(const Row& got, const Row& want, float tolerance = 1e-5f) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// Rows 0 … 2 at positions 4, 5, 9.
const std::vector<RowInfo> kRows = {{11, 4, 0, 0}, {12, 5, 0, 1}, {13, 9, 1, 2}};

TEST(Executor, NormsPickTheirRows) {
  Random random(1);
  const Row weight = random_row(random);
  const Row bias = random_row(random);
  for (const StepKind kind : {StepKind::rms_norm, StepKind::layer_norm}) {
    Machine machine(
        {{.kind = kind, .in = kA, .out = kB, .width = kWidth, .weight = 0, .bias = 1, .eps = 1e-3f}});
    machine.executor->set_tensor(1, bias.data());
    machine.executor->set_tensor(0, weight.data());
    std::vector<Row> x;
    for (uint32_t i = 0; i < 3; ++i) machine.set(kA, i, x.emplace_back(random_row(random)));
    const std::vector<RowInfo> picked = {{0, 0, 0, 2}, {0, 0, 0, 0}};
    machine.executor->before(0, picked);
    for (uint32_t i = 0; i < 2; ++i) {
      const Row& in = x[picked[i].row];
      double mean = 0, squares = 0;
      if (kind == StepKind::layer_norm) {
        for (const float v : in) mean += v / kWidth;
      }
      for (const float v : in) squares += (v - mean) * (v - mean) / kWidth;
      Row want(kWidth);
      for (uint32_t k = 0; k < kWidth; ++k) {
        want[k] = static_cast<float>((in[k] - mean) / std::sqrt(squares + 1e-3)) * weight[k];
        if (kind == StepKind::layer_norm) want[k] += bias[k];
      }
      expect_near(machine.get(kB, i), want);
    }
  }
}

// What experts compute from, and what they give.
TEST(Executor, RowsArePickedAndAddedToAsMuchAsTheyChose) {
  Random random(4);
  const std::vector<RowInfo> chosen = {{11, 4, 0, 2}, {13, 9, 1, 0}};
  std::vector<Row> a, b;
  for (int i = 0; i < 3; ++i) {
    a.push_back(random_row(random));
    b.push_back(random_row(random));
  }
  const auto filled = [&](Machine& machine) {
    for (uint32_t i = 0; i < 3; ++i) {
      machine.set(kA, i, a[i]);
      machine.set(kB, i, b[i]);
    }
  };
  Machine picks({{.kind = StepKind::pick, .in = kA, .out = kB, .width = kWidth}});
  filled(picks);
  picks.executor->before(0, chosen);
  EXPECT_EQ(picks.get(kB, 0), a[2]);
  EXPECT_EQ(picks.get(kB, 1), a[0]);
  EXPECT_EQ(picks.get(kB, 2), b[2]);

  Row order(kWidth);
  for (uint32_t k = 0; k < kWidth; ++k) order[k] = static_cast<float>(kWidth - 1 - k);
  Machine orders({{.kind = StepKind::pick, .in = kA, .out = kB, .width = kWidth, .weight = 0}});
  filled(orders);
  orders.executor->set_tensor(0, order.data());
  orders.executor->before(0, chosen);
  EXPECT_EQ(orders.get(kB, 0), Row(a[2].rbegin(), a[2].rend()));

  Machine adds(
      {{.kind = StepKind::add_chosen, .in = kA, .out = kB, .column = 3, .width = kWidth, .choice = kA}});
  filled(adds);
  adds.executor->before(0, chosen);
  for (const auto& [line, row] : {std::pair(0, 2), std::pair(1, 0)}) {
    Row want = b[row];
    for (uint32_t k = 0; k < kWidth; ++k) want[k] += a[line][k] * a[row][3];
    expect_near(adds.get(kB, row), want);
  }
  EXPECT_EQ(adds.get(kB, 1), b[1]);
}

TEST(Executor, AdditionsAndActivations) {
  Random random(2);
  const Row bias = random_row(random, 7);
  const Row positions = random_row(random, 12 * kWidth);
  const Row order = {1, 4, 0, 3, 6, 2, 5};
  struct Case {
    Step step;
    std::function<Row(const Row& a, const Row& b, uint32_t position)> want;  // of b
  };
  const std::vector<Case> cases = {
      {{.kind = StepKind::add, .in = kA, .out = kB, .width = kWidth},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < kWidth; ++k) out[k] += a[k];
         return out;
       }},
      {{.kind = StepKind::add_bias, .out = kB, .column = 5, .width = 7, .weight = 0},
       [&](const Row&, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < 7; ++k) out[5 + k] += bias[k];
         return out;
       }},
      {{.kind = StepKind::add_position, .out = kB, .width = kWidth, .weight = 1, .offset = 2},
       [&](const Row&, const Row& b, uint32_t position) {
         Row out = b;
         for (uint32_t k = 0; k < kWidth; ++k) out[k] += positions[(position + 2) * kWidth + k];
         return out;
       }},
      {{.kind = StepKind::activate_mul, .in = kA, .out = kB, .width = kWidth / 2},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < kWidth / 2; ++k) {
           out[k] = a[k] / (1 + std::exp(-a[k])) * a[kWidth / 2 + k];
         }
         return out;
       }},
      {{.kind = StepKind::reorder, .in = kA, .out = kB, .width = 7, .weight = 2},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < 7; ++k) out[k] = a[(3 * k + 1) % 7];
         return out;
       }},
      {{.kind = StepKind::activate,
        .in = kA,
        .out = kB,
        .width = kWidth - 3,
        .activation = Activation::relu,
        .threshold = 0.125f},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < kWidth - 3; ++k) out[k] = a[k] > 0.125f ? a[k] : 0.0f;
         return out;
       }},
  };
  for (const Case& c : cases) {
    Machine machine({c.step}, {}, KvEncoding::f32, 2);
    machine.executor->set_tensor(0, bias.data());
    machine.executor->set_tensor(1, positions.data());
    machine.executor->set_tensor(2, order.data());
    std::vector<Row> a, b;
    for (uint32_t i = 0; i < 3; ++i) {
      machine.set(kA, i, a.emplace_back(random_row(random)));
      machine.set(kB, i, b.emplace_back(random_row(random)));
    }
    machine.executor->after(0, kRows);
    for (uint32_t i = 0; i < 3; ++i) {
      SCOPED_TRACE(static_cast<int>(c.step.kind));
      expect_near(machine.get(kB, i), c.want(a[i], b[i], kRows[i].position), 2e-6f);
      expect_near(machine.get(kA, i), a[i], 0);
    }
  }
}

TEST(Executor, RopeTurnsHeadsByPosition) {
  Random random(3);
  for (const RopeStyle style : {RopeStyle::interleaved, RopeStyle::half}) {
    AttentionShape shape;
    shape.head_dim = 8;
    shape.rope = style;
    shape.frequencies = {1.0f, 0.5f, 0.25f, 0.01f};
    // three heads from column 8 on; the others stay
    Machine machine({{.kind = StepKind::rope, .out = kA, .column = 8, .width = 24}}, shape);
    for (uint32_t round = 0; round < 2; ++round) {  // other positions with the same rows
      std::vector<RowInfo> rows = kRows;
      for (RowInfo& info : rows) info.position += round;
      std::vector<Row> x;
      for (uint32_t i = 0; i < 3; ++i) machine.set(kA, i, x.emplace_back(random_row(random)));
      machine.executor->before(0, rows);
      for (uint32_t i = 0; i < 3; ++i) {
        Row want = x[i];
        for (uint32_t head = 0; head < 3; ++head) {
          for (uint32_t j = 0; j < 4; ++j) {
            const uint32_t start = 8 + head * 8;
            const uint32_t first = start + (style == RopeStyle::interleaved ? 2 * j : j);
            const uint32_t second = style == RopeStyle::interleaved ? first + 1 : first + 4;
            const double angle = static_cast<double>(rows[i].position) * shape.frequencies[j];
            want[first] = static_cast<float>(x[i][first] * std::cos(angle) - x[i][second] * std::sin(angle));
            want[second] = static_cast<float>(x[i][second] * std::cos(angle) + x[i][first] * std::sin(angle));
          }
        }
        expect_near(machine.get(kA, i), want, 2e-6f);
      }
    }
  }
}

// 4 query heads, 2 heads of keys and values, 4 wide; queries at 0 … 16, keys at 16 … 24, values at 24 … 32.
TEST(Executor, AttentionOverTheCache) {
  constexpr uint32_t kDim = 4, kHeads = 4, kKvHeads = 2, kLayer = 1;
  Random random(4);
  for (const KvEncoding encoding : {KvEncoding::f32, KvEncoding::f16}) {
    for (const uint32_t window : {0u, 3u}) {
      for (const uint32_t workers : {1u, 3u}) {
        AttentionShape shape;
        shape.n_layers = 2;
        shape.n_heads = kHeads;
        shape.n_kv_heads = kKvHeads;
        shape.head_dim = kDim;
        shape.window = window;
        Machine machine(
            {{.kind = StepKind::store_kv, .in = kA, .column = 16, .width = 8, .layer = kLayer, .offset = 24},
             {.kind = StepKind::attend, .in = kA, .out = kB, .width = 16, .layer = kLayer}},
            shape, encoding, workers);
        std::vector<Row> history[2];  // by sequence
        for (uint32_t position = 0; position < 9; position += 2) {
          // two rows of sequence 0 and one of sequence 1, which lags behind
          std::vector<RowInfo> rows = {{0, position, 0, 0}, {0, position + 1, 0, 1}, {0, position / 2, 1, 2}};
          for (uint32_t i = 0; i < 3; ++i) {
            const Row x = random_row(random);
            machine.set(kA, i, x);
            history[rows[i].sequence].push_back(x);
          }
          machine.executor->before(0, rows);
          for (uint32_t i = 0; i < 3; ++i) {
            const Row& query = machine.get(kA, i);
            const auto& past = history[rows[i].sequence];
            const uint32_t last = rows[i].position + 1;
            const uint32_t first = window != 0 && last > window ? last - window : 0;
            Row want(16);
            for (uint32_t head = 0; head < kHeads; ++head) {
              const uint32_t kv = head / (kHeads / kKvHeads) * kDim;
              std::vector<double> p;
              double sum = 0;
              for (uint32_t t = first; t < last; ++t) {
                double dot = 0;
                for (uint32_t d = 0; d < kDim; ++d) dot += query[head * kDim + d] * past[t][16 + kv + d];
                p.push_back(std::exp(dot / std::sqrt(kDim)));
                sum += p.back();
              }
              for (uint32_t t = first; t < last; ++t) {
                for (uint32_t d = 0; d < kDim; ++d) {
                  want[head * kDim + d] += static_cast<float>(p[t - first] / sum * past[t][24 + kv + d]);
                }
              }
            }
            Row got = machine.get(kB, i);
            got.resize(16);
            expect_near(got, want, encoding == KvEncoding::f32 ? 1e-5f : 1e-3f);
          }
        }
      }
    }
  }
}

// ---- neurons

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

// A memory with the neurons in any order, far apart.
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

// `encodings`: of its editions; none: one, in that of the weights.
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

// Each message is about one edition: a neuron gives what it gives where that edition is the only one.
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
    std::vector<Row> alone;  // [editions] of all neurons
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
