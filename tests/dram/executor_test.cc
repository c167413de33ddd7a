// Compares every kind of step with plain loops.
#include "tiers/dram/executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "tests/dram/executor_rows.h"

namespace tierd {
namespace {

constexpr uint32_t kBufferWidth = 40;  // not a multiple of a row group

struct Machine {
  // One site whose segment before is `program`, with two buffers of kBufferWidth.
  explicit Machine(Program program, AttentionShape attention = {}, KvEncoding kv = KvEncoding::f32,
                   uint32_t workers = 1, const ComputeKernels& kernels = best_kernels())
      : team({.workers = workers}) {
    ComputePlan plan;
    plan.buffers = {{"a", kBufferWidth, 0}, {"b", kBufferWidth, 0}};
    plan.attention = std::move(attention);
    plan.max_rows = 3;
    plan.context = 16;
    plan.sequences = 2;
    plan.kv = kv;
    SiteWork site;
    site.cut = Rows{.n_in = kBufferWidth, .stacked = {kBufferWidth}, .rows = 16};
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
  Row get(BufferId buffer, uint32_t i) { return Row(row(buffer, i), row(buffer, i) + kBufferWidth); }
  void set(BufferId buffer, uint32_t i, const Row& values) {
    std::copy(values.begin(), values.end(), row(buffer, i));
  }
  Team team;
  std::unique_ptr<Executor> executor;
};

void expect_near(const Row& got, const Row& want, float tolerance = 1e-5f) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// Rows 0 … 2 at positions 4, 5, 9.
const std::vector<RowInfo> kThreeRows = {{11, 4, 0, 0}, {12, 5, 0, 1}, {13, 9, 1, 2}};

TEST(Executor, NormsPickTheirRows) {
  Random random(1);
  const Row weight = random_row(random, kBufferWidth);
  const Row bias = random_row(random, kBufferWidth);
  for (const StepKind kind : {StepKind::rms_norm, StepKind::layer_norm}) {
    Machine machine(
        {{.kind = kind, .in = kA, .out = kB, .width = kBufferWidth, .weight = 0, .bias = 1, .eps = 1e-3f}});
    machine.executor->set_tensor(1, bias.data());
    machine.executor->set_tensor(0, weight.data());
    std::vector<Row> x;
    for (uint32_t i = 0; i < 3; ++i) machine.set(kA, i, x.emplace_back(random_row(random, kBufferWidth)));
    const std::vector<RowInfo> picked = {{0, 0, 0, 2}, {0, 0, 0, 0}};
    machine.executor->before(0, picked);
    for (uint32_t i = 0; i < 2; ++i) {
      const Row& in = x[picked[i].row];
      double mean = 0, squares = 0;
      if (kind == StepKind::layer_norm) {
        for (const float v : in) mean += v / kBufferWidth;
      }
      for (const float v : in) squares += (v - mean) * (v - mean) / kBufferWidth;
      Row want(kBufferWidth);
      for (uint32_t k = 0; k < kBufferWidth; ++k) {
        want[k] = static_cast<float>((in[k] - mean) / std::sqrt(squares + 1e-3)) * weight[k];
        if (kind == StepKind::layer_norm) want[k] += bias[k];
      }
      expect_near(machine.get(kB, i), want);
    }
  }
}

// The steps that select the inputs of experts and add their results.
TEST(Executor, RowsArePickedAndAddedToAsMuchAsTheyChose) {
  Random random(4);
  const std::vector<RowInfo> chosen = {{11, 4, 0, 2}, {13, 9, 1, 0}};
  std::vector<Row> a, b;
  for (int i = 0; i < 3; ++i) {
    a.push_back(random_row(random, kBufferWidth));
    b.push_back(random_row(random, kBufferWidth));
  }
  const auto filled = [&](Machine& machine) {
    for (uint32_t i = 0; i < 3; ++i) {
      machine.set(kA, i, a[i]);
      machine.set(kB, i, b[i]);
    }
  };
  Machine picks({{.kind = StepKind::pick, .in = kA, .out = kB, .width = kBufferWidth}});
  filled(picks);
  picks.executor->before(0, chosen);
  EXPECT_EQ(picks.get(kB, 0), a[2]);
  EXPECT_EQ(picks.get(kB, 1), a[0]);
  EXPECT_EQ(picks.get(kB, 2), b[2]);

  Row order(kBufferWidth);
  for (uint32_t k = 0; k < kBufferWidth; ++k) order[k] = static_cast<float>(kBufferWidth - 1 - k);
  Machine orders({{.kind = StepKind::pick, .in = kA, .out = kB, .width = kBufferWidth, .weight = 0}});
  filled(orders);
  orders.executor->set_tensor(0, order.data());
  orders.executor->before(0, chosen);
  EXPECT_EQ(orders.get(kB, 0), Row(a[2].rbegin(), a[2].rend()));

  Machine adds({{.kind = StepKind::add_chosen,
                 .in = kA,
                 .out = kB,
                 .column = 3,
                 .width = kBufferWidth,
                 .choice = kA}});
  filled(adds);
  adds.executor->before(0, chosen);
  for (const auto& [line, row] : {std::pair(0, 2), std::pair(1, 0)}) {
    Row want = b[row];
    for (uint32_t k = 0; k < kBufferWidth; ++k) want[k] += a[line][k] * a[row][3];
    expect_near(adds.get(kB, row), want);
  }
  EXPECT_EQ(adds.get(kB, 1), b[1]);
}

TEST(Executor, AdditionsAndActivations) {
  Random random(2);
  const Row bias = random_row(random, 7);
  const Row positions = random_row(random, 12 * kBufferWidth);
  const Row order = {1, 4, 0, 3, 6, 2, 5};
  struct Case {
    Step step;
    std::function<Row(const Row& a, const Row& b, uint32_t position)> want;  // the expected contents of b
  };
  const std::vector<Case> cases = {
      {{.kind = StepKind::add, .in = kA, .out = kB, .width = kBufferWidth},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < kBufferWidth; ++k) out[k] += a[k];
         return out;
       }},
      {{.kind = StepKind::scale, .out = kB, .column = 3, .width = 9, .factor = 2.5f},
       [](const Row&, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 3; k < 12; ++k) out[k] *= 2.5f;
         return out;
       }},
      {{.kind = StepKind::cap, .out = kB, .column = 3, .width = 9, .threshold = 0.4f},
       [](const Row&, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 3; k < 12; ++k) out[k] = 0.4f * std::tanh(out[k] / 0.4f);
         return out;
       }},
      {{.kind = StepKind::add_bias, .out = kB, .column = 5, .width = 7, .weight = 0},
       [&](const Row&, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < 7; ++k) out[5 + k] += bias[k];
         return out;
       }},
      {{.kind = StepKind::add_position, .out = kB, .width = kBufferWidth, .weight = 1, .offset = 2},
       [&](const Row&, const Row& b, uint32_t position) {
         Row out = b;
         for (uint32_t k = 0; k < kBufferWidth; ++k) out[k] += positions[(position + 2) * kBufferWidth + k];
         return out;
       }},
      {{.kind = StepKind::activate_mul, .in = kA, .out = kB, .width = kBufferWidth / 2},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < kBufferWidth / 2; ++k) {
           out[k] = a[k] / (1 + std::exp(-a[k])) * a[kBufferWidth / 2 + k];
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
        .width = kBufferWidth - 3,
        .activation = Activation::relu,
        .threshold = 0.125f},
       [](const Row& a, const Row& b, uint32_t) {
         Row out = b;
         for (uint32_t k = 0; k < kBufferWidth - 3; ++k) out[k] = a[k] > 0.125f ? a[k] : 0.0f;
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
      machine.set(kA, i, a.emplace_back(random_row(random, kBufferWidth)));
      machine.set(kB, i, b.emplace_back(random_row(random, kBufferWidth)));
    }
    machine.executor->after(0, kThreeRows);
    for (uint32_t i = 0; i < 3; ++i) {
      SCOPED_TRACE(static_cast<int>(c.step.kind));
      expect_near(machine.get(kB, i), c.want(a[i], b[i], kThreeRows[i].position), 2e-6f);
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
    shape.frequencies = {{1.0f, 0.5f, 0.25f, 0.01f}, {0.3f, 0.2f, 0.1f, 0.05f}};
    // three heads from column 8 on; the others are unchanged
    const Step rope = {.kind = StepKind::rope, .out = kA, .column = 8, .width = 24};
    Step other = rope;
    other.turn = 1;
    Machine machines[] = {Machine({rope}, shape), Machine({other}, shape)};
    for (const auto& [round, turn] :
         {std::pair(0u, 0u), {0u, 1u}, {1u, 1u}}) {  // other positions, the same rows
      Machine& machine = machines[turn];
      std::vector<RowInfo> rows = kThreeRows;
      for (RowInfo& info : rows) info.position += round;
      std::vector<Row> x;
      for (uint32_t i = 0; i < 3; ++i) machine.set(kA, i, x.emplace_back(random_row(random, kBufferWidth)));
      machine.executor->before(0, rows);
      for (uint32_t i = 0; i < 3; ++i) {
        Row want = x[i];
        for (uint32_t head = 0; head < 3; ++head) {
          for (uint32_t j = 0; j < 4; ++j) {
            const uint32_t start = 8 + head * 8;
            const uint32_t first = start + (style == RopeStyle::interleaved ? 2 * j : j);
            const uint32_t second = style == RopeStyle::interleaved ? first + 1 : first + 4;
            const double angle = static_cast<double>(rows[i].position) * shape.frequencies[turn][j];
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
    for (const auto& [window, cap] : {std::pair(0u, 0.0f), {3u, 0.0f}, {3u, 0.6f}}) {
      for (const uint32_t workers : {1u, 3u}) {
        AttentionShape shape;
        shape.n_layers = 2;
        shape.n_heads = kHeads;
        shape.n_kv_heads = kKvHeads;
        shape.head_dim = kDim;
        shape.scale = 0.5f;
        shape.cap = cap;
        Machine machine(
            {{.kind = StepKind::store_kv, .in = kA, .column = 16, .width = 8, .layer = kLayer, .offset = 24},
             {.kind = StepKind::attend, .in = kA, .out = kB, .width = 16, .layer = kLayer, .window = window}},
            shape, encoding, workers);
        std::vector<Row> history[2];  // by sequence
        for (uint32_t position = 0; position < 9; position += 2) {
          // two rows of sequence 0 and one of sequence 1, which is behind
          std::vector<RowInfo> rows = {{0, position, 0, 0}, {0, position + 1, 0, 1}, {0, position / 2, 1, 2}};
          for (uint32_t i = 0; i < 3; ++i) {
            const Row x = random_row(random, kBufferWidth);
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
                const double score = cap == 0 ? dot / 2 : cap * std::tanh(dot / 2 / cap);
                p.push_back(std::exp(score));
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

}  // namespace
}  // namespace tierd
