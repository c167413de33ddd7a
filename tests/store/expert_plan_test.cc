// The cut and layout of a mixture's experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/shape_file.h"
#include "core/store/manifest_check.h"
#include "tests/store/memory_source.h"
#include "tests/store/planned.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(Planner, ExpertsAreKeptWhole) {
  const ModelConfig config = small_mixture();
  for (const Layout layout : {Layout::row, Layout::channel_group}) {
    const auto plan = plan_layout(config, tensors_of(config, Encoding::f16), {.layout = layout});
    ASSERT_TRUE(plan.ok()) << plan.error().line();
    EXPECT_EQ(plan->sites.size(), 2u + 2u * 3u);
    const StoredSite& experts = site_of(*plan, "layers.1.experts");
    EXPECT_TRUE(is_cut_into<Experts>(experts.cut));
    EXPECT_EQ(experts.neurons(), 6u);
    EXPECT_EQ(experts.neuron_bytes(0), (2 * 48 * 64 + 64 * 40) * 2u);  // 40 rows are three groups
    EXPECT_EQ(experts.tensor_bytes(), 6u * 3 * 40 * 64 * 2);
    EXPECT_EQ(experts.slot_bytes() % 4096, 0u);
    EXPECT_EQ(tensor_of_expert(experts.parts[2], 5), "layers.1.experts.5.down");
    EXPECT_TRUE(check_manifest(*plan, "plan").ok());
    uint64_t all = 0;
    for (const TensorSpec& spec : required_tensors(config)) {
      const bool resident = spec.rows == 1 || spec.name.ends_with("router");
      all += spec.rows * spec.cols * (resident ? 4 : 2);
    }
    EXPECT_EQ(plan->tensor_bytes, all);
  }
  EXPECT_THAT(
      plan_layout(config, tensors_of(config, Encoding::f16), {.layout = Layout::neuron}).error().line(),
      HasSubstr("layout: 'neuron' is not supported for a mixture"));
  // blocks of 32 do not fit 40 columns of down
  EXPECT_THAT(plan_layout(config, tensors_of(config, Encoding::q8_0), {}).error().line(),
              HasSubstr("rows of 40 columns cannot be q8_0"));
  ModelConfig huge = config;
  huge.d_model = huge.d_ff = 1u << 15;
  EXPECT_THAT(plan_layout(huge, tensors_of(huge, Encoding::f16), {}).error().line(),
              HasSubstr("experts of 6442450944 bytes, expected at most 1073741824"));
}

// Channels of experts are not grouped over layers, because the next layer's router chooses other experts.
TEST(Planner, ExpertsMayBeCutIntoChannels) {
  const ModelConfig config = small_mixture();
  const auto plan =
      plan_layout(config, tensors_of(config, Encoding::f16),
                  {.layout = Layout::channel_group, .layer_group = 2, .experts = ExpertCut::channels});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->sites.size(), 2u + 2u * (2u + 6u * 2u));
  const StoredSite& up = site_of(*plan, "layers.1.experts.5.up");
  EXPECT_EQ(up.group, OpGroup::expert_up);
  EXPECT_EQ(up.expert, 5u);
  EXPECT_EQ(up.neurons(), 64u);
  EXPECT_EQ(up.stride, 1u);
  EXPECT_EQ(up.neuron_bytes(0), align_up(2 * 40 * 2u, kPieceAlignment));
  EXPECT_EQ(up.parts[0].tensor, "layers.1.experts.5.gate");
  EXPECT_EQ(up.parts[1].tensor, "layers.1.experts.5.up");
  const StoredSite& down = site_of(*plan, "layers.1.experts.5.down");
  EXPECT_EQ(down.neurons(), 40u);
  EXPECT_EQ(outputs(down.cut), 64u);
  EXPECT_EQ(down.first_extent, up.first_extent + 64);
  EXPECT_EQ(site_of(*plan, "layers.1.qkv").stride, 2u);
  EXPECT_TRUE(check_manifest(*plan, "plan").ok());
  const auto rows = plan_layout(config, tensors_of(config, Encoding::f16), {});
  EXPECT_EQ(plan->tensor_bytes, rows->tensor_bytes);
  const auto refused = [](const ModelConfig& of, Layout layout) {
    return plan_layout(of, tensors_of(of, Encoding::f16), {.layout = layout, .experts = ExpertCut::channels})
        .error()
        .line();
  };
  EXPECT_EQ(refused(config, Layout::row),
            "experts: in channels are not supported in layout row; expected layout channel-group");
  EXPECT_EQ(refused(small_llama(), Layout::channel_group),
            "experts: are set to 'channels', but this model is not a mixture");
}

TEST(Planner, MoreChannelsOfExpertsThanAStoreCanNumberAreRefused) {
  const auto config = read_shape("qwen3-30b-a3b");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(plan_layout(*config, tensors_of(*config, Encoding::q4_0),
                        {.layout = Layout::channel_group, .experts = ExpertCut::channels})
                .error()
                .line(),
            "layout: 'channel-group' needs 17596416 extents for this model, expected at most 16777216; keep "
            "experts whole for fewer extents (--experts whole, --set model.experts=whole)");
}

}  // namespace
}  // namespace tierd
