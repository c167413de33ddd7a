// A small model with random weights, written as a store and run.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "core/run/prepare_run.h"
#include "core/run/runtime.h"
#include "core/store/writer.h"
#include "tests/store/memory_source.h"

namespace tierd {

class ModelWorld {
 public:
  explicit ModelWorld(const ModelConfig& config, Encoding encoding = Encoding::f32)
      : folder_(testing::TempDir() + "tierd-engine-" + std::to_string(getpid()) + "-" + config.architecture) {
    std::filesystem::remove_all(folder_);
    WriteOptions options;
    options.quiet = true;
    options.neuron_bytes = 4096;  // several neurons a site
    const Status written = write_store(MemorySource(config, encoding), folder_, options);
    EXPECT_TRUE(written.ok()) << written.error().line();
  }
  ~ModelWorld() { std::filesystem::remove_all(folder_); }

  using Change = std::function<void(Config&)>;
  Result<RunPlan> plan(const Change& change = {}, bool fit = false, uint32_t logit_rows = 1) const {
    Config config;
    config.model = folder_;
    config.threads = 1;
    config.bind = false;
    config.kv = "f32";
    if (change) change(config);
    return prepare_run(config, options(fit, logit_rows));
  }
  Result<std::unique_ptr<Runtime>> start(const Change& change = {}, bool fit = false,
                                         uint32_t logit_rows = 1) const {
    TIERD_ASSIGN(RunPlan planned, plan(change, fit, logit_rows));
    TIERD_ASSIGN(std::unique_ptr<Runtime> runtime,
                 Runtime::create(std::move(planned), options(fit, logit_rows)));
    TIERD_TRY(runtime->load());
    return runtime;
  }
  const std::string& folder() const { return folder_; }

 private:
  static RuntimeOptions options(bool fit, uint32_t logit_rows) {
    RuntimeOptions options;
    options.fit = fit;
    options.quiet = true;
    options.logit_rows = logit_rows;
    return options;
  }
  std::string folder_;
};

}  // namespace tierd
