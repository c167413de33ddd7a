#include "core/engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/units.h"
#include "core/model/shape_file.h"
#include "core/store/planner.h"
#include "tests/sanitized.h"
#include "tests/store/planned.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// Returns a store of this shape without weights.
Manifest store_of(const std::string& shape, Encoding encoding, Layout layout = Layout::row) {
  const auto config = read_shape(shape);
  EXPECT_TRUE(config.ok()) << config.error().line();
  auto plan = plan_layout(*config, tensors_of(*config, encoding), {.layout = layout});
  EXPECT_TRUE(plan.ok()) << plan.error().line();
  return std::move(*plan);
}

// The plan of a single tier.
struct OneTier : TierMemory {
  ModelOptions model;
};
Result<OneTier> plan_one(const Manifest& manifest, const MemoryRequest& request) {
  TIERD_ASSIGN(const MemoryPlan plan, plan_memory(manifest, request));
  return OneTier{plan.tiers.front(), plan.model};
}

MemoryRequest request_of(const Manifest& manifest, Capacity capacity, uint32_t context = 512) {
  MemoryRequest request;
  request.tiers.push_back({.name = "dram", .capacity = capacity, .units = {0}});
  request.model.context = std::min(context, manifest.config.context_length);
  request.model.max_rows = std::min(512u, request.model.context);
  request.model.int8_activations = is_quantized(manifest.sites[1].encodings.front());
  return request;
}

Capacity bytes(uint64_t n) {
  return {Capacity::Kind::bytes, 0, n};
}

uint64_t largest_slot(const Manifest& manifest) {
  uint64_t largest = 0;
  for (const StoredSite& site : manifest.sites) {
    const uint64_t together = run_of(site.cut);
    largest = std::max(largest, align_up(together * site.slot_bytes(), 4096));
  }
  return largest;
}

// Expects the invariants of every plan.
void expect_sound(const OneTier& plan, const Manifest& manifest, const MemoryRequest& request) {
  EXPECT_LE(plan.tensors + plan.tables + plan.kv + plan.activations + plan.staging + plan.bounce +
                plan.direct + plan.arena,
            plan.capacity);
  EXPECT_EQ(plan.bounce != 0, manifest.layout == Layout::neuron);
  EXPECT_EQ(plan.bounce % 4096, 0u);
  EXPECT_GE(plan.capacity, plan.least);
  EXPECT_LE(plan.arena, plan.whole);
  EXPECT_EQ(plan.staging, uint64_t{plan.blocks} * plan.block_bytes);
  EXPECT_GE(plan.blocks, 2u);
  const uint64_t largest = largest_slot(manifest);
  EXPECT_GE(plan.block_bytes, largest);
  EXPECT_EQ(plan.block_bytes % 4096, 0u);
  EXPECT_LE(plan.staging, std::max(request.tiers.front().most_staging, 2 * largest));
  EXPECT_GE(plan.model.max_rows, 1u);
  EXPECT_GE(plan.model.max_rows, plan.model.logit_rows);
  EXPECT_LE(plan.model.max_rows, request.model.max_rows);
  EXPECT_EQ(plan.model.context, request.model.context);
  const ComputePlan compute = plan_model(manifest, plan.model).any();
  EXPECT_EQ(plan.activations, activation_bytes(compute));
  EXPECT_EQ(plan.kv, kv_bytes(compute));
}

// Shares from the least capacity to all.
const std::vector<double> kParts = kSanitized ? std::vector{0.0, 0.003, 0.1, 1.0}
                                              : std::vector{0.0, 1e-5, 0.001, 0.01, 0.1, 0.5, 0.99, 1.0, 1.5};

TEST(MemoryPlan, EveryShapeAtEveryCapacity) {
  struct Cut {
    Encoding encoding;
    Layout layout;
  };
  uint32_t turn = 0;
  for (const std::string& shape : known_shapes()) {
    for (const auto& [encoding, layout] : {Cut{Encoding::q4_0, Layout::row}, Cut{Encoding::f16, Layout::row},
                                           Cut{Encoding::f16, Layout::neuron}}) {
      if (kSanitized && turn++ % 4 != 0) continue;
      if (layout == Layout::neuron && read_shape(shape)->is_mixture()) continue;  // experts are kept whole
      SCOPED_TRACE(shape + " " + std::string(name(encoding)) + " " + std::string(name(layout)));
      const Manifest manifest = store_of(shape, encoding, layout);
      const auto all = plan_one(manifest, request_of(manifest, {}));
      ASSERT_TRUE(all.ok()) << all.error().line();
      expect_sound(*all, manifest, request_of(manifest, {}));
      EXPECT_EQ(all->arena, all->whole);
      EXPECT_EQ(all->model.max_rows, request_of(manifest, {}).model.max_rows);

      const uint64_t least = all->least;
      uint64_t arena = 0;
      for (const double part : kParts) {
        const auto capacity =
            least + static_cast<uint64_t>(part * static_cast<double>(all->capacity - least));
        SCOPED_TRACE("capacity " + std::to_string(capacity));
        const MemoryRequest request = request_of(manifest, bytes(capacity));
        const auto plan = plan_one(manifest, request);
        ASSERT_TRUE(plan.ok()) << plan.error().line();
        EXPECT_EQ(plan->capacity, capacity);
        EXPECT_FALSE(plan->raised_to_least);
        expect_sound(*plan, manifest, request);
        if (part >= 0.1) {
          EXPECT_GE(plan->arena, arena);
        }
        if (part >= 1) {
          EXPECT_EQ(plan->arena, plan->whole);
        }
        arena = plan->arena;
      }
    }
  }
}

// A pass reads scattered neurons piece by piece, and each piece has a block.
TEST(MemoryPlan, ScatteredNeuronsPassThroughManySmallBlocks) {
  const auto blocks = [](Layout layout) {
    const Manifest manifest = store_of("llama-2-7b", Encoding::q4_0, layout);
    const auto plan = plan_one(manifest, request_of(manifest, bytes(manifest.tensor_bytes / 2)));
    EXPECT_TRUE(plan.ok()) << plan.error().line();
    return plan->blocks;
  };
  EXPECT_LE(blocks(Layout::row), 20u);
  EXPECT_GE(blocks(Layout::channel_group), 60u);
}

TEST(MemoryPlan, TheLeastIsTheLeast) {
  for (const std::string shape : {"llama-2-7b", "opt-125m", "qwen2.5-0.5b"}) {
    const Manifest manifest = store_of(shape, Encoding::q4_0);
    const auto refused = plan_one(manifest, request_of(manifest, bytes(1)));
    ASSERT_EQ(refused.code(), Code::no_space);
    const uint64_t least = plan_one(manifest, request_of(manifest, {}))->least;
    const std::string line = plan_one(manifest, request_of(manifest, bytes(least - 1))).error().line();
    EXPECT_THAT(line, HasSubstr("tiers.dram.capacity: "));
    EXPECT_THAT(line, HasSubstr("(" + std::to_string(least) + " bytes"));
    EXPECT_THAT(line, HasSubstr("--fit"));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto accepted = plan_one(manifest, request_of(manifest, bytes(least)));
    ASSERT_TRUE(accepted.ok());
    expect_sound(*accepted, manifest, request_of(manifest, bytes(least)));
    EXPECT_EQ(accepted->arena, 0u);
    EXPECT_EQ(accepted->blocks, 2u);
    EXPECT_EQ(accepted->model.max_rows, 1u);
    // --fit raises a smaller capacity to the least.
    for (const uint64_t asked : {uint64_t{0}, uint64_t{1}, least - 1}) {
      MemoryRequest request = request_of(manifest, bytes(asked));
      request.fit = true;
      const auto fitted = plan_one(manifest, request);
      ASSERT_TRUE(fitted.ok());
      EXPECT_TRUE(fitted->raised_to_least);
      EXPECT_EQ(fitted->capacity, least);
    }
  }
}

// KV cache and small tensors may take nearly everything. A prefill chunk must fit the rest.
TEST(MemoryPlan, ALongContextLeavesLittleForThePrompt) {
  const Manifest manifest = store_of("tinyllama-1.1b", Encoding::q4_0);
  const uint64_t least = plan_one(manifest, request_of(manifest, bytes(0), 2048)).ok()
                             ? 0
                             : plan_one(manifest, request_of(manifest, {}, 2048))->least;
  for (uint64_t over = 0; over < (64u << 20); over += 300'000) {
    const MemoryRequest request = request_of(manifest, bytes(least + over), 2048);
    const auto plan = plan_one(manifest, request);
    ASSERT_TRUE(plan.ok());
    expect_sound(*plan, manifest, request);
  }
}

constexpr Capacity kAuto = {Capacity::Kind::automatic, 1, 0};

TEST(MemoryPlan, AutoIsWhatThereIsAndNoMoreThanEverything) {
  const Manifest manifest = store_of("opt-125m", Encoding::q4_0);
  const auto all = plan_one(manifest, request_of(manifest, {}));
  ASSERT_TRUE(all.ok());
  const auto with = [&](uint64_t there) {
    MemoryRequest request = request_of(manifest, kAuto);
    request.most = {"a group", there};
    const auto plan = plan_one(manifest, request);
    if (plan.ok()) {
      expect_sound(*plan, manifest, request);
      EXPECT_TRUE(plan->automatic);
    }
    return plan;
  };
  for (const uint64_t there : {all->least, all->least + 12'345, all->capacity / 2})
    EXPECT_EQ(with(there)->capacity, there);
  const auto plenty = with(UINT64_MAX);
  EXPECT_EQ(plenty->arena, plenty->whole);
  EXPECT_LE(plenty->capacity, all->capacity + plenty->whole / 8)
      << "everything, and staging for what streams";
  const std::string line = with(all->least - 1).error().line();
  EXPECT_THAT(line, HasSubstr(", and a group leaves no more: "));
  EXPECT_THAT(line, HasSubstr("(" + std::to_string(all->least) + " bytes"));
  EXPECT_THAT(line, testing::EndsWith("set a smaller context (-c), or --force"));
}

TEST(MemoryPlan, MoreThanThereIsIsRefusedWithBothNumbers) {
  const Manifest manifest = store_of("opt-125m", Encoding::q4_0);
  const uint64_t least = plan_one(manifest, request_of(manifest, {}))->least;
  MemoryRequest request = request_of(manifest, bytes(least + 1000));
  request.most = {"a group", least + 999};
  EXPECT_EQ(plan_one(manifest, request).error().line(),
            "tiers.dram.capacity: " + format_bytes(static_cast<double>(least + 1000)) + " (" +
                std::to_string(least + 1000) + " bytes) is more than the " +
                format_bytes(static_cast<double>(least + 999)) + " (" + std::to_string(least + 999) +
                " bytes) that a group leaves; set less, \"auto\", or --force");
  request.force = true;
  EXPECT_EQ(plan_one(manifest, request)->capacity, least + 1000);
  // The capacity is not raised above the available memory.
  request = request_of(manifest, bytes(1));
  request.fit = true;
  request.most = {"a group", least - 1, MemoryLimit::Counts::pages, 7'000'000};
  EXPECT_THAT(plan_one(manifest, request).error().line(),
              HasSubstr("and a group leaves no more beside 7.00 MB for the process itself: "));
  request.most.left_bytes = least;
  EXPECT_EQ(plan_one(manifest, request)->capacity, least);
}

// A tier with a capacity of its own keeps it; the others share the rest.
TEST(MemoryPlan, TiersOnAutoShareWhatTheOthersLeave) {
  const Manifest manifest = store_of("opt-125m", Encoding::q4_0);
  const uint64_t all = plan_one(manifest, request_of(manifest, {}))->capacity;
  MemoryRequest request = request_of(manifest, bytes(all / 2));
  request.tiers.push_back({.name = "near", .capacity = kAuto, .bounces = false});
  request.tiers.push_back({.name = "far", .capacity = kAuto, .bounces = false});
  request.most = {"a group", all};
  const auto plan = plan_memory(manifest, request);
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->tiers[0].capacity, all / 2);
  EXPECT_EQ(plan->tiers[1].capacity, (all - all / 2) / 2);
  EXPECT_EQ(plan->tiers[0].capacity + plan->tiers[1].capacity + plan->tiers[2].capacity, all);
}

TEST(MemoryPlan, AContextThatMayBeIsHalvedUntilItFits) {
  const Manifest manifest = store_of("tinyllama-1.1b", Encoding::q4_0);
  const uint64_t least = plan_one(manifest, request_of(manifest, {}, 512))->least;
  MemoryRequest request = request_of(manifest, bytes(least), 2048);
  EXPECT_EQ(plan_one(manifest, request).code(), Code::no_space);
  request.shortest_context = 256;
  const auto halved = plan_memory(manifest, request);
  ASSERT_TRUE(halved.ok()) << halved.error().line();
  EXPECT_EQ(halved->model.context, 512u);
  request.shortest_context = 1024;
  EXPECT_THAT(plan_one(manifest, request).error().line(), HasSubstr("with a context of 1024 "));
}

TEST(MemoryPlan, SharesAreOfTheTensorBytes) {
  const Manifest manifest = store_of("llama-2-7b", Encoding::q4_0);
  const auto half = plan_one(manifest, request_of(manifest, {Capacity::Kind::share, 0.5, 0}));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->capacity, manifest.tensor_bytes / 2);
  EXPECT_LT(half->arena, manifest.tensor_bytes / 2);
  EXPECT_GT(half->arena, manifest.tensor_bytes * 35 / 100);
}

TEST(MemoryPlan, TablesThatDoNotFitAreNamedByTheirFile) {
  const Manifest manifest = store_of("tinyllama-1.1b", Encoding::q4_0);
  const uint64_t least = plan_one(manifest, request_of(manifest, {}))->least;
  constexpr uint64_t kMiB = 1u << 20;
  const auto plan = [&](Capacity capacity, std::vector<TableRequest> tables, bool fit = false) {
    MemoryRequest request = request_of(manifest, capacity);
    request.tiers.front().tables = std::move(tables);
    request.fit = fit;
    const auto planned = plan_one(manifest, request);
    if (planned.ok()) expect_sound(*planned, manifest, request);
    return planned;
  };
  const std::vector<TableRequest> two = {{"a.safetensors", 5 * kMiB}, {"b.safetensors", 100 * kMiB}};
  EXPECT_EQ(plan(bytes(least + 105 * kMiB), two)->least, least + 105 * kMiB);
  EXPECT_EQ(plan({}, two)->arena, plan({}, {})->arena);
  for (const uint64_t capacity : {least, least + 105 * kMiB - 1}) {
    const auto refused = plan(bytes(capacity), two);
    EXPECT_EQ(refused.code(), Code::no_space);
    EXPECT_THAT(refused.error().line(),
                testing::StartsWith("b.safetensors: its tensors need 105 MB of 110 MB for tables of "
                                    "plugins, tiers.dram.capacity is "));
    EXPECT_THAT(refused.error().line(), HasSubstr("(" + std::to_string(least + 105 * kMiB) + " bytes)"));
    EXPECT_EQ(plan(bytes(capacity), two, true)->capacity, least + 105 * kMiB);
  }
  // Tables larger than all memory, of which the model would need most.
  EXPECT_THAT(plan(bytes(kMiB), two).error().line(), testing::StartsWith("b.safetensors: "));
  EXPECT_THAT(plan({Capacity::Kind::share, 0.2, 0}, {{"c.safetensors", uint64_t{1} << 40}}).error().line(),
              testing::StartsWith("c.safetensors: its tensors need 1.10 TB, tiers.dram.capacity is "));
  // Too little for the model alone: the error names the capacity, with the tables as a part.
  EXPECT_THAT(
      plan(bytes(6 * kMiB), {{"a.safetensors", 5 * kMiB}}).error().line(),
      testing::AllOf(testing::StartsWith("tiers.dram.capacity: "), HasSubstr(", tables of plugins 5.24 MB")));
}

TEST(MemoryPlan, BundlesHaveABounceBuffer) {
  const Manifest manifest = store_of("opt-6.7b", Encoding::f16, Layout::neuron);
  const auto all = plan_one(manifest, request_of(manifest, {}));
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->bounce, 16u << 20);
  const auto half = plan_one(manifest, request_of(manifest, {Capacity::Kind::share, 0.5, 0}));
  EXPECT_EQ(half->bounce, 16u << 20);
  const auto least = plan_one(manifest, request_of(manifest, bytes(all->least)));
  ASSERT_TRUE(least.ok());
  EXPECT_EQ(least->bounce, 2u * 16384);
  EXPECT_THAT(plan_one(manifest, request_of(manifest, bytes(1))).error().line(),
              HasSubstr(", bounce buffer 32.8 kB"));
}

// The host's memory for reads to memory that is apart: at least twice the largest slot for each reader.
TEST(MemoryPlan, DirectReadersHaveMemoryOfTheHost) {
  for (const Layout layout : {Layout::row, Layout::neuron}) {
    const Manifest manifest = store_of("tinyllama-1.1b", Encoding::q4_0, layout);
    uint64_t slot = 0;
    for (const StoredSite& site : manifest.sites) slot = std::max(slot, site.slot_bytes());
    MemoryRequest request = request_of(manifest, {.kind = Capacity::Kind::all});
    const auto without = plan_one(manifest, request);
    ASSERT_TRUE(without.ok()) << without.error().line();
    EXPECT_EQ(without->direct, 0u);
    for (const uint32_t readers : {1, 3}) {
      request.tiers.front().direct_readers = readers;
      const auto plenty = plan_one(manifest, request);
      ASSERT_TRUE(plenty.ok()) << plenty.error().line();
      EXPECT_EQ(plenty->direct, readers * (16u << 20));
      EXPECT_EQ(plenty->arena, without->arena);
      EXPECT_GE(plenty->least, without->least + readers * 2 * slot);
      MemoryRequest tight = request;
      tight.tiers.front().capacity = bytes(plenty->least);
      const auto least = plan_one(manifest, tight);
      ASSERT_TRUE(least.ok()) << least.error().line();
      expect_sound(*least, manifest, tight);
      EXPECT_GE(least->direct, readers * 2 * slot);
      EXPECT_LT(least->direct, plenty->direct);
      tight.tiers.front().capacity = bytes(plenty->least - 1);
      EXPECT_THAT(plan_one(manifest, tight).error().line(), HasSubstr(", direct reads "));
    }
  }
}

// The biases of neurons are needed by every unit that may compute them.
TEST(MemoryPlan, EachUnitHasTheBiasesOfNeurons) {
  const Manifest manifest = store_of("opt-125m", Encoding::f16, Layout::neuron);
  MemoryRequest request = request_of(manifest, {});
  const auto one = plan_one(manifest, request);
  request.model.units = 3;
  request.tiers.front().units = {0, 1, 2};
  request.tiers.front().memories = 3;
  const auto three = plan_one(manifest, request);
  ASSERT_TRUE(one.ok() && three.ok());
  uint64_t biases = 0;
  for (const ResidentTensor& tensor : manifest.resident) {
    if (tensor.name.ends_with(".up.bias")) biases += manifest.extents[tensor.extent].bytes;
  }
  EXPECT_GE(biases, 12u * 3072 * sizeof(float));
  EXPECT_EQ(three->tensors, one->tensors + 2 * biases);
  EXPECT_EQ(three->kv, one->kv);
  EXPECT_GE(three->least, one->least + 2 * biases);

  const Manifest rows = store_of("opt-125m", Encoding::f16, Layout::row);
  EXPECT_EQ(plan_one(rows, request)->tensors, plan_one(rows, request_of(rows, {}))->tensors);
}

TEST(MemoryPlan, StagingIsBounded) {
  const Manifest manifest = store_of("llama-2-7b", Encoding::q4_0);
  for (const uint64_t most : {uint64_t{0}, uint64_t{3u << 20}, uint64_t{17u << 20}, uint64_t{64u << 20}}) {
    MemoryRequest request = request_of(manifest, {Capacity::Kind::share, 0.5, 0});
    request.tiers.front().most_staging = most;
    const auto plan = plan_one(manifest, request);
    ASSERT_TRUE(plan.ok());
    expect_sound(*plan, manifest, request);
  }
}

TEST(MemoryPlan, StagingMayBeAShare) {
  const Manifest manifest = store_of("llama-2-7b", Encoding::q4_0);
  for (const double share : {0.3, 0.0001, 5.0}) {
    MemoryRequest request = request_of(manifest, {Capacity::Kind::share, 0.5, 0});
    request.tiers.front().staging_share = share;
    const auto plan = plan_one(manifest, request);
    ASSERT_TRUE(plan.ok());
    if (share == 0.3) {
      EXPECT_NEAR(static_cast<double>(plan->staging), 0.3 * static_cast<double>(plan->capacity), 4 << 20);
    }
    EXPECT_GE(plan->blocks, 2u);
    EXPECT_LE(plan->staging + plan->arena + plan->kv + plan->activations, plan->capacity);
  }
  // Where everything fits, little is streamed.
  MemoryRequest request = request_of(manifest, {});
  request.tiers.front().staging_share = 0.3;
  const auto plan = plan_one(manifest, request);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->arena, plan->whole);
}

TEST(Capacity, IsAllAShareOrASize) {
  const auto kind = [](std::string_view text) {
    const auto capacity = parse_capacity(text, "tiers.dram.capacity");
    return capacity.ok() ? static_cast<int>(capacity->kind) : -1;
  };
  EXPECT_EQ(kind("all"), static_cast<int>(Capacity::Kind::all));
  EXPECT_EQ(kind("50%"), static_cast<int>(Capacity::Kind::share));
  EXPECT_DOUBLE_EQ(parse_capacity("12.5%", "")->share, 0.125);
  EXPECT_EQ(parse_capacity("2 GiB", "")->bytes, uint64_t{2} << 30);
  EXPECT_EQ(parse_capacity("1000", "")->bytes, 1000u);
  for (const char* wrong : {"", "%", "0%", "-5%", "nan%", "inf%", "1e9%", "5%%", " 5%", "5 %x", "half", "ALL",
                            "-1", "nan", "1e30", "5 apples"}) {
    EXPECT_EQ(kind(wrong), -1) << wrong;
  }
  EXPECT_EQ(parse_capacity("5x%", "tiers.dram.capacity").error().line(),
            "tiers.dram.capacity: '5x%' is not a share; expected a percentage such as 50%");
  EXPECT_THAT(parse_capacity("much", "tiers.dram.capacity").error().line(),
              HasSubstr("tiers.dram.capacity: 'much' is not a size"));
}

// Activations given by units whose memory is apart are counted in the process's memory, at their full size.
TEST(MemoryPlan, ActivationsThatAreGivenTakeRoom) {
  const Manifest manifest = store_of("tinyllama-1.1b", Encoding::q4_0);
  MemoryRequest request = request_of(manifest, {});
  request.model.units = 2;
  const auto alone = plan_one(manifest, request);
  request.tiers.front().giving_units = 1;
  const auto gives = plan_one(manifest, request);
  ASSERT_TRUE(alone.ok() && gives.ok());
  EXPECT_EQ(alone->given, 0u);
  EXPECT_EQ(gives->given, alone->activations);
  EXPECT_EQ(gives->activations, alone->activations);
  EXPECT_EQ(gives->capacity, alone->capacity + gives->given);
  EXPECT_GT(gives->least, alone->least);
  // Where room is short, chunks have fewer rows.
  request.tiers.front().capacity = bytes(alone->least + (gives->least - alone->least));
  const auto tight = plan_one(manifest, request);
  ASSERT_TRUE(tight.ok()) << tight.error().line();
  EXPECT_LT(tight->model.max_rows, alone->model.max_rows);
}

// A run that measures its loss keeps as many weights resident as one that decodes.
TEST(MemoryPlan, MeasuringBesideTheBudgetChangesNothingWithinIt) {
  const Manifest manifest = store_of("tinyllama-1.1b", Encoding::q4_0, Layout::neuron);
  for (const uint32_t giving : {0u, 1u}) {
    MemoryRequest request = request_of(manifest, {Capacity::Kind::share, .5});
    request.tiers.front().giving_units = giving;
    request.model.units = 1 + giving;
    const auto plain = plan_one(manifest, request);
    request.model.measure = true;
    const auto within = plan_one(manifest, request);
    request.measures_beside = true;
    const auto beside = plan_one(manifest, request);
    ASSERT_TRUE(plain.ok() && within.ok() && beside.ok());
    EXPECT_LT(within->arena, plain->arena);
    EXPECT_EQ(beside->arena, plain->arena);
    EXPECT_EQ(beside->staging, plain->staging);
    EXPECT_EQ(beside->model.max_rows, plain->model.max_rows);
    EXPECT_TRUE(beside->model.measure);
    const uint64_t more = beside->activations + beside->given - plain->activations - plain->given;
    EXPECT_GT(more, 0u);
    EXPECT_EQ(beside->beside, more);
    EXPECT_EQ(beside->capacity, plain->capacity + more);
  }
}

}  // namespace
}  // namespace tierd
