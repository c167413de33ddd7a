#include "core/store/hf_folder.h"

#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/source.h"
#include "tests/store/safetensors_builder.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(HfFolder, ReadsATinyLlamaUnderEveryPrefix) {
  for (const char* prefix : {"model.", "model.decoder.", "decoder.", ""}) {
    const TempFolder folder;
    TinyHfModel(prefix).write(folder);
    const auto source = open_source(folder.path());
    ASSERT_TRUE(source.ok()) << source.error().line();
    const ModelConfig& c = (*source)->config();
    EXPECT_EQ(c.architecture, "llama");
    EXPECT_EQ(c.position, PositionKind::rope_half);
    EXPECT_EQ(c.head_dim, 16u);
    EXPECT_EQ(c.name, std::filesystem::path(folder.path()).filename());
    EXPECT_EQ((*source)->vocab(), nullptr);
    const auto down = (*source)->read_f32(*(*source)->find("layers.0.down"));
    ASSERT_TRUE(down.ok());
    EXPECT_THAT(*down, testing::Each(0.02f));
  }
}

TEST(HfFolder, OpensTheFileInsteadOfTheFolder) {
  const TempFolder folder;
  TinyHfModel().write(folder);
  EXPECT_TRUE(open_source(folder.path() + "/model.safetensors").ok());
}

TEST(HfFolder, IgnoresTablesAndTheHeadThatTheEmbeddingReplaces) {
  TinyHfModel model;
  model.weights.add_f32("lm_head.weight", {8, 32}, 3);
  model.weights.add_f32("model.layers.0.self_attn.rotary_emb.inv_freq", {8}, 1);
  const TempFolder folder;
  model.write(folder);
  const auto source = open_source(folder.path());
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_EQ((*source)->find("head"), nullptr);
}

ModelConfig config_of(const std::function<void(json&)>& change) {
  TinyHfModel model;
  change(model.config);
  const TempFolder folder;
  model.write(folder);
  const auto source = open_source(folder.path());
  EXPECT_TRUE(source.ok()) << source.error().line();
  return source.ok() ? (*source)->config() : ModelConfig{};
}

TEST(HfFolder, ReadsRopeSettingsOldAndNew) {
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8},
                       {"low_freq_factor", 1},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  const auto old_style = config_of([&](json& c) { c["rope_theta"] = 500000, c["rope_scaling"] = llama3; });
  const auto new_style = config_of([&](json& c) {
    c.erase("rope_theta");
    c["rope_parameters"] = llama3;
    c["rope_parameters"]["rope_theta"] = 500000.0;
  });
  for (const ModelConfig& c : {old_style, new_style}) {
    EXPECT_EQ(c.rope.theta, 500000.0f);
    EXPECT_EQ(c.rope.scaling, RopeScaling::llama3);
    EXPECT_EQ(c.rope.factor, 8.0f);
    EXPECT_EQ(c.rope.original_context, 8192u);
  }
  const auto linear = config_of([](json& c) { c["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}}; });
  EXPECT_EQ(linear.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(linear.rope.factor, 2.0f);
  const auto none = config_of([](json& c) { c["rope_scaling"] = nullptr; });
  EXPECT_EQ(none.rope.scaling, RopeScaling::none);
}

TEST(HfFolder, ReadsSlidingWindows) {
  const auto mistral = [](const std::function<void(json&)>& change) {
    return config_of([&](json& c) { c["model_type"] = "mistral", change(c); }).sliding_window;
  };
  EXPECT_EQ(mistral([](json& c) { c["sliding_window"] = 7; }), 7u);
  EXPECT_EQ(mistral([](json& c) { c["sliding_window"] = nullptr; }), 0u);
  EXPECT_EQ(mistral([](json&) {}), 4096u);  // transformers' default
  EXPECT_EQ(mistral([](json& c) { c["layer_types"] = {"full_attention"}; }), 0u);
}

// Rows [first, first + n) of a tensor, however its file holds them.
std::vector<float> rows_of(const TensorSource& source, std::string_view name, uint64_t first, uint64_t n) {
  const TensorInfo& tensor = *source.find(name);
  const uint64_t row_bytes = tensor.rows == 1 ? sizeof(float) : tensor.cols * sizeof(float);
  std::vector<float> rows(n * row_bytes / sizeof(float));
  EXPECT_TRUE(source.read(tensor, first * row_bytes, std::as_writable_bytes(std::span(rows))).ok());
  return rows;
}

// Groups of two query heads, a key and a value head, of four rows each.
TEST(HfFolder, TakesApartWhatAFileKeepsInOneTensor) {
  TinyHfModel model;
  model.config = {{"model_type", "falcon"},           {"hidden_size", 16},        {"ffn_hidden_size", 32},
                  {"num_hidden_layers", 1},           {"num_attention_heads", 4}, {"num_kv_heads", 2},
                  {"new_decoder_architecture", true}, {"vocab_size", 8},          {"bias", true}};
  model.weights = {};
  constexpr uint64_t kRows = (4 + 2 + 2) * 4;
  std::vector<float> numbers(kRows * 16), biases(kRows);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  std::iota(biases.begin(), biases.end(), 0.0f);
  const std::string layer = "transformer.h.0.";
  const auto bytes = [](const std::vector<float>& values) {
    return std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  model.weights.add(layer + "self_attention.query_key_value.weight", "F32", {kRows, 16}, bytes(numbers));
  model.weights.add(layer + "self_attention.query_key_value.bias", "F32", {kRows}, bytes(biases));
  model.weights.add_f32("transformer.word_embeddings.weight", {8, 16}, 1);
  model.weights.add_f32(layer + "self_attention.dense.weight", {16, 16}, 1);
  model.weights.add_f32(layer + "self_attention.dense.bias", {16}, 1);
  model.weights.add_f32(layer + "mlp.dense_h_to_4h.weight", {32, 16}, 1);
  model.weights.add_f32(layer + "mlp.dense_h_to_4h.bias", {32}, 1);
  model.weights.add_f32(layer + "mlp.dense_4h_to_h.weight", {16, 32}, 1);
  model.weights.add_f32(layer + "mlp.dense_4h_to_h.bias", {16}, 1);
  for (const std::string& norm : {layer + "ln_attn", layer + "ln_mlp", std::string("transformer.ln_f")}) {
    model.weights.add_f32(norm + ".weight", {16}, 1);
    model.weights.add_f32(norm + ".bias", {16}, 0);
  }
  const TempFolder folder;
  model.write(folder);
  const auto opened = open_source(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.error().line();
  const TensorSource& source = **opened;
  EXPECT_EQ(source.find("layers.0.q")->rows, 16u);
  EXPECT_EQ(source.find("layers.0.v")->rows, 8u);
  const auto from = [](uint64_t row, uint64_t values) {
    std::vector<float> expected(values);
    std::iota(expected.begin(), expected.end(), static_cast<float>(row * 16));
    return expected;
  };
  EXPECT_EQ(rows_of(source, "layers.0.q", 0, 8), from(0, 128));
  EXPECT_EQ(rows_of(source, "layers.0.q", 8, 8), from(16, 128));
  EXPECT_EQ(rows_of(source, "layers.0.k", 1, 3), from(9, 48));
  EXPECT_EQ(rows_of(source, "layers.0.v", 5, 1), from(29, 16));
  EXPECT_EQ(rows_of(source, "layers.0.q.bias", 6, 4), (std::vector<float>{6, 7, 16, 17}));
  EXPECT_EQ(rows_of(source, "layers.0.k.bias", 0, 8), (std::vector<float>{8, 9, 10, 11, 24, 25, 26, 27}));
  EXPECT_EQ(rows_of(source, "layers.0.v.bias", 3, 2), (std::vector<float>{15, 28}));
}

TEST(HfFolder, ReadsActivations) {
  const auto read = [](json changes) { return config_of([&](json& c) { c.update(changes); }); };
  EXPECT_EQ(read({{"hidden_act", "relu2"}}).activation, Activation::relu_squared);
  EXPECT_EQ(read({{"hidden_act", "gelu"}}).activation, Activation::gelu);
  EXPECT_EQ(read({{"hidden_act", "gelu_new"}}).activation, Activation::gelu_tanh);
  const ModelConfig fatrelu = read({{"hidden_act", "fatrelu"}, {"hidden_act_param", 0.01}});
  EXPECT_EQ(fatrelu.activation, Activation::relu);
  EXPECT_EQ(fatrelu.activation_threshold, 0.01f);
}

TEST(HfFolder, JoinsShards) {
  TinyHfModel model;
  SafetensorsBuilder first;
  SafetensorsBuilder second;
  first.add_f32("model.embed_tokens.weight", {8, 32}, 7);
  for (const auto& [name, fields] : model.weights.header.items()) {
    if (name == "__metadata__" || name == "model.embed_tokens.weight") continue;
    second.add_f32(name, fields["shape"].get<std::vector<uint64_t>>(), 1);
  }
  json map;
  for (const auto& [name, fields] : first.header.items()) map[name] = "model-00001-of-00002.safetensors";
  for (const auto& [name, fields] : second.header.items()) map[name] = "model-00002-of-00002.safetensors";

  const TempFolder folder;
  folder.write("config.json", model.config.dump());
  folder.write("model-00001-of-00002.safetensors", first.bytes());
  folder.write("model-00002-of-00002.safetensors", second.bytes());
  const auto with_map = [&](const json& index) {
    folder.write("model.safetensors.index.json", index.dump());
    return open_source(folder.path());
  };
  const auto source = with_map({{"weight_map", map}});
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_THAT(*(*source)->read_f32(*(*source)->find("embed")), testing::Each(7.0f));
  EXPECT_TRUE(open_source(folder.path() + "/model-00001-of-00002.safetensors").ok());

  const auto refused = [&](const json& index) {
    const auto result = with_map(index);
    return result.ok() ? "accepted" : result.error().line();
  };
  EXPECT_THAT(refused(json::object()), HasSubstr("index.json: weight_map: missing"));
  EXPECT_THAT(refused({{"weight_map", {{"t", 3}}}}), HasSubstr("weight_map: t has no file name"));
  for (const char* escape : {"../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "..\\x.safetensors",
                             "x.bin", "", ".."}) {
    json hostile = map;
    hostile["model.norm.weight"] = escape;
    EXPECT_THAT(refused({{"weight_map", hostile}}), HasSubstr("expected a file of this folder")) << escape;
  }
  json moved = map;
  moved["model.norm.weight"] = "model-00001-of-00002.safetensors";
  EXPECT_THAT(refused({{"weight_map", moved}}), HasSubstr("the tensor \"model.norm.weight\" is missing"));
  json absent = map;
  absent["model.norm.weight"] = "model-00003-of-00003.safetensors";
  EXPECT_THAT(refused({{"weight_map", absent}}), HasSubstr("model-00003-of-00003.safetensors: cannot open"));
}

struct Hostile {
  Code code;
  std::string expected;
  std::function<void(TinyHfModel&)> spoil;
};

void expect_refused(const std::vector<Hostile>& cases) {
  for (const Hostile& hostile : cases) {
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

// Sets one key of config.json.
std::function<void(TinyHfModel&)> key(const char* name, json value) {
  return [name, value = std::move(value)](TinyHfModel& m) { m.config[name] = value; };
}

TEST(HfFolder, RefusesHostileConfigs) {
  expect_refused({
      {Code::corrupt, "config.json: found [], expected an object", [](auto& m) { m.config = json::array(); }},
      {Code::corrupt, "model_type: missing", key("model_type", nullptr)},
      {Code::corrupt, "model_type: found 3, expected a string", key("model_type", 3)},
      {Code::unsupported,
       "model_type: \"gemma\", supported are llama, mistral, qwen2, mixtral, qwen3_moe, olmoe, opt, falcon, "
       "persimmon and phi",
       key("model_type", "gemma")},
      {Code::unsupported, "quantization_config: quantized", key("quantization_config", {{"bits", 4}})},
      {Code::corrupt, "hidden_size: missing", key("hidden_size", nullptr)},
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
      {Code::corrupt, "shape [8, 32], the configuration says [9, 32]", key("vocab_size", 9)},
      {Code::corrupt, "rms_norm_eps: found \"small\", expected a number", key("rms_norm_eps", "small")},
      {Code::corrupt, "norm epsilon is -1", key("rms_norm_eps", -1)},
      {Code::unsupported, "hidden_act: \"mish\", supported are silu, swish, relu, fatrelu",
       key("hidden_act", "mish")},
      {Code::corrupt, "tie_word_embeddings: found 1, expected true or false", key("tie_word_embeddings", 1)},
      {Code::corrupt, "the tensor \"head\" is missing", key("tie_word_embeddings", false)},
      {Code::corrupt, "the tensor \"layers.0.q.bias\" is missing", key("attention_bias", true)},
      {Code::corrupt, "rope theta is 0", key("rope_theta", 0)},
      {Code::corrupt, "rope_theta: found 1e+300, expected a number that fits", key("rope_theta", 1e300)},
      {Code::corrupt, "rope_scaling: found \"linear\", expected an object", key("rope_scaling", "linear")},
      {Code::unsupported, "rope_scaling.rope_type: \"yarn\", supported are default, linear and llama3",
       key("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}})},
      {Code::corrupt, "rope_scaling.factor: missing", key("rope_scaling", {{"type", "linear"}})},
      {Code::unsupported, "partial_rotary_factor: only 1", key("partial_rotary_factor", 0.5)},
      {Code::unsupported, "layer_types: layers of different attention",
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
  expect_refused({
      {Code::unsupported, "alibi: only rotary", as("falcon", {{"alibi", true}})},
      {Code::unsupported, "parallel_attn: only true",
       as("falcon", {{"new_decoder_architecture", true}, {"parallel_attn", false}})},
      {Code::corrupt, "key/value heads is 3",
       as("falcon", {{"new_decoder_architecture", true}, {"num_kv_heads", 3}})},
      {Code::corrupt, "query_key_value.weight\": 96 rows, q, k and v of the configuration have 64",
       with_fused},
      {Code::unsupported, "num_key_value_heads: only", as("persimmon", {{"num_key_value_heads", 1}})},
      {Code::unsupported, "partial_rotary_factor: expected 0 to 1",
       as("phi", {{"partial_rotary_factor", 1.5}})},
      {Code::corrupt, "of the 16 values of a head 1 turn",
       as("phi", {{"partial_rotary_factor", 0.1}, {"tie_word_embeddings", false}})},
      {Code::unsupported, "embedding has no bias", as("phi", {{"qk_layernorm", true}})},
  });
}

// A mixture of two experts of width 8 in place of the network of a tiny Llama.
TinyHfModel tiny_mixture(const std::string& family, const json& changes) {
  TinyHfModel model;
  model.config["model_type"] = family;
  model.config.update(changes);
  const bool mixtral = family == "mixtral";
  const std::string layer = "model.layers.0.", mlp = layer + (mixtral ? "block_sparse_moe." : "mlp.");
  model.weights = {};
  model.weights.add_f32("model.embed_tokens.weight", {8, 32}, 0.5f);
  model.weights.add_f32("model.norm.weight", {32}, 1.0f);
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    model.weights.add_f32(layer + "self_attn." + name + ".weight", {32, 32}, 0.01f);
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    model.weights.add_f32(layer + name + ".weight", {32}, 1.0f);
  model.weights.add_f32(mlp + "gate.weight", {2, 32}, 0.5f);
  for (uint32_t e = 0; e < 2; ++e) {
    const auto value = static_cast<float>(e);
    const std::string expert = mlp + "experts." + std::to_string(e) + ".";
    model.weights.add_f32(expert + (mixtral ? "w1" : "gate_proj") + ".weight", {8, 32}, 1 + value);
    model.weights.add_f32(expert + (mixtral ? "w3" : "up_proj") + ".weight", {8, 32}, 3 + value);
    model.weights.add_f32(expert + (mixtral ? "w2" : "down_proj") + ".weight", {32, 8}, 5 + value);
  }
  if (mixtral) return model;
  const uint64_t normed = family == "olmoe" ? 32 : 16;
  for (const char* name : {"q_norm", "k_norm"})
    model.weights.add_f32(layer + "self_attn." + name + ".weight", {normed}, 1.0f);
  return model;
}

const json kMixtral = {{"num_local_experts", 2}, {"num_experts_per_tok", 1}, {"intermediate_size", 8}};
const json kQwen3Moe = {{"num_experts", 2}, {"num_experts_per_tok", 1}, {"moe_intermediate_size", 8}};
const json kOlmoe = {{"num_experts", 2}, {"num_experts_per_tok", 1}, {"intermediate_size", 8}};

TEST(HfFolder, ReadsMixtures) {
  const auto open = [](const std::string& family, json changes, const json& more = {}) {
    if (!more.is_null()) changes.update(more);
    const TempFolder folder;
    tiny_mixture(family, changes).write(folder);
    auto source = open_source(folder.path());
    EXPECT_TRUE(source.ok()) << source.error().line();
    const ModelConfig& c = (*source)->config();
    EXPECT_EQ(c.n_experts, 2u);
    EXPECT_EQ(c.experts_per_token, 1u);
    EXPECT_EQ(c.d_ff, 8u);
    const auto value = [&](const std::string& name) {
      return (*source)->read_f32(*(*source)->find(name))->at(0);
    };
    EXPECT_EQ(value("layers.0.router"), 0.5f);
    EXPECT_EQ(value("layers.0.experts.0.gate"), 1.0f);
    EXPECT_EQ(value("layers.0.experts.1.up"), 4.0f);
    EXPECT_EQ(value("layers.0.experts.1.down"), 6.0f);
    return c;
  };
  EXPECT_TRUE(open("mixtral", kMixtral).expert_weights_sum_to_one);
  EXPECT_FALSE(open("mixtral", kMixtral).qk_norm);
  EXPECT_TRUE(open("qwen3_moe", kQwen3Moe, {{"norm_topk_prob", true}}).expert_weights_sum_to_one);
  EXPECT_FALSE(open("qwen3_moe", kQwen3Moe).qk_norm_wide);
  const ModelConfig olmoe = open("olmoe", kOlmoe, {{"clip_qkv", 2.5}, {"norm_topk_prob", false}});
  EXPECT_TRUE(olmoe.qk_norm_wide);
  EXPECT_EQ(olmoe.qkv_clip, 2.5f);
  EXPECT_FALSE(olmoe.expert_weights_sum_to_one);
}

TEST(HfFolder, RefusesWhatIsNoMixture) {
  const auto with = [](const std::string& family, json changes, const json& more) {
    changes.update(more);
    return [=](TinyHfModel& m) { m = tiny_mixture(family, changes); };
  };
  expect_refused({
      {Code::corrupt, "num_local_experts: missing",
       with("mixtral", kMixtral, {{"num_local_experts", nullptr}})},
      {Code::unsupported, "num_experts: found 0", with("olmoe", kOlmoe, {{"num_experts", 0}})},
      {Code::corrupt, "experts for a token is 3, expected 1 to 2",
       with("olmoe", kOlmoe, {{"num_experts_per_tok", 3}})},
      {Code::corrupt, "experts for a token is 0", with("mixtral", kMixtral, {{"num_experts_per_tok", 0}})},
      {Code::corrupt, "experts in all layers is 4294967295",
       with("mixtral", kMixtral, {{"num_local_experts", UINT32_MAX}})},
      {Code::corrupt, "cut off at -1", with("olmoe", kOlmoe, {{"clip_qkv", -1}})},
      {Code::unsupported, "decoder_sparse_step: 2, supported is 1",
       with("qwen3_moe", kQwen3Moe, {{"decoder_sparse_step", 2}})},
      {Code::unsupported, "mlp_only_layers: layers without experts",
       with("qwen3_moe", kQwen3Moe, {{"mlp_only_layers", {0}}})},
      {Code::corrupt, "\"layers.0.experts.1.up\" is missing",
       [=](auto& m) {
         m = tiny_mixture("olmoe", kOlmoe);
         json& header = m.weights.header;
         header["another"] = header["model.layers.0.mlp.experts.1.up_proj.weight"];
         header.erase("model.layers.0.mlp.experts.1.up_proj.weight");
       }},
      {Code::unsupported, "experts.2.up\": has no place",
       [=](auto& m) {
         m = tiny_mixture("olmoe", kOlmoe);
         m.weights.add_f32("model.layers.0.mlp.experts.2.up_proj.weight", {8, 32}, 1);
       }},
      {Code::corrupt, "shape [16, 16], the configuration says [8, 32]",
       [=](auto& m) {
         m = tiny_mixture("mixtral", kMixtral);
         m.weights.header["model.layers.0.block_sparse_moe.experts.1.w1.weight"]["shape"] = {16, 16};
       }},
  });
}

TEST(HfFolder, RefusesWhatItsFamiliesDoNotCompute) {
  const auto qwen2 = [](TinyHfModel& m, uint32_t full_layers) {
    m.config["model_type"] = "qwen2";
    m.config["use_sliding_window"] = true;
    m.config["num_hidden_layers"] = 4;
    m.config["max_window_layers"] = full_layers;
  };
  const auto opt = [](const char* name, json value) {
    return [name, value = std::move(value)](TinyHfModel& m) {
      m.config["model_type"] = "opt";
      m.config["ffn_dim"] = 64;
      m.config[name] = value;
    };
  };
  expect_refused({
      {Code::unsupported, "max_window_layers: 2 of 4", [=](auto& m) { qwen2(m, 2); }},
      {Code::corrupt, "ffn_dim: missing", opt("ffn_dim", nullptr)},
      {Code::unsupported, "do_layer_norm_before: only true", opt("do_layer_norm_before", false)},
      {Code::unsupported, "word_embed_proj_dim: 16", opt("word_embed_proj_dim", 16)},
      {Code::unsupported, "layer_norm_elementwise_affine", opt("layer_norm_elementwise_affine", false)},
      {Code::unsupported, "_remove_final_layer_norm", opt("_remove_final_layer_norm", true)},
      {Code::unsupported, "activation_function: \"mish\"", opt("activation_function", "mish")},
      {Code::corrupt, "\"position\" is missing", opt("enable_bias", true)},
  });
}

TEST(HfFolder, RefusesHostileWeights) {
  expect_refused({
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
      {Code::unsupported, "tensor \"layers.0.q_norm\": has no place",
       [](auto& m) { m.weights.add_f32("model.layers.0.self_attn.q_norm.weight", {16}, 1); }},
      {Code::unsupported, "tensor \"model.layers.00.mlp.up_proj.weight\": has no place",
       [](auto& m) { m.weights.add_f32("model.layers.00.mlp.up_proj.weight", {1}, 1); }},
      {Code::unsupported, "tensor \"layers.0.q.bias\": has no place",
       [](auto& m) { m.weights.add_f32("model.layers.0.self_attn.q_proj.bias", {32}, 1); }},
  });
}

TEST(HfFolder, SaysWhatIsMissing) {
  const auto refused = [](const std::string& path) {
    const auto source = open_source(path);
    EXPECT_EQ(source.code(), Code::not_found) << path;
    return source.ok() ? "accepted" : source.error().line();
  };
  const TempFolder folder;
  EXPECT_THAT(refused(folder.path() + "/nowhere"), HasSubstr("nowhere: cannot open: No such file"));
  EXPECT_THAT(refused(folder.path()), HasSubstr("config.json: cannot open"));
  folder.write("config.json", TinyHfModel().config.dump());
  EXPECT_THAT(refused(folder.path()),
              HasSubstr("neither model.safetensors nor model.safetensors.index.json"));
  folder.write("pytorch_model.bin", "PK");
  EXPECT_THAT(refused(folder.path()), HasSubstr("pytorch_model.bin is not read, convert it"));
}

TEST(HfFolder, TheFingerprintChangesWithAnyFile) {
  const TempFolder folder;
  const TinyHfModel model;
  model.write(folder);
  const auto fingerprint = [&] { return (*open_source(folder.path()))->fingerprint(); };
  const std::string before = fingerprint();
  EXPECT_EQ(before.size(), 32u);
  EXPECT_EQ(fingerprint(), before);
  const std::filesystem::path config = folder.path() + "/config.json";
  std::filesystem::last_write_time(config,
                                   std::filesystem::last_write_time(config) + std::chrono::seconds(1));
  const std::string touched = fingerprint();
  EXPECT_NE(touched, before);
  const std::filesystem::path weights = folder.path() + "/model.safetensors";
  std::filesystem::last_write_time(weights,
                                   std::filesystem::last_write_time(weights) + std::chrono::seconds(1));
  EXPECT_NE(fingerprint(), touched);
}

}  // namespace
}  // namespace tierd
