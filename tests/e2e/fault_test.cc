// Whole runs over a faulty disk give the bits of an undisturbed run, or one line that names the place in the
// store. After the fault is gone, the same runtime works again.
#include <gmock/gmock.h>

#include "core/base/random.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/bad_place_device.h"
#include "tests/e2e/golden_store.h"
#include "tests/flash/fault_device.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The prompt is fed as one batch, the other tokens one by one.
constexpr uint32_t kPrompt = 12;
constexpr uint32_t kBatches = 1 + kGoldenTokens - kPrompt;

constexpr BadRead kBadReads[] = {BadRead::io_error, BadRead::invalid, BadRead::flipped_bit};
const char* said_of(BadRead kind) {
  switch (kind) {
    case BadRead::io_error:
      return "read failed after 3 attempts: Input/output error";
    case BadRead::invalid:
      return "read failed after 3 attempts: Invalid argument";
    case BadRead::flipped_bit:
      return "the checksum does not match";
  }
  return "";
}

// (model, cache, device). Cache "none" is the naive configuration, "pinned" the hybrid one.
using Way = std::tuple<const char*, const char*, const char*>;

class FaultyDisk : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const auto [model, cache, device] = GetParam();
    tokens_ = read_golden(model).tokens;
    const Config resident = golden_store(model, folder_.path() + "/store");
    auto logits = run_all_logits(resident, tokens_, kPrompt);
    ASSERT_TRUE(logits.ok()) << logits.error().line();
    expected_ = std::move(*logits);
    config_ = resident;
    config_.cache.name = cache;
    use_device(config_, device);
    config_.tier("dram").capacity = half_capacity(config_, options());
  }

  static RuntimeOptions options() {
    RuntimeOptions options;
    options.quiet = true;
    options.logit_rows = kPrompt;
    return options;
  }
  // Returns a runtime that reads through the device that `wrap` returns for the real one.
  template <class Wrap>
  static std::unique_ptr<Runtime> runtime_over(const Config& config, Wrap wrap) {
    RuntimeOptions over = options();
    over.open_device = [wrap](const std::string& path,
                              const DeviceOptions& device) -> Result<std::unique_ptr<BlockDevice>> {
      TIERD_ASSIGN(std::unique_ptr<BlockDevice> inner, open_device(path, device));
      return std::unique_ptr<BlockDevice>(wrap(std::move(inner)));
    };
    auto runtime = make_runtime(config, over);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    return runtime.ok() ? std::move(*runtime) : nullptr;
  }
  std::unique_ptr<Runtime> over_faults(const Faults& faults, uint64_t seed) const {
    Config config = config_;
    config.tier("flash").settings.push_back({"verify", false, "test"});  // no checksum may hide a wrong read
    return runtime_over(config, [=](std::unique_ptr<BlockDevice> inner) {
      return std::make_unique<FaultDevice>(std::move(inner), faults, seed);
    });
  }
  std::unique_ptr<Runtime> over_bad_place(BadPlace& place) const {
    return runtime_over(config_, [&place](std::unique_ptr<BlockDevice> inner) {
      return std::make_unique<BadPlaceDevice>(std::move(inner), place);
    });
  }

  Status feed_batch(Runtime& runtime, uint32_t batch, std::vector<float>& logits) const {
    return batch == 0 ? feed(runtime.engine(), tokens_, 0, kPrompt, logits)
                      : feed(runtime.engine(), tokens_, kPrompt + batch - 1, 1, logits);
  }
  // Loads and feeds all tokens. Calls `before` with the number of each batch.
  template <class Before>
  Status run(Runtime& runtime, std::vector<float>& logits, Before before) const {
    TIERD_TRY(runtime.load());
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      before(batch);
      TIERD_TRY(feed_batch(runtime, batch, logits));
    }
    return runtime.engine().drain();
  }
  void expect_runs_undisturbed(Runtime& runtime) const {
    std::vector<float> logits;
    const Status status = run(runtime, logits, [](uint32_t) {});
    ASSERT_TRUE(status.ok()) << status.error().line();
    expect_the_same_bits(logits, expected_);
  }

  // Returns the extents that are resident after loading, or those that every step reads.
  static std::vector<uint32_t> extents(const Runtime& runtime, bool resident) {
    std::vector<uint32_t> found;
    const SiteTable& sites = runtime.plan().model.sites;
    for (SiteId s = 0; s < sites.size(); ++s) {
      if (sites[s].given() && !resident) continue;  // read only for the tokens that are fed
      const EditionId best = sites.best(s);
      for (uint32_t i = 0; i < sites[s].n; ++i) {
        if (runtime.residencies().front().valid(best, i) == resident)
          found.push_back(sites.editions[best].first_extent + i);
      }
    }
    return found;
  }
  static void spoil(BadPlace& place, const Runtime& runtime, uint32_t extent, BadRead kind, uint32_t times) {
    const Extent& at = runtime.plan().store.manifest().extents[extent];
    place = {kind, at.offset, at.offset + at.bytes, times};
  }
  static void expect_names(const Error& error, const Runtime& runtime, uint32_t extent, BadRead kind) {
    const Store& store = runtime.plan().store;
    EXPECT_EQ(error.code, kind == BadRead::flipped_bit ? Code::corrupt : Code::io_error);
    EXPECT_THAT(error.line(), AllOf(HasSubstr(store.data_path() + ": " + store.describe(extent)),
                                    HasSubstr(said_of(kind)), Not(HasSubstr("\n"))));
  }

  // Calls `body` for each kind of fault with six seeds, by which it draws places and batches.
  template <class Body>
  static void for_each_bad_read(Body body) {
    for (const BadRead kind : kBadReads) {
      for (uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(std::string(said_of(kind)) + ", seed " + std::to_string(seed));
        Random random(seed);
        body(kind, random);
        if (HasFailure()) return;
      }
    }
  }

  Config config_;
  std::vector<uint32_t> tokens_;
  std::vector<float> expected_;

 private:
  TempFolder folder_;
};

TEST_P(FaultyDisk, PassingFaultsChangeNoBit) {
  struct Case {
    const char* name;
    Faults faults;
  };
  const Case cases[] = {
      {"short", {.short_read = 40}},
      {"empty", {.empty = 20}},
      {"interrupted", {.interrupted = 30}},
      {"again", {.again = 20}},
      {"late", {.late = 50}},
      {"all", {.short_read = 20, .empty = 5, .interrupted = 10, .again = 5, .late = 30}},
  };
  for (const auto& [name, faults] : cases) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      const std::unique_ptr<Runtime> runtime = over_faults(faults, seed);
      ASSERT_TRUE(runtime);
      expect_runs_undisturbed(*runtime);
      const ReadCounts counters = runtime->flash_counts();
      EXPECT_EQ(counters.short_reads + counters.retries > 0, std::string_view(name) != "late");
      EXPECT_EQ(counters.failed_extents, 0u);
      if (HasFailure()) return;
    }
  }
}

TEST_P(FaultyDisk, RefusedRegistrationChangesNoBit) {
  const std::unique_ptr<Runtime> runtime = over_faults({.registration_refused = true}, 1);
  ASSERT_TRUE(runtime);
  expect_runs_undisturbed(*runtime);
}

// Faults that occur fewer times than the kernel retries: an I/O error, a refused alignment, a flipped bit.
TEST_P(FaultyDisk, WhatFailsOnceIsReadAgain) {
  for_each_bad_read([&](BadRead kind, Random& random) {
    BadPlace place;
    const std::unique_ptr<Runtime> runtime = over_bad_place(place);
    ASSERT_TRUE(runtime);
    const uint32_t when = random.below(kBatches - 1);
    std::vector<float> logits;
    const Status status = run(*runtime, logits, [&](uint32_t batch) {
      if (batch != when) return;
      const std::vector<uint32_t> streamed = extents(*runtime, false);
      spoil(place, *runtime, streamed.at(random.below(static_cast<uint32_t>(streamed.size()))), kind,
            1 + random.below(2));
    });
    ASSERT_TRUE(status.ok()) << status.error().line();
    expect_the_same_bits(logits, expected_);
    EXPECT_EQ(place.times, 0u);
    EXPECT_GT(runtime->scheduler().counters().retries + runtime->scheduler().counters().prefetch_failed +
                  runtime->flash_counts().retries,
              0u);
  });
}

TEST_P(FaultyDisk, WhatFailsForGoodEndsOneStepAndNamesTheExtent) {
  for_each_bad_read([&](BadRead kind, Random& random) {
    BadPlace place;
    const std::unique_ptr<Runtime> runtime = over_bad_place(place);
    ASSERT_TRUE(runtime);
    const Status loaded = runtime->load();
    ASSERT_TRUE(loaded.ok()) << loaded.error().line();
    const std::vector<uint32_t> streamed = extents(*runtime, false);
    const uint32_t extent = streamed.at(random.below(static_cast<uint32_t>(streamed.size())));
    const uint32_t spoilt = random.below(kBatches - 1);
    std::vector<float> logits;
    uint32_t failed = 0;
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      if (batch == spoilt) spoil(place, *runtime, extent, kind, BadPlace::kForever);
      Status fed = feed_batch(*runtime, batch, logits);
      if (!fed.ok() && failed++ == 0) {
        // The first batch after the fault may have been prefetched before it.
        EXPECT_TRUE(batch == spoilt || batch == spoilt + 1) << batch << ", spoilt from " << spoilt;
        expect_names(fed.error(), *runtime, extent, kind);
        place.times = 0;
        fed = feed_batch(*runtime, batch, logits);
      }
      ASSERT_TRUE(fed.ok()) << fed.error().line();
    }
    EXPECT_EQ(failed, 1u);
    ASSERT_TRUE(runtime->engine().drain().ok());
    EXPECT_EQ(runtime->dispatcher().in_flight(), 0u);
    expect_the_same_bits(logits, expected_);
  });
}

// A failed run ends in order while the disk stays bad and reads are in flight.
TEST_P(FaultyDisk, AFailedRunEndsInOrder) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    BadPlace place;
    const std::unique_ptr<Runtime> runtime = over_bad_place(place);
    ASSERT_TRUE(runtime);
    std::vector<float> logits;
    const uint32_t when = random.below(kBatches - 1);
    const Status status = run(*runtime, logits, [&](uint32_t batch) {
      if (batch != when) return;
      const std::vector<uint32_t> streamed = extents(*runtime, false);
      spoil(place, *runtime, streamed.at(random.below(static_cast<uint32_t>(streamed.size()))),
            BadRead::io_error, BadPlace::kForever);
    });
    EXPECT_EQ(status.code(), Code::io_error);
    const Status drained = runtime->engine().drain();
    EXPECT_TRUE(drained.ok()) << drained.error().line();
    EXPECT_EQ(runtime->dispatcher().in_flight(), 0u);
  }
}

std::string name_of(const testing::TestParamInfo<Way>& test) {
  const auto [model, cache, device] = test.param;
  std::string name = std::string(model) + "_" + cache + "_" + device;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
constexpr const char* kF32 = "llama2";
constexpr const char* kTied = "llama-tied-8-heads";
constexpr const char* kBlocks = "gguf-llama-q4_0";
INSTANTIATE_TEST_SUITE_P(Ways, FaultyDisk,
                         testing::Combine(testing::Values(kF32, kTied, kBlocks),
                                          testing::Values("none", "pinned"),
                                          testing::Values("io_uring", "pread")),
                         name_of);

class FaultyDiskAtLoading : public FaultyDisk {};

TEST_P(FaultyDiskAtLoading, NamesTheExtentAndTheStepsWorkWithoutIt) {
  std::vector<uint32_t> resident;
  {
    BadPlace none;
    const std::unique_ptr<Runtime> runtime = over_bad_place(none);
    ASSERT_TRUE(runtime && runtime->load().ok());
    resident = extents(*runtime, true);
    ASSERT_FALSE(resident.empty());
    ASSERT_FALSE(extents(*runtime, false).empty());
  }
  for_each_bad_read([&](BadRead kind, Random& random) {
    BadPlace place;
    const std::unique_ptr<Runtime> runtime = over_bad_place(place);
    ASSERT_TRUE(runtime);
    const uint32_t extent = resident.at(random.below(static_cast<uint32_t>(resident.size())));
    spoil(place, *runtime, extent, kind, BadPlace::kForever);
    const Status loaded = runtime->load();
    ASSERT_FALSE(loaded.ok());
    expect_names(loaded.error(), *runtime, extent, kind);
    EXPECT_EQ(runtime->dispatcher().in_flight(), 0u);
    place.times = 0;
    std::vector<float> logits;
    for (uint32_t batch = 0; batch < kBatches; ++batch) {
      const Status fed = feed_batch(*runtime, batch, logits);
      ASSERT_TRUE(fed.ok()) << fed.error().line();
    }
    ASSERT_TRUE(runtime->engine().drain().ok());
    expect_the_same_bits(logits, expected_);
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, FaultyDiskAtLoading,
                         testing::Combine(testing::Values(kF32, kTied, kBlocks), testing::Values("pinned"),
                                          testing::Values("io_uring", "pread")),
                         name_of);

}  // namespace
}  // namespace tierd
