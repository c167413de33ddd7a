// Reads Hugging Face folders of each family. hf_folder_hostile_test.cc has the folders that are refused.
#include "core/formats/hf_folder.h"

#include <functional>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/hf_config.h"
#include "core/store/source.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/store/tiny_mixture.h"

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

TEST(HfFolder, IgnoresTablesThatFollowFromTheConfiguration) {
  TinyHfModel model;
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

TEST(HfFolder, ReadsWhichLayersHaveAWindow) {
  const auto config = [](const char* type, const std::function<void(json&)>& change) {
    TinyHfModel model;
    model.config["model_type"] = type;
    model.config["num_hidden_layers"] = 4;
    change(model.config);
    const TempFolder folder;
    model.write(folder);
    const auto read = read_hf_config(folder.path() + "/config.json");
    EXPECT_TRUE(read.ok()) << read.error().line();
    return *read;
  };
  using Layers = std::vector<uint32_t>;
  const auto listed = config("mistral", [](json& c) {
    c["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "sliding_attention"};
  });
  EXPECT_EQ(listed.global_layers, (Layers{1, 2}));
  EXPECT_EQ(listed.window_of(1), 0u);
  EXPECT_EQ(listed.window_of(3), 4096u);
  const auto last =
      config("qwen2", [](json& c) { c["use_sliding_window"] = true, c["max_window_layers"] = 3; });
  EXPECT_EQ(last.global_layers, (Layers{0, 1, 2}));
  const auto none =
      config("qwen2", [](json& c) { c["use_sliding_window"] = true, c["max_window_layers"] = 4; });
  EXPECT_EQ(none.sliding_window, 0u);
}

// Returns rows [first, first + n) of a tensor, from any tensor of the file that contains them.
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
  EXPECT_THAT(refused(json::object()), HasSubstr("index.json: weight_map: is missing"));
  EXPECT_THAT(refused({{"weight_map", {{"t", 3}}}}), HasSubstr("weight_map.t: found 3, expected a string"));
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
  EXPECT_THAT(refused(folder.path()), HasSubstr("; convert pytorch_model.bin to safetensors"));
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
