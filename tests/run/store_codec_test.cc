// Tests how configurations and stores name a codec.
#include "core/run/store_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/run/run_plan.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/store/memory_source.h"
#include "tools/lab/synth/zeroed_source.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::vector<Setting> kLevel = {{"level", int64_t{9}, "a.toml:4"}};

PluginPath ours() {
  return PluginPath({TIERD_PLUGIN_DIR});
}

void write_with_zstd(const std::string& path) {
  WriteOptions options{.neuron_bytes = 16384, .quiet = true};
  ASSERT_TRUE(choose_compression("zstd", ours(), {}, "test", options).ok());
  const ZeroedSource source(std::make_unique<MemorySource>(small_llama(), Encoding::f16), 70);
  ASSERT_TRUE(write_store(source, path, options).ok());
}

TEST(StoreCodec, ACompressionIsChosenByItsName) {
  for (const char* name : {"none", "bitmap"}) {
    WriteOptions options;
    ASSERT_TRUE(choose_compression(name, ours(), {}, "model.compression", options).ok());
    EXPECT_EQ(options.compression, *compression_by_name(name));
    EXPECT_EQ(options.codec, nullptr);
  }
  WriteOptions options;
  ASSERT_TRUE(choose_compression("zstd", ours(), kLevel, "model.compression", options).ok());
  EXPECT_EQ(options.compression, Compression::codec);
  EXPECT_EQ(options.codec->name(), "zstd");
  EXPECT_EQ(options.codec->settings(), "level=9");
}

TEST(StoreCodec, AnUnknownOneIsALineWithThoseThatThereAre) {
  WriteOptions options;
  const Status unknown = choose_compression("zip", ours(), {}, "--compression", options);
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_THAT(
      unknown.error().line(),
      AllOf(StartsWith(
                "--compression: expected none, bitmap or the name of a codec: there is no codec 'zip' in "),
            HasSubstr("; there are zstd")));
  EXPECT_EQ(choose_compression("bitmap", ours(), kLevel, "model.compression", options).error().line(),
            "a.toml:4: 'level' is a parameter of a codec, but model.compression is 'bitmap'");
}

TEST(StoreCodec, AStoreHasTheCodecThatItNames) {
  const TempFolder folder;
  const std::string path = folder.path() + "/store";
  write_with_zstd(path);
  const auto store = Store::open(path);
  ASSERT_TRUE(store.ok()) << store.error().line();
  const auto codec = codec_of(*store, ours());
  ASSERT_TRUE(codec.ok()) << codec.error().line();
  EXPECT_EQ((*codec)->name(), "zstd");
  EXPECT_TRUE(store->verify_all(true, codec->get()).ok());
  // Settings for another codec do not apply to the store's codec.
  Config config;
  config.plugin_path = TIERD_PLUGIN_DIR;
  config.compression = "other";
  config.codec = {{"speed", int64_t{9}, "a.toml:4"}};
  EXPECT_EQ((*codec_of(*store, config))->settings(), "level=3");
  config.compression = "zstd";
  EXPECT_THAT(codec_of(*store, config).error().line(), HasSubstr("has no parameter 'speed'"));
  config.codec = kLevel;
  EXPECT_EQ((*codec_of(*store, config))->settings(), "level=9");

  const auto missing = codec_of(*store, PluginPath({folder.path()}));
  EXPECT_EQ(
      missing.error().line(),
      path + ": its neurons are compressed by codec 'zstd': there is no codec 'zstd' in " + folder.path());
}

// No unit computes from a codec's bytes: the reading tier expands them, unless that is forbidden.
TEST(StoreCodec, TiersThatReadItsStoreExpand) {
  const TempFolder folder;
  Config config;
  config.model = folder.path() + "/store";
  config.plugin_path = TIERD_PLUGIN_DIR;
  write_with_zstd(config.model);
  const auto plan = plan_run(config, {});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_TRUE(plan->tiers.memories.front().expands);
  EXPECT_EQ(plan->codec->name(), "zstd");
  const std::vector<Edition>& editions = plan->model.sites.editions;
  EXPECT_GT(std::ranges::count_if(editions, [](const Edition& e) { return e.made_of != kNoEdition; }), 0);
  config.tier("dram").compressed = "kept";
  EXPECT_EQ(plan_run(config, {}).error().line(),
            "tiers.dram.compressed: is 'kept', but neurons that codec 'zstd' compressed cannot be computed "
            "from; set \"expanded\"");
}

}  // namespace
}  // namespace tierd
