#include "tools/lab/planted/predictor_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/safetensors.h"
#include "core/model/layout/codec.h"
#include "tests/base/temp_folder.h"
#include "tests/lab/planted/small_planted.h"

namespace tierd {
namespace {

using testing::ElementsAre;

TEST(PredictorTables, HoldWhatEachLayerHas) {
  const auto source = make_planted(odd_planted_shape());
  const TempFolder folder;
  const std::string path = folder.path() + "/m.predictor.safetensors";
  ASSERT_TRUE(write_predictor_tables(*source, path, true).ok());
  const auto file = File::open(path);
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  ASSERT_EQ(tensors->size(), 6u);
  const auto values_of = [&](const SafetensorsTensor& tensor) {
    std::vector<std::byte> bytes(tensor.bytes);
    EXPECT_TRUE(file->read_exact(tensor.offset, bytes).ok());
    std::vector<float> values(tensor.bytes / 2);
    decode(Encoding::f16, bytes, values);
    return values;
  };
  const auto rounded = [](std::vector<float> values) {
    for (float& value : values) value = f16_to_f32(f32_to_f16(value));
    return values;
  };
  for (uint32_t layer = 0; layer < 3; ++layer) {
    const SafetensorsTensor& a = (*tensors)[2 * layer];
    const SafetensorsTensor& b = (*tensors)[2 * layer + 1];
    EXPECT_EQ(a.name, "layers." + std::to_string(layer) + ".ffn.a");
    EXPECT_EQ(b.name, "layers." + std::to_string(layer) + ".ffn.b");
    EXPECT_EQ(a.dtype, "F16");
    EXPECT_EQ(b.dtype, "F16");
    EXPECT_THAT(a.shape, ElementsAre(18u, 72u));
    EXPECT_THAT(b.shape, ElementsAre(301u, 18u));
    std::vector<float> a_row(72);
    source->ffn(layer).predictor_a(3, a_row);
    const auto a_values = values_of(a);
    EXPECT_TRUE(std::ranges::equal(std::span(a_values).subspan(3 * 72, 72), rounded(a_row)));
    std::vector<float> b_row(18);
    source->ffn(layer).predictor_b(*source->features(layer), 300, b_row);
    const auto b_values = values_of(b);
    EXPECT_TRUE(std::ranges::equal(std::span(b_values).subspan(300 * 18, 18), rounded(b_row)));
    // The constant feature.
    EXPECT_THAT(std::vector(a_values.end() - 72, a_values.end()),
                testing::Each(f16_to_f32(f32_to_f16(1 / 7.2f))));
  }
}

}  // namespace
}  // namespace tierd
