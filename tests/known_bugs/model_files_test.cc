// Models that other programs write and load, and that were once refused or read wrongly here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/gguf_builder.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/store/tiny_mixture.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Opened {
  std::unique_ptr<TensorSource> source;  // null if the model was refused
  std::string lines;                     // of standard error, then the error
};

Opened open(const std::string& path) {
  testing::internal::CaptureStderr();
  auto source = open_source(path);
  Opened opened;
  opened.lines = testing::internal::GetCapturedStderr();
  if (source.ok()) {
    opened.source = std::move(*source);
  } else {
    opened.lines += source.error().line();
  }
  return opened;
}

Opened open_gguf(const std::function<void(GgufBuilder&)>& change) {
  const TempFolder folder;
  GgufBuilder builder = tiny_gguf_llama();
  builder.set_text("tokenizer.ggml.model", "llama");
  builder.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab", "<0x0A>", "c"});
  builder.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -1, -2, -3, 0, -4});
  builder.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 6, 1});
  change(builder);
  return open(folder.write("m.gguf", builder.bytes()));
}

Opened open_folder(const std::function<void(TinyHfModel&)>& change) {
  const TempFolder folder;
  TinyHfModel model;
  change(model);
  model.write(folder);
  return open(folder.path());
}

constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

TEST(KnownBugs, PointersOfGitLfsAreNamed) {
  const auto named = AllOf(HasSubstr("Git LFS pointer"), HasSubstr("git lfs pull"), Not(HasSubstr("\n")));
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.json", "tokenizer.model",
                           "model.safetensors.index.json"}) {
    const TempFolder folder;
    TinyHfModel().write(folder);
    if (std::string_view(file).ends_with("index.json"))
      std::filesystem::remove(folder.path() + "/model.safetensors");
    folder.write(file, kPointer);
    EXPECT_THAT(open(folder.path()).lines, AllOf(named, HasSubstr(file)));
  }
  const TempFolder folder;
  for (const char* file : {"m.gguf", "m.bin", "m.safetensors"})
    EXPECT_THAT(open(folder.write(file, kPointer)).lines, AllOf(named, HasSubstr(file)));
  const auto vocab = read_tokenizer_file(folder.write("tokenizer.model", kPointer), 0);
  ASSERT_FALSE(vocab.ok());
  EXPECT_THAT(vocab.error().line(), named);
}

TEST(KnownBugs, AFolderWithAGgufFileIsThatModel) {
  const TempFolder folder;
  folder.write("README.md", "about it");
  folder.write("config.json", R"({"model_type": "llama"})");
  folder.write("a.gguf", tiny_gguf_llama().bytes());
  EXPECT_EQ(open(folder.path()).source->path(), folder.path() + "/a.gguf");
  folder.write("b.gguf", tiny_gguf_llama().bytes());
  EXPECT_THAT(open(folder.path()).lines,
              AllOf(HasSubstr(folder.path()), HasSubstr("holds 2 GGUF models"), HasSubstr("a.gguf, b.gguf")));
}

TEST(KnownBugs, AFolderWithTheShardsOfAGgufIsThatModel) {
  GgufBuilder first = tiny_gguf_llama(), second;
  uint16_t number = 0;
  for (GgufBuilder* shard : {&first, &second}) {
    shard->set("split.no", GgufType::u16, bytes_of(number++));
    shard->set("split.count", GgufType::u16, bytes_of<uint16_t>(2));
    shard->set("split.tensors.count", GgufType::i32, bytes_of<int32_t>(11));
  }
  second.tensors = {first.tensors.begin() + 5, first.tensors.end()};
  first.tensors.resize(5);
  const TempFolder folder;
  folder.write("m-00002-of-00002.gguf", second.bytes());
  EXPECT_THAT(open(folder.path()).lines, HasSubstr("m-00001-of-00002.gguf: cannot open"));
  folder.write("m-00001-of-00002.gguf", first.bytes());
  EXPECT_NE(open(folder.path()).source, nullptr);
}

TEST(KnownBugs, SpecialIdsThatNoTokenHas_llama_cpp_2984_3634) {
  const auto minus_one = open_gguf(
      [](GgufBuilder& b) { b.set("tokenizer.ggml.bos_token_id", GgufType::i32, bytes_of(int32_t{-1})); });
  ASSERT_NE(minus_one.source, nullptr) << minus_one.lines;
  EXPECT_EQ(minus_one.source->vocab()->bos, kNoToken);
  EXPECT_THAT(minus_one.lines, HasSubstr("\"tokenizer.ggml.bos_token_id\": found -1, there are 8 tokens"));
  const auto beyond = open_gguf([](GgufBuilder& b) { b.set_u32("tokenizer.ggml.eos_token_id", 32000); });
  ASSERT_NE(beyond.source, nullptr) << beyond.lines;
  EXPECT_EQ(beyond.source->vocab()->eos, 2u) << "as where the key is missing";
  EXPECT_THAT(beyond.lines, HasSubstr("\"tokenizer.ggml.eos_token_id\": found 32000"));
  const auto turn = open_gguf(
      [](GgufBuilder& b) { b.set("tokenizer.ggml.eot_token_id", GgufType::u64, bytes_of(UINT64_MAX)); });
  ASSERT_NE(turn.source, nullptr) << turn.lines;
  EXPECT_THAT(turn.lines, HasSubstr("tokenizer.ggml.eot_token_id"));
}

TEST(KnownBugs, TokenTypesOfZeroAndOfOtherIntegers_llama_cpp_2984) {
  const auto undefined = open_gguf([](GgufBuilder& b) {
    b.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 6, 0});
  });
  ASSERT_NE(undefined.source, nullptr) << undefined.lines;
  EXPECT_EQ(undefined.source->vocab()->types[7], TokenType::normal);
  EXPECT_THAT(undefined.lines, HasSubstr("\"tokenizer.ggml.token_type\": 1 tokens, the first of them 7"));
  const auto same = [](const Opened& opened) {
    ASSERT_NE(opened.source, nullptr) << opened.lines;
    EXPECT_EQ(opened.source->vocab()->types[1], TokenType::control);
    EXPECT_EQ(opened.source->vocab()->types[6], TokenType::byte);
  };
  same(open_gguf([](GgufBuilder& b) {
    b.set_numbers<uint32_t>("tokenizer.ggml.token_type", GgufType::u32, {2, 3, 3, 1, 1, 1, 6, 1});
  }));
  const auto bytes = open_gguf([](GgufBuilder& b) {
    b.set_numbers<uint8_t>("tokenizer.ggml.token_type", GgufType::u8, {2, 3, 3, 1, 1, 1, 6, 1});
  });
  EXPECT_THAT(bytes.lines, HasSubstr("\"tokenizer.ggml.token_type\": found an array that is not of i32"));
  same(bytes);
}

TEST(KnownBugs, ListsOfOneValueForAllLayers_ollama_9984) {
  const auto opened = open_gguf([](GgufBuilder& b) {
    b.set_numbers<uint32_t>("llama.attention.head_count", GgufType::u32, {2});
    b.set_numbers<int32_t>("llama.attention.head_count_kv", GgufType::i32, {2});
    b.set_numbers<uint32_t>("llama.feed_forward_length", GgufType::u32, {64});
  });
  ASSERT_NE(opened.source, nullptr) << opened.lines;
  EXPECT_EQ(opened.source->config().n_heads, 2u);
  EXPECT_EQ(opened.source->config().n_kv_heads, 2u);
  EXPECT_EQ(opened.source->config().d_ff, 64u);
  EXPECT_THAT(opened.lines,
              AllOf(HasSubstr("llama.attention.head_count_kv"), HasSubstr("feed_forward_length")));
}

TEST(KnownBugs, EmptyTensorsThatNoArchitectureNames) {
  const auto folder = open_folder([](TinyHfModel& m) {
    m.weights.add("_extra_state", "U8", {0}, "");
    m.weights.add("model.layers.0.self_attn.core_attention._extra_state", "F8_E4M3", {2, 0, 3}, "");
  });
  EXPECT_NE(folder.source, nullptr) << folder.lines;
  const auto gguf = open_gguf([](GgufBuilder& b) {
    b.tensor("extra").extents = {0, 2, 2}, b.tensor("extra").type = 26;
  });
  EXPECT_NE(gguf.source, nullptr) << gguf.lines;
  // A named tensor is required, and a tensor with values must be known.
  EXPECT_THAT(open_gguf([](GgufBuilder& b) { b.add_f32("output_norm.weight", {0}, 0); }).lines,
              HasSubstr("tensor \"out_norm\": shape [0, 0]"));
  EXPECT_THAT(open_folder([](TinyHfModel& m) { m.weights.add_f32("_extra_state", {1}, 0); }).lines,
              HasSubstr("is not a tensor of the architecture"));
}

TEST(KnownBugs, AHeadThatIsSavedAlthoughTied_LlamaFactory_10560) {
  const auto opened = open_folder([](TinyHfModel& m) { m.weights.add_f32("lm_head.weight", {8, 32}, 3); });
  ASSERT_NE(opened.source, nullptr) << opened.lines;
  EXPECT_FALSE(opened.source->config().tied_embeddings);
  EXPECT_THAT(*opened.source->read_f32(*opened.source->find("head")), testing::Each(3.0f));
  EXPECT_THAT(opened.lines,
              AllOf(HasSubstr("config.json: tie_word_embeddings"), HasSubstr("lm_head.weight")));
}

TEST(KnownBugs, TheNumberOfExpertsByEitherName_maxtext_3868) {
  for (const auto& [family, changes] :
       {std::pair{"qwen3_moe", kQwen3Moe}, {"olmoe", kOlmoe}, {"mixtral", kMixtral}}) {
    for (const char* key : {"num_experts", "num_local_experts"}) {
      TinyHfModel model = tiny_mixture(family, changes);
      model.config.erase("num_experts");
      model.config.erase("num_local_experts");
      model.config[key] = 2;
      const TempFolder folder;
      model.write(folder);
      const auto opened = open(folder.path());
      ASSERT_NE(opened.source, nullptr) << opened.lines;
      EXPECT_EQ(opened.source->config().n_experts, 2u);
    }
  }
  TinyHfModel model = tiny_mixture("qwen3_moe", kQwen3Moe);
  model.config["num_local_experts"] = 3;
  const TempFolder folder;
  model.write(folder);
  EXPECT_THAT(open(folder.path()).lines, HasSubstr("num_local_experts: found 3, num_experts is 2"));
}

// Ignoring a scaling factor gives a model that is right only for the first few thousand tokens.
TEST(KnownBugs, FactorsOfRopeAreNotPassedOver) {
  const auto hf = [](json rope) {
    return open_folder([&](TinyHfModel& m) { m.config["rope_scaling"] = rope; }).lines;
  };
  EXPECT_THAT(hf({{"rope_type", "mrope"}, {"factor", 4.0}}), HasSubstr("\"mrope\""));
  for (const char* type : {"longrope", "su"})
    EXPECT_THAT(hf({{"rope_type", type}, {"factor", 4.0}}), HasSubstr("short_factor: is missing"));
  for (const auto& [type, scaling] :
       {std::pair{"yarn", RopeScaling::yarn}, {"dynamic", RopeScaling::dynamic}, {"", RopeScaling::linear}}) {
    json rope = {{"factor", 4.0}};
    if (*type != 0) rope["rope_type"] = type;
    const auto opened = open_folder([&](TinyHfModel& m) { m.config["rope_scaling"] = rope; });
    ASSERT_NE(opened.source, nullptr) << opened.lines;
    EXPECT_EQ(opened.source->config().rope.scaling, scaling);
    EXPECT_EQ(opened.source->config().rope.factor, 4.0f);
  }
  EXPECT_THAT(hf({{"type", "linear"}, {"factor", 4.0}, {"attention_factor", 1.2}}),
              HasSubstr("rope_scaling.attention_factor: found 1.2"));
  EXPECT_THAT(hf({{"full_attention", {{"rope_theta", 1e6}}}}), HasSubstr("rope_scaling.sliding_attention"));
  EXPECT_THAT(open_gguf([&](GgufBuilder& b) { b.set_text("llama.rope.scaling.type", "longrope"); }).lines,
              HasSubstr("rope frequency divisors"));
  const auto gguf = open_gguf([](GgufBuilder& b) { b.set_f32("llama.rope.scaling.factor", 4); });
  ASSERT_NE(gguf.source, nullptr) << gguf.lines;
  EXPECT_EQ(gguf.source->config().rope.scaling, RopeScaling::linear);
  EXPECT_EQ(gguf.source->config().rope.factor, 4.0f);
}

}  // namespace
}  // namespace tierd
