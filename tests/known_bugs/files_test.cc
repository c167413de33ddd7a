// Models, tokenizers and chat templates of kinds that have harmed other programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/chat_template.h"
#include "core/model/text/tokenizer.h"
#include "core/store/source.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/gguf_builder.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/sanitized.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// Expects one line that names the file and returns it.
std::string refused(const std::string& path) {
  const auto source = open_source(path);
  if (source.ok()) return "accepted";
  const std::string line = source.error().line();
  EXPECT_THAT(line, HasSubstr(path));
  EXPECT_THAT(line, testing::Not(HasSubstr("\n")));
  return line;
}

std::string refused(const std::function<void(GgufBuilder&)>& spoil) {
  const TempFolder folder;
  GgufBuilder builder = tiny_gguf_llama();
  spoil(builder);
  return refused(folder.write("hostile.gguf", builder.bytes()));
}

GgufBuilder::Tensor& up(GgufBuilder& builder) {
  return builder.tensor("blk.0.ffn_up.weight");
}

uint64_t most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

// Tensor sizes whose product or sum overflows, so that a large tensor is read into a small buffer.
TEST(KnownBugs, SizesOfTensorsThatWrapRound_CVE_2025_53630_CVE_2026_27940) {
  for (const std::vector<uint64_t>& extents : {std::vector<uint64_t>{1ull << 32, 1ull << 32},
                                               {1ull << 31, 1ull << 31},
                                               {1ull << 62, 4},
                                               {(1ull << 62) + 8, 4},
                                               {UINT64_MAX, 1},
                                               {UINT64_MAX / 4 + 1, 1},
                                               {1ull << 61, 8}}) {
    EXPECT_THAT(refused([&](GgufBuilder& b) { up(b).extents = extents; }), HasSubstr("ffn_up.weight"));
  }
  // Each size fits; their sum does not.
  EXPECT_THAT(refused([](GgufBuilder& b) { up(b).offset = UINT64_MAX - 8191; }), HasSubstr("offset"));
}

TEST(KnownBugs, AlignmentsThatWrapRound_GHSA_96jg_mvhq_q7q7) {
  for (const uint32_t alignment : {0u, 1u << 31, UINT32_MAX, 48u})
    EXPECT_THAT(refused([&](GgufBuilder& b) { b.set_u32("general.alignment", alignment); }),
                HasSubstr("general.alignment"));
}

// Elsewhere only an assert checked this, which a release build does not have.
TEST(KnownBugs, MoreDimensionsThanThereIsRoomFor_gguf_tools_25) {
  for (const size_t n : {5u, 255u, 10'000u})
    EXPECT_THAT(refused([&](GgufBuilder& b) { up(b).extents.assign(n, 1); }), HasSubstr("dimensions"));
}

// Elsewhere memory behind the file's end was taken for weights and disclosed.
TEST(KnownBugs, TensorsLargerThanTheirFile_CVE_2026_7482) {
  EXPECT_THAT(refused([](GgufBuilder& b) {
                b.set_u32("llama.feed_forward_length", 1u << 20);
                up(b).extents = {32, 1u << 20};
              }),
              HasSubstr("bytes at offset"));
  const TempFolder folder;
  TinyHfModel model;
  model.weights.header["model.norm.weight"]["data_offsets"][1] = 1u << 20;
  model.write(folder);
  EXPECT_THAT(refused(folder.path()), HasSubstr("are not within the file's"));
}

TEST(KnownBugs, SmallFilesThatAskForALot_ollama_16190_17042) {
  const uint64_t before = most_memory();
  constexpr uint64_t kGiants[] = {1ull << 30, 1ull << 40, UINT64_MAX};
  for (const uint64_t giant : kGiants) {
    EXPECT_NE(refused([&](GgufBuilder& b) { b.n_tensors = giant; }), "accepted");
    EXPECT_NE(refused([&](GgufBuilder& b) { b.n_entries = giant; }), "accepted");
    EXPECT_NE(refused([&](GgufBuilder& b) {
                b.set("tokenizer.ggml.tokens", GgufType::array,
                      bytes_of(static_cast<uint32_t>(GgufType::string)) + bytes_of(giant));
              }),
              "accepted");
    EXPECT_NE(refused([&](GgufBuilder& b) { b.set("general.name", GgufType::string, bytes_of(giant)); }),
              "accepted");
  }
  EXPECT_NE(refused([](GgufBuilder& b) { b.set_u32("llama.block_count", UINT32_MAX); }), "accepted");
  EXPECT_NE(refused([](GgufBuilder& b) { b.set_u32("llama.context_length", UINT32_MAX - 1); }), "");
  const TempFolder folder;
  folder.write("config.json", TinyHfModel().config.dump());
  for (const uint64_t giant : kGiants) {
    folder.write("model.safetensors", bytes_of(giant) + "{}");
    EXPECT_NE(refused(folder.path()), "accepted");
  }
  if (!kSanitized) {
    EXPECT_LT(most_memory() - before, 64u << 20);
  }
}

TEST(KnownBugs, HeadersOfSafetensors_colibri_413_368_1018) {
  const TempFolder folder;
  const auto with = [&](const std::function<void(TinyHfModel&)>& spoil) {
    TinyHfModel model;
    spoil(model);
    model.write(folder);
    return refused(folder.path());
  };
  const std::string norm = "model.norm.weight";
  EXPECT_EQ(with([](TinyHfModel&) {}), "accepted");
  EXPECT_THAT(with([&](TinyHfModel& m) { m.weights.header[norm]["shape"] = {4611686018427387908u}; }),
              HasSubstr("larger than any file"));
  EXPECT_THAT(with([&](TinyHfModel& m) { m.weights.header[norm]["shape"] = {33}; }),
              HasSubstr("require 132"));
  EXPECT_THAT(with([&](TinyHfModel& m) {
                m.weights.header[norm]["data_offsets"] =
                    m.weights.header["model.layers.0.input_layernorm.weight"]["data_offsets"];
              }),
              HasSubstr("the tensor that ends"));
  folder.write("model.safetensors", safetensors_bytes(R"({"a":{},"a":{}})", ""));
  EXPECT_THAT(refused(folder.path()), HasSubstr("occurs twice"));
  folder.write("model.safetensors", bytes_of<uint64_t>(100'000'001) + std::string(100, ' '));
  EXPECT_THAT(refused(folder.path()), HasSubstr("header's length"));
  for (const char* field : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                            "max_position_embeddings", "vocab_size"}) {
    for (const int64_t value : {int64_t{-1}, int64_t{0}, int64_t{1} << 31, int64_t{1} << 62})
      EXPECT_NE(with([&](TinyHfModel& m) { m.config[field] = value; }), "accepted") << field << value;
    EXPECT_NE(with([&](TinyHfModel& m) { m.config[field] = "32"; }), "accepted") << field;
  }
}

// Lengths read as signed numbers and used as unsigned ones.
TEST(KnownBugs, LengthsOfPiecesThatAreSigned_GHSA_7rxv_5jhh_j6xx) {
  const TempFolder folder;
  for (const int32_t length : {-1, INT32_MIN, INT32_MAX, 8}) {
    const std::string path =
        folder.write("tokenizer.bin", bytes_of(int32_t{7}) + bytes_of(0.0f) + bytes_of(length) + "abcdefgh");
    const auto vocab = read_llama2c_tokenizer(path, 0);
    ASSERT_FALSE(vocab.ok()) << length;
    EXPECT_THAT(vocab.error().line(), HasSubstr("token 0 has"));
  }
  // A text longer than any prompt can be is still encoded.
  const auto tokenizer = make_tokenizer(small_vocab(300), "test");
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_FALSE((*tokenizer)->encode(std::string(1 << 24, 'a'), true, true).empty());
}

// A model's template is a program. It sees values alone: no attribute leads out of them.
TEST(KnownBugs, TemplatesThatAreCode_CVE_2026_5760) {
  const TempFolder folder;
  const std::string proof = folder.path() + "/was-run";
  const std::string popen = "os.popen('touch " + proof + "').read() }}";
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "{{ 7 * 7 }}"}}};
  for (const std::string& attack : std::vector<std::string>{
           "{{ cycler.__init__.__globals__." + popen,
           "{{ ''.__class__.__mro__[1].__subclasses__()[0]." + popen,
           "{{ namespace.__init__.__globals__." + popen, "{{ raise_exception.__globals__." + popen,
           "{% set ns = namespace() %}{{ ns.__class__." + popen, "{{ messages | attr('__class__') }}",
           "{% include '/etc/passwd' %}", "{% import 'os' as os %}{{ os }}",
           "{% set ns = namespace(__init__=1) %}"}) {
    Vocab vocab = small_vocab(300);
    vocab.chat_template = attack;
    const auto form = ChatTemplate::of(vocab);
    EXPECT_FALSE(form.ok() && form->apply({messages}).ok()) << attack;
  }
  const auto text = ChatTemplate::named("chatml", small_vocab(300))->apply({messages});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("{{ 7 * 7 }}"));  // verbatim
  EXPECT_FALSE(std::filesystem::exists(proof));
}

}  // namespace
}  // namespace tierd
