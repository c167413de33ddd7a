// Compares each cut's figures about its neurons with the weights counted one by one.
#include "core/model/layout/cut.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/base/random.h"
#include "tierd/views.h"

namespace tierd {
namespace {

static_assert(kCutNumber<Rows> == TIERD_AXIS_ROW && kCutNumber<Rows> == 0);
static_assert(kCutNumber<Bundles> == TIERD_AXIS_NEURON && kCutNumber<Bundles> == 1);
static_assert(kCutNumber<Columns> == TIERD_AXIS_CHANNEL && kCutNumber<Columns> == 2);
static_assert(kCutNumber<Experts> == TIERD_AXIS_EXPERT && kCutNumber<Experts> == 3);

constexpr Encoding kOfColumns[] = {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0,
                                   Encoding::q4_0};

// Counts block by block, so it shares no multiplication with the tested code.
uint64_t bytes_of_row(Encoding e, uint32_t values) {
  uint64_t bytes = 0;
  for (uint32_t value = 0; value < values; value += block_values(e)) bytes += block_bytes(e);
  return bytes;
}

uint64_t padded(uint64_t bytes) {
  while (bytes % 64 != 0) ++bytes;
  return bytes;
}

// Returns the operator of every row of a site, one row after the other.
std::vector<size_t> operators_of(const std::vector<uint32_t>& stacked) {
  std::vector<size_t> parts;
  for (size_t part = 0; part < stacked.size(); ++part) parts.insert(parts.end(), stacked[part], part);
  return parts;
}

// `encodings` may differ only if every operator begins with a neuron.
void expect_rows(const Rows& rows, const Encodings& encodings) {
  const std::vector<size_t> parts = operators_of(rows.stacked);
  std::map<uint32_t, uint32_t> rows_of;  // by neuron
  uint64_t tensor = 0;
  for (uint32_t row = 0; row < parts.size(); ++row) {
    ASSERT_EQ(rows.operator_of(row), parts[row]) << row;
    const uint32_t neuron = row / rows.rows;
    ASSERT_EQ(rows.first_row(neuron), row - rows_of[neuron]);
    ++rows_of[neuron];
    ASSERT_EQ(rows.encoding_of(neuron, encodings), encodings[parts[row]]) << row;
    tensor += bytes_of_row(encodings[parts[row]], rows.n_in);
  }
  const Cut cut = rows;
  EXPECT_TRUE(is_cut_into<Rows>(cut));
  EXPECT_FALSE(is_added(cut));
  EXPECT_EQ(run_of(cut), 1u);
  EXPECT_EQ(inputs(cut), rows.n_in);
  EXPECT_EQ(outputs(cut), parts.size());
  ASSERT_EQ(neurons(cut), rows_of.size());
  EXPECT_EQ(tensor_bytes(cut, encodings), tensor);
  for (const auto& [neuron, count] : rows_of) {
    ASSERT_EQ(rows.rows_of(neuron), count) << neuron;
    const Encoding encoding = encodings[parts[rows.first_row(neuron)]];
    uint32_t groups = 0;
    for (uint32_t row = 0; row < count; row += 16) ++groups;
    ASSERT_EQ(rows.groups_of(neuron), groups) << neuron;
    ASSERT_EQ(neuron_bytes(cut, encodings, neuron), groups * 16 * bytes_of_row(encoding, rows.n_in))
        << neuron;
  }
}

TEST(Cut, RowsThatHaveNoLengthYetHaveNoNeurons) {
  EXPECT_EQ((Rows{64, {300}, 0}).neurons(), 0u);
  EXPECT_EQ(Rows().neurons(), 0u);
  EXPECT_EQ(Rows().outputs(), 0u);
}

TEST(Cut, TheLastRowsAreFewer) {
  const Rows rows = {8, {40, 1}, 16};
  EXPECT_EQ(rows.neurons(), 3u);
  EXPECT_EQ(rows.rows_of(2), 9u);
  EXPECT_EQ(rows.bytes({Encoding::f32, Encoding::f32}, 2), 16u * 8 * 4) << "a whole row group";
  // A neuron larger than the whole site.
  EXPECT_EQ((Rows{8, {40, 1}, 48}).rows_of(0), 41u);
  EXPECT_EQ((Rows{8, {40, 1}, 48}).groups_of(0), 3u);
  EXPECT_EQ((Rows{8, {1}, 16}).rows_of(0), 1u);
  EXPECT_EQ((Rows{8, {32}, 16}).rows_of(1), 16u) << "none is fewer";
}

TEST(Cut, RowsChangeTheirEncodingWithTheirOperator) {
  const Rows rows = {256, {64, 32, 32}, 32};
  const Encodings encodings = {Encoding::q4_k, Encoding::f16, Encoding::q6_k};
  const std::vector<Encoding> expected = {Encoding::q4_k, Encoding::q4_k, Encoding::f16, Encoding::q6_k};
  ASSERT_EQ(rows.neurons(), expected.size());
  for (uint32_t neuron = 0; neuron < expected.size(); ++neuron)
    EXPECT_EQ(rows.encoding_of(neuron, encodings), expected[neuron]) << neuron;
  for (const auto& [row, part] :
       std::map<uint32_t, size_t>{{0, 0}, {63, 0}, {64, 1}, {95, 1}, {96, 2}, {127, 2}})
    EXPECT_EQ(rows.operator_of(row), part) << row;
}

TEST(Cut, RowsOfOneEncoding) {
  Random random(1);
  for (const uint32_t n_in : {1u, 7u, 32u, 256u, 1024u}) {
    for (const Encoding e : kAllEncodings) {
      if (n_in % block_values(e) != 0) continue;
      for (const uint32_t first : {1u, 15u, 16u, 17u, 300u}) {
        std::vector<uint32_t> stacked = {first};
        while (stacked.size() < 3) {
          expect_rows({n_in, stacked, 16 * (1 + random.below(5))}, Encodings(stacked.size(), e));
          stacked.push_back(1 + random.below(100));
        }
        expect_rows({n_in, stacked, 16}, Encodings(stacked.size(), e));
        expect_rows({n_in, stacked, 1u << 20}, Encodings(stacked.size(), e));
      }
    }
  }
}

TEST(Cut, RowsOfSeveralEncodings) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const uint32_t rows = 16 * (1 + random.below(4));
    std::vector<uint32_t> stacked(1 + random.below(3));
    for (uint32_t& part : stacked) part = rows * (1 + random.below(4));
    stacked.back() -= random.below(rows);  // the last row need not end a neuron
    Encodings encodings(stacked.size(), Encoding::f32);
    for (size_t part = 0; part < encodings.size(); ++part)
      encodings[part] = kAllEncodings[random.below(kAllEncodings.size())];
    expect_rows({256 * (1 + random.below(3)), stacked, rows}, encodings);
  }
}

TEST(Cut, BundlesAreARowOrTwoAndAColumn) {
  Random random(3);
  std::vector<Bundles> all = {{1, 1, false}, {1, 1, true}, {32, 1, true}, {4096, 16'384, false}};
  for (int i = 0; i < 50; ++i)
    all.push_back({32 * (1 + random.below(40)), 1 + random.below(500), random.below(2) == 0});
  for (int i = 0; i < 50; ++i)
    all.push_back({1 + random.below(500), 1 + random.below(500), random.below(2) == 0});
  for (const Bundles& bundles : all) {
    for (const Encoding e : kOfColumns) {
      if (bundles.width % block_values(e) != 0) continue;
      const uint32_t pieces = bundles.gated ? 3 : 2;
      const Encodings encodings(pieces, e);
      uint64_t of_all = 0, of_one = 0;
      for (uint32_t piece = 0; piece < pieces; ++piece) of_one += padded(bytes_of_row(e, bundles.width));
      for (uint32_t i = 0; i < bundles.inner; ++i) of_all += pieces * bytes_of_row(e, bundles.width);
      const Cut cut = bundles;
      EXPECT_TRUE(is_added(cut));
      EXPECT_EQ(run_of(cut), kPartialNeurons);
      EXPECT_EQ(neurons(cut), bundles.inner);
      EXPECT_EQ(inputs(cut), bundles.width);
      EXPECT_EQ(outputs(cut), bundles.width);
      EXPECT_EQ(neuron_bytes(cut, encodings, 0), of_one);
      EXPECT_EQ(neuron_bytes(cut, encodings, bundles.inner - 1), of_one);
      EXPECT_EQ(tensor_bytes(cut, encodings), of_all);
    }
  }
}

TEST(Cut, ColumnsAreFilledUpToWholeBlocks) {
  Random random(4);
  std::vector<Columns> all = {{1, 1}, {5, 31}, {5, 32}, {5, 33}, {4096, 22'016}};
  for (int i = 0; i < 100; ++i) all.push_back({1 + random.below(300), 1 + random.below(2000)});
  for (const Columns& columns : all) {
    for (const Encoding e : kOfColumns) {
      const Encodings encodings(3, e);
      uint32_t values = columns.n_out;
      while (values % block_values(e) != 0) ++values;
      const Cut cut = columns;
      EXPECT_TRUE(is_added(cut));
      EXPECT_EQ(run_of(cut), kPartialNeurons);
      EXPECT_EQ(neurons(cut), columns.n_in);
      EXPECT_EQ(inputs(cut), columns.n_in);
      EXPECT_EQ(outputs(cut), columns.n_out);
      EXPECT_EQ(columns.column(encodings).values(), values);
      EXPECT_EQ(neuron_bytes(cut, encodings, 0), padded(bytes_of_row(e, values)));
      EXPECT_EQ(neuron_bytes(cut, encodings, columns.n_in - 1), padded(bytes_of_row(e, values)));
      uint64_t of_all = 0;
      for (uint32_t i = 0; i < columns.n_in; ++i) of_all += bytes_of_row(e, values);
      EXPECT_EQ(tensor_bytes(cut, encodings), of_all);
    }
  }
}

TEST(Cut, ExpertsAreThreeMatricesInRowGroups) {
  Random random(5);
  const auto fits = [](Encoding e, uint32_t cols) { return cols % block_values(e) == 0; };
  std::vector<Experts> all = {{1, 1, 1}, {64, 40, 6}, {256, 512, 128}, {2048, 1024, 64}};
  for (int i = 0; i < 50; ++i)
    all.push_back({1 + random.below(300), 1 + random.below(300), 1 + random.below(10)});
  for (int i = 0; i < 50; ++i)
    all.push_back({256 * (1 + random.below(4)), 256 * (1 + random.below(4)), 1 + random.below(10)});
  for (const Experts& experts : all) {
    Encodings encodings(3, Encoding::f16);
    for (size_t matrix = 0; matrix < 3; ++matrix) {
      const Encoding e = kAllEncodings[random.below(kAllEncodings.size())];
      if (fits(e, matrix == 2 ? experts.inner : experts.width)) encodings[matrix] = e;
    }
    uint64_t of_one = 0, weights = 0;
    for (size_t matrix = 0; matrix < 3; ++matrix) {
      const uint32_t rows = matrix == 2 ? experts.width : experts.inner;
      const uint64_t row = bytes_of_row(encodings[matrix], matrix == 2 ? experts.inner : experts.width);
      uint64_t bytes = 0;
      for (uint32_t r = 0; r < rows; r += 16) bytes += 16 * row;
      of_one += padded(bytes);
      weights += rows * row;
    }
    const Cut cut = experts;
    EXPECT_TRUE(is_added(cut));
    EXPECT_EQ(run_of(cut), 1u);
    EXPECT_EQ(neurons(cut), experts.experts);
    EXPECT_EQ(inputs(cut), experts.width);
    EXPECT_EQ(outputs(cut), experts.width);
    EXPECT_EQ(neuron_bytes(cut, encodings, 0), of_one);
    EXPECT_EQ(neuron_bytes(cut, encodings, experts.experts - 1), of_one);
    EXPECT_EQ(tensor_bytes(cut, encodings), experts.experts * weights);
  }
}

TEST(Cut, EncodingsAreMixedWhereOneDiffers) {
  EXPECT_FALSE(Encodings().mixed());
  EXPECT_FALSE(Encodings().has_blocks());
  EXPECT_FALSE((Encodings{Encoding::q8_0}).mixed());
  EXPECT_FALSE(Encodings(3, Encoding::f16).mixed());
  EXPECT_FALSE(Encodings(3, Encoding::f16).has_blocks());
  EXPECT_TRUE((Encodings{Encoding::f16, Encoding::f16, Encoding::q4_k}).mixed());
  EXPECT_TRUE((Encodings{Encoding::f16, Encoding::f16, Encoding::q4_k}).has_blocks());
  EXPECT_TRUE((Encodings{Encoding::f32, Encoding::f16}).mixed());
}

}  // namespace
}  // namespace tierd
