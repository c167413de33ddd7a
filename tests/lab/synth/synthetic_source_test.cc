#include "tools/lab/synth/synthetic_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/random.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

using testing::HasSubstr;

ModelConfig shape() {
  ModelConfig config = small_llama();
  config.vocab_size = 1000;
  config.d_model = config.d_ff = kSuperBlock;
  config.head_dim = 64;
  return config;
}

class Synthetic : public testing::TestWithParam<Encoding> {};

TEST_P(Synthetic, AnyRangeIsTheSame) {
  const auto source = SyntheticSource::make(shape(), GetParam(), 7);
  ASSERT_TRUE(source.ok());
  Random random(3);
  for (const TensorInfo& tensor : (*source)->tensors()) {
    std::vector<std::byte> whole(tensor.bytes());
    ASSERT_TRUE((*source)->read(tensor, 0, whole).ok());
    const uint64_t unit = tensor.rows == 1 ? sizeof(float) : 1;  // norms are read by values
    for (int i = 0; i < 20; ++i) {
      const uint64_t from = random.below(static_cast<uint32_t>(tensor.bytes() / unit)) * unit;
      const uint64_t bytes = random.below(static_cast<uint32_t>((tensor.bytes() - from) / unit)) * unit;
      std::vector<std::byte> part(bytes);
      ASSERT_TRUE((*source)->read(tensor, from, part).ok());
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(from)));
    }
  }
}

TEST_P(Synthetic, ValuesAreFiniteAndOfTheRightSize) {
  const auto source = SyntheticSource::make(shape(), GetParam(), 7);
  ASSERT_TRUE(source.ok());
  for (const TensorInfo& tensor : (*source)->tensors()) {
    const auto values = (*source)->read_f32(tensor);
    ASSERT_TRUE(values.ok());
    double sum = 0;
    double squares = 0;
    for (const float value : *values) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += double{value} * value;
    }
    const auto count = static_cast<double>(values->size());
    const double deviation = std::sqrt(squares / count);
    if (tensor.name.ends_with("norm")) {
      EXPECT_EQ(sum, count);
    } else {
      const double wanted = 0.5 / std::sqrt(static_cast<double>(tensor.cols));
      EXPECT_NEAR(deviation / wanted, 1.0, 0.45) << tensor.name;
      EXPECT_LT(std::fabs(sum / count), wanted / 10) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Synthetic, testing::ValuesIn(kAllEncodings),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(SyntheticSource, SeedsAndTensorsDiffer) {
  const auto one = SyntheticSource::make(shape(), Encoding::q4_0, 1);
  const auto two = SyntheticSource::make(shape(), Encoding::q4_0, 2);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE((*one)->fingerprint(), (*two)->fingerprint());
  const auto first_bytes = [](const TensorSource& source, const char* name) {
    std::vector<std::byte> bytes(64);
    EXPECT_TRUE(source.read(*source.find(name), 0, bytes).ok());
    return bytes;
  };
  EXPECT_NE(first_bytes(**one, "layers.0.q"), first_bytes(**two, "layers.0.q"));
  EXPECT_NE(first_bytes(**one, "layers.0.q"), first_bytes(**one, "layers.1.q"));
}

TEST(SyntheticSource, VocabularyIsWhole) {
  ModelConfig config = shape();
  config.vocab_size = 50'000;
  const auto source = SyntheticSource::make(config, Encoding::f16, 1);
  ASSERT_TRUE(source.ok());
  const Vocab& vocab = *(*source)->vocab();
  EXPECT_EQ(vocab.pieces.size(), 50'000u);
  EXPECT_EQ(vocab.scores.size(), 50'000u);
  EXPECT_EQ(vocab.types.size(), 50'000u);
  EXPECT_EQ(std::set(vocab.pieces.begin(), vocab.pieces.end()).size(), 50'000u);
  EXPECT_EQ(vocab.pieces[3], "<0x00>");
  EXPECT_EQ(vocab.pieces[258], "<0xFF>");
}

TEST(SyntheticSource, RefusesWhatCannotBe) {
  ModelConfig config = shape();
  config.vocab_size = 200;
  EXPECT_THAT(SyntheticSource::make(config, Encoding::f16, 1).error().line(), HasSubstr("too small"));
  config = small_opt();
  EXPECT_THAT(SyntheticSource::make(config, Encoding::q4_0, 1).error().line(),
              HasSubstr("rows of 72 columns"));
}

}  // namespace
}  // namespace tierd
