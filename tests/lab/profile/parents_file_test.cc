#include "tools/lab/profile/parents_file.h"

#include <gmock/gmock.h>

#include <vector>

#include "core/base/file.h"
#include "core/base/random.h"
#include "core/formats/safetensors.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::ElementsAre;

SiteTable two_networks(uint32_t n_before, uint32_t n) {
  SiteTable sites;
  sites.all.resize(3);
  sites[0].name = "layers.0.ffn";
  sites[0].n = n_before;
  sites[1].name = "layers.1.o";  // its activity is not measured
  sites[1].n = 5;
  sites[2].name = "layers.1.ffn";
  sites[2].n = n;
  sites[0].contribution = sites[2].contribution = {0, 16};
  return sites;
}

std::vector<float> written(const std::string& path) {
  const auto file = File::open(path);
  EXPECT_TRUE(file.ok());
  const auto tensors = read_safetensors_header(*file);
  EXPECT_TRUE(tensors.ok());
  EXPECT_EQ(tensors->size(), 1u);
  EXPECT_EQ(tensors->front().name, "layers.1.ffn.parents");
  EXPECT_EQ(read_safetensors_metadata(*file)->at(kMadeFor), "a model");
  std::vector<float> values(tensors->front().bytes / sizeof(float));
  EXPECT_TRUE(file->read_exact(tensors->front().offset, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

TEST(ParentsFile, NamesTheTwoThatFireWithANeuron) {
  TempFolder folder;
  const SiteTable sites = two_networks(3, 4);
  const std::string path = folder.path() + "/parents.safetensors";
  auto made = ParentsFile::create(path, "a model", sites, 4, true);
  ASSERT_TRUE(made.ok()) << made.error().line();
  const ActiveSet active;
  // The rows are tokens. Neuron 0 always fires, 1 for the first two tokens, 2 for the first and the last.
  const std::vector<float> before = {1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1};
  // Neuron 0 fires with 1, 1 with both, 2 never, 3 whenever 1 does not.
  const std::vector<float> first = {2, 2, 0, 0, 2, 0, 0, 0}, second = {0, 0, 0, 2, 0, 0, 0, 2};
  (*made)->measured(0, {active, 4, nullptr, before.data()});
  (*made)->measured(2, {active, 2, nullptr, first.data()});
  (*made)->measured(1, {active, 2, nullptr, nullptr});
  (*made)->measured(2, {active, 2, nullptr, second.data()});
  ASSERT_TRUE((*made)->finish().ok());
  // A neuron that always fires, or that fires when another does not, is no parent.
  EXPECT_THAT(written(path), ElementsAre(1, -1, 1, 2, -1, -1, -1, -1));
}

// Compares with a plain count of tokens for which both fire.
TEST(ParentsFile, BitsCountAsTokensDo) {
  Random random(3);
  constexpr uint32_t kBefore = 20, kOwn = 13;
  for (const uint64_t tokens : {1u, 63u, 64u, 65u, 200u}) {
    FiringBits before(kBefore, tokens), own(kOwn, tokens);
    std::vector<std::vector<bool>> fired_before(kBefore), fired(kOwn);
    for (uint64_t t = 0; t < tokens; ++t) {
      for (uint32_t i = 0; i < kBefore; ++i) {
        fired_before[i].push_back(random.below(3) == 0);
        if (fired_before[i].back()) before.mark(i, t);
      }
      for (uint32_t i = 0; i < kOwn; ++i) {
        fired[i].push_back(random.below(2) == 0);
        if (fired[i].back()) own.mark(i, t);
      }
    }
    for (uint32_t i = 0; i < kOwn; ++i) {
      for (uint32_t j = 0; j < kBefore; ++j) {
        uint64_t both = 0;
        for (uint64_t t = 0; t < tokens; ++t) both += fired[i][t] && fired_before[j][t] ? 1 : 0;
        ASSERT_EQ(own.together(i, before, j), both);
      }
    }
  }
}

}  // namespace
}  // namespace tierd
