#include "tools/lab/train/activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "tests/base/temp_folder.h"
#include "tests/lab/train/activations_builder.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kInputWidth = 3;
constexpr uint32_t kFewNeurons = 5;
constexpr const char* kX = "layers.0.ffn.x";
constexpr const char* kContribution = "layers.0.ffn.contribution";

// Returns 0, 1, 2 … for 4 tokens.
std::vector<float> counted(uint32_t cols) {
  std::vector<float> values(4 * cols);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

class ActivationsTest : public testing::Test {
 protected:
  static SafetensorsBuilder file_of(const std::vector<float>& x, const std::vector<float>& contributions) {
    SafetensorsBuilder file;
    file.add(kX, "F32", {4, kInputWidth}, f32_bytes(x));
    file.add(kContribution, "F16", {4, kFewNeurons}, f16_bytes(contributions));
    return file;
  }
  Result<Activations> open(const std::string& bytes) const {
    return Activations::open(folder_.write("a.safetensors", bytes), one_layer(kInputWidth, kFewNeurons));
  }
  // Returns the error line for a file of these tensors.
  std::string refused(const std::function<void(SafetensorsBuilder&)>& tensors) const {
    SafetensorsBuilder file;
    tensors(file);
    const auto opened = open(file.bytes());
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : opened.error().line();
  }
  // Returns the error line for a file of these values, once they are read.
  std::string refused_values(const std::vector<float>& x, const std::vector<float>& contributions) const {
    const auto opened = open(file_of(x, contributions).bytes());
    EXPECT_TRUE(opened.ok());
    const std::vector<uint32_t> tokens = {0, 1, 2, 3};
    std::vector<float> inputs(4 * kInputWidth);
    std::vector<float> outputs(4 * kFewNeurons);
    for (const Status& read :
         {opened->read_inputs(0, tokens, inputs), opened->read_contributions(0, tokens, outputs)}) {
      if (read.ok()) continue;
      EXPECT_EQ(read.code(), Code::corrupt);
      return read.error().line();
    }
    return "";
  }

 private:
  TempFolder folder_;
};

TEST_F(ActivationsTest, RowsOfAnyTokens) {
  const auto opened = open(file_of(counted(kInputWidth), counted(kFewNeurons)).bytes());
  ASSERT_TRUE(opened.ok()) << opened.error().line();
  EXPECT_EQ(opened->tokens(), 4U);
  std::vector<float> x(9);
  const std::vector<uint32_t> some = {0, 2, 3};
  ASSERT_TRUE(opened->read_inputs(0, some, x).ok());
  EXPECT_THAT(x, ElementsAre(0, 1, 2, 6, 7, 8, 9, 10, 11));
  std::vector<float> contributions(5);
  const std::vector<uint32_t> one = {1};
  ASSERT_TRUE(opened->read_contributions(0, one, contributions).ok());
  EXPECT_THAT(contributions, ElementsAre(5, 6, 7, 8, 9));
  EXPECT_TRUE(opened->read_inputs(0, {}, {}).ok());
}

TEST_F(ActivationsTest, WhatTheFileLacks) {
  EXPECT_THAT(refused([](auto& file) { file.add_f32("y", {1}, 1); }),
              HasSubstr("a.safetensors: has no tensor \"layers.0.ffn.x\""));
  EXPECT_THAT(refused([](auto& file) {
                file.add_f32(kX, {4, 3}, 1);
              }),
              HasSubstr("has no tensor \"layers.0.ffn.contribution\""));
}

TEST_F(ActivationsTest, WhatDoesNotFitTheModel) {
  EXPECT_THAT(refused([](auto& file) {
                file.add_f32(kX, {4, 4}, 1);
              }),
              AllOf(HasSubstr("a.safetensors: tensor \"layers.0.ffn.x\""),
                    HasSubstr("shape [4, 4], expected [tokens, 3]")));
  EXPECT_THAT(refused([](auto& file) { file.add_f32(kX, {12}, 1); }), HasSubstr("shape [12], expected"));
  EXPECT_THAT(refused([](auto& file) {
                file.add_f32(kX, {4, 3}, 1);
                file.add_f32(kContribution, {3, 5}, 1);
              }),
              AllOf(HasSubstr(kContribution), HasSubstr("3 tokens, expected 4 as in the tensors before it")));
  EXPECT_THAT(refused([](auto& file) {
                file.add(kX, "BF16", {4, 3}, std::string(24, '\0'));
              }),
              AllOf(HasSubstr(kX), HasSubstr("dtype \"BF16\", expected F16 or F32")));
}

TEST_F(ActivationsTest, WhatIsNoActivation) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  std::vector<float> x = counted(kInputWidth);
  x[7] = kNan;
  EXPECT_THAT(refused_values(x, counted(kFewNeurons)),
              AllOf(HasSubstr("a.safetensors: tensor \"layers.0.ffn.x\""),
                    HasSubstr("row 2, column 1 is nan, expected a finite number")));
  x[7] = -kInfinite;
  EXPECT_THAT(refused_values(x, counted(kFewNeurons)), HasSubstr("is -inf, expected a finite number"));
  std::vector<float> contributions = counted(kFewNeurons);
  contributions[19] = -0.5F;
  EXPECT_THAT(refused_values(counted(kInputWidth), contributions),
              HasSubstr("row 3, column 4 is -0.5, expected a finite number of 0 or more"));
  contributions[19] = kNan;
  EXPECT_THAT(refused_values(counted(kInputWidth), contributions), HasSubstr("column 4 is nan"));
}

TEST_F(ActivationsTest, AFileThatEndsEarly) {
  const std::string whole = file_of(counted(kInputWidth), counted(kFewNeurons)).bytes();
  for (size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_FALSE(open(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_EQ(Activations::open("/nowhere/a", one_layer(kInputWidth, kFewNeurons)).code(), Code::not_found);
}

}  // namespace
}  // namespace tierd
