// Compares steps of dense segments, attention and the copies around a run with the CPU's scalar kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/layout/codec.h"
#include "tests/gpu/device_array.h"
#include "tiers/compute/kernels.h"
#include "tiers/dram/choose_experts.h"
#include "tiers/gpu/cuda/attention.h"
#include "tiers/gpu/cuda/steps.h"

namespace tierd::cuda {
namespace {

constexpr uint32_t kRows = 3, kWidth = 300, kLine = 320;
const std::vector<RowInfo> kInfo = {{7, 4, 1, 2}, {1, 0, 0, 0}, {9, 11, 1, 1}};

class CudaSteps : public KernelTest {
 protected:
  static const ComputeKernels& scalar() { return *kernels_by_name("scalar"); }
  StepArgs args(const DeviceArray<float>& in, const DeviceArray<float>& out) {
    return {.rows = rows_.get(),
            .n_rows = kRows,
            .in = in.get(),
            .out = out.get(),
            .ld_in = kLine,
            .ld_out = kLine,
            .width = kWidth};
  }
  static void expect_all_near(const std::vector<float>& got, const std::vector<float>& expected,
                              double magnitude = 1) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << i;
      } else {
        ASSERT_LE(std::abs(got[i] - expected[i]), 4e-6 * magnitude + 4e-6 * std::abs(expected[i])) << i;
      }
    }
  }

  const DeviceArray<RowInfo> rows_{kInfo};
};

TEST_F(CudaSteps, NormTheLineThatARowNames) {
  const std::vector<float> x = draw(kRows * kLine), w = draw(kWidth), b = draw(kWidth);
  const DeviceArray<float> in(x), weight(w), bias(b);
  for (const bool centred : {false, true}) {
    const DeviceArray<float> out(std::vector<float>(kRows * kLine));
    StepArgs step = args(in, out);
    step.weight = weight.get(), step.bias = bias.get(), step.eps = 1e-5F;
    ASSERT_EQ(norm({step, centred, false, kWidth}, stream()), cudaSuccess);
    std::vector<float> expected(kRows * kLine);
    for (uint32_t i = 0; i < kRows; ++i) {
      const float* const from = x.data() + kInfo[i].row * kLine;
      if (centred) {
        scalar().layer_norm(from, w.data(), b.data(), 1e-5F, kWidth, expected.data() + i * kLine);
      } else {
        scalar().rms_norm(from, w.data(), 1e-5F, kWidth, expected.data() + i * kLine);
      }
    }
    expect_all_near(out.read(), expected);
  }
}

TEST_F(CudaSteps, NormHeadByHeadInPlace) {
  const std::vector<float> x = draw(kRows * kLine), w = draw(20), b = draw(20);
  const DeviceArray<float> weight(w), bias(b);
  for (const bool centred : {false, true}) {
    const DeviceArray<float> out(x);
    StepArgs step = args(out, out);
    step.column = 40, step.width = 60, step.weight = weight.get(), step.bias = bias.get(), step.eps = 1e-6F;
    ASSERT_EQ(norm({step, centred, true, 20}, stream()), cudaSuccess);
    std::vector<float> expected = x;
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t head = 0; head < 3; ++head) {
        float* const at = expected.data() + i * kLine + 40 + head * 20;
        if (centred) {
          scalar().layer_norm(at, w.data(), b.data(), 1e-6F, 20, at);
        } else {
          scalar().rms_norm(at, w.data(), 1e-6F, 20, at);
        }
      }
    }
    expect_all_near(out.read(), expected);
  }
}

TEST_F(CudaSteps, ElementByElement) {
  const std::vector<float> x = draw(kRows * kLine, 4), y = draw(kRows * kLine, 4), w = draw(20 * kWidth);
  const DeviceArray<float> in(x), weight(w);
  const auto run = [&](StepKind kind, const auto& change) {
    const DeviceArray<float> out(y);
    StepArgs step = args(in, out);
    step.weight = weight.get(), step.width = 150;
    change(step);
    EXPECT_EQ(elementwise(kind, step, stream()), cudaSuccess);
    return out.read();
  };
  const auto expected = [&](const auto& value) {
    std::vector<float> all = y;
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t c = 0; c < 150; ++c) value(all[i * kLine + c], i, c);
    }
    return all;
  };
  const auto nothing = [](StepArgs&) {};
  EXPECT_EQ(run(StepKind::add, nothing),
            expected([&](float& out, uint32_t i, uint32_t c) { out += x[i * kLine + c]; }));
  EXPECT_EQ(run(StepKind::add_bias, [](StepArgs& s) { s.offset = 30; }),
            expected([&](float& out, uint32_t, uint32_t c) { out += w[30 + c]; }));
  EXPECT_EQ(
      run(StepKind::add_position, [](StepArgs& s) { s.offset = 2; }),
      expected([&](float& out, uint32_t i, uint32_t c) { out += w[(kInfo[i].position + 2) * 150 + c]; }));
  std::vector<float> order(150);
  for (uint32_t c = 0; c < 150; ++c) order[c] = static_cast<float>(c * 7 % 150);
  const DeviceArray<float> columns(order);
  EXPECT_EQ(run(StepKind::reorder, [&](StepArgs& s) { s.weight = columns.get(); }),
            expected([&](float& out, uint32_t i, uint32_t c) { out = x[i * kLine + c * 7 % 150]; }));
  EXPECT_EQ(run(StepKind::pick, [](StepArgs& s) { s.weight = nullptr; }),
            expected([&](float& out, uint32_t i, uint32_t c) { out = x[kInfo[i].row * kLine + c]; }));
  EXPECT_EQ(
      run(StepKind::pick, [&](StepArgs& s) { s.weight = columns.get(); }),
      expected([&](float& out, uint32_t i, uint32_t c) { out = x[kInfo[i].row * kLine + c * 7 % 150]; }));
  std::vector<float> added = y;
  for (uint32_t i = 0; i < kRows; ++i) {
    const uint32_t row = kInfo[i].row;
    for (uint32_t c = 0; c < 150; ++c) added[row * kLine + c] += x[i * kLine + c] * w[row * 20 + 5];
  }
  expect_all_near(
      run(StepKind::add_chosen, [&](StepArgs& s) { s.choice = weight.get() + 5, s.ld_choice = 20; }), added,
      4);
  EXPECT_EQ(run(StepKind::clip, [](StepArgs& s) { s.threshold = 1.5F; }),
            expected([&](float& out, uint32_t, uint32_t) { out = std::clamp(out, -1.5F, 1.5F); }));
  expect_all_near(run(StepKind::temper, [](StepArgs& s) { s.factor = 0.5F, s.span = 3; }),
                  expected([&](float& out, uint32_t i, uint32_t) {
                    out *= 1 + 0.5F * std::log(1 + std::floor(static_cast<float>(kInfo[i].position) / 3.0F));
                  }));
  for (const Activation f : {Activation::silu, Activation::relu, Activation::relu_squared, Activation::gelu,
                             Activation::gelu_tanh, Activation::swiglu_oai}) {
    const float threshold = has_threshold(f) ? 0.5F : 0;
    const auto choose = [&](StepArgs& s) { s.activation = f, s.threshold = threshold; };
    if (f != Activation::swiglu_oai) {
      expect_all_near(run(StepKind::activate, choose), expected([&](float& out, uint32_t i, uint32_t c) {
                        scalar().activate(f, threshold, &x[i * kLine + c], nullptr, 1, &out);
                      }));
    }
    expect_all_near(run(StepKind::activate_mul, choose), expected([&](float& out, uint32_t i, uint32_t c) {
                      scalar().activate(f, threshold, &x[i * kLine + c], &x[i * kLine + 150 + c], 1, &out);
                    }));
  }
}

TEST_F(CudaSteps, RotateHeads) {
  const std::vector<float> x = draw(kRows * kLine);
  const std::vector<float> frequencies = {1.0F, 0.3F, 0.05F};
  const DeviceArray<float> turning(frequencies);
  for (const bool interleaved : {false, true}) {
    const DeviceArray<float> out(x);
    StepArgs step = args(out, out);
    step.column = 16, step.width = 40;
    ASSERT_EQ(rope({step, turning.get(), 3, 10, interleaved, 1.5F}, stream()), cudaSuccess);
    std::vector<float> expected = x;
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t head = 0; head < 4; ++head) {
        float* const v = expected.data() + i * kLine + 16 + head * 10;
        for (uint32_t j = 0; j < 3; ++j) {
          float& a = interleaved ? v[2 * j] : v[j];
          float& b = interleaved ? v[2 * j + 1] : v[j + 3];
          const double angle = static_cast<float>(kInfo[i].position) * frequencies[j];
          const double turned = a * std::cos(angle) - b * std::sin(angle);
          b = static_cast<float>(1.5 * (b * std::cos(angle) + a * std::sin(angle)));
          a = static_cast<float>(1.5 * turned);
        }
      }
    }
    expect_all_near(out.read(), expected);
  }
}

TEST_F(CudaSteps, RouteAsTheCpuChooses) {
  const std::vector<float> c = draw(12), bias = draw(12);
  const DeviceArray<float> correction(c), biases(bias);
  for (const ExpertChoice& routing :
       {ExpertChoice{.picks = 4}, ExpertChoice{.picks = 4, .sum_to_one = true},
        ExpertChoice{
            .score = RouterScore::sigmoid, .picks = 3, .sum_to_one = true, .scale = 2.5F, .correction = 1},
        ExpertChoice{.picks = 2, .groups = 4, .groups_used = 2},
        ExpertChoice{
            .score = RouterScore::sigmoid, .picks = 5, .groups = 3, .groups_used = 2, .group_best = 2}}) {
    const std::vector<float> x = draw(kRows * kLine), w = draw(12 * kWidth);
    const DeviceArray<float> in(x), weight(w), out(std::vector<float>(kRows * kLine));
    const bool corrects = routing.correction != kNoTensor;
    StepArgs step = args(in, out);
    step.width = 12, step.weight = weight.get(), step.bias = corrects ? biases.get() : nullptr;
    ASSERT_EQ(route({step, kWidth, routing, corrects ? correction.get() : nullptr}, stream()), cudaSuccess);
    const std::vector<float> got = out.read();
    for (uint32_t i = 0; i < kRows; ++i) {
      std::vector<float> scores(12);
      for (uint32_t e = 0; e < 12; ++e) {
        double sum = corrects ? bias[e] : 0;
        for (uint32_t n = 0; n < kWidth; ++n) sum += double{w[e * kWidth + n]} * x[i * kLine + n];
        scores[e] = static_cast<float>(sum);
      }
      choose_experts(scores, routing, corrects ? c.data() : nullptr);
      for (uint32_t e = 0; e < 12; ++e) EXPECT_NEAR(got[i * kLine + e], scores[e], 1e-5);
    }
  }
}

TEST_F(CudaSteps, AGateMultipliesARow) {
  const std::vector<float> x = draw(kRows * kLine), y = draw(kRows * kLine), w = draw(kWidth);
  const DeviceArray<float> in(x), weight(w), out(y);
  StepArgs step = args(in, out);
  step.weight = weight.get();
  ASSERT_EQ(gate(step, stream()), cudaSuccess);
  std::vector<float> expected = y;
  for (uint32_t i = 0; i < kRows; ++i) {
    double product = 0;
    for (uint32_t c = 0; c < kWidth; ++c) product += double{x[i * kLine + c]} * w[c];
    for (uint32_t c = 0; c < kWidth; ++c)
      expected[i * kLine + c] *= static_cast<float>(1 / (1 + std::exp(-product)));
  }
  expect_all_near(out.read(), expected);
}

TEST_F(CudaSteps, PlaceWhatWasTaken) {
  const std::vector<float> y = draw(kRows * kLine), v = draw(kRows * 50);
  const DeviceArray<float> values(v);
  const DeviceArray<uint32_t> neurons(std::vector<uint32_t>{2, 5});
  PlacedColumns placed{.values = values.get(), .n_rows = kRows, .first = 30, .columns = 50, .ld_out = kLine};
  const auto run = [&] {
    const DeviceArray<float> out(y);
    placed.out = out.get();
    EXPECT_EQ(place_columns(placed, stream()), cudaSuccess);
    return out.read();
  };
  const auto expected = [&](const auto& made) {
    std::vector<float> all = y;
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t c = 30; c < 80; ++c) {
        if (made(i, c)) all[i * kLine + c] = v[i * 50 + c - 30] + (placed.add ? y[i * kLine + c] : 0);
      }
    }
    return all;
  };
  EXPECT_EQ(run(), expected([](uint32_t, uint32_t) { return true; }));
  placed.add = true;
  EXPECT_EQ(run(), expected([](uint32_t, uint32_t) { return true; }));
  placed.add = false;
  placed.neurons = neurons.get(), placed.n_neurons = 2, placed.rows_of_neuron = 16;
  EXPECT_EQ(run(), expected([](uint32_t, uint32_t c) { return c / 16 == 2 || c / 16 == 5; }));
  placed.rows = rows_.get(), placed.rows_of_neuron = 3;  // tokens 7, 1 and 9
  EXPECT_EQ(run(), expected([](uint32_t i, uint32_t) { return i == 0; }));
  const DeviceArray<float> out(y);
  ASSERT_EQ(clear_columns(out.get(), kLine, 2, 100, stream()), cudaSuccess);
  const std::vector<float> cleared = out.read();
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t c = 0; c < kLine; ++c)
      ASSERT_EQ(cleared[i * kLine + c], i < 2 && c < 100 ? 0 : y[i * kLine + c]);
  }
}

TEST_F(CudaSteps, ExpertsAreWeighed) {
  constexpr uint32_t kInner = 40, kUp = 48, kIn = 96;
  std::vector<float> choice(kRows * 16, 0.0F);
  choice[3] = 0.25F, choice[16 + 9] = 2, choice[32 + 3] = 0.5F, choice[32 + 9] = 1;
  const std::vector<float> in = draw(2 * kRows * kIn), y = draw(kRows * kLine);
  const DeviceArray<float> chosen(choice), lines(in),
      hidden(std::vector<float>(2 * kRows * kIn, std::nanf(""))), out(y);
  const DeviceArray<Unit> units(std::vector<Unit>{{3, 0}, {9, 0}});
  ASSERT_EQ(activate_experts({.units = units.get(),
                              .n_units = 2,
                              .n_rows = kRows,
                              .choice = chosen.get(),
                              .ldc = 16,
                              .in = lines.get(),
                              .ld_in = kIn,
                              .up_at = kUp,
                              .out = hidden.get(),
                              .ld_out = kIn,
                              .inner = kInner,
                              .activation = Activation::relu},
                             stream()),
            cudaSuccess);
  ASSERT_EQ(add_experts({.units = units.get(),
                         .n_units = 2,
                         .n_rows = kRows,
                         .choice = chosen.get(),
                         .ldc = 16,
                         .results = hidden.get(),
                         .ldr = kIn,
                         .y = out.get(),
                         .ldy = kLine,
                         .width = kInner},
                        stream()),
            cudaSuccess);
  const std::vector<float> got = out.read();
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t c = 0; c < kInner; ++c) {
      double sum = y[i * kLine + c];
      for (uint32_t u = 0; u < 2; ++u) {
        const float* const line = in.data() + (u * kRows + i) * kIn;
        sum += choice[i * 16 + (u == 0 ? 3 : 9)] * double{std::max(line[c], 0.0F)} * line[kUp + c];
      }
      EXPECT_NEAR(got[i * kLine + c], sum, 1e-6);
    }
  }
}

TEST_F(CudaSteps, ABlockOfATransferLandsInItsPlaces) {
  std::vector<std::byte> block(100'000), memory(200'000, std::byte{1});
  for (std::byte& b : block) b = static_cast<std::byte>(random_.below(256));
  const DeviceArray<std::byte> from(block), to(memory);
  const std::vector<Landing> all = {{64, 128, 40'000}, {50'048, 64'000, 7}, {40'064, 100'032, 4096}};
  const DeviceArray<Landing> landings(all);
  ASSERT_EQ(land(landings.get(), 3, 40'000, from.get(), to.get(), stream()), cudaSuccess);
  for (const Landing& l : all) std::copy_n(block.begin() + l.from, l.bytes, memory.begin() + l.to);
  EXPECT_EQ(to.read(), memory);
}

struct Shape {
  uint32_t head_dim, heads, kv_heads, window;
  bool sinks = false;
};
class CudaAttention : public KernelTest, public testing::WithParamInterface<Shape> {};

TEST_P(CudaAttention, IsWhatTheScalarKernelSays) {
  const Shape shape = GetParam();
  constexpr uint32_t kContext = 90, kSequences = 2;
  const uint32_t kv_dim = shape.kv_heads * shape.head_dim, width = shape.heads * shape.head_dim + 2 * kv_dim;
  const std::vector<float> sink_values = draw(shape.heads, 3);
  const DeviceArray<float> sinks(sink_values);
  for (const KvEncoding encoding : {KvEncoding::f16, KvEncoding::f32}) {
    const ScoreShape score = {.scale = 1 / std::sqrt(static_cast<float>(shape.head_dim)),
                              .cap = encoding == KvEncoding::f16 ? 0.0F : 0.7F};
    const uint64_t values = uint64_t{kSequences} * kContext * kv_dim;
    const uint64_t element = encoding == KvEncoding::f16 ? 2 : 4;
    const DeviceArray<std::byte> keys(std::vector<std::byte>(values * element)),
        sums(std::vector<std::byte>(values * element));
    const KvLayer kv{keys.get(), sums.get(), encoding, kContext, kv_dim};
    std::vector<float> k(values), v(values);
    for (uint32_t position = 0; position < kContext; ++position) {
      const std::vector<RowInfo> info = {{0, position, 0, 0}, {0, position, 1, 1}};
      const std::vector<float> x = draw(2 * width, 2);
      const DeviceArray<RowInfo> rows(info);
      const DeviceArray<float> in(x), out(std::vector<float>(2 * width));
      ASSERT_EQ(store_kv({kv, rows.get(), 2, in.get(), width, width - 2 * kv_dim, width - kv_dim}, stream()),
                cudaSuccess);
      for (uint32_t s = 0; s < 2; ++s) {
        const uint64_t at = (uint64_t{s} * kContext + position) * kv_dim;
        for (uint32_t c = 0; c < kv_dim; ++c) {
          k[at + c] = x[s * width + width - 2 * kv_dim + c];
          v[at + c] = x[s * width + width - kv_dim + c];
          if (encoding == KvEncoding::f16) {
            k[at + c] = f16_to_f32(f32_to_f16(k[at + c]));
            v[at + c] = f16_to_f32(f32_to_f16(v[at + c]));
          }
        }
      }
      if (position % 13 != 0 && position != kContext - 1) continue;
      ASSERT_EQ(attend({.kv = kv,
                        .rows = rows.get(),
                        .n_rows = 2,
                        .n_heads = shape.heads,
                        .heads_a_kv_head = shape.heads / shape.kv_heads,
                        .head_dim = shape.head_dim,
                        .window = shape.window,
                        .scale = score.scale,
                        .cap = score.cap,
                        .sinks = shape.sinks ? sinks.get() : nullptr,
                        .in = in.get(),
                        .out = out.get(),
                        .ld_in = width,
                        .ld_out = width},
                       stream()),
                cudaSuccess);
      const std::vector<float> got = out.read();
      std::vector<float> scratch(kContext), expected(shape.head_dim);
      const uint32_t last = position + 1;
      const uint32_t first = shape.window != 0 && last > shape.window ? last - shape.window : 0;
      for (uint32_t s = 0; s < 2; ++s) {
        for (uint32_t head = 0; head < shape.heads; ++head) {
          const uint64_t base =
              uint64_t{s} * kContext * kv_dim + head / (shape.heads / shape.kv_heads) * shape.head_dim;
          ScoreShape with_sink = score;
          if (shape.sinks) with_sink.sink = sink_values[head];
          kernels_by_name("scalar")->attend_f32(x.data() + s * width + head * shape.head_dim, k.data() + base,
                                                v.data() + base, kv_dim, first, last, shape.head_dim,
                                                with_sink, scratch.data(), expected.data());
          for (uint32_t c = 0; c < shape.head_dim; ++c)
            ASSERT_NEAR(got[s * width + head * shape.head_dim + c], expected[c], 2e-5)
                << "position " << position << ", head " << head << ", value " << c;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaAttention,
                         testing::Values(Shape{8, 4, 2, 0}, Shape{20, 2, 1, 0}, Shape{64, 3, 3, 16, true},
                                         Shape{80, 2, 2, 0}, Shape{128, 4, 1, 33}, Shape{256, 1, 1, 0},
                                         Shape{320, 1, 1, 0}),
                         [](const auto& test) { return "HeadsOf" + std::to_string(test.param.head_dim); });

}  // namespace
}  // namespace tierd::cuda
