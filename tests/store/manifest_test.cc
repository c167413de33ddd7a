// A manifest survives writing and reading, and missing or damaged files of a store are found.
// manifest_hostile_test.cc has invalid texts.
#include "core/store/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/model/shape_file.h"
#include "core/store/manifest_json.h"
#include "core/store/planner.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/store/manifest_cases.h"
#include "tests/store/memory_source.h"
#include "tools/lab/synth/synthetic_source.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

TEST(Manifest, TextAndBack) {
  Manifest plan = a_plan();
  plan.vocab.scores = {0.1f, -0.0f, std::numeric_limits<float>::infinity(), 1e-45f};
  plan.vocab.scores.resize(plan.vocab.pieces.size(), 3.4e38f);
  plan.vocab.merges = {"a b", std::string("\xff \xfe")};
  plan.vocab.eos = kNoToken;
  plan.vocab.normalizers = {{.kind = TextStepKind::replace, .pattern = "\xe2\x96", .content = " "}};
  plan.vocab.cuts = {
      {.kind = TextStepKind::split,
       .pattern = "a+",
       .regex = true,
       .behavior = CutBehavior::merged_with_next,
       .invert = true},
      {.kind = TextStepKind::metaspace, .content = "_", .cuts = true, .prefix = SpacePrefix::first}};
  plan.vocab.decoders = {{.kind = TextStepKind::strip, .content = " ", .begin = 1, .end = 2}};
  plan.vocab.whole_words_first = plan.vocab.fuse_unknown = true;
  plan.vocab.after_bos = {1, 0};
  plan.vocab.metaspace = plan.vocab.prefix_text_only = plan.vocab.split_at_spaces = true;
  plan.vocab.added_tokens = {
      {.token = 1, .normalized = true, .found_as = "\xe2\x96 x"},
      {.token = 0, .lstrip = true, .rstrip = true, .single_word = true, .is_piece = true}};
  plan.config.norm_eps = 1e-12f;
  plan.provenance.source = "/models/\xe9t\xe9";  // latin-1
  plan.provenance.made_by = "tierd \xff";
  for (size_t i = 0; i < plan.extents.size(); ++i) plan.extents[i].checksum = ~i;
  const std::string text = manifest_text(plan);
  const auto again = parse_manifest(text, "file", checksum_bytes(plan), "checksums");
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(manifest_text(*again), text);
  EXPECT_EQ(again->vocab.pieces, plan.vocab.pieces);
  EXPECT_EQ(again->vocab.merges, plan.vocab.merges);
  EXPECT_TRUE(std::signbit(again->vocab.scores[1]));
  EXPECT_EQ(again->vocab.scores, plan.vocab.scores);
  EXPECT_EQ(again->vocab.eos, kNoToken);
  EXPECT_TRUE(again->vocab.metaspace && again->vocab.prefix_text_only && again->vocab.split_at_spaces);
  EXPECT_EQ(again->vocab.normalizers, plan.vocab.normalizers);
  EXPECT_EQ(again->vocab.cuts, plan.vocab.cuts);
  EXPECT_EQ(again->vocab.decoders, plan.vocab.decoders);
  EXPECT_TRUE(again->vocab.whole_words_first && again->vocab.fuse_unknown);
  EXPECT_EQ(again->vocab.after_bos, plan.vocab.after_bos);
  EXPECT_EQ(again->vocab.added_tokens, plan.vocab.added_tokens);
  EXPECT_EQ(again->config.norm_eps, 1e-12f);
  EXPECT_EQ(again->provenance.source, plan.provenance.source);
  EXPECT_EQ(again->provenance.made_by, plan.provenance.made_by);
  EXPECT_EQ(checksum_bytes(*again), checksum_bytes(plan));
}

// Extents are stored as runs, so half a million bundles take some lines.
TEST(Manifest, ExtentsAreListedInRuns) {
  for (const Bundling bundling : {Bundling::row_column, Bundling::none}) {
    const Manifest plan = a_plan(Layout::neuron, bundling);
    const std::string text = manifest_text(plan);
    const auto again = parse(text, plan.extents.size());
    ASSERT_TRUE(again.ok()) << again.error().line();
    EXPECT_EQ(manifest_text(*again), text);
    EXPECT_EQ(again->bundling, bundling);
    ASSERT_EQ(again->extents.size(), plan.extents.size());
    for (size_t i = 0; i < plan.extents.size(); ++i) {
      EXPECT_EQ(again->extents[i].offset, plan.extents[i].offset);
      EXPECT_EQ(again->extents[i].bytes, plan.extents[i].bytes);
    }
    EXPECT_GT(plan.extents.size(), 600u);
    EXPECT_LT(json::parse(text)["extents"].size(), 40u);
  }
}

TEST(Manifest, HalfAMillionBundlesAreASmallText) {
  const auto config = read_shape("opt-6.7b");
  ASSERT_TRUE(config.ok()) << config.error().line();
  const auto source = SyntheticSource::make(*config, Encoding::f16, 1);
  ASSERT_TRUE(source.ok()) << source.error().line();
  auto plan = plan_layout((*source)->config(), (*source)->tensors(), {.layout = Layout::neuron});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_GT(plan->extents.size(), 524'288u);
  const std::string text = manifest_text(*plan);
  EXPECT_LT(text.size(), 200'000u);
  const auto again = parse(text, plan->extents.size());
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(again->extents.back().offset, plan->extents.back().offset);
}

TEST(Manifest, PartsOfSeveralEncodingsComeBack) {
  const auto plan =
      plan_store(MemorySource(small_llama(), Encoding::q8_0, 1, {{"layers.1.v", Encoding::f16}}), {});
  ASSERT_TRUE(plan.ok());
  const auto again = parse(manifest_text(*plan), plan->extents.size());
  ASSERT_TRUE(again.ok()) << again.error().line();
  const StoredSite& qkv = again->sites[5];
  EXPECT_EQ(qkv.name, "layers.1.qkv");
  EXPECT_EQ(qkv.encodings, (Encodings{Encoding::q8_0, Encoding::q8_0, Encoding::f16}));
  // Refused: the manifest names other encodings than the extents' sizes allow.
  expect_refused(
      *plan, {{"another part", [](json& m) { m["sites"][5]["encodings"][1] = "f16"; }, "tensor_bytes: is"}});
}

TEST(Manifest, EditionsComeBack) {
  const Manifest plan = a_plan_with_editions();
  const std::string text = manifest_text(plan);
  const auto again = parse(text, plan.extents.size());
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(manifest_text(*again), text);
  ASSERT_EQ(again->editions.size(), plan.editions.size());
  for (size_t i = 0; i < plan.editions.size(); ++i) {
    EXPECT_EQ(again->editions[i].edition_of, plan.editions[i].edition_of);
    EXPECT_EQ(again->editions[i].first_extent, plan.editions[i].first_extent);
    EXPECT_EQ(again->editions[i].encodings, plan.editions[i].encodings);
    EXPECT_EQ(again->editions[i].encoding_error, plan.editions[i].encoding_error);
  }
  EXPECT_EQ(again->stored().size(), std::as_const(plan).stored().size());
}

// Stores without editions keep the earlier format, so they stay valid.
TEST(Manifest, EditionsAloneHaveTheirFormat) {
  EXPECT_EQ(json::parse(manifest_text(a_plan()))["format"], kFormatWithoutEditions);
  EXPECT_EQ(json::parse(manifest_text(a_plan_with_editions()))["format"], kFormatWithWholeExperts);
}

TEST(Manifest, ChannelsOfGroupsOfLayersComeBack) {
  for (const uint32_t layers : {1u, 2u, 3u}) {
    const Manifest plan = a_plan(Layout::channel_group, Bundling::row_column, layers);
    const std::string text = manifest_text(plan);
    const auto again = parse(text, plan.extents.size());
    ASSERT_TRUE(again.ok()) << again.error().line();
    EXPECT_EQ(manifest_text(*again), text);
    EXPECT_EQ(again->layer_group, layers);
    for (size_t s = 0; s < plan.sites.size(); ++s) EXPECT_EQ(again->sites[s].stride, plan.sites[s].stride);
    EXPECT_LT(json::parse(text)["extents"].size(), 40u);
  }
}

TEST(Manifest, ExpertsBesideChannelsComeBack) {
  const MemorySource source(small_mixture(), Encoding::f16);
  const auto plan = plan_store(source, {.layout = Layout::channel_group, .layer_group = 2, .quiet = true});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const std::string text = manifest_text(*plan);
  const auto again = parse(text, plan->extents.size());
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(manifest_text(*again), text);
  for (size_t s = 0; s < plan->sites.size(); ++s) EXPECT_EQ(again->sites[s].stride, plan->sites[s].stride);
  expect_refused(
      *plan, {
                 {"experts of another layer", [](json& m) { m["sites"][3]["name"] = m["sites"][6]["name"]; },
                  "sites[3].name: is 'layers.1.experts', expected 'layers.0.experts'"},
                 // Refused by the number of sites, before any is created.
                 {"layers without end", [](json& m) { m["model"]["n_layers"] = 4096; },
                  "sites: has 8 elements, expected 12290"},
             });
}

TEST(Manifest, ExpertsInChannelsComeBack) {
  const MemorySource source(small_mixture(), Encoding::f16);
  const auto plan = plan_store(
      source,
      {.layout = Layout::channel_group, .layer_group = 2, .experts = ExpertCut::channels, .quiet = true});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const std::string text = manifest_text(*plan);
  const auto again = parse(text, plan->extents.size());
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(manifest_text(*again), text);
  EXPECT_EQ(again->experts, ExpertCut::channels);
  EXPECT_EQ(json::parse(text)["format"], kStoreFormat);
  for (size_t s = 0; s < plan->sites.size(); ++s) {
    EXPECT_EQ(again->sites[s].stride, plan->sites[s].stride);
    EXPECT_EQ(again->sites[s].expert, plan->sites[s].expert);
  }
  expect_refused(
      *plan,
      {
          {"no cut", [](json& m) { m["experts"] = "rows"; }, "experts: is 'rows'"},
          {"a number", [](json& m) { m["experts"] = 3; }, "experts: found 3"},
          {"another cut", [](json& m) { m["experts"] = "whole"; }, "sites: has 30 elements, expected 8"},
          {"an order of experts alone", [](json& m) { m["model"]["expert_order"] = true; },
           "model.expert_order: is true, which requires channel_order and experts in channels"},
          {"another layout", [](json& m) { m["layout"] = "row"; },
           "experts: is 'channels', which is supported for mixtures in layout channel-group only"},
          {"no mixture", [](json& m) { m["model"]["n_experts"] = 0; }, "experts"},
          {"another expert", [](json& m) { m["sites"][3]["name"] = m["sites"][5]["name"]; },
           "sites[3].name: is 'layers.0.experts.1.up', expected 'layers.0.experts.0.up'"},
          {"more experts", [](json& m) { m["model"]["n_experts"] = 7; },
           "sites: has 30 elements, expected 34"},
          // Refused by the number of sites, before any is created.
          {"experts without end",
           [](json& m) {
             m["model"]["n_layers"] = 4096;
             m["model"]["n_experts"] = 32;
           },
           "sites: has 30 elements, expected 270338"},
          {"gate and up of two encodings", [](json& m) { m["sites"][3]["encodings"][1] = "bf16"; },
           "sites[3].encodings: differ, expected one encoding for all columns"},
          {"extents of another expert", [](json& m) { m["sites"][3]["first_extent"] = 0; }, "shares extent"},
      });
}

class BrokenStore : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_store(source_, store_, {.neuron_bytes = 4096, .quiet = true}).ok());
  }
  TempFolder folder_;
  std::string store_ = folder_.path() + "/store";
  MemorySource source_{small_llama(), Encoding::q4_0};
};

TEST_F(BrokenStore, MissingFiles) {
  EXPECT_EQ(read_manifest(store_ + "/nowhere").code(), Code::not_found);
  std::filesystem::rename(store_ + "/checksums.bin", store_ + "/elsewhere");
  EXPECT_EQ(read_manifest(store_).code(), Code::not_found);
  EXPECT_THAT(read_manifest(store_).error().line(), HasSubstr("checksums.bin"));
  std::filesystem::rename(store_ + "/elsewhere", store_ + "/checksums.bin");
  std::filesystem::rename(store_ + "/weights.bin", store_ + "/elsewhere");
  const auto without = read_manifest(store_);
  EXPECT_EQ(without.code(), Code::not_found);
  EXPECT_THAT(without.error().line(), HasSubstr("weights.bin"));
  std::filesystem::create_directory(store_ + "/weights.bin");
  EXPECT_THAT(read_manifest(store_).error().line(), HasSubstr("expected a file"));
  std::filesystem::remove(store_ + "/manifest.json");
  EXPECT_THAT(read_manifest(store_).error().line(), HasSubstr("manifest.json"));
}

TEST_F(BrokenStore, TruncatedOrLongerWeights) {
  const std::string path = store_ + "/weights.bin";
  const uint64_t bytes = std::filesystem::file_size(path);
  for (const uint64_t wrong : {uint64_t{0}, bytes - 1, bytes + 4096}) {
    std::filesystem::resize_file(path, wrong);
    const auto opened = Store::open(store_);
    EXPECT_EQ(opened.code(), Code::corrupt);
    EXPECT_THAT(opened.error().line(), AllOf(HasSubstr("weights.bin"), HasSubstr(std::to_string(bytes))));
  }
}

TEST_F(BrokenStore, FlippedBitOfWeightsIsNamed) {
  const auto manifest = read_manifest(store_);
  ASSERT_TRUE(manifest.ok());
  const StoredSite& site = manifest->sites[3];
  ASSERT_GE(site.neurons(), 2u);
  const Extent& extent = manifest->extents[site.first_extent + 1];
  for (const uint64_t at : {extent.offset, extent.offset + extent.bytes - 1}) {  // the last one is padding
    flip_bit(store_ + "/weights.bin", at, 6);
    const auto store = Store::open(store_);
    ASSERT_TRUE(store.ok());
    const Status verified = store->verify_all(true);
    EXPECT_EQ(verified.code(), Code::corrupt);
    EXPECT_THAT(verified.error().line(), AllOf(HasSubstr("weights.bin"), HasSubstr(site.name + " neuron 1"),
                                               HasSubstr("extent " + std::to_string(site.first_extent + 1)),
                                               HasSubstr("offset " + std::to_string(extent.offset))));
    flip_bit(store_ + "/weights.bin", at, 6);
    EXPECT_TRUE(store->verify_all(true).ok());
  }
  flip_bit(store_ + "/weights.bin", manifest->extents[0].offset + 1, 0);
  EXPECT_THAT(Store::open(store_)->verify_all(true).error().line(), HasSubstr(manifest->resident[0].name));
}

}  // namespace
}  // namespace tierd
