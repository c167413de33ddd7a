#include "tools/lab/train/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::unique_ptr<TensorSource> open(const std::string& path) {
  auto source = open_source(path);
  EXPECT_TRUE(source.ok()) << source.error().line();
  return source.ok() ? std::move(*source) : nullptr;
}
std::string golden(const std::string& name) {
  return TIERD_SOURCE_DIR "/tests/golden/models/" + name;
}

// Halves each weight, which is exact in every encoding.
Status halve(const TensorSource& source, const std::string& out) {
  TIERD_ASSIGN(const ModelFolder folder, ModelFolder::create(source, out));
  const auto halved = [&](size_t i) -> Result<std::vector<float>> {
    TIERD_ASSIGN(std::vector<float> values, source.read_f32(source.tensors()[i]));
    for (float& value : values) value /= 2;
    return values;
  };
  return folder.write(halved, {{"made_by", "a test"}});
}

TEST(ModelFolder, HasTheNamesTheEncodingsAndTheCompanionsOfItsSource) {
  const TempFolder folder;
  for (const std::string name : {"llama3", "opt-bf16", "qwen2", "mistral", "phi", "demo"}) {
    SCOPED_TRACE(name);
    const std::string from = name == "demo" ? TIERD_SOURCE_DIR "/configs/models/demo" : golden(name);
    const std::string out = folder.path() + "/" + name;
    const auto source = open(from);
    ASSERT_TRUE(ModelFolder::accepts(*source).ok());
    const Status made = halve(*source, out + "/");
    ASSERT_TRUE(made.ok()) << made.error().line();
    const auto copy = open(out);
    ASSERT_EQ(copy->tensors().size(), source->tensors().size());
    for (const TensorInfo& tensor : source->tensors()) {
      const TensorInfo* const found = copy->find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(found->theirs, tensor.theirs);
      EXPECT_EQ(found->encoding, tensor.encoding);
      const auto before = source->read_f32(tensor), after = copy->read_f32(*found);
      ASSERT_TRUE(before.ok() && after.ok());
      for (size_t i = 0; i < before->size(); ++i) ASSERT_NEAR((*after)[i], (*before)[i] / 2, 1e-7F);
    }
    EXPECT_EQ(copy->vocab() == nullptr, source->vocab() == nullptr);
    EXPECT_EQ(file_text(out + "/config.json"), file_text(from + "/config.json"));
    EXPECT_THAT(file_text(out + "/distillation.json"), HasSubstr("\"made_by\": \"a test\""));
    EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
    EXPECT_EQ(halve(*source, out).code(), Code::invalid_argument) << "it is there already";
  }
}

TEST(ModelFolder, WhatItCannotFollow) {
  EXPECT_EQ(ModelFolder::accepts(*open(golden("gguf-llama-f16/model.gguf"))).code(), Code::unsupported);
  const Status fused = ModelFolder::accepts(*open(golden("falcon")));
  ASSERT_FALSE(fused.ok());
  EXPECT_THAT(fused.error().line(), HasSubstr("holds q, k and v in one"));
  EXPECT_FALSE(ModelFolder::create(*open(golden("opt")), "/nowhere/at/all").ok());
}

TEST(ModelFolder, WhatDoesNotFitLeavesNoFolder) {
  const TempFolder folder;
  const std::string out = folder.path() + "/out";
  const auto source = open(golden("opt-f16"));
  const auto made = ModelFolder::create(*source, out);
  ASSERT_TRUE(made.ok()) << made.error().line();
  const auto huge = [&](size_t i) -> Result<std::vector<float>> {
    return std::vector<float>(source->tensors()[i].rows * source->tensors()[i].cols, 1e6F);
  };
  const Status written = made->write(huge, {});
  ASSERT_EQ(written.code(), Code::invalid_argument);
  EXPECT_THAT(written.error().line(), HasSubstr("does not fit f16"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace tierd
