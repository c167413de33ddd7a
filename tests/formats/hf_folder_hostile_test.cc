// Folders with invalid configurations or weights, or of unsupported models, are refused with one line that
// gives the reason.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/hf_folder.h"
#include "core/store/source.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/store/tiny_mixture.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct HostileFolder {
  Code code;
  std::string expected;
  std::function<void(TinyHfModel&)> spoil;
};

void expect_folder_refused(const std::vector<HostileFolder>& cases) {
  for (const HostileFolder& hostile : cases) {
    TinyHfModel model;
    hostile.spoil(model);
    const TempFolder folder;
    model.write(folder);
    const auto source = open_source(folder.path());
    ASSERT_FALSE(source.ok()) << hostile.expected;
    EXPECT_EQ(source.code(), hostile.code) << source.error().line();
    EXPECT_THAT(source.error().line(), HasSubstr(folder.path()));
    EXPECT_THAT(source.error().line(), HasSubstr(hostile.expected));
    EXPECT_THAT(source.error().line(), testing::Not(HasSubstr("\n")));
  }
}

// Returns a change that sets one key of config.json.
std::function<void(TinyHfModel&)> key(const char* name, json value) {
  return [name, value = std::move(value)](TinyHfModel& m) { m.config[name] = value; };
}

TEST(HfFolder, RefusesHostileConfigs) {
  expect_folder_refused({
      {Code::corrupt, "config.json: found [], expected an object", [](auto& m) { m.config = json::array(); }},
      {Code::corrupt, "model_type: is missing", key("model_type", nullptr)},
      {Code::corrupt, "model_type: found 3, expected a string", key("model_type", 3)},
      {Code::unsupported,
       "model_type: \"gemma\", supported are llama, mistral, ministral3, qwen2, qwen3, phi3, smollm3, "
       "granite, "
       "olmo2, gemma2, gemma3_text, starcoder2, mixtral, qwen2_moe, qwen3_moe, olmoe, glm4_moe, gpt_oss, "
       "opt, "
       "falcon, persimmon, phi",
       key("model_type", "gemma")},
      {Code::unsupported, "quantization_config: checkpoints quantized by an unnamed method are not supported",
       key("quantization_config", {{"bits", 4}})},
      {Code::unsupported, "quantization_config: checkpoints quantized by mxfp4 are not supported",
       key("quantization_config", {{"quant_method", "mxfp4"}})},
      {Code::corrupt, "hidden_size: is missing", key("hidden_size", nullptr)},
      {Code::corrupt, "hidden_size: found -32, expected a whole number", key("hidden_size", -32)},
      {Code::corrupt, "hidden_size: found 32.0, expected a whole number", key("hidden_size", 32.0)},
      {Code::corrupt, "hidden_size: found \"32\"", key("hidden_size", "32")},
      {Code::corrupt, "hidden_size: found 4294967296", key("hidden_size", 4294967296)},
      {Code::corrupt, "config.json: the model width is 4294967295",
       [](auto& m) {
         m.config["hidden_size"] = UINT32_MAX;
         m.config["head_dim"] = 16;
       }},
      {Code::corrupt, "number of layers is 4294967295", key("num_hidden_layers", UINT32_MAX)},
      {Code::corrupt, "\"layers.1.attn_norm\" is missing", key("num_hidden_layers", 2)},
      {Code::corrupt, "num_attention_heads: found 0", key("num_attention_heads", 0)},
      {Code::corrupt, "num_attention_heads: found 3", key("num_attention_heads", 3)},
      {Code::corrupt, "head_dim is 0", key("head_dim", 0)},
      {Code::corrupt, "key/value heads is 3", key("num_key_value_heads", 3)},
      {Code::corrupt, "vocabulary size is 0", key("vocab_size", 0)},
      {Code::corrupt, "shape [8, 32], the configuration requires [9, 32]", key("vocab_size", 9)},
      {Code::corrupt, "rms_norm_eps: found \"small\", expected a number", key("rms_norm_eps", "small")},
      {Code::corrupt, "norm epsilon is -1", key("rms_norm_eps", -1)},
      {Code::unsupported, "hidden_act: \"mish\", supported are silu, swish, relu, fatrelu",
       key("hidden_act", "mish")},
      {Code::corrupt, "tie_word_embeddings: found 1, expected true or false", key("tie_word_embeddings", 1)},
      {Code::corrupt, "the tensor \"head\" is missing", key("tie_word_embeddings", false)},
      {Code::corrupt, "the tensor \"layers.0.q.bias\" is missing", key("attention_bias", true)},
      {Code::corrupt, "rope theta is 0", key("rope_theta", 0)},
      {Code::corrupt, "rope_theta: found 1e+300, expected a number within the range of a float",
       key("rope_theta", 1e300)},
      {Code::corrupt, "rope_scaling: found \"linear\", expected an object", key("rope_scaling", "linear")},
      {Code::unsupported,
       "rope_scaling.rope_type: \"ntk\", supported are default, linear, dynamic, llama3, yarn and longrope",
       key("rope_scaling", {{"rope_type", "ntk"}, {"factor", 4.0}})},
      {Code::unsupported, "rope_scaling.beta_fast: found 4.0, supported in rope_type linear are",
       key("rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}, {"beta_fast", 4.0}})},
      {Code::corrupt, "rope_scaling.short_factor: is missing",
       key("rope_scaling", {{"rope_type", "longrope"}, {"factor", 4.0}})},
      {Code::corrupt, "rope beta_fast 1 is not above beta_slow 1",
       key("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"beta_fast", 1}})},
      {Code::corrupt, "rope_scaling.factor: is missing", key("rope_scaling", {{"type", "linear"}})},
      {Code::unsupported, "partial_rotary_factor: only 1", key("partial_rotary_factor", 0.5)},
      {Code::unsupported,
       "layer_types: \"chunked_attention\", supported are full_attention and sliding_attention",
       key("layer_types", {"chunked_attention"})},
      {Code::unsupported, "layer_types: 2 layers, expected 1",
       key("layer_types", {"sliding_attention", "full_attention"})},
  });
}

std::function<void(TinyHfModel&)> as(const char* family, json changes) {
  return [family, changes = std::move(changes)](TinyHfModel& m) {
    m.config["model_type"] = family;
    m.config.update(changes);
  };
}

TEST(HfFolder, RefusesWhatFalconPersimmonAndPhiDoNotCompute) {
  const auto with_fused = [](TinyHfModel& m) {
    as("falcon", {{"ffn_hidden_size", 64}})(m);
    m.weights.add_f32("transformer.h.0.self_attention.query_key_value.weight", {96, 32}, 1);
  };
  expect_folder_refused({
      {Code::unsupported, "alibi: only rotary", as("falcon", {{"alibi", true}})},
      {Code::unsupported, "parallel_attn: supported is true",
       as("falcon", {{"new_decoder_architecture", true}, {"parallel_attn", false}})},
      {Code::corrupt, "key/value heads is 3",
       as("falcon", {{"new_decoder_architecture", true}, {"num_kv_heads", 3}})},
      {Code::corrupt,
       "query_key_value.weight\": 96 rows, expected 64: q, k and v together by the configuration",
       with_fused},
      {Code::unsupported, "num_key_value_heads: supported is", as("persimmon", {{"num_key_value_heads", 1}})},
      {Code::unsupported, "partial_rotary_factor: expected more than 0 and at most 1",
       as("phi", {{"partial_rotary_factor", 1.5}})},
      {Code::corrupt, "1 of the 16 values of a head are rotated",
       as("phi", {{"partial_rotary_factor", 0.1}, {"tie_word_embeddings", false}})},
      {Code::unsupported, "embedding has no bias", as("phi", {{"qk_layernorm", true}})},
  });
}

TEST(HfFolder, RefusesWhatIsNoMixture) {
  const auto with = [](const std::string& family, json changes, const json& more) {
    changes.update(more);
    return [=](TinyHfModel& m) { m = tiny_mixture(family, changes); };
  };
  expect_folder_refused({
      {Code::corrupt, "num_local_experts: is missing",
       with("mixtral", kMixtral, {{"num_local_experts", nullptr}})},
      {Code::unsupported, "num_experts: found 0", with("olmoe", kOlmoe, {{"num_experts", 0}})},
      {Code::corrupt, "experts for a token is 3, expected 1 to 2",
       with("olmoe", kOlmoe, {{"num_experts_per_tok", 3}})},
      {Code::corrupt, "experts for a token is 0", with("mixtral", kMixtral, {{"num_experts_per_tok", 0}})},
      {Code::corrupt, "experts in all layers is 4294967295",
       with("mixtral", kMixtral, {{"num_local_experts", UINT32_MAX}})},
      {Code::corrupt, "clipped at -1", with("olmoe", kOlmoe, {{"clip_qkv", -1}})},
      {Code::unsupported, "decoder_sparse_step: found 0",
       with("qwen3_moe", kQwen3Moe, {{"decoder_sparse_step", 0}})},
      {Code::corrupt, "the number of layers without experts is 1, expected 0 to 0",
       with("qwen3_moe", kQwen3Moe, {{"mlp_only_layers", {0}}})},
      {Code::corrupt, "\"layers.0.experts.1.up\" is missing",
       [=](auto& m) {
         m = tiny_mixture("olmoe", kOlmoe);
         json& header = m.weights.header;
         header["another"] = header["model.layers.0.mlp.experts.1.up_proj.weight"];
         header.erase("model.layers.0.mlp.experts.1.up_proj.weight");
       }},
      {Code::unsupported, "experts.2.up\": is not a tensor of the architecture",
       [=](auto& m) {
         m = tiny_mixture("olmoe", kOlmoe);
         m.weights.add_f32("model.layers.0.mlp.experts.2.up_proj.weight", {8, 32}, 1);
       }},
      {Code::corrupt, "shape [16, 16], the configuration requires [8, 32]",
       [=](auto& m) {
         m = tiny_mixture("mixtral", kMixtral);
         m.weights.header["model.layers.0.block_sparse_moe.experts.1.w1.weight"]["shape"] = {16, 16};
       }},
  });
}

TEST(HfFolder, RefusesWhatItsFamiliesDoNotCompute) {
  const auto gemma3 = [](const char* name, json value) {
    return [name, value = std::move(value)](TinyHfModel& m) {
      m.config["model_type"] = "gemma3_text";
      m.config[name] = value;
    };
  };
  const json yarn = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e6}}},
                     {"sliding_attention", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}}};
  const auto opt = [](const char* name, json value) {
    return [name, value = std::move(value)](TinyHfModel& m) {
      m.config["model_type"] = "opt";
      m.config["ffn_dim"] = 64;
      m.config[name] = value;
    };
  };
  expect_folder_refused({
      {Code::unsupported, "query_pre_attn_scalar: expected a positive number",
       gemma3("query_pre_attn_scalar", 0)},
      {Code::unsupported, "use_bidirectional_attention: only false",
       gemma3("use_bidirectional_attention", true)},
      {Code::unsupported, "rope_parameters.sliding_attention.rope_type: \"yarn\"",
       gemma3("rope_parameters", yarn)},
      {Code::corrupt, "ffn_dim: is missing", opt("ffn_dim", nullptr)},
      {Code::unsupported, "do_layer_norm_before: only true", opt("do_layer_norm_before", false)},
      {Code::unsupported, "word_embed_proj_dim: 16", opt("word_embed_proj_dim", 16)},
      {Code::unsupported, "layer_norm_elementwise_affine", opt("layer_norm_elementwise_affine", false)},
      {Code::unsupported, "_remove_final_layer_norm", opt("_remove_final_layer_norm", true)},
      {Code::unsupported, "activation_function: \"mish\"", opt("activation_function", "mish")},
      {Code::corrupt, "\"position\" is missing", opt("enable_bias", true)},
  });
}

TEST(HfFolder, RefusesHostileWeights) {
  expect_folder_refused({
      {Code::unsupported, "tensor \"model.embed_tokens.weight\": dtype I32, supported are F32, F16 and BF16",
       [](auto& m) { m.weights.header["model.embed_tokens.weight"]["dtype"] = "I32"; }},
      {Code::corrupt, "tensor \"model.norm.weight\": 3 dimensions",
       [](auto& m) {
         m.weights.header["model.norm.weight"]["shape"] = {1, 1, 32};
       }},
      {Code::corrupt, "tensor \"model.norm.weight\": 0 dimensions",
       [](auto& m) {
         m.weights.header.erase("model.norm.weight");
         m.weights.add_f32("model.norm.weight", {}, 1);
         m.weights.header["hole"] = {
             {"dtype", "F32"}, {"shape", {32}}, {"data_offsets", {8 * 32 * 4, 8 * 32 * 4 + 128}}};
       }},
      {Code::corrupt, "tensor \"out_norm\": occurs twice",
       [](auto& m) { m.weights.add_f32("norm.weight", {32}, 1); }},
      {Code::unsupported, "tensor \"layers.0.q_norm\": is not a tensor of the architecture",
       [](auto& m) { m.weights.add_f32("model.layers.0.self_attn.q_norm.weight", {16}, 1); }},
      {Code::unsupported,
       "tensor \"model.layers.00.mlp.up_proj.weight\": is not a tensor of the architecture",
       [](auto& m) { m.weights.add_f32("model.layers.00.mlp.up_proj.weight", {1}, 1); }},
      {Code::unsupported, "tensor \"layers.0.q.bias\": is not a tensor of the architecture",
       [](auto& m) { m.weights.add_f32("model.layers.0.self_attn.q_proj.bias", {32}, 1); }},
  });
}

}  // namespace
}  // namespace tierd
