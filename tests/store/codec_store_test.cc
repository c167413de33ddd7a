// Stores whose neurons are compressed by a codec.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>

#include "core/base/file.h"
#include "core/store/compressed_plan.h"
#include "core/store/store.h"
#include "core/store/store_writer.h"
#include "core/store/writer.h"
#include "core/strategy/codec.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/store/compressed_cases.h"
#include "tests/store/manifest_cases.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

std::shared_ptr<const NeuronCodec> zstd(int64_t level = 3) {
  auto codec = Codec::load(PluginPath({TIERD_PLUGIN_DIR}), "zstd", {{"level", level, "test"}}, "test");
  EXPECT_TRUE(codec.ok()) << codec.error().line();
  return std::move(*codec);
}

// Remembers each neuron and writes only its number, followed by `tail` bytes.
class Notebook : public NeuronCodec {
 public:
  std::string_view name() const override { return "notebook"; }
  std::string_view settings() const override { return "pages=1"; }
  Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const override {
    const std::lock_guard lock(mutex_);
    const auto [page, fresh] = pages_.try_emplace(Bytes(dense.begin(), dense.end()), pages_.size());
    if (fresh) content_.push_back(&page->first);
    kept.assign(8 + tail(dense, page->second), std::byte{0x55});
    std::memcpy(kept.data(), &page->second, sizeof page->second);
    return {};
  }
  Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) const override {
    const std::lock_guard lock(mutex_);
    uint64_t page = 0;
    if (kept.size() < 8) return Error{Code::corrupt, "codec 'notebook'", "no page"};
    std::memcpy(&page, kept.data(), sizeof page);
    if (page >= content_.size() || content_[page]->size() != dense.size())
      return Error{Code::corrupt, "codec 'notebook'", "no such page"};
    std::ranges::copy(*content_[page], dense.begin());
    return {};
  }
  // The number of additional bytes; by default 0.
  std::function<uint64_t(std::span<const std::byte> dense, uint64_t page)> tail = [](auto, uint64_t) {
    return 0;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::map<Bytes, uint64_t> pages_;
  mutable std::vector<const Bytes*> content_;
};

WriteOptions by(std::shared_ptr<const NeuronCodec> codec, Layout layout = Layout::row) {
  WriteOptions options{.neuron_bytes = 16384, .layout = layout, .quiet = true};
  if (codec == nullptr) return options;
  options.compression = Compression::codec;
  options.codec = std::move(codec);
  return options;
}

// Writes the source with and without the codec and compares every neuron. Returns the number of compressed
// sites.
uint32_t compare_with_dense(const TensorSource& source, const std::shared_ptr<const NeuronCodec>& codec,
                            Layout layout) {
  const TempFolder folder;
  const std::string dense_path = folder.path() + "/dense", path = folder.path() + "/compressed";
  EXPECT_TRUE(write_store(source, dense_path, by(nullptr, layout)).ok());
  const Status written = write_store(source, path, by(codec, layout));
  EXPECT_TRUE(written.ok()) << written.error().line();
  const auto dense = Store::open(dense_path), store = Store::open(path);
  EXPECT_TRUE(dense.ok() && store.ok()) << store.error().line();
  const Status verified = store->verify_all(true, codec.get());
  EXPECT_TRUE(verified.ok()) << verified.error().line();
  EXPECT_EQ(store->manifest().compression_name(), codec->name());
  EXPECT_EQ(store->manifest().codec_settings, codec->settings());
  uint32_t compressed = 0;
  uint64_t bytes = 0;
  for (size_t s = 0; s < store->manifest().sites.size(); ++s) {
    const StoredSite& site = store->manifest().sites[s];
    const StoredSite& as_dense = dense->manifest().sites[s];
    if (site.alias_of == kNoSite) bytes += site.tensor_bytes();
    if (site.alias_of != kNoSite || site.compression == Compression::none) continue;
    ++compressed;
    EXPECT_EQ(site.compression, Compression::codec);
    for (uint32_t n = 0; n < site.neurons(); ++n) {
      const Bytes kept = read_extent(*store, site.extent_of(n, 0));
      const Bytes expected = read_extent(*dense, as_dense.extent_of(n, 0));
      EXPECT_LE(kept.size(), expected.size());
      const auto dense_bytes = std::span(expected).first(site.dense_bytes(n));
      Bytes again;
      EXPECT_TRUE(codec->compress(dense_bytes, again).ok());
      EXPECT_EQ(again.size(), site.neuron_bytes(n)) << site.name << " " << n;
      EXPECT_TRUE(std::equal(again.begin(), again.end(), kept.begin()));
      EXPECT_TRUE(std::all_of(kept.begin() + static_cast<ptrdiff_t>(again.size()), kept.end(),
                              [](std::byte byte) { return byte == std::byte{0}; }));
      Bytes found(dense_bytes.size());
      EXPECT_TRUE(codec->expand(kept, found).ok()) << "with its padding";
      EXPECT_TRUE(std::ranges::equal(found, dense_bytes)) << site.name << " " << n;
    }
  }
  for (const ResidentTensor& tensor : store->manifest().resident)
    bytes += tensor.rows * encoded_bytes(Encoding::f32, tensor.cols);
  EXPECT_EQ(store->manifest().tensor_bytes, bytes);
  if (compressed != 0) {
    EXPECT_LT(store->manifest().data_bytes, dense->manifest().data_bytes);
  }
  return compressed;
}

TEST(CodecStore, ZstdHoldsWhatTheDenseOneHolds) {
  for (const ModelConfig& config : {small_llama(), small_opt(), small_mixture()}) {
    for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::q8_0}) {
      for (const Layout layout : {Layout::row, Layout::neuron}) {
        if (config.d_model % block_values(encoding) != 0 || config.d_ff % block_values(encoding) != 0)
          continue;
        if (config.is_mixture() && layout == Layout::neuron) continue;
        SCOPED_TRACE(config.name + " " + std::string(name(encoding)) + " " + std::string(name(layout)));
        EXPECT_GE(compare_with_dense(pruned(config, encoding, 70), zstd(), layout), 1u);
      }
    }
  }
}

TEST(CodecStore, EveryEncodingMayBeCompressed) {
  ModelConfig config = small_llama();
  config.d_model = 256;
  config.head_dim = 64;
  config.d_ff = 256;
  config.n_layers = 1;
  config.vocab_size = 64;
  const std::map<std::string, Encoding> odd = {{"layers.0.v", Encoding::q6_k}};
  for (const Encoding encoding : {Encoding::f16, Encoding::q8_0, Encoding::q4_0, Encoding::q4_k}) {
    SCOPED_TRACE(std::string(name(encoding)));
    const MemorySource source(config, encoding, 1, odd);
    // All sites but tied ones: embedding, head and four of each layer.
    EXPECT_EQ(compare_with_dense(source, std::make_shared<Notebook>(), Layout::row), 2 + 4 * config.n_layers);
  }
}

TEST(CodecStore, TwoConversionsGiveTheSameBytes) {
  const TempFolder folder;
  const auto source = pruned(small_llama(), Encoding::f16, 70);
  for (const char* name : {"/one", "/two"})
    ASSERT_TRUE(write_store(source, folder.path() + name, by(zstd())).ok());
  for (const char* file : {"/manifest.json", "/weights.bin", "/checksums.bin"})
    EXPECT_EQ(file_text(folder.path() + "/one" + file), file_text(folder.path() + "/two" + file)) << file;
}

TEST(CodecStore, IsFoundAgainByItsCodecAndWhatThatWasTold) {
  const TempFolder folder;
  const auto source = pruned(small_llama(), Encoding::f16, 70);
  const std::string path = folder.path() + "/store";
  ASSERT_TRUE(write_store(source, path, by(zstd())).ok());
  const auto plan = plan_store(source, by(zstd()));
  const auto there = holds_store(path, *plan, plan_text(*plan));
  ASSERT_TRUE(there.ok()) << there.error().line();
  EXPECT_TRUE(*there);
  for (const auto& codec : {zstd(19), std::shared_ptr<const NeuronCodec>(std::make_shared<Notebook>()),
                            std::shared_ptr<const NeuronCodec>()}) {
    const auto other = plan_store(source, by(codec));
    EXPECT_EQ(holds_store(path, *other, plan_text(*other)).code(), Code::invalid_argument);
  }
}

TEST(CodecStore, LeavesDenseWhatWouldNotGetSmaller) {
  const MemorySource source(small_llama(), Encoding::f16);
  const auto growing = std::make_shared<Notebook>();
  growing->tail = [](auto dense, uint64_t) { return dense.size(); };
  EXPECT_EQ(compare_with_dense(source, growing, Layout::row), 0u);
  // One neuron that grows by a page keeps its whole site dense: reads have room for dense neurons only.
  const auto uneven = std::make_shared<Notebook>();
  uneven->tail = [](auto dense, uint64_t page) { return page == 0 ? dense.size() + 4096 : 0; };
  EXPECT_EQ(compare_with_dense(source, uneven, Layout::row), 9u);
}

TEST(CodecStore, ACodecThatAnswersOtherwiseTheSecondTimeEndsTheConversion) {
  const TempFolder folder;
  const MemorySource source(small_llama(), Encoding::f16);
  const auto changing = std::make_shared<Notebook>();
  changing->tail = [calls = 0](auto, uint64_t) mutable { return static_cast<uint64_t>(++calls % 64); };
  const Status written = write_store(source, folder.path() + "/store", by(changing));
  EXPECT_EQ(written.code(), Code::plugin_fault);
  EXPECT_THAT(written.error().line(), HasSubstr("codec 'notebook' compresses it to "));
  EXPECT_THAT(written.error().line(), HasSubstr("when it was measured; if the model has not changed since, "
                                                "the codec does not return the same result twice"));
}

TEST(CodecStore, ACodecThatFailsEndsTheConversion) {
  const TempFolder folder;
  const MemorySource source(small_llama(), Encoding::f16);
  auto fails = Codec::load(PluginPath({TIERD_BAD_PLUGIN_DIR}), "compress_fails", {}, "test");
  ASSERT_TRUE(fails.ok()) << fails.error().line();
  const Status written = write_store(source, folder.path() + "/store", by(std::move(*fails)));
  EXPECT_EQ(written.error().line(), "codec 'compress_fails': compress: returned -4: it is not my day");
}

TEST(CodecStore, GoesWithNeuronsInOnePiece) {
  const auto source = pruned(small_opt(), Encoding::f16, 70);
  EXPECT_THAT(plan_store(source, by(zstd(), Layout::channel_group)).error().line(),
              HasSubstr("'zstd' requires neurons that are stored in one piece"));
}

TEST(CodecStore, RefusesAManifestOfWrongSizes) {
  const auto source = pruned(small_opt(), Encoding::f16, 70);
  const auto codec = zstd();
  auto dense = plan_store(source, by(codec));
  ASSERT_TRUE(dense.ok());
  const auto plan = compressed_plan(source, std::move(*dense), true, codec.get());
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->sites[1].compression, Compression::codec);
  using json = nlohmann::json;
  expect_refused(
      *plan, {
                 {"one neuron fewer", [](json& m) { m["sites"][1]["compressed"].erase(0); },
                  "sites[1].compressed: has"},
                 {"no bytes", [](json& m) { m["sites"][1]["compressed"][0][0] = 0; }, "neurons of 0 bytes"},
                 {"more than the dense neuron", [](json& m) { m["sites"][1]["compressed"][0][0] = 40'000; },
                  "neuron 0 has 40000 bytes, expected at most"},
                 {"another size", [](json& m) { m["sites"][1]["compressed"][0][0] = 1; },
                  "(layers.0.qkv neuron 0): is"},
                 {"another codec", [](json& m) { m["sites"][1]["compression"] = "zip"; },
                  "is 'zip', but 'zstd' for the store"},
                 {"a bitmap", [](json& m) { m["sites"][1]["compression"] = "bitmap"; },
                  "is 'bitmap', but 'zstd' for the store"},
                 {"a codec of all that is no name", [](json& m) { m["compression"] = "../zstd"; },
                  "is '../zstd'", Code::unsupported},
                 {"no settings", [](json& m) { m.erase("codec_settings"); }, "codec_settings"},
             });
}

TEST(CodecStore, VerifyingFindsWhatCannotBeExpanded) {
  const TempFolder folder;
  const auto source = pruned(small_llama(), Encoding::f16, 70);
  const std::string path = folder.path() + "/store";
  const auto codec = zstd();
  ASSERT_TRUE(write_store(source, path, by(codec)).ok());
  auto store = Store::open(path);
  ASSERT_TRUE(store.ok());
  // A forgery: one byte changed, with matching checksums.
  Manifest forged = store->manifest();
  const auto site = std::ranges::find(forged.sites, Compression::codec, &StoredSite::compression);
  ASSERT_NE(site, forged.sites.end());
  Extent& extent = forged.extents[site->first_extent];
  Bytes bytes = read_extent(*store, site->first_extent);
  bytes[0] = std::byte{0};
  extent.checksum = checksum(bytes);
  std::fstream data(store->data_path(), std::ios::in | std::ios::out | std::ios::binary);
  data.seekp(static_cast<std::streamoff>(extent.offset));
  data.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  data.close();
  std::ofstream(path + "/checksums.bin", std::ios::binary) << checksum_bytes(forged);
  std::ofstream(path + "/manifest.json", std::ios::binary) << manifest_text(forged);
  store = Store::open(path);
  ASSERT_TRUE(store.ok()) << store.error().line();
  const Status verified = store->verify_all(true, codec.get());
  EXPECT_EQ(verified.code(), Code::corrupt);
  EXPECT_THAT(verified.error().line(), HasSubstr(site->name + " neuron 0"));
  EXPECT_THAT(verified.error().line(), HasSubstr("codec 'zstd': expand: returned -1"));
}

}  // namespace
}  // namespace tierd
