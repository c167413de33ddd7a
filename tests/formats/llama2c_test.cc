#include "core/formats/llama2c.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/source.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

struct Checkpoint {
  std::array<int32_t, 7> shape = {32, 64, 2, 2, 1, 8, 16};  // as in the header
  std::vector<float> values;

  // Fills each tensor with its number in the order of the file.
  void add(size_t count) { values.insert(values.end(), count, tag++); }
  void add_layers(size_t count) { add(count), add(count); }
  float tag = 1;

  std::string header() const { return {reinterpret_cast<const char*>(shape.data()), sizeof shape}; }
  std::string body() const {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
};

Checkpoint version_0() {
  Checkpoint c;
  c.add(8 * 32);          // 1: embed
  c.add_layers(32);       // 2, 3: attention norms
  c.add_layers(32 * 32);  // 4, 5: q
  c.add_layers(16 * 32);  // 6, 7: k
  c.add_layers(16 * 32);  // 8, 9: v
  c.add_layers(32 * 32);  // 10, 11: o
  c.add_layers(32);       // 12, 13: feed-forward norms
  c.add_layers(64 * 32);  // 14, 15: gate
  c.add_layers(32 * 64);  // 16, 17: down
  c.add_layers(64 * 32);  // 18, 19: up
  c.add(32);              // 20: last norm
  c.add(16 * 16);         // 21: rotary tables
  return c;
}

std::string version_1(uint8_t shared_head) {
  Checkpoint c;
  c.add_layers(32);
  c.add_layers(32);
  c.add(32);
  c.add(8 * 32);  // 6: embed
  c.add_layers(32 * 32);
  c.add_layers(16 * 32);
  c.add_layers(16 * 32);
  c.add_layers(32 * 32);
  c.add_layers(64 * 32);
  c.add_layers(32 * 64);
  c.add_layers(64 * 32);  // 19, 20: up
  if (shared_head == 0) c.add(8 * 32);
  std::string header = "24ka";
  header += std::string("\1\0\0\0", 4) + c.header() + static_cast<char>(shared_head);
  header.resize(256, '\0');
  return header + c.body();
}

float first_value(const TensorSource& source, const char* name) {
  const TensorInfo* tensor = source.find(name);
  if (tensor == nullptr) return -1;
  const auto values = source.read_f32(*tensor);
  EXPECT_TRUE(values.ok());
  EXPECT_THAT(*values, testing::Each((*values)[0])) << name;
  return (*values)[0];
}

TEST(Llama2c, ReadsVersion0) {
  const TempFolder folder;
  const Checkpoint c = version_0();
  const auto source = open_source(folder.write("m.bin", c.header() + c.body()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_EQ((*source)->config().position, PositionKind::rope_interleaved);
  EXPECT_EQ((*source)->config().n_kv_heads, 1u);
  EXPECT_TRUE((*source)->config().tied_embeddings);
  EXPECT_EQ(first_value(**source, "embed"), 1);
  EXPECT_EQ(first_value(**source, "layers.1.k"), 7);
  EXPECT_EQ(first_value(**source, "layers.0.down"), 16);
  EXPECT_EQ(first_value(**source, "layers.1.up"), 19);
  EXPECT_EQ(first_value(**source, "out_norm"), 20);
}

TEST(Llama2c, ANegativeVocabularyMeansAHeadAfterTheRotaryTables) {
  const TempFolder folder;
  Checkpoint c = version_0();
  c.shape[5] = -8;
  c.add(8 * 32);
  const auto source = open_source(folder.write("m.bin", c.header() + c.body()));
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_EQ((*source)->config().vocab_size, 8u);
  EXPECT_EQ(first_value(**source, "head"), 22);
}

TEST(Llama2c, ReadsVersion1) {
  const TempFolder folder;
  for (const uint8_t shared : {1, 0}) {
    const auto source = open_source(folder.write("m.bin", version_1(shared)));
    ASSERT_TRUE(source.ok()) << source.error().line();
    EXPECT_EQ((*source)->config().tied_embeddings, shared == 1);
    EXPECT_EQ(first_value(**source, "layers.1.ffn_norm"), 4);
    EXPECT_EQ(first_value(**source, "embed"), 6);
    EXPECT_EQ(first_value(**source, "layers.1.up"), 20);
    EXPECT_EQ(first_value(**source, "head"), shared == 1 ? -1 : 21);
  }
}

TEST(Llama2c, RefusesWhatIsNot) {
  const TempFolder folder;
  const auto refused = [&](Code code, const std::string& bytes) {
    const auto source = open_source(folder.write("m.bin", bytes));
    EXPECT_EQ(source.code(), code);
    EXPECT_THAT(source.ok() ? "" : source.error().line(), HasSubstr("m.bin: "));
    return source.ok() ? "accepted" : source.error().line();
  };
  const Checkpoint good = version_0();
  EXPECT_THAT(refused(Code::corrupt, good.header() + good.body() + "tail"),
              HasSubstr("bytes, but a llama2.c checkpoint of version 0 and this shape has"));
  EXPECT_THAT(refused(Code::corrupt, (good.header() + good.body()).substr(0, 1000)), HasSubstr("1000 bytes"));
  EXPECT_THAT(refused(Code::corrupt, version_1(1).substr(0, 300)),
              HasSubstr("bytes, but a llama2.c checkpoint of version 1 and this shape has"));
  EXPECT_THAT(refused(Code::corrupt, version_1(1).substr(0, 20)), HasSubstr("offset 8: 28 bytes expected"));
  EXPECT_THAT(refused(Code::unsupported, std::string("24ka\2\0\0\0", 8) + version_1(1).substr(8)),
              HasSubstr("offset 4: llama2.c version 2 (int8), supported are 0 and 1"));
  std::string no_layers = version_1(1);
  no_layers.replace(16, 4, std::string(4, '\0'));
  EXPECT_THAT(refused(Code::corrupt, no_layers), HasSubstr("number 2 of the header's shape is 0"));

  // Without a magic number, a file with an impossible shape is of another kind.
  for (const auto& [field, value] :
       {std::pair(0, -1), {0, 33}, {1, INT32_MAX}, {2, 0}, {3, 0}, {4, 3}, {5, INT32_MIN}, {6, -5}}) {
    Checkpoint c = version_0();
    c.shape[static_cast<size_t>(field)] = value;
    EXPECT_THAT(refused(Code::unsupported, c.header() + c.body()),
                HasSubstr("is neither GGUF, nor safetensors, nor a llama2.c checkpoint"));
  }
  Checkpoint huge = version_0();
  huge.shape = {1 << 19, 1 << 19, 4096, 128, 128, 1 << 24, 1 << 27};
  EXPECT_THAT(refused(Code::corrupt, huge.header() + huge.body()),
              HasSubstr("bytes, but a llama2.c checkpoint of version"));
  EXPECT_THAT(refused(Code::unsupported, ""), HasSubstr("neither GGUF"));
  EXPECT_THAT(refused(Code::unsupported, "PK\3\4 and more of a zip archive"),
              HasSubstr("convert this PyTorch file"));
}

}  // namespace
}  // namespace tierd
