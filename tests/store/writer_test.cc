#include "core/store/writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "core/layout/codec.h"
#include "core/store/disk.h"
#include "core/store/store.h"
#include "core/store/store_writer.h"
#include "tests/store/files.h"
#include "tests/store/memory_source.h"
#include "tests/store/temp_folder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

const WriteOptions kQuiet = {.neuron_bytes = 0, .quiet = true};

// What is left of values that are encoded anew.
std::vector<float> through(Encoding e, const std::vector<float>& values) {
  std::vector<std::byte> encoded(encoded_bytes(e, values.size()));
  encode(e, values, encoded);
  std::vector<float> decoded(values.size());
  decode(e, encoded, decoded);
  return decoded;
}

// Neuron i of a feed-forward network: row i of gate and up, column i of down. What is in blocks is encoded
// anew in columns alone.
void expect_same_bundles(const TensorSource& source, const Manifest& manifest, const StoredSite& site,
                         std::span<const std::byte> data) {
  const Bundles& cut = std::get<Bundles>(site.cut);
  const Bundle bundle = cut.bundle(site.encodings);
  for (size_t part = 0; part < site.parts.size(); ++part) {
    const bool column = part + 1 == site.parts.size();
    const auto weights = source.read_f32(*source.find(site.parts[part].tensor));
    ASSERT_TRUE(weights.ok());
    for (uint64_t e = site.first_extent; e < site.end_extent(); ++e) {
      const auto [i, piece] = *site.held_by(static_cast<uint32_t>(e));
      if (site.pieces > 1 && piece != part) continue;
      const Extent& extent = manifest.extents[e];
      const uint64_t at_piece = extent.offset + (site.pieces > 1 ? 0 : part * bundle.piece_bytes());
      std::vector<float> found(cut.width);
      const auto decode_one = column ? decode_column : decode;
      decode_one(bundle.encoding, data.subspan(at_piece, bundle.row_bytes()), found);
      std::vector<float> expected(cut.width);
      for (uint32_t k = 0; k < cut.width; ++k) {
        const uint64_t at = column ? uint64_t{k} * cut.inner + i : uint64_t{i} * cut.width + k;
        expected[k] = (*weights)[at];
      }
      if (column) expected = through(bundle.encoding, expected);
      ASSERT_EQ(found, expected) << site.parts[part].tensor << " neuron " << i;
    }
  }
}

// Neuron i of a linear operator: column i of its parts. What is in blocks is encoded anew.
void expect_same_columns(const TensorSource& source, const Manifest& manifest, const StoredSite& site,
                         std::span<const std::byte> data) {
  const Column column = site.column();
  std::vector<std::vector<float>> columns(site.neurons(), std::vector<float>(column.values()));
  uint32_t row = 0;
  for (const SitePart& part : site.parts) {
    const auto weights = source.read_f32(*source.find(part.tensor));
    ASSERT_TRUE(weights.ok());
    for (uint32_t r = 0; r < part.rows; ++r, ++row) {
      for (uint32_t i = 0; i < site.neurons(); ++i)
        columns[i][row] = (*weights)[uint64_t{r} * site.neurons() + i];
    }
  }
  for (uint32_t i = 0; i < site.neurons(); ++i) {
    const Extent& extent = manifest.extents[site.extent_of(i, 0)];
    std::vector<std::byte> expected(extent.bytes);
    encode_column(column.encoding, columns[i], std::span(expected).first(column.encoded()));
    ASSERT_TRUE(std::ranges::equal(data.subspan(extent.offset, extent.bytes), expected))
        << site.name << " channel " << i;
  }
}

// Neuron i of a mixture: the rows of gate, up and down of expert i, in row groups, each matrix at its place.
void expect_same_experts(const TensorSource& source, const Manifest& manifest, const StoredSite& site,
                         std::span<const std::byte> data) {
  const ExpertMatrices matrices = std::get<Experts>(site.cut).matrices(site.encodings);
  const uint64_t offsets[] = {0, matrices.up_offset(), matrices.down_offset()};
  for (uint32_t expert = 0; expert < site.neurons(); ++expert) {
    const uint64_t extent = manifest.extents[site.extent_of(expert, 0)].offset;
    for (size_t p = 0; p < 3; ++p) {
      const TensorInfo& tensor = *source.find(tensor_of_expert(site.parts[p], expert));
      const auto expected = source.read_f32(tensor);
      ASSERT_TRUE(expected.ok());
      const Encoding encoding = site.encodings[p];
      const uint64_t size = group_bytes(encoding, static_cast<uint32_t>(tensor.cols));
      for (uint32_t r = 0; r < tensor.rows; ++r) {
        std::vector<float> found(tensor.cols);
        unpack_row(encoding, r % kGroupRows, data.subspan(extent + offsets[p] + r / kGroupRows * size, size),
                   found);
        const auto begin = expected->begin() + static_cast<std::ptrdiff_t>(r * tensor.cols);
        ASSERT_TRUE(std::equal(found.begin(), found.end(), begin)) << tensor.name << " row " << r;
      }
    }
  }
}

// Every row of every tensor, unpacked from the store, must equal the source's.
void expect_same_weights(const TensorSource& source, const std::string& directory) {
  const auto store = Store::open(directory);
  ASSERT_TRUE(store.ok()) << store.error().line();
  ASSERT_TRUE(store->verify_all(true).ok());
  const std::string data = file_text(store->data_path());
  const auto bytes = std::as_bytes(std::span(data));
  for (const StoredSite& site : store->manifest().sites) {
    if (is_cut_into<Bundles>(site.cut)) {
      expect_same_bundles(source, store->manifest(), site, bytes);
      continue;
    }
    if (is_cut_into<Columns>(site.cut)) {
      expect_same_columns(source, store->manifest(), site, bytes);
      continue;
    }
    if (is_cut_into<Experts>(site.cut)) {
      expect_same_experts(source, store->manifest(), site, bytes);
      continue;
    }
    const Rows& cut = std::get<Rows>(site.cut);
    uint32_t row = 0;
    for (const SitePart& part : site.parts) {
      const auto expected = source.read_f32(*source.find(part.tensor));
      ASSERT_TRUE(expected.ok());
      for (uint32_t r = 0; r < part.rows; ++r, ++row) {
        const uint32_t neuron = row / cut.rows;
        const uint32_t group = row % cut.rows / kGroupRows;
        const Encoding encoding = cut.encoding_of(neuron, site.encodings);
        const uint64_t size = group_bytes(encoding, cut.n_in);
        const Extent& extent = store->manifest().extents[site.first_extent + neuron];
        std::vector<float> found(cut.n_in);
        unpack_row(encoding, row % kGroupRows, bytes.subspan(extent.offset + group * size, size), found);
        const auto begin = expected->begin() + static_cast<std::ptrdiff_t>(uint64_t{r} * cut.n_in);
        ASSERT_TRUE(std::equal(found.begin(), found.end(), begin)) << part.tensor << " row " << r;
      }
    }
  }
  for (const ResidentTensor& resident : store->manifest().resident) {
    const auto expected = source.read_f32(*source.find(resident.name));
    std::vector<float> found(resident.rows * resident.cols);
    std::memcpy(found.data(), data.data() + store->manifest().extents[resident.extent].offset,
                found.size() * 4);
    EXPECT_EQ(found, *expected) << resident.name;
  }
}

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
  // Each matrix as it is, but for a part whose experts differ.
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

// Rows of whole super-blocks.
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
    const MemorySource source(is_k_quant(e) ? wide_llama() : small_llama(), e);
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
      EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("another layout"));
      const WriteOptions apart = {.layout = Layout::neuron, .bundling = Bundling::none, .quiet = true};
      EXPECT_THAT(write_store(source, out, apart).error().line(), HasSubstr("another layout"));
      ASSERT_TRUE(write_store(source, out + "-apart", apart).ok());
      expect_same_weights(source, out + "-apart");
    }
  }
}

// The bytes of each extent of a site, in a store.
std::vector<std::byte> bytes_of(const std::string& store, const Manifest& manifest, const StoredSite& site) {
  const std::string data = file_text(store + "/weights.bin");
  std::vector<std::byte> bytes;
  for (uint32_t i = 0; i < site.neurons(); ++i) {
    const Extent& extent = manifest.extents[site.extent_of(i, 0)];
    const auto* begin = reinterpret_cast<const std::byte*>(data.data()) + extent.offset;
    bytes.insert(bytes.end(), begin, begin + extent.bytes);
  }
  return bytes;
}

// An edition is what the store would be that has this encoding alone.
TEST(Writer, EditionsAreStoresOfTheirEncoding) {
  ModelConfig mixture = small_mixture();
  mixture.d_ff = 64;
  ModelConfig llama = small_llama();
  for (const auto& [config, layout] : {std::pair(llama, Layout::neuron), std::pair(mixture, Layout::row)}) {
    const TempFolder temp;
    const MemorySource source(config, Encoding::f32, 5);
    const std::vector<Encoding> editions = {Encoding::f16, Encoding::q8_0, Encoding::q4_0};
    const std::string out = temp.path() + "/store";
    const Status written = write_store(source, out, {.layout = layout, .editions = editions, .quiet = true});
    ASSERT_TRUE(written.ok()) << written.error().line();
    expect_same_weights(source, out);
    const auto store = Store::open(out);
    ASSERT_TRUE(store.ok()) << store.error().line();
    ASSERT_TRUE(store->verify_all(true).ok());
    const Manifest& manifest = store->manifest();
    ASSERT_EQ(manifest.editions.size(), editions.size() * config.n_layers);
    EXPECT_THAT(write_store(source, out, {.layout = layout, .quiet = true}).error().line(),
                HasSubstr("another layout"));
    EXPECT_TRUE(write_store(source, out, {.layout = layout, .editions = editions, .quiet = true}).ok());
    for (size_t e = 0; e < editions.size(); ++e) {
      const std::string alone = temp.path() + "/alone-" + std::string(name(editions[e]));
      ASSERT_TRUE(
          write_store(source, alone, {.layout = layout, .encoding = editions[e], .quiet = true}).ok());
      const auto expected = read_manifest(alone);
      ASSERT_TRUE(expected.ok()) << expected.error().line();
      for (size_t i = e; i < manifest.editions.size(); i += editions.size()) {
        const StoredSite& edition = manifest.editions[i];
        const StoredSite& site = expected->sites[edition.edition_of];
        EXPECT_EQ(edition.encodings.front(), editions[e]);
        EXPECT_EQ(bytes_of(out, manifest, edition), bytes_of(alone, *expected, site)) << edition.name;
        EXPECT_EQ(edition.encoding_error, site.encoding_error);
        EXPECT_THAT(store->describe(edition.first_extent),
                    HasSubstr("neuron 0 in " + std::string(name(editions[e]))));
      }
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
        EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("another layout"));
      }
    }
  }
}

TEST(Writer, ExpertsBesideChannels) {
  ModelConfig config = small_mixture();
  config.d_ff = 96;
  for (const Encoding e : {Encoding::f32, Encoding::bf16, Encoding::q4_0}) {
    for (const uint32_t layers : {1u, 2u}) {
      const TempFolder temp;
      const MemorySource source(config, e, 5, {{"layers.1.experts.2.up", Encoding::f32}});
      const std::string out = temp.path() + "/store";
      const Status written =
          write_store(source, out, {.layout = Layout::channel_group, .layer_group = layers, .quiet = true});
      ASSERT_TRUE(written.ok()) << written.error().line();
      expect_same_weights(source, out);
    }
  }
}

// The loss is told for columns that are encoded anew, and for nothing else.
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
        double lost = 0, whole = 0;
        // Columns of all parts, one under the other.
        for (uint32_t column = 0; column < site.neurons(); ++column) {
          std::vector<float> values;
          for (const SitePart& part : site.column_parts()) {
            const auto weights = source.read_f32(*source.find(part.tensor));
            for (size_t at = column; at < weights->size(); at += site.neurons())
              values.push_back((*weights)[at]);
          }
          values.resize(site.column().values());
          const std::vector<float> stored = through(site.column().encoding, values);
          for (size_t i = 0; i < values.size(); ++i) {
            lost += std::pow(double{stored[i]} - values[i], 2);
            whole += std::pow(double{values[i]}, 2);
          }
        }
        EXPECT_FLOAT_EQ(*site.encoding_error, static_cast<float>(std::sqrt(lost / whole))) << site.name;
        EXPECT_GT(*site.encoding_error, 1e-4) << site.name;
        EXPECT_LT(*site.encoding_error, 0.2) << site.name;
      }
    }
  }
}

// Rows in another encoding than the source's, too; in float32 nothing is lost.
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
      // The rows of qkv, and what was lost of them.
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
      // Byte for byte, what lies between packed extents and the next block as well.
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
  EXPECT_THAT(refused.error().line(), HasSubstr("it goes with layout neuron"));
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
  EXPECT_THAT(otherwise.error().line(), HasSubstr("another layout"));
  source.fingerprint_value = "changed";
  EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("made from memory"));
  flip_bit(out + "/manifest.json", 100, 1);
  EXPECT_THAT(write_store(source, out, kQuiet).error().line(), HasSubstr("damaged store"));
}

TEST(Writer, RefusesFoldersThatAreNoStore) {
  const TempFolder temp;
  const std::string folder = temp.path();
  const MemorySource source(small_llama(), Encoding::f16);
  temp.write("letter.txt", "dear");
  EXPECT_THAT(write_store(source, folder, kQuiet).error().line(), HasSubstr("holds no store"));
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

}  // namespace
}  // namespace tierd
