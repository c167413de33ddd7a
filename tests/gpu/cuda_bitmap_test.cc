// Neurons kept as bitmaps on a device. Expansion equals the dense bytes and the plain loop of tiers/compute;
// products and gathers equal those of the dense kernels, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/align.h"
#include "core/model/layout/codec.h"
#include "tests/gpu/device_array.h"
#include "tiers/compute/bitmap.h"
#include "tiers/gpu/cuda/bitmap.h"
#include "tiers/gpu/cuda/rows.h"

namespace tierd::cuda {
namespace {

// Neurons of one size, dense and as bitmaps, in slots at arbitrary places.
struct Pruned {
  Pruned(const Bitmap& bitmap_, const std::vector<std::vector<std::byte>>& neurons) : bitmap(bitmap_) {
    const auto n = static_cast<uint32_t>(neurons.size());
    dense_bytes = neurons.front().size();
    const uint64_t slot = align_up(bitmap.bits_bytes(dense_bytes) + dense_bytes, kPlaceUnit);
    kept.resize(n * slot);
    for (uint32_t k = 0; k < n; ++k) {
      const uint32_t number = n - 1 - k;  // units have another order than slots
      dense.resize(align_up(dense.size(), kPlaceUnit));
      dense_units.push_back({number, static_cast<uint32_t>(dense.size() / kPlaceUnit)});
      dense.insert(dense.end(), neurons[number].begin(), neurons[number].end());
      units.push_back({number, static_cast<uint32_t>((k + 1) % n * slot / kPlaceUnit)});
    }
    sizes.resize(n);
    for (const Unit& unit : units) {
      const uint64_t bytes = compressed_bytes(bitmap, neurons[unit.unit]);
      sizes[unit.unit] = {static_cast<uint32_t>(bytes),
                          static_cast<uint32_t>(bitmap.bits_bytes(dense_bytes))};
      compress(bitmap, neurons[unit.unit], std::span(kept).subspan(unit.place * kPlaceUnit, bytes));
    }
  }
  std::byte* neuron(uint32_t number) {
    for (const Unit& unit : units) {
      if (unit.unit == number) return kept.data() + unit.place * kPlaceUnit;
    }
    return nullptr;
  }

  Bitmap bitmap;
  uint64_t dense_bytes;
  std::vector<std::byte> dense, kept;
  std::vector<Unit> dense_units, units;
  std::vector<NeuronSize> sizes;
};

// The bitmaps on the device, with their counts of ones.
struct Counted {
  Counted(const Pruned& pruned, uint32_t tile, cudaStream_t stream)
      : memory(pruned.kept), list(pruned.units), sizes(pruned.sizes), malformed({0}), counts({}) {
    units = {.memory = memory.get(),
             .units = list.get(),
             .n_units = static_cast<uint32_t>(pruned.units.size()),
             .sizes = sizes.get(),
             .bitmap = pruned.bitmap,
             .tile = tile,
             .tiles = static_cast<uint32_t>(divide_up(pruned.sizes.front().bits, tile)),
             .malformed = malformed.get()};
    counts = DeviceArray<uint32_t>(
        std::vector<uint32_t>(units.n_units * BitmapUnits::count_words(units.tiles), 12345));
    units.counts = counts.get();
    EXPECT_EQ(count_bitmaps(units, stream), cudaSuccess);
  }
  uint32_t found() const { return malformed.read().front(); }

  DeviceArray<std::byte> memory;
  DeviceArray<Unit> list;
  DeviceArray<NeuronSize> sizes;
  DeviceArray<uint32_t> malformed, counts;
  BitmapUnits units;
};

class CudaBitmaps : public KernelTest {
 protected:
  std::vector<std::byte> draw_bytes(const Bitmap& bitmap, uint64_t bytes, uint32_t percent) {
    std::vector<std::byte> dense(bytes, bitmap.zero);
    for (uint64_t at = 0; at < bytes; at += bitmap.element_bytes) {
      if (random_.below(100) >= percent) continue;
      for (uint64_t i = at; i < at + bitmap.element_bytes; ++i)
        dense[i] = static_cast<std::byte>(random_.below(256));
    }
    return dense;
  }
};

TEST_F(CudaBitmaps, ExpandAsTheNaiveTwin) {
  for (const Bitmap& bitmap : {Bitmap{4, std::byte{0}}, Bitmap{2, std::byte{0}}, Bitmap{1, std::byte{0}},
                               Bitmap{1, std::byte{0x80}}}) {
    // The last size is counted in several segments.
    for (const uint64_t bytes : {64, 448, 576, 5184, 17 * 1024, 260 * 512 + 64}) {
      for (const uint32_t percent : {0U, 1U, 50U, 99U, 100U}) {
        SCOPED_TRACE(std::to_string(bytes) + " bytes of " + std::to_string(bitmap.element_bytes) + ", " +
                     std::to_string(percent) + " %");
        if (bytes > 100000 && percent != 50) continue;
        std::vector<std::vector<std::byte>> neurons;
        for (uint32_t n = 0; n < (bytes > 10000 ? 2 : 5); ++n)
          neurons.push_back(draw_bytes(bitmap, bytes, n == 1 ? 30 : percent));
        const Pruned pruned(bitmap, neurons);
        const Counted counted(pruned, plain_tile(bitmap), stream());
        const DeviceArray<std::byte> out(std::vector<std::byte>(pruned.dense.size()));
        const DeviceArray<Unit> placed(pruned.units);
        ASSERT_EQ(expand_bitmaps(counted.units, {out.get(), placed.get(), bytes}, stream()), cudaSuccess);
        const std::vector<std::byte> got = out.read();
        const std::vector<Unit> places = placed.read();
        ASSERT_EQ(got, pruned.dense);
        for (size_t k = 0; k < pruned.units.size(); ++k) {
          EXPECT_EQ(places[k].unit, pruned.dense_units[k].unit);
          EXPECT_EQ(places[k].place, pruned.dense_units[k].place);
          const std::byte* const at = pruned.kept.data() + pruned.units[k].place * kPlaceUnit;
          const NeuronSize& size = pruned.sizes[pruned.units[k].unit];
          std::vector<std::byte> plain(bytes);
          ASSERT_NE(expand_bitmap_plainly(bitmap, at, {at + size.bits, at + size.bytes},
                                          bytes / bitmap.element_bytes, plain.data()),
                    nullptr);
          ASSERT_EQ(std::memcmp(plain.data(), got.data() + places[k].place * kPlaceUnit, bytes), 0);
        }
        EXPECT_EQ(counted.found(), 0U);
      }
    }
  }
}

// The mismatch is found in one segment and in several.
TEST_F(CudaBitmaps, AreMalformedWhereTheirBitsSayOtherwise) {
  const Bitmap bitmap{2, std::byte{0}};
  for (const uint64_t bytes : {1024, 260 * 512}) {
    for (const bool more : {true, false}) {
      Pruned pruned(bitmap, {draw_bytes(bitmap, bytes, 50), draw_bytes(bitmap, bytes, 50)});
      std::memset(pruned.neuron(1) + pruned.sizes[1].bits - 8, more ? 0xff : 0, 8);
      const Counted counted(pruned, plain_tile(bitmap), stream());
      const DeviceArray<std::byte> out(std::vector<std::byte>(pruned.dense.size(), std::byte{7}));
      const DeviceArray<Unit> placed(pruned.units);
      ASSERT_EQ(expand_bitmaps(counted.units, {out.get(), placed.get(), bytes}, stream()), cudaSuccess);
      EXPECT_EQ(counted.found(), 1U);
      const std::vector<std::byte> got = out.read();
      EXPECT_EQ(std::memcmp(got.data() + bytes, pruned.dense.data() + bytes, bytes), 0) << "the other one";
      EXPECT_EQ(std::count(got.begin(), got.begin() + static_cast<long>(bytes), std::byte{7}),
                static_cast<long>(bytes));
    }
  }
}

class CudaBitmapRows : public CudaBitmaps, public testing::WithParamInterface<Encoding> {
 protected:
  static constexpr uint32_t kLdx = 1600, kLdy = 256;

  // Draws neurons of `groups` row groups each, which begin `offset` bytes into the neuron.
  Pruned draw_rows(uint32_t n_units, uint32_t groups, uint32_t cols, uint32_t percent, uint64_t offset = 0) {
    const Bitmap bitmap = *Bitmap::of(GetParam(), true);
    std::vector<std::vector<std::byte>> neurons;
    std::vector<float> rows(size_t{kGroupRows} * cols);
    std::vector<std::byte> plain(encoded_bytes(GetParam(), rows.size()));
    const uint64_t group = group_bytes(GetParam(), cols);
    for (uint32_t n = 0; n < n_units; ++n) {
      std::vector<std::byte>& neuron = neurons.emplace_back(draw_bytes(bitmap, offset, 50));
      neuron.resize(offset + groups * group);
      for (uint32_t g = 0; g < groups; ++g) {
        for (float& value : rows) value = random_.below(100) < percent ? random_.symmetric() : 0.0F;
        encode(GetParam(), rows, plain);
        pack_row_group(GetParam(), kGroupRows, cols, plain,
                       std::span(neuron).subspan(offset + g * group, group));
      }
    }
    return {bitmap, neurons};
  }
  RowProduct product(const Pruned& pruned, uint32_t groups, uint32_t cols, uint32_t tokens) const {
    return {.n_units = static_cast<uint32_t>(pruned.units.size()),
            .groups = groups,
            .n_in = cols,
            .rows_of_unit = groups * kGroupRows,
            .row_end = static_cast<uint32_t>(pruned.units.size()) * groups * kGroupRows,
            .ldx = kLdx,
            .ldy = kLdy,
            .tokens = tokens,
            .mask_words = 1};
  }
  // Compares y, [tokens][kLdy], of the dense rows with y computed from the bitmaps, bit for bit.
  void expect_the_same(const Pruned& pruned, RowProduct product, const std::vector<uint64_t>& masks = {}) {
    const Counted counted(pruned, row_tile(pruned.bitmap), stream());
    const DeviceArray<std::byte> dense(pruned.dense);
    const DeviceArray<Unit> dense_units(pruned.dense_units);
    const DeviceArray<uint64_t> mask(masks);
    const DeviceArray<float> x(draw(product.tokens * kLdx)),
        expected(std::vector<float>(product.tokens * kLdy, -7.0F)),
        found(std::vector<float>(product.tokens * kLdy, -7.0F));
    if (!masks.empty()) product.masks = mask.get();
    product.x = x.get();
    product.memory = dense.get();
    product.units = dense_units.get();
    product.y = expected.get();
    ASSERT_EQ(multiply_rows(GetParam(), product, stream()), cudaSuccess);
    product.memory = counted.units.memory;
    product.units = counted.units.units;
    product.y = found.get();
    ASSERT_EQ(multiply_bitmap_rows(GetParam(), product, counted.units, stream()), cudaSuccess);
    EXPECT_EQ(counted.found(), 0U);
    const std::vector<float> a = expected.read(), b = found.read();
    ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }
};

TEST_P(CudaBitmapRows, MultiplyAsTheDenseOnesToTheBit) {
  for (const uint32_t cols : {1U, 7U, 32U, 172U, 352U, 1568U}) {
    if (cols % block_values(GetParam()) != 0) continue;
    for (const uint32_t percent : {0U, 10U, 50U, 100U}) {
      const Pruned pruned = draw_rows(3, 2, cols, percent);
      for (const uint32_t tokens : {1U, 3U, 9U}) {
        if (tokens != 1 && percent != 50) continue;
        SCOPED_TRACE(std::to_string(cols) + " columns, " + std::to_string(percent) + " %, " +
                     std::to_string(tokens) + " tokens");
        expect_the_same(pruned, product(pruned, 2, cols, tokens));
        if (HasFailure()) return;
      }
    }
  }
}

// Row groups begin anywhere in a neuron, as an expert's do. Masks and left-out rows change no other bit.
TEST_P(CudaBitmapRows, BeginAnywhereInANeuron) {
  for (const uint64_t offset : {64, 448, 5120}) {
    const Pruned pruned = draw_rows(2, 3, 96, 50, offset);
    RowProduct some = product(pruned, 3, 96, 2);
    some.offset = offset;
    expect_the_same(pruned, some);
    some.row_begin = 16;
    some.row_end = 80;
    expect_the_same(pruned, some, {0b01, 0b10});
  }
}

TEST_P(CudaBitmapRows, AreCountedInSeveralSegments) {
  const Pruned pruned = draw_rows(2, 6, 1568, 50);
  ASSERT_GT(divide_up(pruned.sizes.front().bits, row_tile(pruned.bitmap)), kSegmentTiles);
  expect_the_same(pruned, product(pruned, 6, 1568, 1));
}

TEST_P(CudaBitmapRows, GiveNothingWhereTheyAreMalformed) {
  for (const bool more : {true, false}) {
    Pruned pruned = draw_rows(2, 1, 64, 50);
    std::memset(pruned.neuron(1), more ? 0xff : 0, 16);
    const Counted counted(pruned, row_tile(pruned.bitmap), stream());
    const DeviceArray<float> x(draw(kLdx)), y(std::vector<float>(kLdy, std::nanf("")));
    RowProduct some = product(pruned, 1, 64, 1);
    some.memory = counted.units.memory;
    some.units = counted.units.units;
    some.x = x.get();
    some.y = y.get();
    ASSERT_EQ(multiply_bitmap_rows(GetParam(), some, counted.units, stream()), cudaSuccess);
    EXPECT_EQ(counted.found(), 1U);
    const std::vector<float> got = y.read();
    EXPECT_FALSE(std::isnan(got[0]));
    EXPECT_TRUE(std::isnan(got[16]));
  }
}

TEST_P(CudaBitmapRows, GatherAsTheDenseOnes) {
  for (const uint32_t cols : {7U, 96U, 352U}) {
    if (cols % block_values(GetParam()) != 0) continue;
    const Pruned pruned = draw_rows(2, 3, cols, 50);
    const Counted counted(pruned, row_tile(pruned.bitmap), stream());
    const DeviceArray<std::byte> dense(pruned.dense);
    const DeviceArray<Unit> dense_units(pruned.dense_units);
    const DeviceArray<RowInfo> rows(
        std::vector<RowInfo>{{0, 0, 0, 0}, {47, 0, 0, 0}, {65, 0, 0, 0}, {99, 0, 0, 0}});
    const DeviceArray<float> expected(std::vector<float>(4 * kLdx, -7.0F)),
        found(std::vector<float>(4 * kLdx, -7.0F));
    RowGather gather{.memory = dense.get(),
                     .units = dense_units.get(),
                     .n_units = 2,
                     .rows_of_unit = 48,
                     .n_in = cols,
                     .rows = rows.get(),
                     .n_rows = 4,
                     .out = expected.get(),
                     .ldo = kLdx};
    ASSERT_EQ(gather_rows(GetParam(), gather, stream()), cudaSuccess);
    gather.memory = counted.units.memory;
    gather.units = counted.units.units;
    gather.out = found.get();
    ASSERT_EQ(gather_bitmap_rows(GetParam(), gather, counted.units, stream()), cudaSuccess);
    ASSERT_EQ(found.read(), expected.read());
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, CudaBitmapRows,
                         testing::Values(Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace tierd::cuda
