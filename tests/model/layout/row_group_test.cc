#include "core/model/layout/row_group.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/random.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

class RowGroup : public testing::TestWithParam<Encoding> {};

TEST_P(RowGroup, UnpackInvertsPack) {
  const Encoding e = GetParam();
  Random random(5);
  for (const uint32_t cols : {32u, 64u, 352u, 256u, 1280u}) {
    if (cols % block_values(e) != 0) continue;
    for (const uint32_t rows : {1u, 5u, 16u}) {
      std::vector<float> x(rows * cols);
      for (auto& v : x) v = random.symmetric();
      std::vector<std::byte> plain(encoded_bytes(e, x.size()));
      encode(e, x, plain);
      std::vector<float> decoded(x.size());
      decode(e, plain, decoded);
      std::vector<std::byte> group(group_bytes(e, cols), std::byte{0x5a});
      pack_row_group(e, rows, cols, plain, group);
      for (uint32_t r = 0; r < kGroupRows; ++r) {
        std::vector<float> row(cols);
        unpack_row(e, r, group, row);
        for (uint32_t c = 0; c < cols; ++c) {
          ASSERT_EQ(row[c], r < rows ? decoded[r * cols + c] : 0.0f) << r << " " << c;
        }
      }
    }
  }
}

TEST_P(RowGroup, KeepsEveryByte) {
  const Encoding e = GetParam();
  constexpr uint32_t kCols = 512;
  Random random(6);
  std::vector<std::byte> plain(kGroupRows * encoded_bytes(e, kCols));
  for (auto& byte : plain) byte = static_cast<std::byte>(random.below(256));
  std::vector<std::byte> group(plain.size());
  pack_row_group(e, kGroupRows, kCols, plain, group);
  std::vector<std::byte> again;
  for (uint32_t r = 0; r < kGroupRows; ++r) {
    std::vector<std::byte> row(encoded_bytes(e, kCols));
    unpack_row_bytes(e, r, group, row);
    again.insert(again.end(), row.begin(), row.end());
  }
  EXPECT_EQ(again, plain);
}

INSTANTIATE_TEST_SUITE_P(All, RowGroup, testing::ValuesIn(kAllEncodings),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(RowGroup, FloatsWithOddColumns) {
  std::vector<float> x(2 * 7);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::vector<std::byte> plain(encoded_bytes(Encoding::f32, x.size()));
  encode(Encoding::f32, x, plain);
  std::vector<std::byte> group(group_bytes(Encoding::f32, 7));
  pack_row_group(Encoding::f32, 2, 7, plain, group);
  std::vector<float> row(7);
  unpack_row(Encoding::f32, 1, group, row);
  EXPECT_EQ(row, std::vector<float>(x.begin() + 7, x.end()));
}

}  // namespace
}  // namespace tierd
