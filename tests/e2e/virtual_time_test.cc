// run.clock = "model": the same run in the time of a described machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/e2e/described_machine.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/gpu_above.h"
#include "tests/engine/model_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

const std::vector<uint32_t> kTokens = {1, 17, 250, 33, 33, 299, 4, 90, 12, 61, 7, 8};

class VirtualTime : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    world_ = new ModelWorld(small_llama(), Encoding::f32);
    machine_ = testing::TempDir() + "virtual-" + std::to_string(getpid()) + ".toml";
    write_machine(machine_);
  }
  static void TearDownTestSuite() {
    delete world_;
    std::filesystem::remove(machine_);
  }
  static Config base() {
    Config config;
    config.model = world_->folder();
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    config.tier("dram").capacity = "60%";
    config.cache.name = "pinned";
    return config;
  }
  static Config modelled(const char* execute = "real") {
    Config config = base();
    config.clock = "model";
    config.execute = execute;
    config.machine = machine_;
    return config;
  }
  // Returns a run on the same machine with a longer description.
  static Config modelled_with(const std::string& more) {
    const std::string path = testing::TempDir() + "virtual-with-" + std::to_string(getpid()) + ".toml";
    std::ofstream(path) << "base = \"" << machine_ << "\"\n" << more;
    Config config = modelled("trace");
    config.machine = path;
    return config;
  }
  struct Ran {
    std::vector<float> logits;
    uint64_t ns = 0;  // of all steps
    uint64_t read_bytes = 0;
    uint64_t end_ns = 0;
  };
  static Ran run(const Config& config) {
    RuntimeOptions options;
    options.quiet = options.fit = true;
    Ran ran;
    auto runtime = make_runtime(config, options);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    if (!runtime.ok()) return ran;
    EXPECT_TRUE((*runtime)->load().ok());
    Engine& engine = (*runtime)->engine();
    for (uint32_t i = 0; i < kTokens.size(); ++i) {
      std::vector<float> logits;
      EXPECT_TRUE(feed(engine, kTokens, i, 1, logits).ok());
      ran.logits.insert(ran.logits.end(), logits.begin(), logits.end());
    }
    EXPECT_TRUE(engine.drain().ok());
    ran.ns = engine.prefill_times().wall_ns + engine.decode_times().wall_ns;
    ran.read_bytes = (*runtime)->scheduler().counters().read_bytes;
    ran.end_ns = (*runtime)->dispatcher().now_ns();
    return ran;
  }

  static inline ModelWorld* world_ = nullptr;
  static inline std::string machine_;
};

TEST_F(VirtualTime, TheBitsAreThoseOfTheWallClockAndTheTimesAlwaysTheSame) {
  const Ran wall = run(base());
  const Ran first = run(modelled()), second = run(modelled());
  expect_the_same_bits(first.logits, wall.logits);
  EXPECT_EQ(first.ns, second.ns);
  EXPECT_EQ(first.end_ns, second.end_ns);
  // Streaming takes at least the disk's time for these bytes.
  EXPECT_GT(static_cast<double>(first.end_ns) * 1e-9, static_cast<double>(first.read_bytes) / 100e6);
}

TEST_F(VirtualTime, WithoutWorkTimeGoesOnAllTheSame) {
  for (const char* cache : {"pinned", "lru"}) {
    for (const uint32_t units : {1U, 2U}) {
      SCOPED_TRACE(std::string(cache) + ", " + std::to_string(units));
      Config real = modelled(), trace = modelled("trace");
      for (Config* config : {&real, &trace}) {
        config->cache.name = cache;
        config->tier("dram").count = units;
        if (units > 1) config->balancer.name = "round-robin";
      }
      const Ran worked = run(real), played = run(trace);
      EXPECT_EQ(played.ns, worked.ns);
      EXPECT_EQ(played.end_ns, worked.end_ns);
      EXPECT_EQ(played.read_bytes, worked.read_bytes);
      EXPECT_GT(played.ns, 0u);
    }
  }
}

TEST_F(VirtualTime, MoreMemoryIsFasterAndThreadsOfTheirOwnAreNotSlower) {
  Config small = modelled("trace"), large = modelled("trace"), apart = modelled("trace");
  small.tier("dram").capacity = "40%";
  large.tier("dram").capacity = "all";
  apart.tier("flash").thread = "own";
  const Ran some = run(modelled("trace"));
  EXPECT_GT(run(small).ns, some.ns);
  EXPECT_LT(run(large).ns, some.ns);
  EXPECT_LE(run(apart).ns, some.ns);
}

TEST_F(VirtualTime, ATierMayHaveADeviceOfItsOwn) {
  const auto ns = [](const std::string& launch_ns, const std::string& links = "") {
    Config config = modelled_with(
        "[units.gpu]\nkind = \"gpu\"\nbytes_per_second = 1e9\nflops = 1e12\nlaunch_ns = " + launch_ns + "\n" +
        links);
    config.tier("dram").capacity = "all";
    config.tier("dram").compute = false;
    config.cache.name = "lru";
    use_gpu(config, "20%");
    return run(config).ns;
  };
  const auto link = [](const std::string& from) {
    return "[[links]]\nfrom = \"" + from + "\"\nto = \"gpu\"\nbytes_per_second = 1e6\nlatency_ns = 0\n";
  };
  EXPECT_GT(ns("100000"), ns("0"));
  EXPECT_GT(ns("0", link("dram")), ns("0", link("gpu"))) << "what comes from DRAM takes the link from there";
}

TEST_F(VirtualTime, AsManyAgentsComputeAsThereAreDevices) {
  const auto two = [](uint32_t units) {
    Config config = modelled_with(
        "[units.dram]\nkind = \"gpu\"\ncount = 2\nbytes_per_second = 1e9\nflops = 1e12\nlaunch_ns = 0\n");
    config.tier("dram").count = units;
    config.tier("dram").capacity = "all";
    config.balancer.name = "round-robin";
    return config;
  };
  EXPECT_GT(run(two(2)).ns, 0u);
  RuntimeOptions options;
  options.quiet = options.fit = true;
  const auto runtime = make_runtime(two(3), options);
  ASSERT_FALSE(runtime.ok());
  EXPECT_THAT(runtime.error().line(), HasSubstr("'units.dram.count' is 2, but tiers.dram has more agents"));
}

TEST_F(VirtualTime, WhatCannotBeIsRefused) {
  RuntimeOptions options;
  options.quiet = options.fit = true;
  const auto error = [&](const Config& config) {
    const auto runtime = make_runtime(config, options);
    return runtime.ok() ? std::string() : runtime.error().line();
  };
  Config config = base();
  config.execute = "trace";
  EXPECT_THAT(error(config), HasSubstr("run.execute: 'trace' requires virtual time"));
  config = modelled();
  config.machine = "";
  EXPECT_THAT(error(config),
              HasSubstr("run.machine: virtual time (run.clock=model) requires a machine description"));
  config.machine = "none-of-this-name";
  EXPECT_THAT(error(config), HasSubstr("no such machine"));
}

}  // namespace
}  // namespace tierd
