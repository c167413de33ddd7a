// Stores with a flipped bit, truncated, or left behind by a killed writer are refused with a line that names
// the place, or read with their true contents. They never give other logits.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/store/cache_folder.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_store.h"
#include "tests/formats/files.h"
#include "tests/store/interrupted_disk.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct DamagedCase {
  const char* model;
  Layout layout = Layout::row;
  Bundling bundling = Bundling::row_column;
};

class DamagedStore : public testing::TestWithParam<DamagedCase> {
 protected:
  void SetUp() override {
    tokens_ = read_golden(GetParam().model).tokens;
    resident_ = golden_store(GetParam().model, directory_, GetParam().layout, GetParam().bundling);
    expected_ = logits(resident_);
    naive_ = resident_;
    naive_.cache.name = "none";
    RuntimeOptions options;
    options.logit_rows = kGoldenTokens;
    naive_.tier("dram").capacity = half_capacity(resident_, options);
  }

  std::vector<float> logits(const Config& config) const {
    auto logits = run_all_logits(config, tokens_, kGoldenTokens);
    EXPECT_TRUE(logits.ok()) << logits.error().line();
    return logits.ok() ? std::move(*logits) : std::vector<float>();
  }
  // Expects that the incomplete store is refused before any of its weights is read.
  static void expect_refused(const Config& config, const std::string& file) {
    const auto plan = plan_run(config, {});
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.code(), Code::corrupt);
    EXPECT_THAT(plan.error().line(), AllOf(HasSubstr(file + ": "), Not(HasSubstr("\n"))));
  }

  TempFolder folder_;
  const std::string directory_ = folder_.path() + "/store";
  const std::string weights_ = directory_ + "/weights.bin";
  std::vector<uint32_t> tokens_;
  Config resident_;
  Config naive_;
  std::vector<float> expected_;
};

// Extents of rows follow each other without gaps and their checksums cover the padding, so a checksum covers
// every bit of the file. Stores of bundles have too many extents to try all.
TEST_P(DamagedStore, EveryFlippedBitThatIsReadIsNamed) {
  const auto store = Store::open(directory_);
  ASSERT_TRUE(store.ok()) << store.error().line();
  const std::vector<Extent>& extents = store->manifest().extents;
  Random random(7);
  uint32_t never_read = 0;
  const uint32_t step = GetParam().layout == Layout::row ? 1 : 23;
  for (uint32_t e = 0; e < extents.size(); e += step) {
    const Extent& extent = extents[e];
    const uint64_t anywhere = random.below(static_cast<uint32_t>(extent.bytes));
    for (const uint64_t at : {uint64_t{0}, anywhere, extent.bytes - 1}) {
      const int bit = static_cast<int>(random.below(8));
      SCOPED_TRACE(store->describe(e) + ", byte " + std::to_string(at));
      flip_bit(weights_, extent.offset + at, bit);
      const auto expect_named = [&](const Error& error) {
        EXPECT_EQ(error.code, Code::corrupt);
        EXPECT_THAT(error.line(), AllOf(HasSubstr(weights_ + ": " + store->describe(e)),
                                        HasSubstr("checksum"), Not(HasSubstr("\n"))));
      };
      // Loads every extent.
      const auto loaded = run_all_logits(resident_, tokens_, kGoldenTokens);
      ASSERT_FALSE(loaded.ok());
      expect_named(loaded.error());
      if (at == anywhere) {
        // This run reads only the embedding rows of these tokens.
        const auto streamed = run_all_logits(naive_, tokens_, kGoldenTokens);
        if (streamed.ok()) {
          expect_the_same_bits(*streamed, expected_);
          ++never_read;
        } else {
          expect_named(streamed.error());
        }
      }
      flip_bit(weights_, extent.offset + at, bit);
      if (HasFailure()) return;
    }
  }
  EXPECT_LE(never_read, store->manifest().sites.front().neurons());
  expect_the_same_bits(logits(resident_), expected_);
  expect_the_same_bits(logits(naive_), expected_);
}

TEST_P(DamagedStore, WeightsOfAnotherLengthAreRefused) {
  const uint64_t whole = std::filesystem::file_size(weights_);
  Random random(7);
  std::vector<uint64_t> lengths = {whole + 1, whole + 4096, whole - 1, whole - 4096, 1, 0};
  for (int i = 0; i < 20; ++i) lengths.push_back(random.below(static_cast<uint32_t>(whole)));
  for (const uint64_t length : lengths) {
    SCOPED_TRACE(length);
    std::filesystem::resize_file(weights_, length);
    expect_refused(resident_, weights_);
  }
  std::filesystem::remove(weights_);
  EXPECT_EQ(plan_run(resident_, {}).code(), Code::not_found);
}

TEST_P(DamagedStore, EveryDamageOfTheChecksumsIsRefused) {
  const std::string checksums = directory_ + "/checksums.bin";
  const std::string text = file_text(checksums);
  const auto bytes = static_cast<uint32_t>(text.size());
  Random random(7);
  for (size_t i = 0; i < 60; ++i) {
    std::string damaged = text;
    const size_t at = random.below(bytes);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    SCOPED_TRACE("byte " + std::to_string(at));
    folder_.write("store/checksums.bin", damaged);
    expect_refused(resident_, checksums);
    folder_.write("store/checksums.bin", std::string_view(text).substr(0, at));
    expect_refused(resident_, checksums);
  }
  folder_.write("store/checksums.bin", text + std::string(8, '\0'));
  expect_refused(resident_, checksums);
  std::filesystem::remove(checksums);
  EXPECT_EQ(plan_run(resident_, {}).code(), Code::not_found);
  folder_.write("store/checksums.bin", text);
  expect_the_same_bits(logits(resident_), expected_);
}

TEST_P(DamagedStore, EveryDamageOfTheManifestIsRefused) {
  const std::string manifest = directory_ + "/manifest.json";
  const std::string text = file_text(manifest);
  const auto bytes = static_cast<uint32_t>(text.size());
  constexpr size_t kFirstLine = 30;  // the checksum of all that follows
  Random random(7);
  for (size_t i = 0; i < 200; ++i) {
    std::string damaged = text;
    const size_t at = i < kFirstLine ? i : random.below(bytes);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    SCOPED_TRACE("byte " + std::to_string(at));
    folder_.write("store/manifest.json", damaged);
    expect_refused(resident_, manifest);
  }
  for (size_t i = 0; i < 60; ++i) {
    const size_t length = i < kFirstLine ? i : random.below(bytes);
    SCOPED_TRACE("cut to " + std::to_string(length));
    folder_.write("store/manifest.json", std::string_view(text).substr(0, length));
    expect_refused(resident_, manifest);
  }
  folder_.write("store/manifest.json", text + "\n");
  expect_refused(resident_, manifest);
  folder_.write("store/manifest.json", text);
  expect_the_same_bits(logits(resident_), expected_);
}

// A sound manifest with other weights of the same length.
TEST_P(DamagedStore, ForeignWeightsAreNoticed) {
  std::string foreign = file_text(weights_);
  for (char& byte : foreign) byte = static_cast<char>(byte + 1);
  folder_.write("store/weights.bin", foreign);
  for (const Config& config : {resident_, naive_}) {
    const auto run = run_all_logits(config, tokens_, kGoldenTokens);
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.code(), Code::corrupt);
    EXPECT_THAT(run.error().line(), HasSubstr(weights_ + ": extent 0 ("));
  }
}

// The file is truncated after it was opened. Once it is whole again, the next step succeeds.
TEST_P(DamagedStore, CutShortWhileInUseNamesAnExtentThatIsGone) {
  const std::string whole = file_text(weights_);
  for (const char* device : {"io_uring", "pread"}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::string(device) + ", seed " + std::to_string(seed));
      Random random(seed);
      Config config = naive_;
      use_device(config, device);
      RuntimeOptions options;
      options.quiet = true;
      options.logit_rows = kGoldenTokens;
      const auto runtime = make_runtime(config, options);
      ASSERT_TRUE(runtime.ok()) << runtime.error().line();
      ASSERT_TRUE((*runtime)->load().ok());
      Engine& engine = (*runtime)->engine();
      const Manifest& manifest = (*runtime)->plan().store.manifest();
      std::vector<float> logits;
      const uint32_t prompt = 1 + random.below(kGoldenTokens - 3);
      ASSERT_TRUE(feed(engine, tokens_, 0, prompt, logits).ok());

      // The new end is inside weights that every step reads.
      const Extent& first = manifest.extents[manifest.sites[1].first_extent];
      const uint64_t size = first.offset + random.below(static_cast<uint32_t>(whole.size() - first.offset));
      std::filesystem::resize_file(weights_, size);
      Status fed;
      uint32_t next = prompt;
      // Prefetched neurons may suffice for one more step.
      while (fed.ok() && next < prompt + 2) {
        fed = feed(engine, tokens_, next, 1, logits);
        if (fed.ok()) ++next;
      }
      std::filesystem::resize_file(weights_, whole.size());
      std::fstream(weights_, std::ios::binary | std::ios::in | std::ios::out)
          .write(whole.data(), static_cast<std::streamsize>(whole.size()));

      ASSERT_FALSE(fed.ok());
      EXPECT_EQ(fed.code(), Code::io_error);
      const std::string line = fed.error().line();
      EXPECT_THAT(line, HasSubstr("the file ends here; the store was truncated while it was in use"));
      const std::string before = weights_ + ": extent ";
      ASSERT_EQ(line.find(before), 0u) << line;
      const Extent& named = manifest.extents.at(std::stoul(line.substr(before.size())));
      EXPECT_GT(named.offset + named.bytes, size);

      for (; next < kGoldenTokens; ++next) {
        const Status again = feed(engine, tokens_, next, 1, logits);
        ASSERT_TRUE(again.ok()) << again.error().line();
      }
      ASSERT_TRUE(engine.drain().ok());
      expect_the_same_bits(logits, expected_);
      if (HasFailure()) return;
    }
  }
}

// Tied f32 weights; biases and learned positions; block encodings; packed bundles; unpacked pieces.
INSTANTIATE_TEST_SUITE_P(Models, DamagedStore,
                         testing::Values(DamagedCase{"llama-tied-8-heads"}, DamagedCase{"opt"},
                                         DamagedCase{"gguf-llama-q4_0"}, DamagedCase{"opt", Layout::neuron},
                                         DamagedCase{"llama2", Layout::neuron, Bundling::none}),
                         [](const auto& test) {
                           std::string name = test.param.model;
                           if (test.param.layout == Layout::neuron) name += "-neuron";
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The writer is killed at every step. Running the leftover never uses half a model, and the next run of the
// model completes the store.
TEST(KilledWriter, WhatItLeavesIsNeverTakenForWhole) {
  const TempFolder folder;
  const std::string cache = folder.path() + "/cache";
  setenv("TIERD_CACHE", cache.c_str(), 1);
  const std::string model = "llama2-f16";
  const std::vector<uint32_t> tokens = read_golden(model).tokens;
  const Config config = golden_config(model);
  const auto expected = run_all_logits(config, tokens, kGoldenTokens);
  ASSERT_TRUE(expected.ok()) << expected.error().line();

  const auto source = open_source(config.model);
  ASSERT_TRUE(source.ok()) << source.error().line();
  const WriteOptions kQuiet = {.neuron_bytes = 0, .quiet = true};
  const auto store = store_path(**source, kQuiet);
  ASSERT_TRUE(store.ok()) << store.error().line();
  InterruptedDisk counting;
  ASSERT_TRUE(write_store_on(counting, **source, folder.path() + "/whole", kQuiet, kSmallSteps).ok());

  int refused = 0;
  for (int step = 0; step < counting.steps; ++step) {
    SCOPED_TRACE(step);
    std::filesystem::remove_all(cache);
    std::filesystem::create_directories(cache);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      KillingDisk disk;
      disk.interrupt_at = step;
      (void)write_store_on(disk, **source, *store, kQuiet, kSmallSteps);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    Config leftover = config;
    leftover.model = *store + ".partial";
    const auto taken = run_all_logits(leftover, tokens, kGoldenTokens);
    if (taken.ok()) {
      expect_the_same_bits(*taken, *expected);  // only the final rename was missing
    } else {
      ++refused;
      EXPECT_THAT(taken.error().line(), AllOf(HasSubstr(leftover.model), Not(HasSubstr("\n"))));
    }
    const auto ended = run_all_logits(config, tokens, kGoldenTokens);
    ASSERT_TRUE(ended.ok()) << ended.error().line();
    expect_the_same_bits(*ended, *expected);
    EXPECT_FALSE(std::filesystem::exists(leftover.model));
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, counting.steps / 2);
}

}  // namespace
}  // namespace tierd
