#include "core/formats/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/store/memory_source.h"
#include "tools/lab/synth/synthetic_source.h"

namespace tierd {
namespace {

using testing::HasSubstr;

void expect_same_model(const TensorSource& written, const TensorSource& read) {
  const ModelConfig& a = written.config();
  const ModelConfig& b = read.config();
  EXPECT_EQ(a.n_layers, b.n_layers);
  EXPECT_EQ(a.d_model, b.d_model);
  EXPECT_EQ(a.n_heads, b.n_heads);
  EXPECT_EQ(a.n_kv_heads, b.n_kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.d_ff, b.d_ff);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.context_length, b.context_length);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.rope.theta, b.rope.theta);
  EXPECT_EQ(a.rope.divisors, b.rope.divisors);
  EXPECT_EQ(a.qkv_bias, b.qkv_bias);
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
  for (const TensorInfo& tensor : written.tensors()) {
    const TensorInfo* found = read.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->encoding, tensor.encoding);
    EXPECT_EQ(*written.read_f32(tensor), *read.read_f32(*found)) << tensor.name;
  }
  ASSERT_NE(read.vocab(), nullptr);
  EXPECT_EQ(written.vocab()->pieces, read.vocab()->pieces);
  EXPECT_EQ(written.vocab()->scores, read.vocab()->scores);
  EXPECT_EQ(written.vocab()->types, read.vocab()->types);
  EXPECT_EQ(written.vocab()->bos, read.vocab()->bos);
  EXPECT_EQ(written.vocab()->eos, read.vocab()->eos);
}

TEST(GgufWriter, IsReadBack) {
  const TempFolder temp;
  const std::string folder = temp.path();
  for (const Encoding e : kAllEncodings) {
    for (const bool qwen : {false, true}) {
      ModelConfig config = small_llama();
      if (block_values(e) == kSuperBlock) config.d_model = config.d_ff = kSuperBlock, config.head_dim = 64;
      if (qwen) {
        config.architecture = "qwen2";
        config.position = PositionKind::rope_half;
        config.qkv_bias = true;
        config.tied_embeddings = true;
      } else {  // as in files of Llama 3.1
        for (uint32_t i = 0; i < config.head_dim / 2; ++i)
          config.rope.divisors.push_back(1 + static_cast<float>(i));
      }
      const auto source = SyntheticSource::make(config, e, 5);
      ASSERT_TRUE(source.ok());
      const std::string path = folder + "/model.gguf";
      const Status written = write_gguf(**source, path, true);
      ASSERT_TRUE(written.ok()) << written.error().line();
      EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
      const auto read = open_source(path);
      ASSERT_TRUE(read.ok()) << read.error().line();
      expect_same_model(**source, **read);
    }
  }
}

// llama.cpp's Mixtral has a layer's experts in one tensor, one matrix after the other.
TEST(GgufWriter, AMixtureIsReadBack) {
  const TempFolder temp;
  ModelConfig config = small_llama();
  config.architecture = "mixtral";
  config.n_experts = 4;
  config.experts_per_token = 2;
  config.expert_weights_sum_to_one = true;
  const std::string path = temp.path() + "/model.gguf";
  for (const Encoding e : {Encoding::f16, Encoding::q4_0}) {
    const auto source = SyntheticSource::make(config, e, 5);
    ASSERT_TRUE(source.ok());
    const Status written = write_gguf(**source, path, true);
    ASSERT_TRUE(written.ok()) << written.error().line();
    const auto read = open_source(path);
    ASSERT_TRUE(read.ok()) << read.error().line();
    expect_same_model(**source, **read);
    EXPECT_EQ((*read)->config().n_experts, 4u);
    EXPECT_EQ((*read)->config().experts_per_token, 2u);
    EXPECT_TRUE((*read)->config().expert_weights_sum_to_one);
  }
  config.expert_weights_sum_to_one = false;
  EXPECT_THAT(write_gguf(MemorySource(config, Encoding::f16), path, true).error().line(),
              HasSubstr("differs from a usual mixtral"));
  config.expert_weights_sum_to_one = true;
  EXPECT_THAT(write_gguf(MemorySource(config, Encoding::f16, 5, {{"layers.0.experts.2.up", Encoding::f32}}),
                         path, true)
                  .error()
                  .line(),
              HasSubstr("layers.0.experts.2.up is f32, other experts are f16"));
}

// Hugging Face rotates value i of a head with value i + half. llama.cpp rotates neighbours.
TEST(GgufWriter, PutsPairsOfRotationsSideBySide) {
  const TempFolder temp;
  const std::string path = temp.path() + "/model.gguf";
  ModelConfig config = small_llama();
  config.position = PositionKind::rope_half;
  for (const Encoding e : {Encoding::f32, Encoding::q4_0}) {
    const MemorySource source(config, e);
    ASSERT_TRUE(write_gguf(source, path, true).ok());
    const auto read = open_source(path);
    ASSERT_TRUE(read.ok()) << read.error().line();
    EXPECT_EQ((*read)->config().position, PositionKind::rope_interleaved);
    const uint32_t half = config.head_dim / 2;
    for (const char* name : {"layers.0.q", "layers.1.k", "layers.1.v"}) {
      const TensorInfo& tensor = *source.find(name);
      const std::vector<float> before = *source.read_f32(tensor);
      const std::vector<float> after = *(*read)->read_f32(*(*read)->find(name));
      const bool turned = !tensor.name.ends_with("v");
      for (uint32_t row = 0; row < tensor.rows; ++row) {
        const uint32_t in_head = row % config.head_dim;
        const uint32_t from = turned ? row - in_head + in_head % 2 * half + in_head / 2 : row;
        for (uint32_t i = 0; i < tensor.cols; ++i)
          ASSERT_EQ(after[row * tensor.cols + i], before[from * tensor.cols + i]) << name << " row " << row;
      }
    }
  }
}

TEST(GgufWriter, RefusesWeightsThatAreNotFinite) {
  const TempFolder temp;
  const std::string path = temp.path() + "/model.gguf";
  for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    for (const char* tensor : {"layers.1.q", "layers.0.attn_norm", "layers.1.down", "embed"}) {
      MemorySource source(small_llama(), e);
      source.set(tensor, 0, 5, NAN);
      const Status written = write_gguf(source, path, true);
      ASSERT_EQ(written.code(), Code::corrupt) << tensor;
      EXPECT_THAT(written.error().line(), HasSubstr(std::string("memory: tensor '") + tensor +
                                                    "', row 0, column 5: nan is not a finite number"));
      EXPECT_FALSE(std::filesystem::exists(path));
    }
  }
}

TEST(GgufWriter, RefusesWhatGgufCannotSay) {
  const TempFolder temp;
  const std::string path = temp.path() + "/model.gguf";
  const auto refused = [&](const ModelConfig& config) {
    const Status written = write_gguf(MemorySource(config, Encoding::f16), path, true);
    EXPECT_EQ(written.code(), Code::unsupported);
    EXPECT_FALSE(std::filesystem::exists(path));
    return written.error().line();
  };
  EXPECT_THAT(refused(small_opt()), HasSubstr("architecture 'opt' cannot be written as GGUF"));
  ModelConfig config = small_llama();
  config.position = PositionKind::learned;
  EXPECT_THAT(
      refused(config),
      HasSubstr(
          "its kind of positions cannot be written as GGUF; expected rotary positions of the architecture"));
  config = small_llama();
  config.rope.scaling = RopeScaling::llama3;
  config.rope.factor = 8;
  EXPECT_THAT(refused(config), HasSubstr("rope scaling llama3"));
  config = small_llama();
  config.qkv_bias = true;
  EXPECT_THAT(refused(config), HasSubstr("differs from a usual llama"));
}

}  // namespace
}  // namespace tierd
