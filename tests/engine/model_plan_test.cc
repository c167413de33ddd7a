#include "core/engine/model_plan.h"

#include <gtest/gtest.h>

#include <array>

#include "core/store/encoding_choice.h"
#include "core/store/writer.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

Manifest manifest_of(const ModelConfig& config, const WriteOptions& options = {}) {
  auto manifest = plan_store(MemorySource(config, Encoding::f16), options);
  EXPECT_TRUE(manifest.ok());
  return std::move(*manifest);
}

std::vector<StepKind> kinds(const Program& program) {
  std::vector<StepKind> all;
  for (const Step& step : program) all.push_back(step.kind);
  return all;
}

using Kinds = std::vector<StepKind>;

TEST(ModelPlan, ALayerOfAMixture) {
  const Manifest manifest = manifest_of(small_mixture());
  const ModelPlan plan = plan_model(manifest, {.max_rows = 8, .context = 16});
  ASSERT_EQ(plan.sites.size(), 2u + 2u * 3u);
  EXPECT_EQ(kinds(plan.any().sites[1].after),
            (Kinds{StepKind::head_rms_norm, StepKind::head_rms_norm, StepKind::clip, StepKind::rope,
                   StepKind::store_kv, StepKind::attend}));
  EXPECT_EQ(plan.any().sites[1].after[0].head, 64u);  // over all heads
  const Site& site = plan.sites[3];
  EXPECT_TRUE(site.chosen());
  EXPECT_TRUE(site.choice.there());
  EXPECT_EQ(site.n, 6u);
  const SiteWork& experts = plan.any().sites[3];
  EXPECT_EQ(kinds(experts.before), (Kinds{StepKind::rms_norm, StepKind::route}));
  EXPECT_EQ(experts.before[1].routing.picks, 2u);
  EXPECT_EQ(manifest.resident[plan.units[0].tensors[experts.before[1].weight]].name, "layers.0.router");
  EXPECT_EQ(kinds(experts.after), (Kinds{StepKind::add}));
  ASSERT_EQ(experts.editions, plan.sites[3].editions);
  const Encodings& encodings = plan.any().editions[experts.editions.front()];
  EXPECT_EQ(plan.sites.best_of(3).bytes[5], neuron_bytes(experts.cut, encodings, 5));
  // gate and up side by side, each in whole row groups
  EXPECT_GE(plan.any().buffers[experts.ffn.up].width, 2u * 48u);
}

// The router is computed after attention. Each expert has the two sites of a dense layer.
TEST(ModelPlan, ExpertsInChannelsAreSitesOfTheirOwn) {
  const Manifest manifest = manifest_of(
      small_mixture(), {.layout = Layout::channel_group, .layer_group = 2, .experts = ExpertCut::channels});
  const ModelPlan plan = plan_model(manifest, {.max_rows = 8, .context = 16});
  ASSERT_EQ(plan.sites.size(), 2u + 2u * (2u + 6u * 2u));
  const SiteWork& o = plan.any().sites[2];
  EXPECT_EQ(kinds(o.after), (Kinds{StepKind::add, StepKind::rms_norm, StepKind::route}));
  EXPECT_EQ(manifest.resident[plan.units[0].tensors[o.after[2].weight]].name, "layers.0.router");
  for (uint32_t layer = 0; layer < 2; ++layer) {
    EXPECT_FALSE(plan.sites[2 + layer * 14].of_expert());
    for (uint32_t expert = 0; expert < 6; ++expert) {
      for (const uint32_t op : {0u, 1u}) {
        const Site& site = plan.sites[3 + layer * 14 + expert * 2 + op];
        EXPECT_EQ(site.name, "layers." + std::to_string(layer) + ".experts." + std::to_string(expert) +
                                 (op == 0 ? ".up" : ".down"));
        EXPECT_EQ(site.expert, expert);
        EXPECT_EQ(site.rows.column, expert);
        EXPECT_TRUE(site.rows.place.there());
        EXPECT_EQ(site.layer_group, layer) << "a group by itself";
        EXPECT_EQ(site.label, kCutNumber<Columns>);
        EXPECT_EQ(site.n, op == 0 ? 64u : 40u);
        EXPECT_FALSE(site.chosen());
      }
    }
  }
  const SiteWork& up = plan.any().sites[3];
  const SiteWork& down = plan.any().sites[4];
  EXPECT_EQ(kinds(up.before), (Kinds{StepKind::pick}));
  EXPECT_EQ(up.before[0].in, o.after[1].out) << "what the router saw";
  EXPECT_EQ(up.before[0].out, up.in);
  EXPECT_EQ(kinds(up.after), (Kinds{StepKind::activate_mul}));
  EXPECT_EQ(up.after[0].out, down.in);
  EXPECT_EQ(kinds(down.after), (Kinds{StepKind::add_chosen}));
  EXPECT_EQ(down.after[0].in, down.out);
  EXPECT_EQ(down.after[0].choice, o.after[2].out);
  EXPECT_EQ(plan.any().sites[6].after[0].column, 1u);
}

TEST(ModelPlan, ALlamaLayer) {
  const Manifest manifest = manifest_of(small_llama());
  const ModelPlan plan = plan_model(manifest, {.max_rows = 8, .logit_rows = 2, .context = 16});
  ASSERT_EQ(plan.sites.size(), manifest.sites.size());
  ASSERT_EQ(plan.sites.size(), 2u + 2u * 4u);
  EXPECT_TRUE(plan.sites[0].given());
  EXPECT_TRUE(plan.any().sites[0].gather);
  EXPECT_TRUE(plan.any().sites[0].after.empty());
  const SiteWork& qkv = plan.any().sites[1];
  EXPECT_EQ(kinds(qkv.before), (Kinds{StepKind::rms_norm}));
  EXPECT_EQ(kinds(qkv.after), (Kinds{StepKind::rope, StepKind::store_kv, StepKind::attend}));
  EXPECT_EQ(qkv.after[0].width, 64u + 32u);  // q and k are rotated together
  EXPECT_EQ(qkv.after[1].column, 64u);       // k, then v
  EXPECT_EQ(plan.any().sites[5].after[1].layer, 1u);
  EXPECT_EQ(kinds(plan.any().sites[2].after), (Kinds{StepKind::add}));
  EXPECT_EQ(kinds(plan.any().sites[3].after), (Kinds{StepKind::activate_mul}));
  EXPECT_EQ(plan.any().sites[3].after[0].width, 160u);
  const SiteWork& head = plan.any().sites.back();
  EXPECT_EQ(kinds(head.before), (Kinds{StepKind::rms_norm}));
  EXPECT_EQ(plan.any().buffers[head.out].width, 300u);
  EXPECT_EQ(plan.any().buffers[head.out].rows, 2u);
  EXPECT_EQ(plan.any().attention.pairs(), 8u);
  for (size_t s = 0; s < plan.sites.size(); ++s) {
    const Site& site = plan.sites[s];
    ASSERT_EQ(site.editions, std::vector<EditionId>{static_cast<EditionId>(s)});
    EXPECT_EQ(plan.any().sites[s].editions, site.editions);
    const Edition& edition = plan.sites.editions[s];
    EXPECT_EQ(edition.owner, s);
    EXPECT_EQ(edition.n, site.n);
    EXPECT_EQ(edition.slot_bytes % 4096, 0u);
    ASSERT_EQ(edition.bytes.size(), site.n);
    for (const uint32_t bytes : edition.bytes) EXPECT_LE(bytes, edition.slot_bytes);
    // Every buffer that a site uses is wide enough for it.
    const SiteWork& work = plan.any().sites[s];
    if (!work.gather) {
      EXPECT_GE(plan.any().buffers[work.in].width, inputs(work.cut));
    }
    EXPECT_GE(plan.any().buffers[work.out].width, work.gather ? inputs(work.cut) : outputs(work.cut));
  }
}

// Neurons behind a ReLU may be silent, and so may the channels of its output.
TEST(ModelPlan, NeuronsAreSilentBehindARelu) {
  const auto silent = [](Activation activation, bool qkv_relu, Layout layout) {
    ModelConfig config = small_llama();
    config.activation = activation;
    config.qkv_relu = qkv_relu;
    const Manifest manifest = manifest_of(config, {.layout = layout});
    const ModelPlan plan = plan_model(manifest, {.max_rows = 8, .logit_rows = 2, .context = 16});
    std::string names;
    for (SiteId s = 0; s < plan.sites.size(); ++s) {
      const Site& site = plan.sites[s];
      if (site.layer == 0 && !is_cut_into<Rows>(manifest.sites[s].cut) && !site.never_silent)
        names += site.name.substr(site.name.rfind('.') + 1) + " ";
    }
    return names;
  };
  EXPECT_EQ(silent(Activation::silu, false, Layout::neuron), "");
  EXPECT_EQ(silent(Activation::gelu_tanh, false, Layout::neuron), "");
  EXPECT_EQ(silent(Activation::relu, false, Layout::neuron), "ffn ");
  EXPECT_EQ(silent(Activation::relu_squared, false, Layout::neuron), "ffn ");
  EXPECT_EQ(silent(Activation::silu, true, Layout::neuron), "qkv ");
  EXPECT_EQ(silent(Activation::silu, false, Layout::channel_group), "");
  EXPECT_EQ(silent(Activation::relu, false, Layout::channel_group), "down ");
}

// The site that computes an input writes it in the channel order of the sites that use it.
TEST(ModelPlan, InputsInTheOrderOfChannels) {
  ModelConfig config = small_llama();
  config.channel_order = true;
  const Manifest manifest = manifest_of(config, {.layout = Layout::channel_group});
  const ModelPlan plan = plan_model(manifest, {.max_rows = 8, .logit_rows = 2, .context = 16});
  const SiteWork &qkv = plan.any().sites[1], &o = plan.any().sites[2], &up = plan.any().sites[3],
                 &down = plan.any().sites[4];
  EXPECT_EQ(kinds(qkv.before), (Kinds{StepKind::rms_norm, StepKind::reorder}));
  EXPECT_EQ(kinds(qkv.after),
            (Kinds{StepKind::rope, StepKind::store_kv, StepKind::attend, StepKind::reorder}));
  EXPECT_EQ(kinds(up.before), (Kinds{StepKind::rms_norm, StepKind::reorder}));
  EXPECT_EQ(kinds(up.after), (Kinds{StepKind::activate_mul, StepKind::reorder}));
  EXPECT_TRUE(o.before.empty() && down.before.empty());
  const auto expect_input = [&](const SiteWork& site, const Step& step, const char* order, uint32_t width) {
    EXPECT_EQ(site.in, step.out);
    EXPECT_NE(step.in, step.out);
    EXPECT_EQ(step.width, width);
    EXPECT_EQ(manifest.resident[plan.units[0].tensors[step.weight]].name, order);
  };
  expect_input(qkv, qkv.before[1], "layers.0.qkv.order", 64);
  expect_input(o, qkv.after[3], "layers.0.o.order", 64);
  expect_input(up, up.before[1], "layers.0.up.order", 64);
  expect_input(down, up.after[1], "layers.0.down.order", 160);
}

TEST(ModelPlan, AnOptLayerHasBiasesAndATiedHead) {
  const Manifest manifest = manifest_of(small_opt());
  const ModelPlan plan = plan_model(manifest, {.max_rows = 8, .logit_rows = 1, .context = 16});
  EXPECT_EQ(kinds(plan.any().sites[0].after), (Kinds{StepKind::add_position}));
  EXPECT_EQ(plan.any().sites[0].after[0].offset, 2u);
  const SiteWork& qkv = plan.any().sites[1];
  EXPECT_EQ(kinds(qkv.before), (Kinds{StepKind::layer_norm}));
  EXPECT_NE(qkv.before[0].bias, kNoTensor);
  EXPECT_EQ(kinds(qkv.after), (Kinds{StepKind::add_bias, StepKind::add_bias, StepKind::add_bias,
                                     StepKind::store_kv, StepKind::attend}));
  EXPECT_EQ(qkv.after[2].column, 144u);
  EXPECT_EQ(kinds(plan.any().sites[3].after), (Kinds{StepKind::add_bias, StepKind::activate}));
  EXPECT_EQ(plan.any().sites[3].after[1].activation, Activation::relu);
  EXPECT_EQ(kinds(plan.any().sites[4].after), (Kinds{StepKind::add_bias, StepKind::add}));
  // The head owns the edition that both use. Every other site has its own, in the order of the sites.
  const auto head = static_cast<SiteId>(plan.sites.size() - 1);
  ASSERT_EQ(plan.sites.editions.size(), head);
  ASSERT_EQ(plan.any().editions.size(), head);
  for (SiteId s = 1; s <= head; ++s) {
    EXPECT_EQ(plan.sites[s].editions, std::vector<EditionId>{s - 1});
    EXPECT_EQ(plan.sites.best_of(s).owner, s);
  }
  EXPECT_EQ(plan.sites[0].editions, plan.sites[head].editions);
  EXPECT_EQ(plan.any().sites[0].editions, plan.sites[head].editions);
  EXPECT_EQ(plan.sites[0].n, plan.sites[head].n);
  EXPECT_EQ(plan.sites.best_of(0).first_extent, manifest.sites[0].first_extent);
}

TEST(ModelPlan, AParallelLayerReadsOneInputForBothHalves) {
  ModelConfig config = small_opt();
  config.parallel = true;
  config.ffn_norm = false;
  const ModelPlan shared = plan_model(manifest_of(config), {.max_rows = 8, .logit_rows = 1, .context = 16});
  const SiteWork& qkv = shared.any().sites[1];
  const SiteWork& up = shared.any().sites[3];
  EXPECT_EQ(up.in, qkv.in);
  EXPECT_EQ(kinds(qkv.before), (Kinds{StepKind::layer_norm}));
  EXPECT_TRUE(up.before.empty());

  config.ffn_norm = true;
  const ModelPlan apart = plan_model(manifest_of(config), {.max_rows = 8, .logit_rows = 1, .context = 16});
  EXPECT_NE(apart.any().sites[3].in, apart.any().sites[1].in);
  EXPECT_EQ(kinds(apart.any().sites[1].before), (Kinds{StepKind::layer_norm, StepKind::layer_norm}));
  EXPECT_EQ(apart.any().sites[1].before[1].out, apart.any().sites[3].in);
  EXPECT_TRUE(apart.any().sites[3].before.empty());
}

TEST(ModelPlan, HeadsAreNormedBeforeTheyTurn) {
  ModelConfig config = small_opt();
  config.position = PositionKind::rope_half;
  config.position_offset = 0;
  config.rope.dim = 8;
  config.qk_norm = true;
  config.tied_embeddings = false;
  config.head_bias = true;
  const ModelPlan plan = plan_model(manifest_of(config), {.max_rows = 8, .logit_rows = 1, .context = 16});
  const Program& after = plan.any().sites[1].after;
  EXPECT_EQ(kinds(after),
            (Kinds{StepKind::add_bias, StepKind::add_bias, StepKind::add_bias, StepKind::head_norm,
                   StepKind::head_norm, StepKind::rope, StepKind::store_kv, StepKind::attend}));
  EXPECT_EQ(after[4].column, 72u);  // of k
  EXPECT_NE(after[3].weight, after[4].weight);
  EXPECT_EQ(plan.any().attention.pairs(), 4u);
  EXPECT_EQ(kinds(plan.any().sites.back().after), (Kinds{StepKind::add_bias}));
}

TEST(Program, BuffersFollowEachOtherInWholeRowGroups) {
  ComputePlan plan;
  plan.buffers = {{"a", 17, 0}, {"b", 16, 2}, {"c", 1, 9}};
  plan.max_rows = 3;
  EXPECT_EQ(buffer_stride(plan.buffers[0]), 32u);
  EXPECT_EQ(buffer_offsets(plan), (std::vector<uint64_t>{0, 3 * 128, 3 * 128 + 2 * 64, 3 * 128 + 5 * 64}));
  EXPECT_EQ(activation_bytes(plan), 3u * 128u + 5u * 64u);
  plan.int8_activations = true;
  plan.sites.resize(1);
  plan.sites[0].cut = Columns{.n_in = 64, .n_out = 16};
  EXPECT_EQ(activation_bytes(plan), 3u * 128u + 5u * 64u + 3u * (64u + 24u));
  plan.attention.n_layers = 2;
  plan.attention.n_kv_heads = 3;
  plan.attention.head_dim = 4;
  plan.context = 10;
  plan.sequences = 2;
  EXPECT_EQ(kv_bytes(plan), 2u * 2u * 2u * 10u * 12u * 2u);
  plan.kv = KvEncoding::f32;
  EXPECT_EQ(kv_bytes(plan), 2u * 2u * 2u * 10u * 12u * 4u);
}

std::vector<std::array<uint32_t, 3>> parts(const std::vector<UnitColumns>& columns) {
  std::vector<std::array<uint32_t, 3>> all;
  for (const UnitColumns& part : columns) all.push_back({part.unit, part.first, part.count});
  return all;
}

// 4 heads of 16, and 2 of keys and values: q has 64 columns, k and v have 32 each.
TEST(ModelPlan, HeadsAreDividedAmongUnits) {
  const Manifest manifest = manifest_of(small_llama());
  const ModelPlan plan =
      plan_model(manifest, {.max_rows = 8, .context = 16, .units = 4, .dense = 1, .attention = {0, 2, 3}});
  const ModelPlan one = plan_model(manifest, {.max_rows = 8, .context = 16});
  ASSERT_EQ(plan.units.size(), 4u);
  using Parts = std::vector<std::array<uint32_t, 3>>;
  constexpr uint32_t kAll = UINT32_MAX;
  EXPECT_EQ(parts(plan.sites[0].flow.output), (Parts{{1, 0, kAll}}));
  EXPECT_EQ(plan.sites[0].n_out, manifest.config.d_model) << "rows as they are";
  EXPECT_FALSE(plan.sites[0].flow.before);
  const Flow& qkv = plan.sites[1].flow;
  EXPECT_EQ(parts(qkv.input), (Parts{{1, 0, kAll}}));
  EXPECT_TRUE(qkv.before);
  EXPECT_EQ(parts(qkv.output),
            (Parts{{0, 0, 32}, {0, 64, 16}, {0, 96, 16}, {2, 32, 32}, {2, 80, 16}, {2, 112, 16}}));
  const Flow& o = plan.sites[2].flow;
  EXPECT_EQ(parts(o.input), (Parts{{0, 0, 32}, {2, 32, 32}}));
  EXPECT_FALSE(o.before);
  EXPECT_EQ(parts(o.output), (Parts{{1, 0, kAll}}));
  EXPECT_EQ(parts(plan.sites.all.back().flow.output), (Parts{{1, 0, kAll}}));

  const ComputePlan& first = plan.units[0].compute;
  EXPECT_EQ(first.attention.n_heads, 2u);
  EXPECT_EQ(first.attention.n_kv_heads, 1u);
  EXPECT_TRUE(first.sites[1].before.empty());
  const Program& attend = plan.units[2].compute.sites[1].after;
  ASSERT_EQ(kinds(attend), (Kinds{StepKind::rope, StepKind::rope, StepKind::store_kv, StepKind::attend}));
  EXPECT_EQ(attend[0].column, 32u);
  EXPECT_EQ(attend[1].column, 80u);
  EXPECT_EQ(attend[2].column, 80u);
  EXPECT_EQ(attend[2].offset, 112u);
  EXPECT_EQ(attend[2].width, 16u);
  EXPECT_EQ(attend[3].column, 32u);
  EXPECT_EQ(attend[3].width, 32u);
  const ComputePlan& dense = plan.units[1].compute;
  EXPECT_EQ(kinds(dense.sites[1].before), (Kinds{StepKind::rms_norm}));
  EXPECT_TRUE(dense.sites[1].after.empty());
  EXPECT_EQ(kinds(dense.sites[2].after), (Kinds{StepKind::add}));
  EXPECT_EQ(kv_bytes(dense), 0u);
  EXPECT_EQ(kv_bytes(plan.units[3].compute), 0u) << "more units than heads";
  EXPECT_EQ(kv_bytes(first) + kv_bytes(plan.units[2].compute), kv_bytes(one.any()));
  EXPECT_TRUE(plan.units[3].tensors.empty());
  EXPECT_EQ(plan.units[1].tensors.size(), one.units[0].tensors.size());
  EXPECT_EQ(buffer_offsets(first), buffer_offsets(one.any()));
}

// A unit adds the biases of its own heads' columns.
TEST(ModelPlan, BiasesOfDividedHeads) {
  const Manifest manifest = manifest_of(small_opt());
  const ModelConfig& config = manifest.config;
  const ModelPlan plan = plan_model(manifest, {.context = 16, .units = 2, .attention = {0, 1}});
  const Program& after = plan.units[1].compute.sites[1].after;
  ASSERT_GE(after.size(), 3u);
  const uint32_t first = 2 * config.head_dim;  // the first unit has two of three heads
  for (uint32_t part = 0; part < 3; ++part) {
    EXPECT_EQ(after[part].kind, StepKind::add_bias);
    EXPECT_EQ(after[part].column, part * config.q_dim() + first);
    EXPECT_EQ(after[part].offset, first);
    EXPECT_EQ(after[part].width, config.head_dim);
  }
}

TEST(ModelPlan, EditionsThatAreMadeStandBesideTheStoredOne) {
  const Manifest manifest = manifest_of(small_llama(), {.layout = Layout::neuron});
  ModelOptions options{.max_rows = 8, .context = 16, .units = 2};
  auto recoded = editions_of(manifest, {Encoding::q8_0, Encoding::q4_0}, "key");
  ASSERT_TRUE(recoded.ok()) << recoded.error().line();
  options.recoded = *recoded;
  ModelPlan plan = plan_model(manifest, options);
  const auto stored = static_cast<EditionId>(manifest.stored().size());
  ASSERT_EQ(plan.sites.editions.size(), stored + 2 * manifest.config.n_layers);
  SiteId ffn = 0;
  while (manifest.sites[ffn].group != OpGroup::ffn) ++ffn;
  const EditionId best = plan.sites.best(ffn);
  ASSERT_EQ(plan.sites[ffn].editions, (std::vector<EditionId>{best, stored, stored + 1}));
  for (const EditionId made : {stored, stored + 1}) {
    const Edition& edition = plan.sites.editions[made];
    EXPECT_EQ(edition.made_of, best);
    EXPECT_EQ(edition.owner, ffn);
    EXPECT_EQ(edition.first_extent, plan.sites.editions[best].first_extent);
    EXPECT_EQ(edition.bytes[0], neuron_bytes(manifest.sites[ffn].cut, plan.any().editions[made], 0));
    EXPECT_EQ(plan.any().editions[made].front(), made == stored ? Encoding::q8_0 : Encoding::q4_0);
    EXPECT_EQ(plan.sites.wanted(ffn, made), made);
  }
  Memory below, above;
  hold_editions(plan, below, 0, {});
  hold_editions(plan, above, 1, {.recodes = true});
  for (const EditionId e : plan.sites[ffn].editions) {
    EXPECT_EQ(below.held_as(e), best);
    EXPECT_EQ(above.held_as(e), e);
    EXPECT_EQ(plan.units[0].compute.made_of(e), nullptr) << "nobody encodes what is read";
    EXPECT_EQ(plan.units[1].compute.recoded_of(e) != nullptr, e != best);
  }
  EXPECT_EQ(plan.units[1].compute.recoded_of(stored)->of, best);
  EXPECT_EQ(plan.units[1].compute.recoded_of(stored)->site, ffn);
  EXPECT_EQ(plan.units[1].compute.expanded_of(stored), nullptr);
  EXPECT_EQ(plan.units[0].compute.sites[ffn].editions, (std::vector<uint32_t>{best}));
  EXPECT_EQ(plan.units[1].compute.sites[ffn].editions, plan.sites[ffn].editions);
  for (SiteId s = 0; s < plan.sites.size(); ++s) {
    EXPECT_EQ(plan.sites[s].editions.size(), manifest.sites[s].group == OpGroup::ffn ? 3u : 1u);
  }
}

}  // namespace
}  // namespace tierd
