#include "core/store/writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "core/base/disk.h"
#include "core/model/layout/codec.h"
#include "core/store/store.h"
#include "core/store/store_writer.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/formats/same_weights.h"
#include "tests/store/memory_source.h"
#include "tests/store/quiet_options.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(Writer, KeepsEveryExpert) {
  const TempFolder temp;
  ModelConfig of_blocks = small_mixture();
  of_blocks.d_ff = 96;
  for (const Encoding e : {Encoding::f32, Encoding::bf16, Encoding::q4_0}) {
    const MemorySource source(e == Encoding::q4_0 ? of_blocks : small_mixture(), e);
    const std::string out = temp.path() + "/" + std::string(name(e));
    const Status written = write_store(source, out, kQuiet);
    ASSERT_TRUE(written.ok()) << written.error().line();
    expect_same_weights(source, out);
  }
  // Each matrix keeps its encoding, except a part whose experts differ.
  const MemorySource mixed(
      of_blocks, Encoding::q4_0, 1,
      {{"layers.0.experts.2.up", Encoding::q8_0}, {"layers.1.experts.0.down", Encoding::f16}});
  const std::string out = temp.path() + "/mixed";
  ASSERT_TRUE(write_store(mixed, out, kQuiet).ok());
  expect_same_weights(mixed, out);
  const auto store = Store::open(out);
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(store->manifest().sites[3].encodings[0], Encoding::q4_0);
  EXPECT_EQ(store->manifest().sites[3].encodings[1], Encoding::f32);
  EXPECT_EQ(store->manifest().sites[6].encodings[2], Encoding::f32);
}

// Returns a model whose rows are whole super-blocks.
ModelConfig wide_llama() {
  ModelConfig config = small_llama();
  config.d_model = kSuperBlock;
  config.head_dim = 64;
  config.d_ff = 2 * kSuperBlock;
  return config;
}

TEST(Writer, KeepsEveryRow) {
  const TempFolder temp;
  const std::string folder = temp.path();
  for (const Encoding e : kAllEncodings) {
    const MemorySource source(block_values(e) == kSuperBlock ? wide_llama() : small_llama(), e);
    const std::string out = folder + "/" + std::string(name(e));
    const Status written = write_store(source, out, kQuiet);
    ASSERT_TRUE(written.ok()) << written.error().line();
    expect_same_weights(source, out);
    EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
  }
}

TEST(Writer, KeepsEveryRowOfMixedParts) {
  const TempFolder temp;
  const std::map<std::string, Encoding> odd = {{"layers.0.v", Encoding::q6_k},
                                               {"layers.1.k", Encoding::f16},
                                               {"layers.1.up", Encoding::q5_k},
                                               {"head", Encoding::q6_k}};
  const MemorySource source(wide_llama(), Encoding::q4_k, 3, odd);
  for (const uint64_t neuron_bytes : {0u, 4096u}) {
    const std::string out = temp.path() + "/store" + std::to_string(neuron_bytes);
    const Status written = write_store(source, out, {.neuron_bytes = neuron_bytes, .quiet = true});
    ASSERT_TRUE(written.ok()) << written.error().line();
    expect_same_weights(source, out);
  }
}

TEST(Writer, BundlesRowsAndColumns) {
  for (const ModelConfig& config : {small_llama(), small_opt()}) {
    for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
      if (is_quantized(e) && config.d_model % kQuantBlock != 0) continue;
      const TempFolder temp;
      const MemorySource source(config, e, 5,
                                {{"layers.1.up", Encoding::f32}});  // one site of mixed encodings
      const std::string out = temp.path() + "/store";
      const Status written = write_store(source, out, {.layout = Layout::neuron, .quiet = true});
      ASSERT_TRUE(written.ok()) << written.error().line();
      expect_same_weights(source, out);
      EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("with other settings"));
      const WriteOptions apart = {.layout = Layout::neuron, .bundling = Bundling::none, .quiet = true};
      EXPECT_THAT(write_store(source, out, apart).error().line(), HasSubstr("with other settings"));
      ASSERT_TRUE(write_store(source, out + "-apart", apart).ok());
      expect_same_weights(source, out + "-apart");
    }
  }
}

TEST(Writer, ChannelsOfAGroupOfLayers) {
  for (const ModelConfig& config : {small_llama(), small_opt()}) {
    for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
      if (is_quantized(e) && config.d_model % kQuantBlock != 0) continue;
      for (const uint32_t layers : {1u, 2u, 3u}) {
        const TempFolder temp;
        const MemorySource source(config, e, 5, {{"layers.1.up", Encoding::f32}});
        const std::string out = temp.path() + "/store";
        const WriteOptions options = {.layout = Layout::channel_group, .layer_group = layers, .quiet = true};
        const Status written = write_store(source, out, options);
        ASSERT_TRUE(written.ok()) << written.error().line();
        expect_same_weights(source, out);
        EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("with other settings"));
      }
    }
  }
}

TEST(Writer, ExpertsBesideChannelsOrInChannels) {
  ModelConfig config = small_mixture();
  config.d_ff = 96;
  for (const Encoding e : {Encoding::f32, Encoding::bf16, Encoding::q4_0}) {
    for (const auto& [layers, experts] : {std::pair(1u, ExpertCut::whole), std::pair(2u, ExpertCut::whole),
                                          std::pair(2u, ExpertCut::channels)}) {
      const TempFolder temp;
      const MemorySource source(config, e, 5, {{"layers.1.experts.2.up", Encoding::f32}});
      const std::string out = temp.path() + "/store";
      const Status written = write_store(
          source, out,
          {.layout = Layout::channel_group, .layer_group = layers, .experts = experts, .quiet = true});
      ASSERT_TRUE(written.ok()) << written.error().line();
      expect_same_weights(source, out);
    }
  }
}

// Returns the relative error of encoding all columns of a site, with its parts one under the other.
float column_loss(const MemorySource& source, const StoredSite& site) {
  double lost = 0, whole = 0;
  std::vector<std::vector<float>> parts;
  for (const SitePart& part : site.column_parts())
    parts.push_back(source.read_f32(*source.find(part.tensor)).value());
  for (uint32_t column = 0; column < site.neurons(); ++column) {
    std::vector<float> values;
    for (const std::vector<float>& weights : parts) {
      for (size_t at = column; at < weights.size(); at += site.neurons()) values.push_back(weights[at]);
    }
    values.resize(site.column().values());
    const std::vector<float> stored = through(site.column().encoding, values);
    for (size_t i = 0; i < values.size(); ++i) {
      lost += std::pow(double{stored[i]} - values[i], 2);
      whole += std::pow(double{values[i]}, 2);
    }
  }
  return static_cast<float>(std::sqrt(lost / whole));
}

// The loss is stored for columns that are encoded anew, and for nothing else.
TEST(Writer, SaysWhatWasLost) {
  for (const Layout layout : {Layout::row, Layout::neuron, Layout::channel_group}) {
    for (const Encoding e : {Encoding::f16, Encoding::q8_0, Encoding::q4_0}) {
      const TempFolder temp;
      const MemorySource source(small_llama(), e, 5, {{"layers.1.up", Encoding::f32}});
      const std::string out = temp.path() + "/store";
      ASSERT_TRUE(write_store(source, out, {.layout = layout, .quiet = true}).ok());
      const auto manifest = read_manifest(out);
      ASSERT_TRUE(manifest.ok()) << manifest.error().line();
      for (const StoredSite& site : manifest->sites) {
        const bool lossy = is_quantized(site.encodings.front()) && !site.column_parts().empty();
        ASSERT_EQ(site.encoding_error.has_value(), lossy) << site.name;
        if (!lossy) continue;
        EXPECT_FLOAT_EQ(*site.encoding_error, column_loss(source, site)) << site.name;
        EXPECT_GT(*site.encoding_error, 1e-4) << site.name;
        EXPECT_LT(*site.encoding_error, 0.2) << site.name;
      }
    }
  }
}

// Large tensors are not encoded twice: the loss is estimated from a part of them.
TEST(Writer, SaysWhatWasLostOfLargeTensorsByAPartOfThem) {
  ModelConfig config = small_llama();
  config.d_ff = 5000;  // channels of down; blocks of 32 end within them
  const MemorySource source(config, Encoding::f16);
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  ASSERT_TRUE(
      write_store(source, out, {.layout = Layout::channel_group, .encoding = Encoding::q4_0, .quiet = true})
          .ok());
  const auto manifest = read_manifest(out);
  ASSERT_TRUE(manifest.ok()) << manifest.error().line();
  for (const StoredSite& site : manifest->sites) {
    if (!site.column_parts().empty()) {
      const float all = column_loss(source, site);
      EXPECT_NEAR(*site.encoding_error, all, 0.02 * all) << site.name;
      EXPECT_EQ(*site.encoding_error == all, site.neurons() < 1024) << site.name;
    }
  }
}

// Rows may have another encoding than the source's. In float32 nothing is lost.
TEST(Writer, StoresWhatIsAskedForAndSaysWhatWasLost) {
  const MemorySource source(small_llama(), Encoding::f16, 5);
  for (const Encoding e : {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
    for (const Layout layout : {Layout::row, Layout::neuron, Layout::channel_group}) {
      SCOPED_TRACE(std::string(name(e)) + " " + std::string(name(layout)));
      const TempFolder temp;
      const std::string out = temp.path() + "/store";
      ASSERT_TRUE(
          write_store(source, out, {.layout = layout, .encoding = e, .head_encoding = e, .quiet = true})
              .ok());
      const auto manifest = read_manifest(out);
      ASSERT_TRUE(manifest.ok()) << manifest.error().line();
      for (const StoredSite& site : manifest->sites) {
        ASSERT_EQ(site.encodings, Encodings(site.parts.size(), e));
        const bool lossy = e != Encoding::f32 && e != Encoding::f16;
        ASSERT_EQ(site.encoding_error.has_value(), lossy) << site.name;
        if (!lossy) continue;
        EXPECT_GT(*site.encoding_error, e == Encoding::q4_0 ? 0.01 : 1e-4) << site.name;
        EXPECT_LT(*site.encoding_error, e == Encoding::q4_0 ? 0.2 : 0.02) << site.name;
      }
      // The rows of qkv and their loss.
      const StoredSite& qkv = manifest->sites[1];
      if (!is_cut_into<Rows>(qkv.cut)) continue;
      double lost = 0, whole = 0;
      for (const SitePart& part : qkv.parts) {
        const auto weights = source.read_f32(*source.find(part.tensor));
        const std::vector<float> stored = through(e, *weights);
        for (size_t i = 0; i < stored.size(); ++i) {
          lost += std::pow(double{stored[i]} - (*weights)[i], 2);
          whole += std::pow(double{(*weights)[i]}, 2);
        }
      }
      if (qkv.encoding_error) {
        EXPECT_FLOAT_EQ(*qkv.encoding_error, static_cast<float>(std::sqrt(lost / whole)));
      }
      const auto store = Store::open(out);
      ASSERT_TRUE(store.ok()) << store.error().line();
      EXPECT_TRUE(store->verify_all(true).ok());
    }
  }
}

TEST(Writer, ChannelsAreTheSameInBatchesOfAnySize) {
  const TempFolder temp;
  Disk disk;
  for (const Encoding e : {Encoding::f16, Encoding::q4_0}) {
    const MemorySource source(small_llama(), e);
    std::string first;
    for (const uint64_t bytes : {uint64_t{64}, uint64_t{1000}, uint64_t{5} * 4096, uint64_t{1} << 20}) {
      const std::string out = temp.path() + "/" + std::string(name(e)) + std::to_string(bytes);
      const Status written = write_store_on(
          disk, source, out, {.layout = Layout::channel_group, .layer_group = 2, .quiet = true},
          {.batch_bytes = bytes});
      ASSERT_TRUE(written.ok()) << written.error().line();
      expect_same_weights(source, out);
      const std::string data = file_text(out + "/weights.bin");
      if (first.empty()) first = data;
      EXPECT_TRUE(data == first);
    }
  }
}

// The batch ends inside a run of bundles that are packed together.
TEST(Writer, BundlesAreTheSameInBatchesOfAnySize) {
  const TempFolder temp;
  Disk disk;
  for (const auto& [encoding, bundling] :
       {std::pair(Encoding::f16, Bundling::row_column), std::pair(Encoding::f16, Bundling::none),
        std::pair(Encoding::q4_0, Bundling::row_column)}) {
    const MemorySource source(small_llama(), encoding);
    const WriteOptions options = {.layout = Layout::neuron, .bundling = bundling, .quiet = true};
    std::string first;
    for (const uint64_t bytes : {uint64_t{64}, uint64_t{4096}, uint64_t{5} * 4096, uint64_t{1} << 20}) {
      const std::string out = fmt::format("{}/{} {} {}", temp.path(), name(encoding), name(bundling), bytes);
      const Status written = write_store_on(disk, source, out, options, {.batch_bytes = bytes});
      ASSERT_TRUE(written.ok()) << written.error().line();
      expect_same_weights(source, out);
      // Byte for byte, including the bytes between packed extents and the next block.
      const std::string data = file_text(out + "/weights.bin");
      if (first.empty()) first = data;
      EXPECT_TRUE(data == first);
    }
  }
}

TEST(Writer, RowsHaveNoBundlesToTakeApart) {
  const TempFolder temp;
  const MemorySource source(small_llama(), Encoding::f16);
  const Status refused =
      write_store(source, temp.path() + "/store", {.bundling = Bundling::none, .quiet = true});
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().line(), HasSubstr("does not have; expected layout neuron"));
}

TEST(Writer, GroupsSpanTensorsAndEncodingsMix) {
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  const MemorySource source(
      small_opt(), Encoding::f16, 3,
      {{"layers.0.v", Encoding::bf16}, {"layers.1.attn_norm", Encoding::f16}, {"position", Encoding::bf16}});
  ASSERT_TRUE(write_store(source, out, {.neuron_bytes = 4096, .quiet = true}).ok());
  expect_same_weights(source, out);
}

TEST(Writer, KeepsConfigurationAndVocabulary) {
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  const MemorySource source(small_llama(), Encoding::q8_0);
  ASSERT_TRUE(write_store(source, out, kQuiet).ok());
  const auto manifest = read_manifest(out);
  ASSERT_TRUE(manifest.ok()) << manifest.error().line();
  ASSERT_TRUE(manifest->has_vocab);
  EXPECT_EQ(manifest->vocab.pieces, source.vocab()->pieces);
  EXPECT_EQ(manifest->vocab.scores, source.vocab()->scores);
  EXPECT_EQ(manifest->vocab.end_tokens, source.vocab()->end_tokens);
  EXPECT_EQ(manifest->config.norm_eps, source.config().norm_eps);
  EXPECT_EQ(manifest->provenance.fingerprint, source.fingerprint());
}

TEST(Writer, SameSourceIsNoWorkAndAnotherIsRefused) {
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  MemorySource source(small_llama(), Encoding::f16);
  ASSERT_TRUE(write_store(source, out + "/", kQuiet).ok());
  const auto time = std::filesystem::last_write_time(out + "/weights.bin");
  EXPECT_TRUE(write_store(source, out, kQuiet).ok());
  EXPECT_EQ(std::filesystem::last_write_time(out + "/weights.bin"), time);
  const Status otherwise = write_store(source, out, {.neuron_bytes = 8192, .quiet = true});
  EXPECT_THAT(otherwise.error().line(), HasSubstr("with other settings"));
  source.fingerprint_value = "changed";
  EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("is a store of memory"));
  flip_bit(out + "/manifest.json", 100, 1);
  EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("damaged store"));
}

TEST(Writer, RefusesFoldersThatAreNoStore) {
  const TempFolder temp;
  const std::string folder = temp.path();
  const MemorySource source(small_llama(), Encoding::f16);
  temp.write("letter.txt", "dear");
  EXPECT_THAT(write_store(source, folder, kQuiet).error().line(), HasSubstr("is not a store"));
  EXPECT_THAT(write_store(source, folder + "/letter.txt", kQuiet).error().line(), HasSubstr("not a folder"));
  EXPECT_EQ(write_store(source, folder + "/no/such/parent", kQuiet).code(), Code::not_found);
  EXPECT_EQ(file_text(folder + "/letter.txt"), "dear");
  std::filesystem::create_directory(folder + "/empty");
  EXPECT_TRUE(write_store(source, folder + "/empty", kQuiet).ok());
}

TEST(Writer, SourceErrorsAreNamed) {
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  MemorySource source(small_llama(), Encoding::f16);
  source.broken_tensor = "layers.1.down";
  const Status written = write_store(source, out, kQuiet);
  EXPECT_THAT(written.error().line(), HasSubstr("layers.1.down cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(out));
  source.broken_tensor.clear();
  ASSERT_TRUE(write_store(source, out, kQuiet).ok());
  expect_same_weights(source, out);
}

TEST(Writer, TwoDoNotMix) {
  const TempFolder temp;
  const std::string out = temp.path() + "/store";
  const MemorySource source(small_llama(), Encoding::f16);
  std::filesystem::create_directory(out + ".partial");
  {
    const auto other = open_directory(out + ".partial");
    ASSERT_EQ(flock(other->descriptor(), LOCK_EX), 0);
    EXPECT_EQ(write_store(source, out, kQuiet).code(), Code::busy);
  }
  EXPECT_TRUE(write_store(source, out, kQuiet).ok());
}

// A value that the store's encoding cannot hold would make a store that its reader refuses, or whose loss is
// not finite.
TEST(Writer, ValuesThatCannotBeEncodedAreNamed) {
  struct Case {
    Layout layout;
    Encoding encoding;
    float value;
    const char* what;
    Compression compression = Compression::none;
  };
  const Case cases[] = {
      {Layout::row, Encoding::q4_0, NAN, "nan is not a finite number"},
      {Layout::row, Encoding::q8_0, -INFINITY, "-inf is not a finite number"},
      {Layout::row, Encoding::q4_0, 1e6f, "1000000 is too large for q4_0"},
      {Layout::row, Encoding::q8_0, 1e8f, "100000000 is too large for q8_0"},
      {Layout::row, Encoding::q4_k, NAN, "nan is not a finite number"},
      {Layout::row, Encoding::q6_k, 1e30f, "1e+30 is too large for q6_k"},
      {Layout::row, Encoding::f16, 65520, "65520 is too large for f16"},
      {Layout::row, Encoding::bf16, 3.4e38f, "3.4e+38 is too large for bf16"},
      {Layout::row, Encoding::f16, NAN, "nan is not a finite number", Compression::bitmap},
      {Layout::neuron, Encoding::q4_0, NAN, "nan is not a finite number"},
      {Layout::channel_group, Encoding::q8_0, INFINITY, "inf is not a finite number"},
      {Layout::row, Encoding::f32, NAN, "nan is not a finite number"},
      {Layout::neuron, Encoding::f32, INFINITY, "inf is not a finite number"},
      {Layout::channel_group, Encoding::f32, NAN, "nan is not a finite number"},
      {Layout::channel_group, Encoding::f16, 1e5f, "100000 is too large for f16"},
  };
  const TempFolder temp;
  for (const Case& of : cases) {
    SCOPED_TRACE(of.what);
    MemorySource source(wide_llama(), Encoding::f32);
    source.set("layers.1.down", 3, 17, of.value);
    WriteOptions options = kQuiet;
    options.layout = of.layout;
    options.encoding = of.encoding;
    options.compression = of.compression;
    const Status written = write_store(source, temp.path() + "/store", options);
    ASSERT_FALSE(written.ok());
    EXPECT_THAT(written.error().line(),
                HasSubstr(fmt::format("memory: tensor 'layers.1.down', row 3, column 17: {};", of.what)));
    EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
  }
  // A value near the largest that q4_0 can hold.
  MemorySource source(wide_llama(), Encoding::f32);
  source.set("layers.1.down", 3, 17, 500'000);
  WriteOptions options = kQuiet;
  options.encoding = Encoding::q4_0;
  const Status written = write_store(source, temp.path() + "/store", options);
  EXPECT_TRUE(written.ok()) << written.error().line();
}

}  // namespace
}  // namespace tierd
