// Stores whose neurons are compressed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/file.h"
#include "core/store/compressed_plan.h"
#include "core/store/store.h"
#include "core/store/store_writer.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/store/compressed_cases.h"
#include "tests/store/manifest_cases.h"

namespace tierd {
namespace {

using testing::HasSubstr;

WriteOptions options(Layout layout, Compression compression) {
  return {.neuron_bytes = 16384, .layout = layout, .compression = compression, .quiet = true};
}

TEST(CompressedStore, HoldsWhatTheDenseOneHolds) {
  for (const ModelConfig& config : {small_llama(), small_opt(), small_mixture()}) {
    for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0}) {
      for (const Layout layout : {Layout::row, Layout::neuron}) {
        if (config.d_model % block_values(encoding) != 0 || config.d_ff % block_values(encoding) != 0)
          continue;
        if (config.is_mixture() && layout == Layout::neuron) continue;
        SCOPED_TRACE(config.name + " " + std::string(name(encoding)) + " " + std::string(name(layout)));
        const TempFolder folder;
        const auto source = pruned(config, encoding);
        const std::string dense_path = folder.path() + "/dense", path = folder.path() + "/bitmap";
        ASSERT_TRUE(write_store(source, dense_path, options(layout, Compression::none)).ok());
        const Status written = write_store(source, path, options(layout, Compression::bitmap));
        ASSERT_TRUE(written.ok()) << written.error().line();
        const auto dense = Store::open(dense_path), store = Store::open(path);
        ASSERT_TRUE(dense.ok() && store.ok()) << store.error().line();
        EXPECT_TRUE(store->verify_all(true).ok());
        EXPECT_LT(store->manifest().data_bytes, dense->manifest().data_bytes);
        EXPECT_LT(store->manifest().tensor_bytes, dense->manifest().tensor_bytes);
        uint32_t compressed = 0;
        for (size_t s = 0; s < store->manifest().sites.size(); ++s) {
          const StoredSite& site = store->manifest().sites[s];
          if (site.alias_of != kNoSite || site.compression == Compression::none) continue;
          ++compressed;
          for (uint32_t n = 0; n < site.neurons(); ++n) {
            const auto packed = read_extent(*store, site.extent_of(n, 0));
            const auto expected = read_extent(*dense, dense->manifest().sites[s].extent_of(n, 0));
            std::vector<std::byte> found(site.dense_bytes(n));
            const Status expanded = decompress(*Bitmap::of(site.cut, site.encodings),
                                               std::span(packed).first(site.neuron_bytes(n)), found);
            ASSERT_TRUE(expanded.ok()) << expanded.error().line();
            ASSERT_TRUE(std::ranges::equal(found, std::span(expected).first(found.size())))
                << site.name << " " << n;
          }
        }
        EXPECT_GE(compressed, config.n_layers);
      }
    }
  }
}

TEST(CompressedStore, LeavesDenseWhatWouldNotGetSmaller) {
  const TempFolder folder;
  const auto source = pruned(small_llama(), Encoding::f16, 0);
  ASSERT_TRUE(write_store(source, folder.path() + "/store", options(Layout::row, Compression::bitmap)).ok());
  const auto store = Store::open(folder.path() + "/store");
  ASSERT_TRUE(store.ok());
  for (const StoredSite& site : store->manifest().sites)
    EXPECT_EQ(site.compression, Compression::none) << site.name;
  EXPECT_EQ(store->manifest().compression, Compression::bitmap);
}

TEST(CompressedStore, ThatWouldNotGetSmallerMayBeRefusedBeforeItIsWritten) {
  const TempFolder folder;
  WriteOptions wanted = options(Layout::row, Compression::bitmap);
  wanted.refuse_vain_compression = true;
  wanted.tokenizer = "words.bin";
  const Status refused =
      write_store(pruned(small_llama(), Encoding::f16, 0), folder.path() + "/store", wanted);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().line(), HasSubstr("model.compression: \"bitmap\" makes no matrix of memory"));
  EXPECT_THAT(refused.error().line(), HasSubstr("tier prune memory OUT --tokenizer words.bin --method"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(write_store(pruned(small_llama(), Encoding::f16), folder.path() + "/store", wanted).ok());
}

TEST(CompressedStore, IsFoundAgainWithoutCounting) {
  const TempFolder folder;
  auto source = pruned(small_llama(), Encoding::f16);
  const WriteOptions wanted = options(Layout::row, Compression::bitmap);
  ASSERT_TRUE(write_store(source, folder.path() + "/store", wanted).ok());
  const auto plan = plan_store(source, wanted);
  ASSERT_TRUE(plan.ok());
  const auto there = holds_store(folder.path() + "/store", *plan, plan_text(*plan));
  ASSERT_TRUE(there.ok()) << there.error().line();
  EXPECT_TRUE(*there);
  const auto store = Store::open(folder.path() + "/store");
  EXPECT_EQ(plan_text(store->manifest()), plan_text(*plan));
  // The text without compression differs.
  const auto other = plan_store(source, options(Layout::row, Compression::none));
  EXPECT_NE(plan_text(*other), plan_text(*plan));
}

TEST(CompressedStore, GoesWithNeuronsInOnePiece) {
  const auto source = pruned(small_opt(), Encoding::f16);
  WriteOptions channels = options(Layout::channel_group, Compression::bitmap);
  EXPECT_THAT(plan_store(source, channels).error().line(),
              HasSubstr("'bitmap' requires neurons that are stored in one piece"));
  WriteOptions pieces = options(Layout::neuron, Compression::bitmap);
  pieces.bundling = Bundling::none;
  EXPECT_THAT(plan_store(source, pieces).error().line(),
              HasSubstr("'bitmap' requires neurons that are stored in one piece"));
}

TEST(CompressedStore, RefusesAManifestOfWrongSizes) {
  const auto source = pruned(small_opt(), Encoding::f16);
  auto dense = plan_store(source, options(Layout::row, Compression::bitmap));
  ASSERT_TRUE(dense.ok());
  const auto plan = compressed_plan(source, std::move(*dense), true);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->sites[1].compression, Compression::bitmap);
  using json = nlohmann::json;
  expect_refused(
      *plan,
      {
          {"one neuron fewer", [](json& m) { m["sites"][1]["compressed"].erase(0); },
           "sites[1].compressed: has"},
          {"no sizes", [](json& m) { m["sites"][1].erase("compressed"); }, "compressed"},
          {"a size that is none",
           [](json& m) {
             m["sites"][1]["compressed"][0] = {"x", 1};
           },
           "[bytes, neurons]"},
          {"more than there are", [](json& m) { m["sites"][1]["compressed"][0][1] = 4'000'000'000; },
           "4000000000 neurons"},
          {"less than its bits", [](json& m) { m["sites"][1]["compressed"][0][0] = 3; }, "expected"},
          {"half an element",
           [](json& m) {
             m["sites"][1]["compressed"][0][0] = m["sites"][1]["compressed"][0][0].get<int>() + 1;
           },
           "bytes of bits plus a multiple of 2, at most"},
          {"another size",
           [](json& m) {
             m["sites"][1]["compressed"][0][0] = m["sites"][1]["compressed"][0][0].get<int>() - 4096;
           },
           "(layers.0.qkv neuron 0): is"},
          {"another compression", [](json& m) { m["sites"][1]["compression"] = "zip"; },
           "is 'zip', but 'bitmap' for the store"},
          {"an unknown compression of all", [](json& m) { m["compression"] = "z.p"; }, "is 'z.p'",
           Code::unsupported},
          {"none of all", [](json& m) { m.erase("compression"); }, "is 'bitmap', but 'none' for the store"},
      });
}

TEST(CompressedStore, VerifyingFindsBitsThatSayMoreThanThereIs) {
  const TempFolder folder;
  const auto source = pruned(small_llama(), Encoding::f16);
  const std::string path = folder.path() + "/store";
  ASSERT_TRUE(write_store(source, path, options(Layout::row, Compression::bitmap)).ok());
  auto store = Store::open(path);
  ASSERT_TRUE(store.ok());
  // A forgery: the bits changed, with matching checksums.
  Manifest forged = store->manifest();
  const StoredSite& site = forged.sites[1];
  Extent& extent = forged.extents[site.first_extent];
  std::vector<std::byte> bytes = read_extent(*store, site.first_extent);
  bytes[0] = ~bytes[0];
  bytes[1] = std::byte{0xff};
  bytes[2] = std::byte{0xff};
  extent.checksum = checksum(bytes);
  std::fstream data(store->data_path(), std::ios::in | std::ios::out | std::ios::binary);
  data.seekp(static_cast<std::streamoff>(extent.offset));
  data.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  data.close();
  std::ofstream(path + "/checksums.bin", std::ios::binary) << checksum_bytes(forged);
  std::ofstream(path + "/manifest.json", std::ios::binary) << manifest_text(forged);
  store = Store::open(path);
  ASSERT_TRUE(store.ok()) << store.error().line();
  const Status verified = store->verify_all(true);
  ASSERT_FALSE(verified.ok());
  EXPECT_THAT(verified.error().line(), HasSubstr("layers.0.qkv neuron 0"));
  EXPECT_THAT(verified.error().line(), HasSubstr("its bitmap"));
}

}  // namespace
}  // namespace tierd
