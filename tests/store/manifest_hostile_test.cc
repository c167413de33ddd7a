// A hostile manifest.json: each inconsistency is refused with a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/checksum.h"
#include "core/store/manifest.h"
#include "core/store/manifest_json.h"
#include "core/store/writer.h"
#include "tests/sanitized.h"
#include "tests/store/manifest_cases.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Sets the encoding of all parts.
void store_as(json& site, const char* encoding) {
  for (json& part : site["encodings"]) part = encoding;
}

TEST(Manifest, HostileBundlesAreRefused) {
  expect_refused(
      a_plan(Layout::neuron),
      {
          {"layout of another cut", [](json& m) { m["layout"] = "row"; },
           "sites: has 8 elements, expected 10"},
          {"layout of columns", [](json& m) { m["layout"] = "channel-group"; }, "layer_group: is missing"},
          {"bundles apart", [](json& m) { m["bundling"] = "none"; },
           "(layers.0.ffn neuron 0): is 384, expected 192"},
          {"rows packed",
           [](json& m) {
             const uint32_t first = m["sites"][1]["first_extent"];
             json& extent = m["extents"][first];
             extent[1] = extent[1].get<uint64_t>() - 64;
           },
           "extents["},
          {"blocks that are not said to have lost", [](json& m) { store_as(m["sites"][3], "q8_0"); },
           "sites[3].encoding_error: is null, but its columns were converted to another encoding"},
          {"blocks that do not fit",
           [](json& m) {
             store_as(m["sites"][3], "q8_0");
             m["sites"][3]["encoding_error"] = 0.01;
           },
           "sites[3].encodings: q8_0 does not fit rows of 72 columns"},
          {"columns of super-blocks",
           [](json& m) {
             store_as(m["sites"][3], "q6_k");
             m["sites"][3]["encoding_error"] = 0.01;
           },
           "sites[3].encodings: q6_k is supported for rows only"},
          {"down of another encoding", [](json& m) { m["sites"][3]["encodings"][1] = "bf16"; },
           "sites[3].encodings: differ, expected one encoding for all columns"},
          {"wider bundles", [](json& m) { store_as(m["sites"][3], "f32"); },
           "(layers.0.ffn neuron 0): is 384, expected 640"},
          {"a gate that there is not", [](json& m) { m["sites"][3]["encodings"].push_back("f16"); },
           "sites[3].encodings: has 3 elements, expected 2"},
          {"too few neurons", [](json& m) { m["model"]["d_ff"] = 287; },
           "resident[9].cols: is 288, expected 287"},
          {"extents that there are not", [](json& m) { m["sites"][3]["first_extent"] = UINT32_MAX; },
           "layers.0.ffn first_extent: uses extent"},
          {"extents of another site", [](json& m) { m["sites"][3]["first_extent"] = 0; }, "shares extent"},
      });
}

TEST(Manifest, HostileEditionsAreRefused) {
  expect_refused(
      a_plan_with_editions(),
      {
          {"no list", [](json& m) { m["editions"] = 7; }, "editions: found 7, expected an array"},
          {"an edition no object", [](json& m) { m["editions"][1] = true; }, "editions[1]"},
          {"of no site", [](json& m) { m["editions"][0].erase("site"); }, "editions[0].site: is missing"},
          {"of a site that is not", [](json& m) { m["editions"][3]["site"] = 99; },
           "editions[3].site: is 99, expected"},
          {"of a former site", [](json& m) { m["editions"][2]["site"] = 3; }, "editions[2].name: is"},
          {"out of order", [](json& m) { std::swap(m["editions"][0], m["editions"][2]); },
           "site: is 3, expected 6 to"},
          {"of rows",
           [](json& m) {
             m["editions"][0]["site"] = 1;
             m["editions"][0]["name"] = m["sites"][1]["name"];
           },
           "editions[0]"},
          {"of the site's own encoding", [](json& m) { store_as(m["editions"][0], "f16"); },
           "editions[0].encodings: have no fewer bits than f16"},
          {"larger than the one before", [](json& m) { std::swap(m["editions"][0], m["editions"][1]); },
           "have no fewer bits than"},
          {"that nobody says to have lost", [](json& m) { m["editions"][1]["encoding_error"] = nullptr; },
           "editions[1].encoding_error: is null"},
          {"of super-blocks", [](json& m) { store_as(m["editions"][1], "q4_k"); }, "editions[1].encodings"},
          {"in the extents of another",
           [](json& m) { m["editions"][1]["first_extent"] = m["editions"][0]["first_extent"]; },
           "shares extent"},
          {"in extents that are not", [](json& m) { m["editions"][1]["first_extent"] = UINT32_MAX; },
           "first_extent"},
          {"left out", [](json& m) { m.erase("editions"); }, "is used by no site and no resident tensor"},
          {"one left out", [](json& m) { m["editions"].erase(3); },
           "is used by no site and no resident tensor"},
          {"a manifest that has more of them",
           [](json& m) { m["editions"].push_back(nlohmann::json(m["editions"][3])); }, "editions[4]"},
      });
}

TEST(Manifest, HostileExpertsAreRefused) {
  const auto plan = plan_store(MemorySource(small_mixture(), Encoding::f16), {.quiet = true});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  expect_refused(
      *plan,
      {
          {"a matrix too few", [](json& m) { m["sites"][3]["encodings"].erase(2); },
           "sites[3].encodings: has 2 elements, expected 3"},
          {"a network for all", [](json& m) { m["sites"][3]["name"] = "layers.0.ffn"; },
           "sites[3].name: is 'layers.0.ffn', expected 'layers.0.experts'"},
          {"wider ones", [](json& m) { m["model"]["d_ff"] = 41; }, "tensor_bytes: is"},
          {"a layout that cuts them", [](json& m) { m["layout"] = "neuron"; },
           "layout: is 'neuron', which is not supported for a mixture"},
          {"larger ones", [](json& m) { store_as(m["sites"][3], "f32"); }, "layers.0.experts neuron 0"},
          {"blocks that do not fit", [](json& m) { m["sites"][3]["encodings"][2] = "q8_0"; },
           "sites[3].encodings: q8_0 does not fit rows of 40 columns"},
          {"super-blocks that do not fit", [](json& m) { m["sites"][3]["encodings"][0] = "q4_k"; },
           "sites[3].encodings: q4_k does not fit rows of 64 columns"},
          {"of many layers", [](json& m) { m["model"]["n_layers"] = 4096; },
           "sites: has 8 elements, expected 12290"},
          {"another model", [](json& m) { m["model"]["n_experts"] = 7; }, "resident[4].rows: is 6"},
          {"no model", [](json& m) { m["model"]["n_experts"] = 1u << 30; }, "experts in all layers"},
          {"experts of another", [](json& m) { m["sites"][3]["first_extent"] = 0; }, "shares extent"},
      });
}

TEST(Manifest, HostileChannelsAreRefused) {
  expect_refused(
      a_plan(Layout::channel_group, Bundling::row_column, 2),
      {
          {"no group", [](json& m) { m.erase("layer_group"); }, "layer_group: is missing"},
          {"an empty group", [](json& m) { m["layer_group"] = 0; }, "layer_group: is 0, expected 1 to 1024"},
          {"too large a group", [](json& m) { m["layer_group"] = 1025; }, "layer_group: is 1025"},
          {"another group", [](json& m) { m["layer_group"] = 1; }, "shares extent"},
          {"layout of rows", [](json& m) { m["layout"] = "row"; }, "sites[1].rows_per_neuron: is missing"},
          {"layout of bundles", [](json& m) { m["layout"] = "neuron"; },
           "sites: has 10 elements, expected 8"},
          {"columns of two encodings", [](json& m) { m["sites"][1]["encodings"][2] = "f32"; },
           "sites[1].encodings: differ, expected one encoding for all columns"},
          {"columns of super-blocks",
           [](json& m) {
             store_as(m["sites"][1], "q4_k");
             m["sites"][1]["encoding_error"] = 0.01;
           },
           "sites[1].encodings: q4_k is supported for rows only"},
          {"blocks that are not said to have lost", [](json& m) { store_as(m["sites"][1], "q8_0"); },
           "sites[1].encoding_error: is null"},
          {"a layer wider than the next", [](json& m) { store_as(m["sites"][1], "f32"); },
           ".bytes (layers.0.qkv neuron 0): is 448, expected 896"},
          {"extents of another layer",
           [](json& m) { m["sites"][1]["first_extent"] = m["sites"][5]["first_extent"]; }, "shares extent"},
          {"extents that there are not", [](json& m) { m["sites"][1]["first_extent"] = UINT32_MAX; },
           "layers.0.qkv first_extent"},
          {"bundles", [](json& m) { m["bundling"] = "none"; }, "bundling: is 'none'"},
      });
}

TEST(Manifest, HostileLossesAreRefused) {
  auto plan =
      plan_store(MemorySource(small_llama(), Encoding::q4_0), {.layout = Layout::neuron, .quiet = true});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  for (StoredSite& site : plan->sites) {
    if (site.columns_of_blocks()) site.encoding_error = 0.07f;
  }
  const auto again = parse(manifest_text(*plan), plan->extents.size());
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(again->sites[3].encoding_error, 0.07f);
  EXPECT_EQ(again->sites[1].encoding_error, std::nullopt);
  expect_refused(*plan, {
                            {"none", [](json& m) { m["sites"][3].erase("encoding_error"); },
                             "sites[3].encoding_error: is missing"},
                            {"not said", [](json& m) { m["sites"][3]["encoding_error"] = nullptr; },
                             "sites[3].encoding_error: is null, but"},
                            {"below nothing", [](json& m) { m["sites"][3]["encoding_error"] = -0.5; },
                             "sites[3].encoding_error: is -0.5"},
                            {"no number", [](json& m) { m["sites"][3]["encoding_error"] = "much"; },
                             "sites[3].encoding_error: found \"much\""},
                        });
}

TEST(Manifest, HostileOnesAreRefused) {
  expect_refused(
      a_plan(),
      {
          {"format of the future", [](json& m) { m["format"] = 12; }, "format: is 12, expected 9 to 11",
           Code::unsupported},
          {"format of the past", [](json& m) { m["format"] = 7; }, "format: is 7, expected 9 to 11",
           Code::unsupported},
          {"format as text", [](json& m) { m["format"] = "1"; }, "format: found \"1\""},
          {"no format", [](json& m) { m.erase("format"); }, "format: is missing"},
          {"unknown layout", [](json& m) { m["layout"] = "spiral"; }, "spiral", Code::unsupported},
          {"sites no array", [](json& m) { m["sites"] = 7; }, "sites: found 7, expected an array"},
          {"a site no object", [](json& m) { m["sites"][3] = true; },
           "sites[3]: found true, expected an object"},
          {"negative count", [](json& m) { m["sites"][1]["rows_per_neuron"] = -1; },
           "sites[1].rows_per_neuron: found -1"},
          {"fractional count", [](json& m) { m["sites"][1]["first_extent"] = 7.5; },
           "sites[1].first_extent: found 7.5"},
          {"count past 32 bits", [](json& m) { m["sites"][1]["first_extent"] = 1ull << 32; },
           "sites[1].first_extent: found 4294967296"},
          {"huge layer count", [](json& m) { m["model"]["n_layers"] = UINT32_MAX; },
           "number of layers is 4294967295"},
          {"layers without sites", [](json& m) { m["model"]["n_layers"] = 4096; },
           "sites: has 10 elements, expected 16386"},
          {"huge vocabulary", [](json& m) { m["model"]["vocab_size"] = 1u << 23; },
           "embed first_extent: uses extent"},
          {"zero width", [](json& m) { m["model"]["d_model"] = 0; }, "width is 0"},
          {"not a number", [](json& m) { m["model"]["norm_eps"] = nullptr; }, "model.norm_eps: is missing"},
          {"divisors past a float",
           [](json& m) {
             m["model"]["rope_divisors"] = {1.0, 1e39};
           },
           "model.rope_divisors[1]: found 1e+39, expected a number within the range of a float"},
          {"unknown norm", [](json& m) { m["model"]["norm"] = "batch"; },
           "'batch', expected one of rms, layer"},
          {"unknown encoding", [](json& m) { m["sites"][0]["encodings"][0] = "q1"; },
           "sites[0].encodings[0]: found \"q1\", expected an encoding"},
          {"unknown encoding of a part", [](json& m) { m["sites"][1]["encodings"][2] = "q1"; },
           "sites[1].encodings[2]: found \"q1\", expected an encoding"},
          {"an encoding by its number", [](json& m) { m["sites"][1]["encodings"][0] = 1; },
           "sites[1].encodings[0]: found 1, expected an encoding"},
          {"an encoding in a list", [](json& m) { m["sites"][1]["encodings"][0] = {"f16"}; },
           "sites[1].encodings[0]: found array, expected an encoding"},
          {"an encoding with a long name",
           [](json& m) { m["sites"][1]["encodings"][0] = std::string(1 << 20, 'q'); },
           "qqq…, expected an encoding"},
          {"one encoding for all", [](json& m) { m["sites"][1]["encodings"] = "f16"; },
           "sites[1].encodings: found \"f16\", expected an array"},
          {"no encodings", [](json& m) { m["sites"][1].erase("encodings"); },
           "sites[1].encodings: is missing"},
          {"encodings of nothing", [](json& m) { m["sites"][1]["encodings"] = json::array(); },
           "sites[1].encodings: has 0 elements, expected 3"},
          {"too few encodings", [](json& m) { m["sites"][1]["encodings"].erase(0); },
           "sites[1].encodings: has 2 elements, expected 3"},
          {"too many encodings", [](json& m) { m["sites"][1]["encodings"].push_back("f16"); },
           "sites[1].encodings: has 4 elements, expected 3"},
          {"encoding that does not fit", [](json& m) { m["sites"][2]["encodings"][0] = "q8_0"; },
           "sites[2].encodings: q8_0 does not fit rows of 72 columns"},
          {"parts that do not fit", [](json& m) { m["sites"][1]["encodings"][2] = "q4_k"; },
           "sites[1].encodings: q4_k does not fit rows of 72 columns"},
          {"a group of two encodings", [](json& m) { m["sites"][1]["encodings"][2] = "f32"; },
           ", expected a divisor of the 72 rows of layers.0.q, because its parts differ in encoding"},
          {"another name", [](json& m) { m["sites"][2]["name"] = "layers.0.qkv"; },
           "sites[2].name: is 'layers.0.qkv', expected 'layers.0.o'"},
          {"another layer", [](json& m) { m["sites"][2]["name"] = "layers.1.o"; },
           "sites[2].name: is 'layers.1.o', expected 'layers.0.o'"},
          {"a name of lines", [](json& m) { m["sites"][2]["name"] = "o\n\x1b[2J"; }, "sites[2].name: is 'o"},
          {"a name of numbers", [](json& m) { m["sites"][2]["name"] = 7; }, "sites[2].name: found 7"},
          {"no name", [](json& m) { m["sites"][2].erase("name"); }, "sites[2].name: is missing"},
          {"sites out of order", [](json& m) { std::swap(m["sites"][1], m["sites"][2]); },
           "sites[1].name: is 'layers.0.o', expected 'layers.0.qkv'"},
          {"another shape", [](json& m) { m["model"]["d_ff"] = 256; },
           "resident[9].cols: is 288, expected 256"},
          {"rows_per_neuron zero", [](json& m) { m["sites"][1]["rows_per_neuron"] = 0; },
           "sites[1].rows_per_neuron: is 0"},
          {"rows_per_neuron odd", [](json& m) { m["sites"][1]["rows_per_neuron"] = 24; }, "multiple of 16"},
          {"rows_per_neuron huge", [](json& m) { m["sites"][1]["rows_per_neuron"] = 0xfffffff0u; },
           "multiple of 16"},
          {"no rows_per_neuron", [](json& m) { m["sites"][1].erase("rows_per_neuron"); },
           "sites[1].rows_per_neuron: is missing"},
          {"longer neurons", [](json& m) { m["sites"][1]["rows_per_neuron"] = 32; }, "layers.0.qkv neuron"},
          {"a tied head at another place", [](json& m) { m["sites"].back()["first_extent"] = 0; },
           "sites[9]: shares the weights of embed, but differs from it in encoding, extents or rows"},
          {"a tied head in other runs", [](json& m) { m["sites"].back()["rows_per_neuron"] = 32; },
           ", but differs from it in encoding, extents or rows"},
          {"a tied head in another encoding", [](json& m) { store_as(m["sites"].back(), "bf16"); },
           ", but differs from it in encoding, extents or rows"},
          {"a tied head in blocks", [](json& m) { store_as(m["sites"].back(), "q8_0"); },
           "sites[9].encodings: q8_0 does not fit rows of 72"},
          {"a tied head without rows", [](json& m) { m["sites"].back()["rows_per_neuron"] = 0; },
           "sites[9].rows_per_neuron: is 0"},
          {"a head that is not tied", [](json& m) { m["model"]["tied_embeddings"] = false; },
           "head neuron 0: shares extent"},
          {"no first extent", [](json& m) { m["sites"][1].erase("first_extent"); },
           "sites[1].first_extent: is missing"},
          {"first extent outside", [](json& m) { m["sites"][1]["first_extent"] = UINT32_MAX; },
           "uses extent"},
          {"two sites share extents",
           [](json& m) { m["sites"][2]["first_extent"] = m["sites"][1]["first_extent"]; }, "shares extent"},
          {"a missing site", [](json& m) { m["sites"].erase(2); }, "sites: has 9 elements, expected 10"},
          {"a site too many", [](json& m) { m["sites"].push_back(m["sites"][9]); },
           "sites: has 11 elements, expected 10"},
          {"no sites", [](json& m) { m["sites"] = json::array(); }, "sites: has 0 elements, expected 10"},
          {"sites not said", [](json& m) { m.erase("sites"); }, "sites: is missing"},
          {"a missing resident", [](json& m) { m["resident"].erase(0); }, "resident's length"},
          {"resident of another shape", [](json& m) { m["resident"][0]["cols"] = 1ull << 62; },
           "resident[0].cols"},
          {"resident extent outside", [](json& m) { m["resident"][0]["extent"] = 1u << 31; }, "uses extent"},
          {"extent outside the data", [](json& m) { m["extents"].back()[0] = 1ull << 40; }, "outside the"},
          {"extent past 64 bits",
           [](json& m) {
             m["extents"].back()[0] = ~0ull - 4095;
             m["extents"].back()[1] = 8192;
           },
           "outside the"},
          {"a run past 64 bits",
           [](json& m) {
             m["extents"].erase(m["extents"].size() - 1);
             m["extents"].back()[2] = 1ull << 63;
             m["extents"].back()[3] = 2;
           },
           "outside the"},
          {"a run that overlaps itself",
           [](json& m) {
             m["extents"].back()[2] = 0;
             m["extents"].back()[3] = 2;
           },
           "inside the extent before it"},
          {"extents overlap", [](json& m) { m["extents"][1][0] = 0; }, "inside the extent before it"},
          {"extents out of order", [](json& m) { std::swap(m["extents"][3], m["extents"][4]); },
           "inside the extent before it"},
          {"extent not aligned", [](json& m) { m["extents"][2][0] = 5; }, "multiples of 64"},
          {"extent aligned to less than a block",
           [](json& m) { m["extents"][2][0] = m["extents"][2][0].get<uint64_t>() + 64; },
           "inside the extent before it"},
          {"extent empty", [](json& m) { m["extents"][2][1] = 0; }, "multiples of 64"},
          {"extent of the wrong size",
           [](json& m) {
             m["extents"].back()[1] = m["extents"].back()[1].get<uint64_t>() + 4096;
             m["data_bytes"] = m["data_bytes"].get<uint64_t>() + 4096;
           },
           "(layers.1.down neuron"},
          {"run with three members", [](json& m) { m["extents"][0].erase(2); },
           "[offset, bytes, stride, count]"},
          {"count no number", [](json& m) { m["extents"][0][3] = "xyz"; }, "[offset, bytes, stride, count]"},
          {"negative count", [](json& m) { m["extents"][0][3] = -1; }, "[offset, bytes, stride, count]"},
          {"no extents in a run", [](json& m) { m["extents"][0][3] = 0; }, "extents[0]: has 0 extents"},
          {"huge count", [](json& m) { m["extents"][0][3] = ~0ull; },
           "extents[0]: has 18446744073709551615 extents"},
          {"more extents than checksums",
           [](json& m) {
             m["extents"].back()[3] = 3;  // as the last run of a file that has two checksums for it
           },
           "has 3 extents, expected 1 to 2"},
          {"checksum of the checksums no text", [](json& m) { m["checksums"] = 7; }, "checksums: found 7"},
          {"unknown bundling", [](json& m) { m["bundling"] = "by-age"; },
           "bundling: is 'by-age', expected 'row-column' or 'none'", Code::unsupported},
          {"bundling of the past", [](json& m) { m["bundling"] = "closest-friend"; },
           "bundling: is 'closest-friend', expected 'row-column' or 'none'", Code::unsupported},
          {"rows without bundles", [](json& m) { m["bundling"] = "none"; }, "bundling: is 'none'"},
          {"an extent of nobody",
           [](json& m) {
             const uint64_t end = m["data_bytes"];
             m["extents"].push_back({end, 4096, 4096, 1});
             m["data_bytes"] = end + 4096;
           },
           "is used by no site and no resident tensor"},
          {"data too small", [](json& m) { m["data_bytes"] = 4096; }, "outside the 4096 bytes"},
          {"data too large", [](json& m) { m["data_bytes"] = 1ull << 50; }, "data_bytes"},
          {"wrong tensor bytes", [](json& m) { m["tensor_bytes"] = 1; }, "tensor_bytes: is 1"},
          {"a vocabulary too large",
           [](json& m) {
             for (int i = 0; i < 5; ++i) m["vocab"]["pieces"].push_back("x");
           },
           "vocab.pieces: has 306"},
          {"token outside", [](json& m) { m["vocab"]["bos"] = 999; },
           "has token 999, expected a number below"},
          {"end token outside", [](json& m) { m["vocab"]["end_tokens"] = {999}; }, "vocab.end_tokens"},
          {"added token outside",
           [](json& m) {
             m["vocab"]["added_tokens"] = {{{"token", 999}}};
           },
           "vocab.added_tokens"},
          {"an added token that is no object", [](json& m) { m["vocab"]["added_tokens"] = {1}; },
           "vocab.added_tokens"},
          {"unknown token type", [](json& m) { m["vocab"]["types"][0] = 99; }, "vocab.types[0]: found 99"},
          {"too few types", [](json& m) { m["vocab"]["types"].erase(0); }, "vocab.types' length"},
          {"bad hex",
           [](json& m) {
             m["vocab"]["pieces"][0] = {{"hex", "0g"}};
           },
           "vocab.pieces[0]"},
          {"vocabulary a number", [](json& m) { m["vocab"] = 5; }, "vocab: found 5, expected an object"},
      });
}

TEST(Manifest, NestingAndNoJsonAreRefused) {
  for (const std::string& rest :
       {std::string(1 << 20, '['), std::string("\"a\": "), std::string("\"a\": \xff}\n"), std::string()}) {
    const std::string text = "{\"xxh3\": \"" + checksum_text(checksum(rest)) + "\",\n" + rest;
    EXPECT_EQ(parse_manifest(text, "file", "", "checksums").code(), Code::corrupt);
  }
}

TEST(Manifest, EveryDamageOfTheChecksumsIsFound) {
  Manifest plan = a_plan();
  for (size_t i = 0; i < plan.extents.size(); ++i) plan.extents[i].checksum = i * 77;
  const std::string text = manifest_text(plan);
  const std::string good = checksum_bytes(plan);
  const auto refused = [&](const std::string& checksums) {
    const auto parsed = parse_manifest(text, "the file", checksums, "the checksums");
    EXPECT_EQ(parsed.code(), Code::corrupt);
    EXPECT_THAT(parsed.error().line(), testing::StartsWith("the checksums: "));
  };
  for (size_t i = 0; i < good.size(); i += kSanitized ? 5 : 1) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    refused(flipped);
    refused(good.substr(0, i));
  }
  refused(good + std::string(8, '\0'));
}

TEST(Manifest, EveryFlippedBitIsFound) {
  const std::string text = manifest_text(a_plan());
  const std::string checksums = checksum_bytes(a_plan());
  for (size_t i = 0; i < text.size(); i += (i < 400 ? 1 : 97)) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    const auto parsed = parse_manifest(flipped, "the file", checksums, "the checksums");
    ASSERT_EQ(parsed.code(), Code::corrupt) << i;
    EXPECT_THAT(parsed.error().line(), HasSubstr("the file: ")) << i;
  }
  for (const size_t length : {size_t{0}, size_t{5}, size_t{29}, text.size() / 2, text.size() - 1}) {
    EXPECT_EQ(parse_manifest(text.substr(0, length), "file", checksums, "checksums").code(), Code::corrupt)
        << length;
  }
}

}  // namespace
}  // namespace tierd
