// Compares the reference forward with the logits of transformers (tests/golden).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/formats/safetensors.h"
#include "core/store/source.h"
#include "tests/model/reference.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr float kTolerance = 1e-4f;  // of the largest logit

// Returns a GGUF file, the first of its shards, or the folder itself.
std::string model_of(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".gguf") && (!name.ends_with("-00002-of-00002.gguf"))) return entry.path();
  }
  return folder;
}

template <class T>
std::vector<T> read_tensor(const File& file, std::string_view name, std::string_view dtype) {
  const auto tensors = read_safetensors_header(file);
  EXPECT_TRUE(tensors.ok()) << tensors.error().line();
  for (const SafetensorsTensor& tensor : *tensors) {
    if (tensor.name != name || tensor.dtype != dtype) continue;
    std::vector<T> values(tensor.bytes / sizeof(T));
    EXPECT_TRUE(file.read_exact(tensor.offset, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }
  ADD_FAILURE() << "no " << dtype << " tensor " << name;
  return {};
}

void compare(const fs::path& folder) {
  const auto golden = File::open(folder / "golden.safetensors");
  ASSERT_TRUE(golden.ok()) << golden.error().line();
  const auto tokens = read_tensor<int32_t>(*golden, "tokens", "I32");
  const auto expected = read_tensor<float>(*golden, "logits", "F32");

  const auto source = open_source(model_of(folder));
  ASSERT_TRUE(source.ok()) << source.error().line();
  auto model = Reference::load(**source, static_cast<uint32_t>(tokens.size()));
  ASSERT_TRUE(model.ok()) << model.error().line();
  const size_t vocab_size = model->config().vocab_size;
  ASSERT_EQ(expected.size(), tokens.size() * vocab_size);

  float largest = 0;
  for (const float logit : expected) largest = std::max(largest, std::fabs(logit));
  for (uint32_t position = 0; position < tokens.size(); ++position) {
    const auto logits = model->forward(static_cast<uint32_t>(tokens[position]), position);
    for (size_t i = 0; i < vocab_size; ++i) {
      ASSERT_NEAR(logits[i], expected[position * vocab_size + i], kTolerance * largest)
          << "position " << position << ", token " << i;
    }
  }
}

TEST(Golden, TheReferenceComputesWhatTransformersComputes) {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(TIERD_SOURCE_DIR "/tests/golden/models")) {
    SCOPED_TRACE(entry.path().filename());
    compare(entry.path());
    ++models;
  }
  EXPECT_GT(models, 0);
}

TEST(Golden, GoingBackForgetsWhatFollowed) {
  const auto source = open_source(TIERD_SOURCE_DIR "/tests/golden/models/mistral");
  ASSERT_TRUE(source.ok()) << source.error().line();
  auto model = Reference::load(**source);
  ASSERT_TRUE(model.ok()) << model.error().line();
  model->forward(1, 0);
  const auto first = model->forward(2, 1);
  const std::vector<float> expected(first.begin(), first.end());
  model->forward(3, 1);
  model->forward(4, 2);
  const auto again = model->forward(2, 1);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), expected.begin()));
}

}  // namespace
}  // namespace tierd
