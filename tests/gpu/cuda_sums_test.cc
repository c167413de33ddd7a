// Compares neurons whose results are added, bundles and columns, with plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/align.h"
#include "core/base/row_mask.h"
#include "core/model/layout/bundle.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "tests/gpu/device_array.h"
#include "tiers/gpu/cuda/sums.h"

namespace tierd::cuda {
namespace {

constexpr uint32_t kNeurons = 150;  // the last run of 64 is incomplete
constexpr uint32_t kTokens = 6;

class CudaSums : public KernelTest, public testing::WithParamInterface<Encoding> {
 protected:
  uint32_t width() const { return is_quantized(GetParam()) ? 608 : 1101; }  // the last strip is incomplete
  uint32_t line() const { return align_up(width(), 16U); }

  // Makes neurons in slots of the bundle's size, in no particular order.
  void make(bool gated) {
    bundle_ = {GetParam(), width(), gated};
    slot_ = align_up(bundle_.bytes(), kPlaceUnit);
    memory_.assign(kNeurons * slot_, std::byte{0});
    for (uint32_t n = 0; n < kNeurons; ++n) {
      const auto piece = [&](uint64_t offset) {
        return std::span(memory_).subspan(place(n) * kPlaceUnit + offset, bundle_.row_bytes());
      };
      encode(GetParam(), draw(width()), piece(0));
      encode(GetParam(), draw(width()), piece(bundle_.up_offset()));
      encode_column(GetParam(), draw(width()), piece(bundle_.down_offset()));
    }
    units_.clear();
    for (uint32_t n = 0; n < kNeurons; ++n) {
      if (n % 5 != 2) units_.push_back({n, place(n)});
    }
  }
  uint32_t place(uint32_t n) const {
    return static_cast<uint32_t>((n * 7 + 3) % kNeurons * slot_ / kPlaceUnit);
  }
  std::vector<float> row(uint32_t n, uint64_t offset) const {
    std::vector<float> values(width());
    const auto bytes = std::span(memory_).subspan(place(n) * kPlaceUnit + offset, bundle_.row_bytes());
    if (offset == bundle_.down_offset()) {
      decode_column(GetParam(), bytes, values);
    } else {
      decode(GetParam(), bytes, values);
    }
    return values;
  }
  static std::vector<uint32_t> begins_of(std::span<const Unit> units) {
    std::vector<uint32_t> begins;
    for (uint32_t k = 0; k < units.size(); ++k) {
      if (k == 0 || units[k].unit / kPartialNeurons != units[k - 1].unit / kPartialNeurons)
        begins.push_back(k);
    }
    begins.push_back(static_cast<uint32_t>(units.size()));
    return begins;
  }
  // Returns y, [kTokens][line()], plus columns times values, [kTokens][kNeurons], by `in_part` tokens.
  std::vector<float> add(std::span<const Unit> units, const std::vector<float>& values, std::vector<float> y,
                         uint32_t tokens, uint32_t in_part) {
    const std::vector<uint32_t> begins = begins_of(units);
    const DeviceArray<std::byte> memory(memory_);
    const DeviceArray<Unit> list(std::vector<Unit>(units.begin(), units.end()));
    const DeviceArray<uint32_t> runs(begins);
    const DeviceArray<float> factors(values), out(y);
    const auto n_runs = static_cast<uint32_t>(begins.size() - 1);
    const DeviceArray<float> partial(std::vector<float>(uint64_t{in_part} * n_runs * width(), std::nanf("")));
    const WeightedColumns columns{.memory = memory.get(),
                                  .units = list.get(),
                                  .n_units = static_cast<uint32_t>(units.size()),
                                  .offset = bundle_.down_offset(),
                                  .width = width(),
                                  .values = factors.get(),
                                  .ldv = kNeurons,
                                  .tokens = tokens};
    EXPECT_EQ(add_columns(GetParam(), columns, {runs.get(), n_runs, partial.get(), in_part}, out.get(),
                          line(), stream()),
              cudaSuccess);
    return out.read();
  }

  Bundle bundle_;
  uint64_t slot_ = 0;
  std::vector<std::byte> memory_;
  std::vector<Unit> units_;
};

TEST_P(CudaSums, WhatANeuronIsWorth) {
  for (const bool gated : {false, true}) {
    make(gated);
    const std::vector<float> x = draw(kTokens * line()), gate_bias = draw(kNeurons), up_bias = draw(kNeurons);
    const DeviceArray<std::byte> memory(memory_);
    const DeviceArray<Unit> units(units_);
    const DeviceArray<float> in(x), gates(gate_bias), ups(up_bias);
    for (const uint32_t tokens : {1U, kTokens}) {
      const DeviceArray<float> out(std::vector<float>(kTokens * kNeurons, std::nanf("")));
      const BundleValues asked{.memory = memory.get(),
                               .units = units.get(),
                               .n_units = static_cast<uint32_t>(units_.size()),
                               .n_in = width(),
                               .gated = gated,
                               .up_offset = bundle_.up_offset(),
                               .activation = Activation::relu,
                               .gate_bias = gates.get(),
                               .up_bias = ups.get(),
                               .x = in.get(),
                               .values = out.get(),
                               .ldx = line(),
                               .ldv = kNeurons,
                               .tokens = tokens};
      ASSERT_EQ(bundle_values(GetParam(), asked, stream()), cudaSuccess);
      const std::vector<float> got = out.read();
      for (uint32_t k = 0; k < units_.size(); ++k) {
        const std::vector<float> up = row(units_[k].unit, bundle_.up_offset());
        const std::vector<float> gate = row(units_[k].unit, 0);
        for (uint32_t t = 0; t < tokens; ++t) {
          double ups_sum = up_bias[units_[k].unit], gates_sum = gate_bias[units_[k].unit];
          for (uint32_t c = 0; c < width(); ++c) {
            ups_sum += double{up[c]} * x[t * line() + c];
            gates_sum += double{gate[c]} * x[t * line() + c];
          }
          const double expected = gated ? std::max(0.0, gates_sum) * ups_sum : std::max(0.0, ups_sum);
          expect_near(got[t * kNeurons + k], expected, 4 * width(), "");
        }
      }
    }
  }
}

TEST_P(CudaSums, ColumnsAreAddedInOneOrder) {
  make(true);
  const std::vector<float> values = draw(kTokens * kNeurons), before = draw(kTokens * line());
  const std::vector<float> all = add(units_, values, before, kTokens, kTokens);
  for (uint32_t t = 0; t < kTokens; ++t) {
    std::vector<double> sums(width());
    for (uint32_t c = 0; c < width(); ++c) sums[c] = before[t * line() + c];
    for (uint32_t k = 0; k < units_.size(); ++k) {
      const std::vector<float> down = row(units_[k].unit, bundle_.down_offset());
      for (uint32_t c = 0; c < width(); ++c) sums[c] += double{values[t * kNeurons + k]} * down[c];
    }
    for (uint32_t c = 0; c < width(); ++c) expect_near(all[t * line() + c], sums[c], kNeurons, "");
    for (uint32_t c = width(); c < line(); ++c) EXPECT_EQ(all[t * line() + c], before[t * line() + c]);
  }
  EXPECT_EQ(add(units_, values, before, kTokens, 4), all) << "in other parts";
  // Two messages with whole runs each.
  const auto half = begins_of(units_)[1];
  const std::vector<float> first = add(std::span(units_).first(half), values, before, kTokens, kTokens);
  std::vector<float> rest(values.size());
  for (uint32_t t = 0; t < kTokens; ++t)
    std::copy(values.begin() + t * kNeurons + half, values.begin() + (t + 1) * kNeurons,
              rest.begin() + t * kNeurons);
  EXPECT_EQ(add(std::span(units_).subspan(half), rest, first, kTokens, kTokens), all);
  // One token separately.
  const std::vector<float> alone = add(units_, {values.begin() + 2 * kNeurons, values.end()},
                                       {before.begin() + 2 * line(), before.end()}, 1, 1);
  for (uint32_t c = 0; c < width(); ++c) ASSERT_EQ(alone[c], all[2 * line() + c]);
}

TEST_P(CudaSums, AreMeasuredAndSilenced) {
  make(false);
  const std::vector<float> values = draw(kTokens * kNeurons);
  const DeviceArray<std::byte> memory(memory_);
  const DeviceArray<Unit> units(units_);
  const DeviceArray<float> factors(values), lengths(std::vector<float>(kTokens * kNeurons, -1.0F));
  const WeightedColumns columns{.memory = memory.get(),
                                .units = units.get(),
                                .n_units = static_cast<uint32_t>(units_.size()),
                                .offset = bundle_.down_offset(),
                                .width = width(),
                                .values = factors.get(),
                                .ldv = kNeurons,
                                .tokens = kTokens};
  ASSERT_EQ(measure_columns(GetParam(), columns, lengths.get(), kNeurons, stream()), cudaSuccess);
  std::vector<uint64_t> masks(kNeurons, 0b101010);
  const DeviceArray<uint64_t> mask(masks);
  ASSERT_EQ(silence_values(columns, mask.get(), 1, stream()), cudaSuccess);
  const DeviceArray<float> told(std::vector<float>(kTokens * kNeurons, -1.0F));
  ASSERT_EQ(tell_values(columns, told.get(), kNeurons, stream()), cudaSuccess);
  const std::vector<float> measured = lengths.read(), silenced = factors.read(), firing = told.read();
  for (uint32_t k = 0; k < units_.size(); ++k) {
    double squares = 0;
    for (const float v : row(units_[k].unit, bundle_.down_offset())) squares += double{v} * v;
    for (uint32_t t = 0; t < kTokens; ++t) {
      const float value = values[t * kNeurons + k];
      expect_near(measured[t * kNeurons + units_[k].unit], std::abs(value) * std::sqrt(squares), 10, "");
      EXPECT_EQ(silenced[t * kNeurons + k], t % 2 == 1 ? value : 0);
      EXPECT_EQ(firing[t * kNeurons + units_[k].unit], t % 2 == 1 ? std::abs(value) : 0);
    }
  }
  EXPECT_EQ(measured[2], -1.0F) << "a neuron that is not active";
  EXPECT_EQ(firing[2], -1.0F);
}

INSTANTIATE_TEST_SUITE_P(Encodings, CudaSums,
                         testing::Values(Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0,
                                         Encoding::q4_0),
                         [](const auto& test) { return std::string(name(test.param)); });

class CudaColumnValues : public KernelTest {};
TEST_F(CudaColumnValues, AreTheInputsOfTheChannels) {
  const DeviceArray<Unit> units(std::vector<Unit>{{3, 0}, {17, 0}, {4, 0}});
  const std::vector<float> x = draw(2 * 32);
  const DeviceArray<float> in(x), out(std::vector<float>(6));
  ASSERT_EQ(column_values({units.get(), 3, in.get(), out.get(), 32, 3, 2}, stream()), cudaSuccess);
  EXPECT_EQ(out.read(), (std::vector<float>{x[3], x[17], x[4], x[35], x[49], x[36]}));
}

}  // namespace
}  // namespace tierd::cuda
