// The fixture of tests that run a small model in virtual time, without weights, on the machine of
// described_machine.h.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/e2e/described_machine.h"
#include "tests/e2e/golden_model.h"
#include "tests/engine/model_world.h"

namespace tierd {

class VirtualRun : public testing::Test {
 protected:
  VirtualRun(uint32_t threads, uint32_t context)
      : threads_(threads), context_(context), world_(small_llama(), Encoding::f32) {
    write_machine(machine_);
  }
  ~VirtualRun() override { std::filesystem::remove(machine_); }
  std::unique_ptr<Runtime> runtime() const {
    Config config;
    config.model = world_.folder();
    config.threads = threads_;
    config.bind = false;
    config.context = context_;
    config.tier("dram").capacity = "60%";
    config.clock = "model";
    config.execute = "trace";
    config.machine = machine_;
    RuntimeOptions options;
    options.quiet = options.fit = true;
    auto made = make_runtime(config, options);
    EXPECT_TRUE(made.ok()) << made.error().line();
    return made.ok() ? std::move(*made) : nullptr;
  }

 private:
  const uint32_t threads_, context_;
  const std::string machine_ = testing::TempDir() + "virtual-" + std::to_string(getpid()) + ".toml";
  ModelWorld world_;
};

}  // namespace tierd
