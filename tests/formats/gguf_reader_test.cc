#include "core/formats/gguf_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/gguf_builder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(GgufReader, ReadsATinyLlama) {
  const TempFolder folder;
  const auto source = open_source(folder.write("tiny.gguf", tiny_gguf_llama().bytes()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  const ModelConfig& c = (*source)->config();
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.name, "tiny");
  EXPECT_EQ(c.vocab_size, 8u);
  EXPECT_EQ(c.n_kv_heads, 2u);
  EXPECT_EQ(c.head_dim, 16u);
  EXPECT_TRUE(c.tied_embeddings);
  EXPECT_FALSE(c.qkv_bias);
  EXPECT_EQ(c.position, PositionKind::rope_interleaved);
  EXPECT_EQ((*source)->vocab(), nullptr);

  const TensorInfo* down = (*source)->find("layers.0.down");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->rows, 32u);
  EXPECT_EQ(down->cols, 64u);
  const auto values = (*source)->read_f32(*down);
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, testing::Each(0.01f));
}

// Makes all matrices but the embedding zeros in rows of `width` values; the embedding keeps its bytes.
void widen(GgufBuilder& b, uint64_t width) {
  b.set_u32("llama.embedding_length", static_cast<uint32_t>(width));
  b.set_u32("llama.rope.dimension_count", static_cast<uint32_t>(width) / 2);
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    for (uint64_t& extent : tensor.extents) extent = extent == 32 ? width : extent;
    if (tensor.name == "token_embd.weight") continue;
    uint64_t values = 1;
    for (const uint64_t extent : tensor.extents) values *= extent;
    tensor.data = std::string(values * sizeof(float), '\0');
  }
}

TEST(GgufReader, ReadsVersion2AnotherAlignmentAndEveryEncoding) {
  const TempFolder folder;
  for (const auto& [type, bytes, encoding] : {std::tuple(1u, 64u, Encoding::f16),
                                              {30u, 64u, Encoding::bf16},
                                              {8u, 34u, Encoding::q8_0},
                                              {2u, 18u, Encoding::q4_0},
                                              {12u, 144u, Encoding::q4_k},
                                              {13u, 176u, Encoding::q5_k},
                                              {14u, 210u, Encoding::q6_k},
                                              {3u, 20u, Encoding::q4_1},
                                              {6u, 22u, Encoding::q5_0},
                                              {7u, 24u, Encoding::q5_1},
                                              {10u, 84u, Encoding::q2_k},
                                              {11u, 110u, Encoding::q3_k},
                                              {20u, 18u, Encoding::iq4_nl},
                                              {23u, 136u, Encoding::iq4_xs},
                                              {39u, 17u, Encoding::mxfp4}}) {
    GgufBuilder b = tiny_gguf_llama();
    b.version = 2;
    b.alignment = 256;
    b.set_u32("general.alignment", 256);
    b.tensor("token_embd.weight").type = type;
    b.tensor("token_embd.weight").data = std::string(8 * bytes, '\0');
    if (block_values(encoding) == kSuperBlock) widen(b, 256);
    const auto source = open_source(folder.write("tiny.gguf", b.bytes()));
    ASSERT_TRUE(source.ok()) << source.error().line();
    EXPECT_EQ((*source)->find("embed")->encoding, encoding);
    EXPECT_EQ((*source)->find("embed")->offset % 256, 0u);
  }
}

TEST(GgufReader, NoExpertsAreWhatEveryFamilyHas) {
  const TempFolder folder;
  GgufBuilder b = tiny_gguf_llama();
  for (const char* key : {"expert_count", "expert_shared_count", "leading_dense_block_count"})
    b.set_u32("llama." + std::string(key), 0);
  const auto source = open_source(folder.write("tiny.gguf", b.bytes()));
  ASSERT_TRUE(source.ok()) << source.error().line();
}

TEST(GgufReader, FindsBiasesHeadDivisorsAndScaling) {
  GgufBuilder b = tiny_gguf_llama();
  b.set_text("llama.rope.scaling.type", "linear");
  b.set_f32("llama.rope.scaling.factor", 4);
  b.set_f32("llama.rope.freq_base", 5e5f);
  for (const char* name : {"q", "k", "v"}) b.add_f32("blk.0.attn_" + std::string(name) + ".bias", {32}, 0);
  b.add_f32("output.weight", {32, 8}, 1);
  b.add_f32("rope_freqs.weight", {8}, 2);
  const TempFolder folder;
  const auto source = open_source(folder.write("tiny.gguf", b.bytes()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  const ModelConfig& c = (*source)->config();
  EXPECT_TRUE(c.qkv_bias);
  EXPECT_FALSE(c.o_bias);
  EXPECT_FALSE(c.tied_embeddings);
  EXPECT_EQ(c.rope.scaling, RopeScaling::linear);
  EXPECT_EQ(c.rope.factor, 4);
  EXPECT_EQ(c.rope.theta, 5e5f);
  EXPECT_THAT(c.rope.divisors, testing::ElementsAreArray(std::vector<float>(8, 2)));
  EXPECT_NE((*source)->find("layers.0.k.bias"), nullptr);
  EXPECT_EQ((*source)->find("rope_freqs.weight"), nullptr);
}

GgufBuilder with_sentencepiece() {
  GgufBuilder b = tiny_gguf_llama();
  b.set_text("tokenizer.ggml.model", "llama");
  b.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab", "<|eot_id|>", "c"});
  b.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -1, -2, -3, 0, -4});
  b.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 3, 1});
  b.set_u32("tokenizer.ggml.bos_token_id", 1);
  b.set_u32("tokenizer.ggml.eos_token_id", 2);
  b.set_bool("tokenizer.ggml.add_space_prefix", false);
  b.set_text("tokenizer.chat_template", "{{ messages }}");
  b.set_text("tokenizer.chat_template.tool_use", "{{ tools }}");
  return b;
}

TEST(GgufReader, ReadsASentencepieceVocabulary) {
  const TempFolder folder;
  const auto source = open_source(folder.write("tiny.gguf", with_sentencepiece().bytes()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  const Vocab* vocab = (*source)->vocab();
  ASSERT_NE(vocab, nullptr);
  EXPECT_EQ(vocab->kind, VocabKind::sentencepiece_bpe);
  EXPECT_EQ(vocab->pieces[5], "ab");
  EXPECT_EQ(vocab->scores[7], -4);
  EXPECT_EQ(vocab->types[0], TokenType::unknown);
  EXPECT_EQ(vocab->bos, 1u);
  EXPECT_THAT(vocab->end_tokens, testing::ElementsAre(2u, 6u));
  EXPECT_TRUE(vocab->add_bos);
  EXPECT_FALSE(vocab->add_space_prefix);
  EXPECT_EQ(vocab->chat_template, "{{ messages }}");
  EXPECT_EQ(vocab->tool_chat_template, "{{ tools }}");
}

TEST(GgufReader, ReadsAByteBpeVocabulary) {
  GgufBuilder b = with_sentencepiece();
  b.set_text("tokenizer.ggml.model", "gpt2");
  b.set_text("tokenizer.ggml.pre", "qwen2");
  b.drop("tokenizer.ggml.scores");
  b.set_texts("tokenizer.ggml.merges", {"a b"});
  const TempFolder folder;
  const auto source = open_source(folder.write("tiny.gguf", b.bytes()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  const Vocab* vocab = (*source)->vocab();
  ASSERT_NE(vocab, nullptr);
  EXPECT_EQ(vocab->kind, VocabKind::byte_bpe);
  EXPECT_EQ(vocab->pre_tokenizer, "qwen2");
  EXPECT_THAT(vocab->merges, testing::ElementsAre("a b"));
  EXPECT_FALSE(vocab->add_bos);
}

TEST(GgufReader, JoinsShardsAndRefusesWhatDoesNotBelongTogether) {
  GgufBuilder first = tiny_gguf_llama();
  const auto shard_keys = [](GgufBuilder& b, uint16_t number) {
    b.set("split.no", GgufType::u16, bytes_of(number));
    b.set("split.count", GgufType::u16, bytes_of<uint16_t>(2));
    b.set("split.tensors.count", GgufType::i32, bytes_of<int32_t>(11));
  };
  shard_keys(first, 0);
  GgufBuilder second;
  shard_keys(second, 1);
  second.tensors = {first.tensors.begin() + 5, first.tensors.end()};
  first.tensors.resize(5);

  const TempFolder folder;
  const std::string path = folder.write("m-00001-of-00002.gguf", first.bytes());
  const auto refused = [&](const std::string& opened) {
    const auto source = open_source(opened);
    return source.ok() ? "accepted" : source.error().line();
  };
  EXPECT_THAT(refused(path), HasSubstr("m-00002-of-00002.gguf: cannot open"));
  const std::string second_path = folder.write("m-00002-of-00002.gguf", second.bytes());
  const auto source = open_source(path);
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_EQ((*source)->find("out_norm")->file, 1u);
  EXPECT_THAT(*(*source)->read_f32(*(*source)->find("out_norm")), testing::Each(1.0f));

  EXPECT_THAT(refused(second_path), HasSubstr("this is shard 2, expected shard 1: open the first one"));
  EXPECT_THAT(refused(folder.write("odd.gguf", first.bytes())),
              HasSubstr("should end in -00001-of-00002.gguf"));
  folder.write("m-00002-of-00002.gguf", first.bytes());
  EXPECT_THAT(refused(path), HasSubstr("\"split.no\": this is shard 1, expected shard 2"));
  second.tensors.pop_back();
  folder.write("m-00002-of-00002.gguf", second.bytes());
  EXPECT_THAT(refused(path), HasSubstr("\"split.tensors.count\": found 11, the shards have 10"));
  second.set("split.count", GgufType::u16, bytes_of<uint16_t>(3));
  folder.write("m-00002-of-00002.gguf", second.bytes());
  EXPECT_THAT(refused(path), HasSubstr("\"split.count\": found 3, the first shard says 2"));
  first.set("split.count", GgufType::u16, bytes_of<uint16_t>(0));
  EXPECT_THAT(refused(folder.write("zero.gguf", first.bytes())), HasSubstr("\"split.count\": found 0"));
}

struct HostileGguf {
  Code code;
  std::string expected;  // part of the message
  std::function<void(GgufBuilder&)> spoil;
};

constexpr uint64_t kHuge = UINT64_MAX;

const std::vector<HostileGguf>& hostile_headers() {
  using B = GgufBuilder;
  static const std::vector<HostileGguf> cases = {
      {Code::corrupt, "offset 4: GGUF version 0", [](B& b) { b.version = 0; }},
      {Code::unsupported, "offset 4: GGUF version 1", [](B& b) { b.version = 1; }},
      {Code::unsupported, "offset 4: GGUF version 4", [](B& b) { b.version = 4; }},
      {Code::unsupported, "a big-endian GGUF file", [](B& b) { b.version = 3u << 24; }},
      {Code::corrupt, "metadata entries do not fit in the", [](B& b) { b.n_entries = kHuge; }},
      {Code::corrupt, "metadata entries do not fit in the", [](B& b) { b.n_entries = 1ull << 40; }},
      {Code::corrupt, "offset", [](B& b) { b.n_entries = b.entries.size() + 1; }},
      {Code::corrupt, "tensors do not fit in the", [](B& b) { b.n_tensors = kHuge; }},
      {Code::corrupt, "tensors do not fit in the", [](B& b) { b.n_tensors = 1ull << 58; }},
      {Code::corrupt, "token_embd.weight\" is missing", [](B& b) { b.n_tensors = 0; }},
      {Code::corrupt, "key \"general.name\": occurs twice", [](B& b) { b.entries.push_back(b.entries[1]); }},
      {Code::corrupt, "an empty metadata key", [](B& b) { b.entries[2].key = ""; }},
      {Code::corrupt, "metadata type 13", [](B& b) { b.entries[2].type = 13; }},
      {Code::corrupt, "metadata type 4294967295", [](B& b) { b.entries[2].type = UINT32_MAX; }},
      {Code::corrupt, "general.name is 18446744073709551615 bytes long",
       [](B& b) { b.set("general.name", GgufType::string, bytes_of(kHuge)); }},
      {Code::corrupt, "general.name is 1099511627776 bytes long",
       [](B& b) { b.set("general.name", GgufType::string, bytes_of(1ull << 40)); }},
      {Code::corrupt, "key \"flag\": a bool of value 2",
       [](B& b) { b.set("flag", GgufType::boolean, std::string(1, 2)); }},
      {Code::corrupt, "key \"a\": an array of 18446744073709551615 u8",
       [](B& b) { b.set("a", GgufType::array, bytes_of(0u) + bytes_of(kHuge)); }},
      {Code::corrupt, "key \"a\": an array of 2305843009213693953 u64",  // times 8 overflows to 8
       [](B& b) { b.set("a", GgufType::array, bytes_of(10u) + bytes_of((1ull << 61) + 1)); }},
      {Code::corrupt, "key \"a\": an array of 2305843009213693952 string",
       [](B& b) { b.set("a", GgufType::array, bytes_of(8u) + bytes_of(1ull << 61)); }},
      {Code::unsupported, "key \"a\": an array of arrays",
       [](B& b) { b.set("a", GgufType::array, bytes_of(9u) + bytes_of(1ull)); }},
      {Code::corrupt, "metadata type 77",
       [](B& b) { b.set("a", GgufType::array, bytes_of(77u) + bytes_of(1ull)); }},
      {Code::corrupt, "general.alignment\": found 0", [](B& b) { b.set_u32("general.alignment", 0); }},
      {Code::corrupt, "general.alignment\": found 48", [](B& b) { b.set_u32("general.alignment", 48); }},
      {Code::corrupt, "general.alignment\": found 2147483648",
       [](B& b) { b.set_u32("general.alignment", 1u << 31); }},
      {Code::corrupt, "general.alignment\": expected a whole number",
       [](B& b) { b.set_text("general.alignment", "32"); }},
      {Code::corrupt, "general.alignment\": expected a whole number",
       [](B& b) { b.set("general.alignment", GgufType::u64, bytes_of(kHuge)); }},
  };
  return cases;
}

const std::vector<HostileGguf>& hostile_tensors() {
  using B = GgufBuilder;
  static const auto up = [](B& b) -> B::Tensor& { return b.tensor("blk.0.ffn_up.weight"); };
  static const std::vector<HostileGguf> cases = {
      {Code::corrupt, "tensor \"blk.0.ffn_gate.weight\": occurs twice",
       [](B& b) { up(b).name = "blk.0.ffn_gate.weight"; }},
      {Code::corrupt, "name is 65 bytes long", [](B& b) { up(b).name = std::string(65, 'n'); }},
      {Code::corrupt, "ffn_up.weight\": 0 dimensions", [](B& b) { up(b).extents = {}; }},
      {Code::corrupt, "ffn_up.weight\": 5 dimensions",
       [](B& b) {
         up(b).extents = {1, 1, 1, 1, 1};
       }},
      {Code::unsupported, "ffn_up.weight\": 3 dimensions",
       [](B& b) {
         up(b).extents = {32, 32, 2};
       }},
      {Code::corrupt, "tensor \"layers.0.up\": shape [0, 0], the configuration requires [64, 32]",
       [](B& b) {
         up(b).extents = {32, 0};
       }},
      {Code::corrupt, "ffn_up.weight\": dimension 0 is 18446744073709551615",
       [](B& b) {
         up(b).extents = {kHuge, 1};
       }},
      {Code::corrupt, "ffn_up.weight\": dimension 1 is 4294967296",  // the product overflows to 0
       [](B& b) {
         up(b).extents = {1ull << 32, 1ull << 32};
       }},
      {Code::corrupt, "ffn_up.weight\": dimension 1 is 2147483648",  // times four would overflow
       [](B& b) {
         up(b).extents = {1ull << 31, 1ull << 31};
       }},
      {Code::corrupt, "ffn_up.weight\": 1099511627776 bytes at offset",
       [](B& b) {
         up(b).extents = {1ull << 38, 1};
       }},
      {Code::corrupt, "ffn_up.weight\": rows of 33 values in Q4_0",
       [](B& b) {
         up(b).type = 2, up(b).extents = {33, 64};
       }},
      {Code::corrupt, "ffn_up.weight\": rows of 32 values in Q4_K, expected a multiple of its block of 256",
       [](B& b) { up(b).type = 12; }},
      {Code::corrupt, "ffn_up.weight\": rows of 32 values in Q5_K", [](B& b) { up(b).type = 13; }},
      {Code::corrupt, "ffn_up.weight\": rows of 384 values in Q6_K",
       [](B& b) {
         up(b).type = 14, up(b).extents = {384, 64};
       }},
      {Code::corrupt, "bytes at offset",  // 2^55 super-blocks
       [](B& b) {
         up(b).type = 14, up(b).extents = {1ull << 55, 1};
       }},
      {Code::unsupported,
       "ffn_up.weight\": type IQ2_XXS, supported are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, "
       "Q4_K, "
       "Q5_K, Q6_K, IQ4_NL, IQ4_XS, BF16, MXFP4",
       [](B& b) { up(b).type = 16; }},
      {Code::unsupported, "ffn_up.weight\": type IQ3_S, supported are", [](B& b) { up(b).type = 21; }},
      {Code::unsupported, "ffn_up.weight\": type number 4,", [](B& b) { up(b).type = 4; }},
      {Code::unsupported, "ffn_up.weight\": type number 4294967295", [](B& b) { up(b).type = UINT32_MAX; }},
      {Code::corrupt, "ffn_up.weight\": offset 4 is not a multiple of 32", [](B& b) { up(b).offset = 4; }},
      {Code::corrupt, "bytes at offset 1099511627776 of the data", [](B& b) { up(b).offset = 1ull << 40; }},
      {Code::corrupt, "bytes at offset 18446744073709551584 of the data",
       [](B& b) { up(b).offset = kHuge - 31; }},
      {Code::corrupt, "overlaps tensor", [](B& b) { up(b).offset = 0; }},
      {Code::corrupt, "\"layers.0.up\" is missing", [](B& b) { up(b).name = "blk.1.ffn_up.weight"; }},
      {Code::unsupported, "tensor \"blk.0.attn_q_norm.weight\": is not a tensor of the architecture llama",
       [](B& b) { b.add_f32("blk.0.attn_q_norm.weight", {16}, 1); }},
      {Code::corrupt, "tensor \"layers.0.up\": shape [32, 64], the configuration requires [64, 32]",
       [](B& b) {
         up(b).extents = {64, 32};
       }},
      {Code::corrupt, "tensor \"rope_freqs.weight\": 1 x 4 in f32",
       [](B& b) { b.add_f32("rope_freqs.weight", {4}, 1); }},
      {Code::corrupt, "rope frequency divisor is 0", [](B& b) { b.add_f32("rope_freqs.weight", {8}, 0); }},
  };
  return cases;
}

// Replaces the network by two experts of width 8 with different values.
void make_mixture(GgufBuilder& b) {
  b.set_u32("llama.expert_count", 2);
  b.set_u32("llama.expert_used_count", 1);
  b.set_u32("llama.feed_forward_length", 8);
  std::erase_if(b.tensors, [](const auto& t) {
    return t.name.ends_with("ffn_gate.weight") || t.name.ends_with("ffn_up.weight") ||
           t.name.ends_with("ffn_down.weight");
  });
  b.add_f32("blk.0.ffn_up_exps.weight", {32, 8, 2}, 1);
  b.add_f32("blk.0.ffn_gate_exps.weight", {32, 8, 2}, 2);
  b.add_f32("blk.0.ffn_down_exps.weight", {8, 32, 2}, 3);
  b.add_f32("blk.0.ffn_gate_inp.weight", {32, 2}, 4);
  std::string& up = b.tensor("blk.0.ffn_up_exps.weight").data;
  for (size_t i = up.size() / 2; i < up.size(); i += sizeof(float))
    up.replace(i, sizeof(float), bytes_of(7.0f));
}

TEST(GgufReader, TakesApartWhatHoldsAllExperts) {
  GgufBuilder builder = tiny_gguf_llama();
  make_mixture(builder);
  const TempFolder folder;
  const auto source = open_source(folder.write("mixture.gguf", builder.bytes()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_EQ((*source)->config().n_experts, 2u);
  EXPECT_TRUE((*source)->config().expert_weights_sum_to_one);
  const auto values = [&](const char* name) { return *(*source)->read_f32(*(*source)->find(name)); };
  EXPECT_THAT(values("layers.0.experts.0.up"), testing::AllOf(testing::SizeIs(256), testing::Each(1.0f)));
  EXPECT_THAT(values("layers.0.experts.1.up"), testing::Each(7.0f));
  EXPECT_THAT(values("layers.0.experts.1.down"), testing::Each(3.0f));
  EXPECT_THAT(values("layers.0.router"), testing::AllOf(testing::SizeIs(64), testing::Each(4.0f)));
}

const std::vector<HostileGguf>& hostile_models() {
  using B = GgufBuilder;
  static const std::vector<HostileGguf> cases = {
      {Code::corrupt, "\"general.architecture\": missing", [](B& b) { b.drop("general.architecture"); }},
      {Code::unsupported, "\"llama.rope.freq_base_swa\": a llama with this setting is not supported",
       [](B& b) { b.set_f32("llama.rope.freq_base_swa", 1e4F); }},
      {Code::unsupported, "\"llama.expert_shared_count\": a llama with this setting is not supported",
       [](B& b) { b.set_u32("llama.expert_shared_count", 1); }},
      {Code::unsupported,
       "\"general.architecture\": \"gemma\", supported are llama, qwen2, qwen3, qwen3moe, olmoe, olmo2, "
       "gemma2, gemma3, "
       "granite, starcoder2, phi3, smollm3, mistral3, qwen2moe, glm4moe, gpt-oss",
       [](B& b) { b.set_text("general.architecture", "gemma"); }},
      {Code::corrupt, "\"general.architecture\": expected a string",
       [](B& b) { b.set_u32("general.architecture", 1); }},
      {Code::corrupt, "\"llama.block_count\": missing", [](B& b) { b.drop("llama.block_count"); }},
      {Code::corrupt, "number of layers is 4294967295",
       [](B& b) { b.set_u32("llama.block_count", UINT32_MAX); }},
      {Code::corrupt, "\"layers.1.attn_norm\" is missing", [](B& b) { b.set_u32("llama.block_count", 2); }},
      {Code::corrupt, "\"llama.block_count\": expected a whole number",
       [](B& b) { b.set("llama.block_count", GgufType::i32, bytes_of(-1)); }},
      {Code::corrupt,
       "\"llama.attention.head_count\": found a list of 2 values, expected one for each of 1 layers",
       [](B& b) {
         b.set_numbers<uint32_t>("llama.attention.head_count", GgufType::u32, {2, 2});
       }},
      {Code::corrupt, "\"llama.attention.head_count_kv\": expected whole numbers",
       [](B& b) { b.set_numbers<int32_t>("llama.attention.head_count_kv", GgufType::i32, {-2}); }},
      {Code::unsupported, "\"llama.feed_forward_length\": a list with 64 for layer 0 and 32 for layer 1",
       [](B& b) {
         b.set_u32("llama.block_count", 2);
         b.set_numbers<uint32_t>("llama.feed_forward_length", GgufType::u32, {64, 32});
       }},
      {Code::corrupt, "\"llama.attention.head_count\": found 0",
       [](B& b) { b.set_u32("llama.attention.head_count", 0); }},
      {Code::corrupt, "\"llama.attention.head_count\": found 3",
       [](B& b) { b.set_u32("llama.attention.head_count", 3); }},
      {Code::corrupt, "key/value heads is 0", [](B& b) { b.set_u32("llama.attention.head_count_kv", 0); }},
      {Code::unsupported, "\"llama.rope.dimension_count\": found 0",
       [](B& b) { b.set_u32("llama.rope.dimension_count", 0); }},
      {Code::corrupt, "7 of the 16 values of a head are rotated" /* of 32 in 2 heads */,
       [](B& b) { b.set_u32("llama.rope.dimension_count", 7); }},
      {Code::unsupported, "\"llama.nextn_predict_layers\": a llama with this setting is not supported",
       [](B& b) { b.set_u32("llama.block_count", 2), b.set_u32("llama.nextn_predict_layers", 1); }},
      {Code::corrupt, "\"llama.nextn_predict_layers\": found 2, of 1 layers in all",
       [](B& b) { b.set_u32("llama.nextn_predict_layers", 2); }},
      {Code::unsupported, "\"llama.expert_weights_scale\": a llama with this setting is not supported",
       [](B& b) { b.set_f32("llama.expert_weights_scale", 2); }},
      {Code::corrupt, "\"llama.expert_used_count\": missing",
       [](B& b) { b.set_u32("llama.expert_count", 8); }},
      {Code::corrupt, "ffn_up_exps.weight\": 2 matrices, the model has 4 experts",
       [](B& b) { make_mixture(b), b.set_u32("llama.expert_count", 4); }},
      {Code::corrupt, "experts for a token is 3, expected 1 to 2",
       [](B& b) { make_mixture(b), b.set_u32("llama.expert_used_count", 3); }},
      {Code::corrupt, "\"layers.0.router\" is missing",
       [](B& b) {
         make_mixture(b),
             std::erase_if(b.tensors, [](const auto& t) { return t.name.ends_with("inp.weight"); });
       }},
      {Code::unsupported, "ffn_up.weight\": is not a tensor of the architecture",
       [](B& b) {
         make_mixture(b), b.add_f32("blk.0.ffn_up.weight", {32, 64}, 0.01f);
       }},
      {Code::unsupported,
       "\"llama.rope.scaling.type\": \"ntk\", supported are none, linear, yarn and longrope",
       [](B& b) { b.set_text("llama.rope.scaling.type", "ntk"); }},
      {Code::unsupported, "\"llama.rope.scaling.yarn_ext_factor\": found 0.5, supported is 1",
       [](B& b) {
         b.set_text("llama.rope.scaling.type", "yarn"), b.set_f32("llama.rope.scaling.factor", 4);
         b.set_f32("llama.rope.scaling.yarn_ext_factor", 0.5f);
       }},
      {Code::corrupt, "0 rope frequency divisors, expected half as many",
       [](B& b) { b.set_text("llama.rope.scaling.type", "longrope"); }},
      {Code::corrupt, "rope magnitude is 0", [](B& b) { b.set_f32("llama.rope.scaling.attn_factor", 0); }},
      {Code::unsupported, "\"llama.rope.dimension_sections\": this rotary setting is not supported",
       [](B& b) {
         b.set_numbers<int32_t>("llama.rope.dimension_sections", GgufType::i32, {1, 2});
       }},
      {Code::corrupt, "layer_norm_rms_epsilon\": expected a finite float",
       [](B& b) { b.set_f32("llama.attention.layer_norm_rms_epsilon", NAN); }},
      {Code::corrupt, "\"tokenizer.ggml.tokens\": 0 tokens, the embedding has 8 rows",
       [](B& b) { b.set_text("tokenizer.ggml.model", "llama"); }},
      {Code::unsupported, "\"tokenizer.ggml.model\": \"bert\"",
       [](B& b) { b.set_text("tokenizer.ggml.model", "bert"); }},
      {Code::corrupt, "\"tokenizer.ggml.tokens\": 9 elements, expected at most 8",
       [](B& b) {
         b = with_sentencepiece(), b.set_texts("tokenizer.ggml.tokens", std::vector<std::string>(9));
       }},
      {Code::corrupt, "\"tokenizer.ggml.scores\": 2 scores for 8 tokens",
       [](B& b) {
         b = with_sentencepiece();
         b.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 1});
       }},
      {Code::corrupt, "\"tokenizer.ggml.token_type\": token 0 has type 9",
       [](B& b) {
         b = with_sentencepiece();
         b.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {9, 1, 1, 1, 1, 1, 1, 1});
       }},
      {Code::corrupt, "\"tokenizer.ggml.bos_token_id\": expected a whole number",
       [](B& b) { b = with_sentencepiece(), b.set_f32("tokenizer.ggml.bos_token_id", 1); }},
      {Code::corrupt, "\"tokenizer.ggml.merges\": missing or empty",
       [](B& b) {
         b = with_sentencepiece(), b.set_text("tokenizer.ggml.model", "gpt2");
         b.set_text("tokenizer.ggml.pre", "gpt-2");
       }},
      {Code::unsupported, "\"tokenizer.ggml.pre\": missing; known are gpt-2, ",
       [](B& b) { b = with_sentencepiece(), b.set_text("tokenizer.ggml.model", "gpt2"); }},
      {Code::unsupported, "\"tokenizer.ggml.pre\": unknown rule \"klingon\"; known are gpt-2, ",
       [](B& b) {
         b = with_sentencepiece(), b.set_text("tokenizer.ggml.model", "gpt2");
         b.set_text("tokenizer.ggml.pre", "klingon");
       }},
  };
  return cases;
}

void expect_gguf_refused(const std::vector<HostileGguf>& cases) {
  const TempFolder folder;
  for (const HostileGguf& hostile : cases) {
    GgufBuilder builder = tiny_gguf_llama();
    hostile.spoil(builder);
    const auto source = open_source(folder.write("hostile.gguf", builder.bytes()));
    ASSERT_FALSE(source.ok()) << hostile.expected;
    EXPECT_EQ(source.code(), hostile.code) << source.error().line();
    EXPECT_THAT(source.error().line(), HasSubstr("hostile.gguf"));
    EXPECT_THAT(source.error().line(), HasSubstr(hostile.expected));
    EXPECT_THAT(source.error().line(), testing::Not(HasSubstr("\n")));
  }
}

TEST(GgufReader, RefusesHostileHeaders) {
  expect_gguf_refused(hostile_headers());
}
TEST(GgufReader, RefusesHostileTensors) {
  expect_gguf_refused(hostile_tensors());
}
TEST(GgufReader, RefusesHostileModels) {
  expect_gguf_refused(hostile_models());
}

TEST(GgufReader, RefusesAFileCutAnywhere) {
  const TempFolder folder;
  const std::string whole = with_sentencepiece().bytes();
  for (size_t size = 4; size < whole.size(); size += size < 2000 ? 1 : 501) {
    const auto source = open_source(folder.write("cut.gguf", whole.substr(0, size)));
    ASSERT_FALSE(source.ok()) << size;
    ASSERT_EQ(source.code(), Code::corrupt) << source.error().line();
    ASSERT_THAT(source.error().line(), HasSubstr("cut.gguf"));
  }
}

TEST(GgufReader, SurvivesAnyFlippedByte) {
  const TempFolder folder;
  const std::string whole = with_sentencepiece().bytes();
  for (size_t i = 4; i < 2000; ++i) {
    for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
      std::string spoilt = whole;
      spoilt[i] = static_cast<char>(static_cast<unsigned char>(spoilt[i]) ^ flip);
      const auto source = open_source(folder.write("flipped.gguf", spoilt));
      if (!source.ok()) {
        ASSERT_THAT(source.error().line(), HasSubstr("flipped.gguf")) << i;
      }
    }
  }
}

TEST(GgufReader, AFileCutWhileOpenIsAnError) {
  const TempFolder folder;
  const std::string path = folder.write("tiny.gguf", tiny_gguf_llama().bytes());
  const auto source = open_source(path);
  ASSERT_TRUE(source.ok());
  std::filesystem::resize_file(path, 500);
  const auto values = (*source)->read_f32(*(*source)->find("out_norm"));
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.code(), Code::corrupt);
  EXPECT_THAT(values.error().line(), HasSubstr("tiny.gguf: offset"));
}

}  // namespace
}  // namespace tierd
