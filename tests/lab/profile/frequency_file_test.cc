#include "tools/lab/profile/frequency_file.h"

#include <gmock/gmock.h>

#include <vector>

#include "core/base/file.h"
#include "core/formats/safetensors.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::ElementsAre;

std::vector<float> values_of(const File& file, const SafetensorsTensor& tensor) {
  std::vector<float> values(tensor.bytes / sizeof(float));
  EXPECT_TRUE(file.read_exact(tensor.offset, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

TEST(FrequencyFile, CountsTheTokensForWhichANeuronFires) {
  TempFolder folder;
  SiteTable sites;
  sites.all.resize(2);
  sites[0].name = "layers.0.qkv";  // its activity is not measured
  sites[0].n = 8;
  sites[1].name = "layers.0.ffn";
  sites[1].n = 3;
  sites[1].contribution = {0, 16};
  for (Site& site : sites.all) site.editions = {0};
  sites.editions.resize(1);
  sites.editions[0].slot_bytes = 24576;
  const std::string path = folder.path() + "/frequencies.safetensors";
  auto made = FrequencyFile::create(path, "a model", sites);
  ASSERT_TRUE(made.ok()) << made.error().line();
  const ActiveSet active;
  const std::vector<float> first = {0.5F, 0, 0, 0.25F, 0, -0.0F}, second = {1, 0, 3, 0, 0, 4};
  (*made)->measured(1, {active, 2, nullptr, first.data()});
  (*made)->measured(0, {active, 2, nullptr, nullptr});
  (*made)->measured(1, {active, 2, nullptr, second.data()});
  ASSERT_TRUE((*made)->finish().ok());
  const auto file = File::open(path);
  ASSERT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  ASSERT_TRUE(tensors.ok());
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "layers.0.ffn.frequency");
  EXPECT_THAT(values_of(*file, (*tensors)[0]), ElementsAre(0.75F, 0, 0.5F));
  EXPECT_EQ((*tensors)[1].name, "layers.0.ffn.bytes");
  EXPECT_THAT(values_of(*file, (*tensors)[1]), ElementsAre(24576));
  EXPECT_EQ(read_safetensors_metadata(*file)->at(kMadeFor), "a model");
}

}  // namespace
}  // namespace tierd
