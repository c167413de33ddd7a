#include "core/formats/shape_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/store/cache_folder.h"
#include "core/store/source.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr const char* kOpt = TIERD_SOURCE_DIR "/configs/models/opt-66b.toml";

SourceOptions zeros(uint32_t percent) {
  SourceOptions options;
  options.zeros_percent = percent;
  return options;
}

TEST(ShapeSource, HasTheTensorsOfAModelAndNoWeights) {
  const auto source = open_source(kOpt);
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_FALSE((*source)->has_weights());
  EXPECT_EQ((*source)->config().n_layers, 64u);
  const TensorInfo* const up = (*source)->find("layers.63.up");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->encoding, Encoding::f16);
  EXPECT_EQ(up->bytes(), 2ull * 9216 * 36864);
  std::byte byte{};
  EXPECT_EQ((*source)->read(*up, 0, {&byte, 1}).error().line(),
            std::string(kOpt) + ": is a shape without weights; make a model of it with tier synth");
}

TEST(ShapeSource, IsPlannedWhateverTheDiskHasLeft) {
  const TempFolder cache;
  setenv("TIERD_CACHE", cache.path().c_str(), 1);
  const auto found = find_store(kOpt, {}, {.layout = Layout::neuron});
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_FALSE(found->store.made());
  EXPECT_GT(found->store.manifest().data_bytes, 131e9);
}

// The paper's figures: a matrix of 679.5 MB becomes 339.7 MB of values and 42.5 MB of bits.
TEST(ShapeSource, IsTakenToHaveZeros) {
  const TempFolder cache;
  setenv("TIERD_CACHE", cache.path().c_str(), 1);
  WriteOptions options;
  options.compression = Compression::bitmap;
  const auto found = find_store(kOpt, zeros(50), options);
  ASSERT_TRUE(found.ok()) << found.error().line();
  for (const StoredSite* site : found->store.manifest().stored()) {
    if (site->name != "layers.5.up") continue;
    EXPECT_EQ(site->compression, Compression::bitmap);
    EXPECT_NEAR(static_cast<double>(site->tensor_bytes()) * 1e-6, 339.7 + 42.5, 0.1);
  }
  const auto without = find_store(kOpt, {}, options);
  ASSERT_TRUE(without.ok());
  for (const StoredSite* site : without->store.manifest().stored())
    EXPECT_EQ(site->compression, Compression::none) << site->name << " would get larger";
}

TEST(ShapeSource, RefusesWhatItCannotBe) {
  EXPECT_EQ(open_source(kOpt, zeros(101)).error().line(), "model.zeros: 101 per cent, expected 0 to 100");
  EXPECT_THAT(open_source("atlantis.toml").error().line(), HasSubstr("atlantis.toml"));
  const TempFolder folder;
  const std::string model = folder.write("model.gguf", "GGUF");
  EXPECT_THAT(open_source(model, zeros(50)).error().line(), HasSubstr("has weights"));
}

}  // namespace
}  // namespace tierd
