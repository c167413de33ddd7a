#include "core/model/config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

ModelConfig small_llama() {
  ModelConfig c;
  c.architecture = "llama";
  c.n_layers = 2;
  c.d_model = 64;
  c.n_heads = 8;
  c.n_kv_heads = 4;
  c.head_dim = 8;
  c.d_ff = 172;
  c.vocab_size = 512;
  c.context_length = 128;
  return c;
}

const TensorSpec* find(const std::vector<TensorSpec>& specs, std::string_view wanted) {
  const auto it =
      std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == wanted; });
  return it == specs.end() ? nullptr : &*it;
}

TEST(Config, AcceptsASmallLlama) {
  EXPECT_TRUE(validate(small_llama(), "config.json").ok());
}

struct BadConfig {
  std::string expected;  // part of the message
  std::function<void(ModelConfig&)> spoil;
};

TEST(Config, RefusesWhatCannotBe) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<BadConfig> cases = {
      {"number of layers is 0", [](auto& c) { c.n_layers = 0; }},
      {"number of layers is 4294967295", [](auto& c) { c.n_layers = UINT32_MAX; }},
      {"model width is 0", [](auto& c) { c.d_model = 0; }},
      {"model width is 2147483648", [](auto& c) { c.d_model = 1u << 31; }},
      {"number of attention heads is 0", [](auto& c) { c.n_heads = 0; }},
      {"key/value heads is 0", [](auto& c) { c.n_kv_heads = 0; }},
      {"key/value heads is 16", [](auto& c) { c.n_kv_heads = 16; }},
      {"8 attention heads, expected a multiple of the 3 key/value heads", [](auto& c) { c.n_kv_heads = 3; }},
      {"head_dim is 0", [](auto& c) { c.head_dim = 0; }},
      {"head_dim is 7", [](auto& c) { c.head_dim = 7; }},
      {"heads x head_dim is 4194304", [](auto& c) { c.n_heads = c.n_kv_heads = 1024, c.head_dim = 4096; }},
      {"feed-forward width is 0", [](auto& c) { c.d_ff = 0; }},
      {"vocabulary size is 0", [](auto& c) { c.vocab_size = 0; }},
      {"vocabulary size is 4294967295", [](auto& c) { c.vocab_size = UINT32_MAX; }},
      {"context length is 0", [](auto& c) { c.context_length = 0; }},
      {"norm epsilon is nan", [](auto& c) { c.norm_eps = NAN; }},
      {"norm epsilon is -1", [](auto& c) { c.norm_eps = -1; }},
      {"an RMS norm has a bias, expected none", [](auto& c) { c.norm_bias = true; }},
      {"rope theta is 0", [](auto& c) { c.rope.theta = 0; }},
      {"rope theta is inf", [=](auto& c) { c.rope.theta = infinity; }},
      {"rope scaling factor is -2", [](auto& c) { c.rope.factor = -2; }},
      {"not above low_freq_factor",
       [](auto& c) { c.rope.scaling = RopeScaling::llama3, c.rope.high_freq_factor = 1; }},
      {"original context is 0",
       [](auto& c) { c.rope.scaling = RopeScaling::llama3, c.rope.original_context = 0; }},
      {"3 rope frequency divisors",
       [](auto& c) {
         c.rope.divisors = {1, 1, 1};
       }},
      {"rope frequency divisor is 0",
       [](auto& c) {
         c.rope.divisors = {1, 1, 0, 1};
       }},
      {"position offset", [](auto& c) { c.position_offset = 2; }},
      {"5 of the 8 values of a head are rotated", [](auto& c) { c.rope.dim = 5; }},
      {"10 of the 8 values of a head are rotated", [](auto& c) { c.rope.dim = 10; }},
      {"activation threshold is 0.5", [](auto& c) { c.activation_threshold = 0.5f; }},
      {"activation threshold is -1",
       [](auto& c) { c.activation = Activation::relu, c.activation_threshold = -1; }},
      {"attention and FFN share a norm, which is supported only where they are parallel",
       [](auto& c) { c.ffn_norm = false; }},
      {"experts for a token is 1, expected 0 to 0", [](auto& c) { c.experts_per_token = 1; }},
      {"experts for a token is 0, expected 1 to 4", [](auto& c) { c.n_experts = 4; }},
      {"expert weights are normalized, but the model has no experts",
       [](auto& c) { c.expert_weights_sum_to_one = true; }},
      {"experts in all layers is 200000", [](auto& c) { c.n_experts = 100000; }},
      {"the feed-forward network of this mixture is not supported; expected experts with a gate, after "
       "attention",
       [](auto& c) { c.n_experts = 4, c.experts_per_token = 2, c.gated = false; }},
      {"q and k have a norm over all heads, but the norm of q and k is off",
       [](auto& c) { c.qk_norm_wide = true; }},
      {"layer 2 has one network in place of experts, expected layers below 2 in order",
       [](auto& c) { c.n_experts = 4, c.experts_per_token = 2, c.dense_layers = {2}, c.dense_d_ff = 8; }},
      {"the width of networks in place of experts is 0",
       [](auto& c) { c.n_experts = 4, c.experts_per_token = 2, c.dense_layers = {0}; }},
      {"the number of layers without experts is 2",
       [](auto& c) {
         c.n_experts = 4, c.experts_per_token = 2, c.dense_layers = {0, 1}, c.dense_d_ff = 8;
       }},
      {"networks beside experts are set, but the model has no experts", [](auto& c) { c.shared_d_ff = 8; }},
      {"4 experts in 3 groups",
       [](auto& c) {
         c.n_experts = 4, c.experts_per_token = 2, c.expert_groups = 3, c.expert_groups_used = 1;
       }},
      {"the number of experts for a token is 3, expected 1 to 2",
       [](auto& c) {
         c.n_experts = 4, c.experts_per_token = 3, c.expert_groups = 2, c.expert_groups_used = 1;
       }},
      {"layer 1 has no rotary positions, expected layers below 2 in order",
       [](auto& c) {
         c.unturned_layers = {1, 1};
       }},
      {"the growth of queries is -1", [](auto& c) { c.query_growth = -1; }},
      {"the span of the growth of queries is 0", [](auto& c) { c.query_growth = 1; }},
      {"swiglu_oai is set, but the feed-forward network has no gate",
       [](auto& c) { c.activation = Activation::swiglu_oai, c.gated = false; }},
      {"clipped at -1", [](auto& c) { c.qkv_clip = -1; }},
      {"has a bias, expected none", [](auto& c) { c.tied_embeddings = c.head_bias = true; }},
  };
  for (const BadConfig& bad : cases) {
    ModelConfig config = small_llama();
    bad.spoil(config);
    const Status status = validate(config, "config.json");
    ASSERT_FALSE(status.ok()) << bad.expected;
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_THAT(status.error().line(), testing::StartsWith("config.json: "));
    EXPECT_THAT(status.error().line(), testing::HasSubstr(bad.expected));
  }
}

TEST(Config, RequiresWhatALlamaHas) {
  const auto specs = required_tensors(small_llama());
  EXPECT_EQ(specs.size(), 1u + 2 * 9 + 2);
  ASSERT_NE(find(specs, "layers.1.k"), nullptr);
  EXPECT_EQ(find(specs, "layers.1.k")->rows, 32u);
  EXPECT_EQ(find(specs, "layers.1.k")->cols, 64u);
  EXPECT_EQ(find(specs, "layers.1.down")->cols, 172u);
  EXPECT_EQ(find(specs, "out_norm")->rows, 1u);
  EXPECT_EQ(find(specs, "head")->rows, 512u);
  EXPECT_EQ(find(specs, "position"), nullptr);
  EXPECT_EQ(find(specs, "layers.0.q.bias"), nullptr);
}

TEST(Config, RequiresWhatAPhiHas) {
  ModelConfig c = small_llama();
  c.norm = Norm::layer;
  c.gated = false;
  c.parallel = true;
  c.ffn_norm = false;
  c.qk_norm = true;
  c.head_bias = true;
  const auto specs = required_tensors(c);
  EXPECT_EQ(find(specs, "layers.0.ffn_norm"), nullptr);
  EXPECT_EQ(find(specs, "layers.1.k_norm")->cols, c.head_dim);
  EXPECT_EQ(find(specs, "layers.1.q_norm.bias")->cols, c.head_dim);
  EXPECT_EQ(find(specs, "head.bias")->cols, 512u);
}

TEST(Config, RequiresWhatAMixtureHas) {
  ModelConfig c = small_llama();
  c.n_experts = 4;
  c.experts_per_token = 2;
  c.qk_norm = c.qk_norm_wide = true;
  EXPECT_TRUE(validate(c, "config.json").ok());
  const auto specs = required_tensors(c);
  EXPECT_EQ(find(specs, "layers.0.up"), nullptr);
  EXPECT_EQ(find(specs, "layers.1.router")->rows, 4u);
  EXPECT_EQ(find(specs, "layers.1.experts.3.down")->cols, 172u);
  EXPECT_EQ(find(specs, "layers.1.experts.4.down"), nullptr);
  EXPECT_EQ(find(specs, "layers.0.q_norm")->cols, 64u);
  EXPECT_EQ(find(specs, "layers.0.k_norm")->cols, 32u);
  EXPECT_EQ(find(specs, "layers.0.k_norm.bias"), nullptr);
}

TEST(Config, OnlyTheFirstValuesOfAHeadTurn) {
  ModelConfig c = small_llama();
  c.rope.dim = c.head_dim / 2;
  ModelConfig narrow = c;
  narrow.head_dim = c.rope.dim;
  narrow.rope.dim = 0;
  EXPECT_EQ(rope_frequencies(c.rope, c.rotary_dim(), 64),
            rope_frequencies(narrow.rope, narrow.rotary_dim(), 64));
}

TEST(Config, RequiresWhatAnOptHas) {
  ModelConfig c = small_llama();
  c.norm = Norm::layer;
  c.gated = false;
  c.position = PositionKind::learned;
  c.position_offset = 2;
  c.qkv_bias = c.o_bias = c.ffn_bias = c.norm_bias = c.tied_embeddings = true;
  const auto specs = required_tensors(c);
  EXPECT_EQ(find(specs, "position")->rows, 130u);
  EXPECT_EQ(find(specs, "layers.0.up.bias")->cols, 172u);
  EXPECT_EQ(find(specs, "layers.1.attn_norm.bias")->cols, 64u);
  EXPECT_NE(find(specs, "out_norm.bias"), nullptr);
  EXPECT_EQ(find(specs, "layers.0.gate"), nullptr);
  EXPECT_EQ(find(specs, "head"), nullptr);
}

}  // namespace
}  // namespace tierd
