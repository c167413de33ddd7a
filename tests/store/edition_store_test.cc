// Stores that keep neurons in several encodings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/same_weights.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// Returns the bytes of all extents of a site.
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

// An edition has the bytes of a store with only this encoding.
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
                HasSubstr("with other settings"));
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

}  // namespace
}  // namespace tierd
