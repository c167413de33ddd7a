#include "tools/lab/partition/partition_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "core/base/file.h"
#include "tests/formats/safetensors_builder.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PartitionFile : public testing::Test {
 protected:
  static std::string values(const std::vector<float>& of) {
    return {reinterpret_cast<const char*>(of.data()), of.size() * sizeof(float)};
  }
  static void add(SafetensorsBuilder& file, const std::string& name, const std::vector<float>& of) {
    file.add(name, "F32", {of.size()}, values(of));
  }
  static SafetensorsBuilder sound() {
    SafetensorsBuilder file;
    file.header["__metadata__"] = {{kMadeFor, "a model"}};
    add(file, "layers.10.ffn.frequency", {0.5F, 1, 0});
    add(file, "layers.10.ffn.bytes", {24576});
    add(file, "layers.9.ffn.bytes", {64});
    add(file, "layers.9.ffn.frequency", {0.25F});
    return file;
  }
  Result<Frequencies> read(const SafetensorsBuilder& file) const {
    return read_frequencies(folder_.write("f.safetensors", file.bytes()));
  }
  // Returns the error's line, which must name the file.
  std::string refused(const SafetensorsBuilder& file) const {
    const auto result = read(file);
    if (result.ok()) return "not refused";
    EXPECT_THAT(result.error().line(), HasSubstr(folder_.path() + "/f.safetensors"));
    EXPECT_TRUE(result.error().more.empty());
    return result.error().line();
  }
  static std::string refused_with(const PartitionFile& test, const std::vector<float>& frequency,
                                  const std::vector<float>& bytes) {
    SafetensorsBuilder file;
    add(file, "a.frequency", frequency);
    add(file, "a.bytes", bytes);
    return test.refused(file);
  }

  TempFolder folder_;
};

TEST_F(PartitionFile, SitesAreReadInTheFilesOrder) {
  const auto result = read(sound());
  ASSERT_TRUE(result.ok()) << result.error().line();
  ASSERT_EQ(result->sites.size(), 2u);
  EXPECT_EQ(result->sites[0].name, "layers.10.ffn");
  EXPECT_EQ(result->sites[0].neuron_bytes, 24576u);
  EXPECT_THAT(result->sites[0].frequency, ElementsAre(0.5F, 1, 0));
  EXPECT_EQ(result->sites[1].name, "layers.9.ffn");
  EXPECT_EQ(result->metadata.at(kMadeFor), "a model");
}

TEST_F(PartitionFile, WhatIsWrittenIsReadAgain) {
  const auto of = read(sound());
  ASSERT_TRUE(of.ok());
  const Partition partition = {{{2, 0, 7}, {1, 0, 0}}, {{1}, {1}}};
  const std::string path = folder_.path() + "/p.safetensors";
  ASSERT_TRUE(write_partition(path, *of, partition).ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  const auto file = File::open(path);
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().line();
  std::vector<std::string> names;
  std::vector<std::vector<float>> read;
  for (const SafetensorsTensor& tensor : *tensors) {
    EXPECT_EQ(tensor.dtype, "F32");
    names.push_back(tensor.name);
    std::vector<float>& of_tensor = read.emplace_back(tensor.bytes / sizeof(float));
    ASSERT_TRUE(file->read_exact(tensor.offset, std::as_writable_bytes(std::span(of_tensor))).ok());
  }
  EXPECT_THAT(
      names, ElementsAre("layers.10.ffn.home", "layers.10.ffn.hot", "layers.9.ffn.home", "layers.9.ffn.hot"));
  EXPECT_THAT(read, ElementsAre(ElementsAre(2, 0, 7), ElementsAre(1, 0, 0), ElementsAre(1), ElementsAre(1)));
  const auto metadata = read_safetensors_metadata(*file);
  ASSERT_TRUE(metadata.ok());
  EXPECT_EQ(metadata->at(kMadeFor), "a model");
}

TEST_F(PartitionFile, WhatIsMissingIsTold) {
  EXPECT_THAT(refused({}), HasSubstr("tier-profile --frequencies"));
  SafetensorsBuilder no_bytes;
  add(no_bytes, "a.frequency", {0.5F});
  EXPECT_THAT(refused(no_bytes), HasSubstr("no 'a.bytes'"));
  SafetensorsBuilder no_frequency = sound();
  add(no_frequency, "b.bytes", {64});
  EXPECT_THAT(refused(no_frequency), HasSubstr("no 'b.frequency'"));
  SafetensorsBuilder foreign = sound();
  add(foreign, "layers.0.ffn.thresholds", {1});
  EXPECT_THAT(refused(foreign), HasSubstr("'layers.0.ffn.thresholds' is not known"));
  EXPECT_EQ(read_frequencies(folder_.path() + "/none").code(), Code::not_found);
}

TEST_F(PartitionFile, TensorsOfOtherShapesAreRefused) {
  SafetensorsBuilder half;
  half.add("a.frequency", "F16", {2}, "abcd");
  add(half, "a.bytes", {64});
  EXPECT_THAT(refused(half), HasSubstr("is F16"));
  SafetensorsBuilder matrix;
  matrix.add("a.frequency", "F32", {1, 2}, values({0, 0}));
  add(matrix, "a.bytes", {64});
  EXPECT_THAT(refused(matrix), HasSubstr("2 dimensions"));
  EXPECT_THAT(refused_with(*this, {0.5F}, {64, 64}), HasSubstr("has 2 values"));
  EXPECT_THAT(refused_with(*this, {}, {64}), HasSubstr("0 neurons"));
  std::string cut = sound().bytes();
  cut.resize(cut.size() - 4);
  EXPECT_EQ(read_frequencies(folder_.write("cut", cut)).code(), Code::corrupt);
}

TEST_F(PartitionFile, ValuesThatMakeNoSenseAreRefused) {
  EXPECT_THAT(refused_with(*this, {0.5F, NAN}, {64}), HasSubstr("neuron 1 has a frequency of nan"));
  EXPECT_THAT(refused_with(*this, {-0.5F}, {64}), HasSubstr("-0.5"));
  EXPECT_THAT(refused_with(*this, {0, 0, 1.25F}, {64}), HasSubstr("neuron 2 has a frequency of 1.25"));
  for (const float bytes : {0.0F, -64.0F, 0.5F, 1e20F, NAN, INFINITY})
    EXPECT_THAT(refused_with(*this, {0.5F}, {bytes}), HasSubstr("whole number of bytes")) << bytes;
}

}  // namespace
}  // namespace tierd
