#include "core/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/formats/safetensors_builder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

Result<std::vector<SafetensorsTensor>> read_header(const std::string& bytes) {
  const TempFolder folder;
  TIERD_ASSIGN(const File file, File::open(folder.write("m.safetensors", bytes)));
  return read_safetensors_header(file);
}

TEST(Safetensors, ReadsAHeader) {
  SafetensorsBuilder b;
  b.header["__metadata__"] = {{"format", "pt"}};
  b.add_f32("b", {2, 3}, 1);
  b.add_f32("a", {4}, 2);
  b.header["empty"] = {{"dtype", "BF16"}, {"shape", {0, 3}}, {"data_offsets", {24, 24}}};
  b.header["scalar"] = {{"dtype", "I64"}, {"shape", nlohmann::json::array()}, {"data_offsets", {40, 48}}};
  b.data += "12345678";
  const auto tensors = read_header(safetensors_bytes(b.header.dump() + "   ", b.data));
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  ASSERT_EQ(tensors->size(), 4u);
  EXPECT_EQ((*tensors)[0].name, "b");
  EXPECT_EQ((*tensors)[1].name, "empty");
  EXPECT_EQ((*tensors)[2].name, "a");
  EXPECT_THAT((*tensors)[0].shape, testing::ElementsAre(2u, 3u));
  EXPECT_EQ((*tensors)[2].offset, (*tensors)[0].offset + 24);
  EXPECT_EQ((*tensors)[3].dtype, "I64");
  EXPECT_EQ((*tensors)[3].bytes, 8u);
}

struct HostileFile {
  Code code;
  std::string expected;
  std::string bytes;
};

std::string with_length(uint64_t length, std::string_view rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length).append(rest);
}

// Returns a file with one tensor "t" with these fields and 16 bytes of data.
std::string one(const std::string& fields) {
  return safetensors_bytes("{\"t\":{" + fields + "}}", std::string(16, 'x'));
}

TEST(Safetensors, RefusesHostileFiles) {
  const std::string f32 = R"("dtype":"F32",)";
  const std::string good = f32 + R"("shape":[4],"data_offsets":[0,16])";
  ASSERT_TRUE(read_header(one(good)).ok());
  const std::string data(32, 'x');
  const auto two = [&](const std::string& a, const std::string& b) {
    return safetensors_bytes("{\"a\":{" + f32 + R"("shape":[4],"data_offsets":)" + a + "},\"b\":{" + f32 +
                                 R"("shape":[4],"data_offsets":)" + b + "}}",
                             data);
  };
  const std::vector<HostileFile> cases = {
      {Code::corrupt, "0 bytes, too short", ""},
      {Code::corrupt, "7 bytes, too short", "1234567"},
      {Code::corrupt, "offset 0: the header's length is 18446744073709551615", with_length(UINT64_MAX, "{}")},
      {Code::corrupt, "offset 0: the header's length is 100000001, expected at most 2",
       with_length(100'000'001, "{}")},
      {Code::corrupt, "offset 0: the header's length is 3", with_length(3, "{}")},
      {Code::corrupt, "not valid JSON", with_length(0, "")},
      {Code::corrupt, "not valid JSON", safetensors_bytes("{\"t\":", data)},
      {Code::corrupt, "not valid JSON", safetensors_bytes("{\"t\xff\":1}", data)},
      {Code::corrupt, "not valid JSON", one(R"("shape":[1e999])")},
      {Code::corrupt, "nested deeper than 64", safetensors_bytes(std::string(1'000'000, '['), data)},
      {Code::corrupt, "found [], expected an object", safetensors_bytes("[]", "")},
      {Code::corrupt, "tensor \"t\": found 3, expected an object", safetensors_bytes("{\"t\":3}", data)},
      {Code::corrupt, "\"t\" occurs twice",
       safetensors_bytes("{\"t\":{" + good + "},\"t\":{" + good + "}}", "")},
      {Code::corrupt, "\"dtype\" occurs twice", one(f32 + good)},
      {Code::corrupt, "tensor \"t\": dtype: is missing", one(R"("shape":[4],"data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": dtype: found 4, expected a string", one(R"("dtype":4)")},
      {Code::unsupported, "tensor \"t\": dtype: \"F4\"",
       one(R"("dtype":"F4","shape":[4],"data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": shape: is missing", one(f32 + R"("data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": shape[0]: found -4", one(f32 + R"("shape":[-4],"data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": shape[0]: found 4.0",
       one(f32 + R"("shape":[4.0],"data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": shape: is larger than any file",
       one(f32 + R"("shape":[4294967296,4294967296],"data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": shape: is larger than any file",  // times four it overflows to 16
       one(f32 + R"("shape":[4611686018427387908],"data_offsets":[0,16])")},
      {Code::corrupt, "tensor \"t\": data_offsets: is missing", one(f32 + R"("shape":[4])")},
      {Code::corrupt, "tensor \"t\": data_offsets: is not a pair",
       one(f32 + R"("shape":[4],"data_offsets":[0])")},
      {Code::corrupt, "tensor \"t\": data_offsets: [16, 0] are not within the file's",
       one(f32 + R"("shape":[4],"data_offsets":[16,0])")},
      {Code::corrupt, "tensor \"t\": data_offsets: [0, 20] are not within the file's 16 bytes of data",
       one(f32 + R"("shape":[5],"data_offsets":[0,20])")},
      {Code::corrupt,
       "tensor \"t\": data_offsets: [18446744073709551600, 18446744073709551615] are not within the file's",
       one(f32 + R"("shape":[4],"data_offsets":[18446744073709551600,18446744073709551615])")},
      {Code::corrupt, "tensor \"t\": data_offsets: cover 16 bytes, shape and dtype require 12",
       one(f32 + R"("shape":[3],"data_offsets":[0,16])")},
      {Code::corrupt, "the tensors end at", one(f32 + R"("shape":[3],"data_offsets":[0,12])")},
      {Code::corrupt, "tensor \"b\" overlaps the tensor that ends", two("[0,16]", "[8,24]")},
      {Code::corrupt, "tensor \"b\" overlaps the tensor that ends", two("[0,16]", "[0,16]")},
      {Code::corrupt, "leaves a hole after the tensor that ends", two("[16,32]", "[16,32]")},
  };
  for (const HostileFile& hostile : cases) {
    const auto result = read_header(hostile.bytes);
    ASSERT_FALSE(result.ok()) << hostile.expected;
    EXPECT_EQ(result.code(), hostile.code) << result.error().line();
    EXPECT_THAT(result.error().line(), HasSubstr("m.safetensors: "));
    EXPECT_THAT(result.error().line(), HasSubstr(hostile.expected));
    EXPECT_THAT(result.error().line(), testing::Not(HasSubstr("\n")));
  }
}

TEST(Safetensors, RefusesHoles) {
  SafetensorsBuilder b;
  b.add_f32("a", {4}, 1);
  b.data += "hole";
  b.add_f32("b", {4}, 1);
  const auto between = read_header(b.bytes());
  ASSERT_FALSE(between.ok());
  EXPECT_THAT(between.error().line(), HasSubstr("tensor \"b\" leaves a hole after the tensor that ends at"));
  b.data += "tail";
  EXPECT_EQ(read_header(b.bytes()).code(), Code::corrupt);
}

TEST(Safetensors, RefusesAFileCutAnywhere) {
  SafetensorsBuilder b;
  b.add_f32("a", {4}, 1);
  b.add_f32("b", {2, 2}, 1);
  const std::string whole = b.bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_EQ(read_header(whole.substr(0, size)).code(), Code::corrupt) << size;
  }
}

}  // namespace
}  // namespace tierd
