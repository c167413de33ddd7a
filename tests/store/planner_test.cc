#include "core/store/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/shape_file.h"
#include "core/store/encoding_choice.h"
#include "core/store/manifest_check.h"
#include "core/store/writer.h"
#include "tests/store/memory_source.h"
#include "tests/store/planned.h"

namespace tierd {
namespace {

using testing::HasSubstr;

uint32_t rows_per_neuron(const StoredSite& site) {
  return std::get<Rows>(site.cut).rows;
}

TEST(Planner, Llama7bHasFullPages) {
  const auto config = read_shape("llama-2-7b");
  ASSERT_TRUE(config.ok());
  const auto plan = plan_layout(*config, tensors_of(*config, Encoding::q4_0), {});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->sites.size(), 2u + 4u * 32u);
  const StoredSite& o = site_of(*plan, "layers.0.o");  // a group is 36,864 B = 9 pages
  EXPECT_EQ(rows_per_neuron(o), 14u * 16u);
  EXPECT_EQ(o.neuron_bytes(0) % kDirectIoAlignment, 0u);
  const StoredSite& down = site_of(*plan, "layers.0.down");  // 99,072 B a group
  EXPECT_EQ(rows_per_neuron(down), 5u * 16u);
  EXPECT_EQ(down.slot_bytes(), 495'616u);
  const StoredSite& qkv = site_of(*plan, "layers.31.qkv");
  EXPECT_EQ(outputs(qkv.cut), 3u * 4096u);
  EXPECT_EQ(qkv.parts.size(), 3u);
  EXPECT_EQ(plan->tensor_bytes, 6'738'149'376u / 32 * 18 + 65u * 4096u * 4u);
}

TEST(Planner, Opt67bHasBundlesOfFourPages) {
  const auto config = read_shape("opt-6.7b");
  ASSERT_TRUE(config.ok());
  const auto plan = plan_layout(*config, tensors_of(*config, Encoding::f16), {.layout = Layout::neuron});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->sites.size(), 2u + 3u * 32u);
  const StoredSite& ffn = site_of(*plan, "layers.31.ffn");
  EXPECT_TRUE(is_cut_into<Bundles>(ffn.cut));
  EXPECT_EQ(ffn.neurons(), 16'384u);
  EXPECT_EQ(ffn.neuron_bytes(7), 16'384u);  // LLM in a flash, section 4: 2 x 4096 values of two bytes
  EXPECT_EQ(ffn.slot_bytes(), 16'384u);
  EXPECT_EQ(inputs(ffn.cut), 4096u);
  EXPECT_EQ(outputs(ffn.cut), 4096u);
  const auto rows = plan_layout(*config, tensors_of(*config, Encoding::f16), {});
  EXPECT_EQ(plan->tensor_bytes, rows->tensor_bytes);
}

TEST(Planner, MoreChannelsThanAStoreCanNumberAreRefused) {
  ModelConfig config = small_llama();
  config.n_layers = 4096;
  config.d_ff = 8192;
  EXPECT_EQ(plan_layout(config, {}, {.layout = Layout::channel_group}).error().line(),
            "layout: 'channel-group' needs 34340864 extents for this model, expected at most 16777216");
}

// [channel 0 of layer 0, of layer 1, ..., channel 1 of layer 0, ...]; the last group has fewer layers.
TEST(Planner, ChannelsOfAGroupLieSideBySide) {
  const auto config = read_shape("llama-2-7b");
  ASSERT_TRUE(config.ok());
  const auto plan = plan_layout(*config, tensors_of(*config, Encoding::q4_0),
                                {.layout = Layout::channel_group, .layer_group = 5});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->sites.size(), 2u + 4u * 32u);
  const StoredSite& up = site_of(*plan, "layers.7.up");
  EXPECT_TRUE(is_cut_into<Columns>(up.cut));
  EXPECT_EQ(up.neurons(), 4096u);
  EXPECT_EQ(outputs(up.cut), 2 * 11'008u);
  EXPECT_EQ(up.neuron_bytes(0), align_up(2 * 11'008u / 32 * 18, kPieceAlignment));
  const StoredSite& before = site_of(*plan, "layers.6.up");
  for (const uint32_t channel : {0u, 1u, 4095u}) {
    const Extent& extent = plan->extents[up.extent_of(channel, 0)];
    EXPECT_EQ(up.extent_of(channel, 0), before.extent_of(channel, 0) + 1);
    EXPECT_EQ(extent.offset, plan->extents[before.extent_of(channel, 0)].offset + extent.bytes);
  }
  EXPECT_EQ(up.stride, 5u);
  EXPECT_EQ(site_of(*plan, "layers.31.down").stride, 2u);
  EXPECT_EQ(site_of(*plan, "layers.31.down").neurons(), 11'008u);
  const auto rows = plan_layout(*config, tensors_of(*config, Encoding::q4_0), {});
  EXPECT_EQ(plan->tensor_bytes, rows->tensor_bytes);
  EXPECT_THAT(check_manifest(*plan, "plan").error().line(), HasSubstr("encoding_error: is null"));
  Manifest written = *plan;
  for (StoredSite& site : written.sites) {
    if (site.columns_of_blocks()) site.encoding_error = 0.05f;
  }
  EXPECT_TRUE(check_manifest(written, "plan").ok());
}

// Readers count the sites first, so that they do not create what a hostile model claims.
TEST(Planner, SitesAreCountedAsTheyAreMade) {
  std::vector<ModelConfig> configs = {small_llama(), small_opt(), small_mixture()};
  for (const std::string& shape : known_shapes()) {
    const auto config = read_shape(shape);
    ASSERT_TRUE(config.ok()) << config.error().line();
    configs.push_back(*config);
  }
  for (const ModelConfig& config : configs) {
    for (const Layout layout : {Layout::row, Layout::neuron, Layout::channel_group}) {
      EXPECT_EQ(site_shapes(config, layout).size(), n_sites(config, layout))
          << config.name << " " << name(layout);
      if (!config.is_mixture() || layout != Layout::channel_group) continue;
      EXPECT_EQ(site_shapes(config, layout, Bundling::row_column, 1, ExpertCut::channels).size(),
                n_sites(config, layout, ExpertCut::channels));
    }
  }
}

TEST(Planner, GroupsGoWithChannels) {
  const ModelConfig config = small_llama();
  const auto refused = [&](const WriteOptions& options) {
    return plan_layout(config, tensors_of(config, Encoding::f16), options).error().line();
  };
  EXPECT_EQ(refused({.layer_group = 2}),
            "layer_group: groups of 2 layers are not supported in layout row; expected layout channel-group");
  EXPECT_EQ(refused({.layout = Layout::channel_group, .layer_group = 0}),
            "layer_group: 0 is out of range; a group has 1 to 1024 layers");
  EXPECT_THAT(refused({.layout = Layout::channel_group, .bundling = Bundling::none}),
              testing::HasSubstr("layout channel-group does not have"));
}

TEST(Planner, SmallBundlesArePacked) {
  struct Case {
    uint32_t width;
    uint64_t bundle;
    uint64_t extent;
  };
  // f16 without a gate: two pieces of 2 * width bytes, each padded to a multiple of 64.
  for (const auto& [width, bundle, extent] :
       {Case{1000, 4096, 4096}, Case{2000, 8064, 8192}, Case{1980, 7936, 7936}, Case{256, 1024, 1024},
        Case{72, 384, 384}}) {
    SCOPED_TRACE(width);
    ModelConfig config = small_opt();
    config.d_model = width;
    config.d_ff = 40;
    config.n_heads = config.n_kv_heads = 4;
    config.head_dim = width / 4;
    const auto plan = plan_layout(config, tensors_of(config, Encoding::f16), {.layout = Layout::neuron});
    ASSERT_TRUE(plan.ok()) << plan.error().line();
    const Status checked = check_manifest(*plan, "plan");
    EXPECT_TRUE(checked.ok()) << checked.error().line();
    const StoredSite& ffn = site_of(*plan, "layers.1.ffn");
    EXPECT_EQ(ffn.neuron_bytes(0), bundle);
    EXPECT_EQ(ffn.slot_bytes(), extent);
    for (uint32_t i = 0; i < ffn.neurons(); ++i) {
      EXPECT_EQ(plan->extents[ffn.first_extent + i].bytes, extent);
      EXPECT_EQ(plan->extents[ffn.first_extent + i].offset,
                plan->extents[ffn.first_extent].offset + i * extent);
    }
    // A site begins at a block, and the file ends at one.
    EXPECT_EQ(plan->extents[ffn.first_extent].offset % kDirectIoAlignment, 0u);
    EXPECT_EQ(plan->data_bytes % kDirectIoAlignment, 0u);

    const auto apart = plan_layout(config, tensors_of(config, Encoding::f16),
                                   {.layout = Layout::neuron, .bundling = Bundling::none});
    ASSERT_TRUE(apart.ok()) << apart.error().line();
    const Status checked_apart = check_manifest(*apart, "plan");
    EXPECT_TRUE(checked_apart.ok()) << checked_apart.error().line();
    const StoredSite& pieces = site_of(*apart, "layers.1.ffn");
    EXPECT_EQ(pieces.pieces, 2u);
    EXPECT_EQ(pieces.slot_bytes(), bundle);
    EXPECT_EQ(apart->tensor_bytes, plan->tensor_bytes);
    for (uint32_t i = 0; i < 2 * pieces.neurons(); ++i)
      EXPECT_EQ(apart->extents[pieces.first_extent + i].bytes, bundle / 2);
  }
}

// Rows are stored as they are; columns are encoded anew in the same encoding.
TEST(Planner, BundlesOfBlocks) {
  const auto plan =
      plan_layout(small_llama(), tensors_of(small_llama(), Encoding::q4_0), {.layout = Layout::neuron});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const StoredSite& ffn = site_of(*plan, "layers.0.ffn");
  EXPECT_EQ(ffn.encodings, Encodings(3, Encoding::q4_0));
  EXPECT_TRUE(ffn.columns_of_blocks());
  EXPECT_EQ(ffn.column_parts().front().tensor, "layers.0.down");
  EXPECT_EQ(ffn.neuron_bytes(0), 3 * 64u);  // 36 bytes each, padded
  EXPECT_FALSE(site_of(*plan, "layers.0.qkv").columns_of_blocks());
}

// Super-blocks have no columns, so columns get an encoding that has.
TEST(Planner, KQuantsAreCutIntoColumnsOfOtherBlocks) {
  ModelConfig config = small_llama();
  config.d_model = config.d_ff = kSuperBlock;
  config.head_dim = 64;
  const auto encoding_of = [&](const char* site, Layout layout, Encoding all,
                               const std::map<std::string, Encoding>& odd) {
    const MemorySource source(config, all, 1, odd);
    const auto plan = plan_store(source, {.layout = layout, .layer_group = layout == Layout::row ? 1u : 2u});
    EXPECT_TRUE(plan.ok()) << plan.error().line();
    return site_of(*plan, site).encodings.front();
  };
  const auto columns = Layout::channel_group;
  EXPECT_EQ(encoding_of("layers.0.up", Layout::row, Encoding::q4_k, {}), Encoding::q4_k);
  EXPECT_EQ(encoding_of("layers.0.up", columns, Encoding::q4_k, {}), Encoding::q4_0);
  EXPECT_EQ(encoding_of("layers.0.up", columns, Encoding::q5_k, {}), Encoding::q8_0);
  EXPECT_EQ(encoding_of("layers.0.up", columns, Encoding::q6_k, {}), Encoding::q8_0);
  EXPECT_EQ(encoding_of("head", columns, Encoding::q6_k, {}), Encoding::q6_k);
  // All parts of a site have one encoding, and so have the layers of a group.
  EXPECT_EQ(encoding_of("layers.1.qkv", columns, Encoding::q4_k, {{"layers.1.v", Encoding::q6_k}}),
            Encoding::q4_0);
  EXPECT_EQ(encoding_of("layers.0.down", columns, Encoding::q6_k, {{"layers.1.down", Encoding::q4_k}}),
            Encoding::q4_0);
  EXPECT_EQ(encoding_of("layers.0.down", columns, Encoding::q6_k, {{"layers.1.down", Encoding::f16}}),
            Encoding::f32);
}

TEST(Planner, EncodingsThatAreAskedFor) {
  const MemorySource source(small_llama(), Encoding::f16, 1, {{"layers.1.k", Encoding::f32}});
  const auto plan = [&](const WriteOptions& options) { return plan_store(source, options); };
  for (const Layout layout : {Layout::row, Layout::neuron, Layout::channel_group}) {
    const auto q4 = plan({.layout = layout, .encoding = Encoding::q4_0});
    ASSERT_TRUE(q4.ok()) << q4.error().line();
    for (const StoredSite& site : q4->sites) {
      EXPECT_EQ(site.encodings.front(), site.layer == kNoLayer ? Encoding::f16 : Encoding::q4_0) << site.name;
      EXPECT_FALSE(site.encodings.mixed());
    }
    const auto head = plan({.layout = layout, .head_encoding = Encoding::q8_0});
    EXPECT_EQ(site_of(*head, "head").encodings.front(), Encoding::q8_0);
    EXPECT_EQ(site_of(*head, "embed").encodings.front(), Encoding::q8_0);
    EXPECT_EQ(site_of(*head, "layers.0.o").encodings.front(), Encoding::f16);
  }
  EXPECT_THAT(plan({.encoding = Encoding::q4_k}).error().line(),
              HasSubstr("layers.0.qkv: rows of 64 columns cannot be q4_k, which needs a multiple of 256"));
  EXPECT_THAT(plan({.layout = Layout::neuron, .encoding = Encoding::q6_k}).error().line(),
              HasSubstr("layers.0.qkv: rows of 64"));
  EXPECT_THAT(plan({.layout = Layout::channel_group, .encoding = Encoding::q6_k}).error().line(),
              HasSubstr("layers.0.qkv: columns cannot be q6_k, which has blocks of 256 along the rows; "
                        "expected f32, f16, bf16, q8_0 or q4_0, or layout row"));
}

TEST(Planner, EditionsFollowTheSites) {
  const auto config = read_shape("opt-6.7b");
  ASSERT_TRUE(config.ok());
  const WriteOptions options{.layout = Layout::neuron, .editions = {Encoding::q8_0, Encoding::q4_0}};
  const auto plan = plan_layout(*config, tensors_of(*config, Encoding::f16), options);
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const auto alone = plan_layout(*config, tensors_of(*config, Encoding::f16), {.layout = Layout::neuron});
  ASSERT_EQ(plan->sites.size(), alone->sites.size());
  ASSERT_EQ(plan->editions.size(), 2u * 32u);
  uint64_t bytes = alone->tensor_bytes;
  for (size_t i = 0; i < plan->editions.size(); ++i) {
    const StoredSite& edition = plan->editions[i];
    EXPECT_EQ(plan->sites[edition.edition_of].name, edition.name);
    EXPECT_EQ(edition.neurons(), 16'384u);
    EXPECT_EQ(edition.neuron_bytes(0), i % 2 == 0 ? 2u * 4096u / 32u * 34u : 2u * 4096u / 32u * 18u);
    EXPECT_GE(edition.first_extent, i == 0 ? plan->sites.back().end_extent() - plan->sites.back().neurons()
                                           : plan->editions[i - 1].end_extent());
    bytes += edition.tensor_bytes();
  }
  EXPECT_EQ(plan->tensor_bytes, bytes);
  for (size_t s = 0; s < plan->sites.size(); ++s)  // the other sites keep their places
    EXPECT_EQ(plan->sites[s].first_extent, alone->sites[s].first_extent);
  EXPECT_EQ(plan->extents.size(), alone->extents.size() + 64u * 16'384u);
}

TEST(Planner, EditionsOfExperts) {
  ModelConfig config = small_mixture();
  config.d_ff = 64;  // whole blocks
  const auto plan =
      plan_layout(config, tensors_of(config, Encoding::f32), {.editions = {Encoding::bf16, Encoding::q8_0}});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->editions.size(), 2u * config.n_layers);
  for (const StoredSite& edition : plan->editions) EXPECT_TRUE(is_cut_into<Experts>(edition.cut));
}

TEST(Planner, EditionsThatAreRefused) {
  const ModelConfig config = small_llama();
  const auto refused = [&](WriteOptions options, Encoding encoding) {
    const auto plan = plan_layout(config, tensors_of(config, encoding), options);
    EXPECT_FALSE(plan.ok());
    return plan.ok() ? "" : plan.error().line();
  };
  EXPECT_THAT(refused({.layout = Layout::neuron, .editions = {Encoding::f16}}, Encoding::f16),
              HasSubstr("editions: f16 of layers.0.ffn has no fewer bits than f16"));
  EXPECT_THAT(
      refused({.layout = Layout::neuron, .editions = {Encoding::q4_0, Encoding::q8_0}}, Encoding::f16),
      HasSubstr("q8_0 of layers.0.ffn has no fewer bits than q4_0"));
  EXPECT_THAT(refused({.layout = Layout::neuron, .editions = {Encoding::q4_k}}, Encoding::f16),
              HasSubstr("columns cannot be q4_k"));
  EXPECT_THAT(refused({.editions = {Encoding::q8_0}}, Encoding::f16),
              HasSubstr("layout 'row' has neither bundles"));
  EXPECT_THAT(refused({.layout = Layout::channel_group, .editions = {Encoding::q8_0}}, Encoding::f16),
              HasSubstr("expected layout neuron"));
  EXPECT_THAT(refused({.layout = Layout::neuron, .bundling = Bundling::none, .editions = {Encoding::q8_0}},
                      Encoding::f16),
              HasSubstr("in one piece"));
}

TEST(Planner, ListsOfEditions) {
  EXPECT_EQ(*parse_editions("none", "key"), std::vector<Encoding>());
  EXPECT_EQ(*parse_editions("q8_0", "key"), std::vector<Encoding>{Encoding::q8_0});
  EXPECT_EQ(*parse_editions("q8_0,q4_0", "key"), (std::vector<Encoding>{Encoding::q8_0, Encoding::q4_0}));
  for (const char* wrong : {"", "q8_0,", ",q8_0", "q8_0 q4_0", "none,q8_0", "int8"})
    EXPECT_THAT(parse_editions(wrong, "model.editions").error().line(), HasSubstr("model.editions: '"))
        << wrong;
}

TEST(Planner, EveryShapeAndEncoding) {
  const auto shapes = known_shapes();
  ASSERT_GE(shapes.size(), 13u);
  for (const std::string& shape : shapes) {
    for (const Encoding e : {Encoding::f16, Encoding::q8_0, Encoding::q4_0}) {
      const auto config = read_shape(shape);
      ASSERT_TRUE(config.ok()) << config.error().line();
      const auto plan = plan_layout(*config, tensors_of(*config, e), {});
      ASSERT_TRUE(plan.ok()) << plan.error().line();
      const Status checked = check_manifest(*plan, shape);
      EXPECT_TRUE(checked.ok()) << checked.error().line();
      const double padding = static_cast<double>(plan->data_bytes - plan->tensor_bytes) /
                             static_cast<double>(plan->tensor_bytes);
      EXPECT_LE(padding, 0.03) << shape << " " << name(e);
      // One step reads the file forwards.
      uint32_t last = 0;
      for (const StoredSite& site : plan->sites) {
        if (site.alias_of != kNoSite) continue;
        EXPECT_GE(site.first_extent, last);
        last = site.first_extent;
        if (is_cut_into<Experts>(site.cut)) continue;  // kept whole, however large
        const uint64_t one_group =
            align_up(group_bytes(site.encodings.front(), inputs(site.cut)), kDirectIoAlignment);
        EXPECT_LE(site.slot_bytes(), std::max(kMaxNeuronBytes, one_group));
      }
    }
  }
}

TEST(Planner, GroupsPerNeuron) {
  EXPECT_EQ(groups_per_neuron(36'864, 1000, 512 << 10), 14u);
  EXPECT_EQ(groups_per_neuron(4096, 1000, 16 << 10), 4u);
  EXPECT_EQ(groups_per_neuron(1 << 20, 1000, 512 << 10), 1u);  // a group larger than the target
  EXPECT_EQ(groups_per_neuron(4096, 2, 512 << 10), 2u);        // a site smaller than a neuron
  EXPECT_EQ(groups_per_neuron(288, 1000, 16 << 10), 56u);      // 16,128 of 16,384
  EXPECT_EQ(groups_per_neuron(5000, 1000, 16 << 10), 3u);      // wastes 9.2 %, 2 would waste 22.9 %
}

TEST(Planner, PartsKeepTheirEncodings) {
  const MemorySource source(small_llama(), Encoding::q8_0, 1, {{"layers.1.k", Encoding::f16}});
  const auto plan = plan_store(source, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(site_of(*plan, "layers.0.qkv").encodings.mixed());
  const StoredSite& mixed = site_of(*plan, "layers.1.qkv");
  EXPECT_TRUE(mixed.encodings.mixed());
  const Rows& rows = std::get<Rows>(mixed.cut);
  EXPECT_EQ(rows.rows, 32u);  // q has 64, k and v 32 each
  EXPECT_EQ(rows.encoding_of(1, mixed.encodings), Encoding::q8_0);
  EXPECT_EQ(rows.encoding_of(2, mixed.encodings), Encoding::f16);
  EXPECT_EQ(rows.encoding_of(3, mixed.encodings), Encoding::q8_0);
  EXPECT_EQ(mixed.neuron_bytes(1), 2 * group_bytes(Encoding::q8_0, 64));
  EXPECT_EQ(mixed.neuron_bytes(2), 2 * group_bytes(Encoding::f16, 64));
  EXPECT_EQ(mixed.tensor_bytes(),
            96 * encoded_bytes(Encoding::q8_0, 64) + 32 * encoded_bytes(Encoding::f16, 64));
  EXPECT_TRUE(check_manifest(*plan, "plan").ok());
}

// 72 rows are not whole groups, so one group would have rows of two encodings.
TEST(Planner, PartsThatShareAGroupBecomeF32) {
  const MemorySource source(small_opt(), Encoding::f16, 1, {{"layers.1.k", Encoding::bf16}});
  const auto plan = plan_store(source, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(site_of(*plan, "layers.0.qkv").encodings.front(), Encoding::f16);
  EXPECT_EQ(site_of(*plan, "layers.1.qkv").encodings.front(), Encoding::f32);
  EXPECT_FALSE(site_of(*plan, "layers.1.qkv").encodings.mixed());
}

// The encodings of files named Q4_K_M: v and down in Q6_K in every other layer.
TEST(Planner, Llama7bOfMixedEncodingsGrowsLittle) {
  const auto config = read_shape("llama-2-7b");
  ASSERT_TRUE(config.ok());
  auto tensors = tensors_of(*config, Encoding::q4_k);
  uint64_t bytes = 0;
  for (TensorInfo& tensor : tensors) {
    for (uint32_t layer = 0; layer < config->n_layers; layer += 2) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      if (tensor.name == prefix + "v" || tensor.name == prefix + "down") tensor.encoding = Encoding::q6_k;
    }
    bytes += tensor.bytes();
  }
  const auto plan = plan_layout(*config, tensors, {});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->tensor_bytes, bytes);
  EXPECT_LE(plan->data_bytes, bytes + bytes / 100);
  const StoredSite& qkv = site_of(*plan, "layers.0.qkv");
  EXPECT_EQ(rows_per_neuron(qkv), 8u * 16u);  // 430,080 B in q6_k: 105 pages
  EXPECT_EQ(qkv.slot_bytes(), 430'080u);
  EXPECT_TRUE(check_manifest(*plan, "plan").ok());
}

TEST(Planner, TiedHeadSharesTheEmbedding) {
  const MemorySource source(small_opt(), Encoding::f16);
  const auto plan = plan_store(source, {});
  ASSERT_TRUE(plan.ok());
  const StoredSite& head = site_of(*plan, "head");
  EXPECT_EQ(head.alias_of, 0u);
  EXPECT_EQ(head.first_extent, plan->sites[0].first_extent);
  EXPECT_EQ(head.neurons(), plan->sites[0].neurons());
  EXPECT_TRUE(check_manifest(*plan, "plan").ok());
}

TEST(Planner, RefusesWhatDoesNotFit) {
  const ModelConfig config = small_llama();
  auto tensors = tensors_of(config, Encoding::f16);
  const auto refused = [&](uint64_t neuron_bytes) {
    const auto plan = plan_layout(config, tensors, {.neuron_bytes = neuron_bytes});
    return plan.ok() ? std::string("accepted") : plan.error().line();
  };
  EXPECT_THAT(refused(1), HasSubstr("out of range"));
  EXPECT_THAT(refused(1ull << 40), HasSubstr("out of range"));
  tensors.back().rows += 1;
  EXPECT_THAT(refused(0), HasSubstr("expected"));
  tensors.pop_back();
  EXPECT_THAT(refused(0), HasSubstr("has no such tensor"));
  const MemorySource opt(small_opt(), Encoding::f16);
  auto bad = opt.tensors();
  for (TensorInfo& tensor : bad) tensor.encoding = Encoding::q4_0;
  const auto plan = plan_layout(small_opt(), bad, {});
  EXPECT_EQ(plan.code(), Code::unsupported);
}

}  // namespace
}  // namespace tierd
