// Golden models written as stores with small extents, so that a toy model has many, and budgets that split
// them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/store/source.h"
#include "core/store/writer.h"
#include "tests/e2e/golden_model.h"

namespace tierd {

// Writes the model's store at `directory` and returns a configuration that runs it.
inline Config golden_store(const std::string& name, const std::string& directory, Layout layout = Layout::row,
                           Bundling bundling = Bundling::row_column) {
  Config config = golden_config(name);
  const auto source = open_source(config.model);
  EXPECT_TRUE(source.ok()) << source.error().line();
  const Status written = write_store(
      **source, directory, {.neuron_bytes = 4096, .layout = layout, .bundling = bundling, .quiet = true});
  EXPECT_TRUE(written.ok()) << written.error().line();
  config.model = directory;
  return config;
}

// Returns a capacity that holds the required memory and about half of the weights.
inline std::string half_capacity(const Config& config, const RuntimeOptions& options) {
  const auto plan = prepare_run(config, options);
  EXPECT_TRUE(plan.ok()) << plan.error().line();
  return std::to_string(plan->memory.tiers.front().least + plan->memory.tiers.front().whole / 2);
}

}  // namespace tierd
