// Adapts configurations of configs/ to run a golden model or the demo model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/store/source.h"
#include "tests/e2e/golden_model.h"

namespace tierd {

inline constexpr const char* kConfigs = TIERD_SOURCE_DIR "/configs/";
inline constexpr const char* kDemo = TIERD_SOURCE_DIR "/configs/models/demo";
inline constexpr uint32_t kDemoTokens = 32;

// Returns the configuration as its file has it, with these changes. Capacity "auto" becomes half of the
// memory, or a third of a GPU's, so something streams on any machine. The host emulates the GPU even where
// there is one. A random predictor replaces a trained one; the demo model has a trained one.
inline Config configuration(const std::string& name, const std::string& model, bool demo) {
  auto config = load_config(kConfigs + name + ".toml", {});
  EXPECT_TRUE(config.ok()) << config.error().line();
  config->model = model;
  if (TierConfig& dram = config->tier("dram"); dram.capacity == "auto") dram.capacity = "50%";
  if (config->find_tier("gpu") != nullptr) {
    TierConfig& gpu = config->tier("gpu");
    if (gpu.capacity == "auto") gpu.capacity = "33%";
    for (Setting& setting : gpu.settings) {
      if (setting.key == "backend") setting.value = std::string("host");
    }
  }
  // fit_memory needs a memory that holds the weights used whole, and its result depends on the room for more.
  const auto is_fitted = [](const Setting& setting) { return setting.key == "fit_memory"; };
  if (std::ranges::any_of(config->predictor.settings, is_fitted)) config->tier("gpu").capacity = "70%";
  // A cache-aware mask depends on residency and on measured read costs, so its bits would depend on the
  // machine.
  for (Setting& setting : config->predictor.settings) {
    if (setting.key == "mask") setting.value = std::string("largest");
  }
  // Hermes' published rule needs tables of parents.
  for (Setting& setting : config->predictor.settings) {
    if (setting.key == "rule") setting.value = std::string("reaches");
  }
  // Sums are made by unit, so neurons must not arrive at units by the clock.
  for (TierConfig& tier : config->tiers) {
    for (Setting& setting : tier.settings) {
      if (setting.key == "link_rate" && config->balancer.name == "hot-cold") setting.value = std::string("0");
    }
  }
  // Predictor router refuses a model without routers.
  if (config->predictor.name == "router") {
    const auto source = open_source(model);
    EXPECT_TRUE(source.ok()) << source.error().line();
    if (!(*source)->config().is_mixture()) config->predictor = {"dense"};
  }
  // Heat refuses a model whose neurons all fire. A test's own store is no source and keeps it.
  if (!config->heat.name.empty()) {
    const auto source = open_source(model);
    if (source.ok() && !(*source)->config().rectifies() && !(*source)->config().qkv_relu) config->heat = {};
  }
  // No model here is pruned.
  config->compression = "none";
  config->codec.clear();
  config->bind = false;
  config->threads = 1;
  config->context = demo ? 2 * kDemoTokens : kGoldenTokens;
  if (config->predictor.name != "low-rank") return *config;
  if (demo) {
    config->predictor.tensors = std::string(kDemo) + "/predictor-r64.safetensors";
  } else {
    config->predictor = {"random"};
    if (config->quantizer.name == "mixed") config->quantizer = {"plain"};  // no predictor ranks
  }
  return *config;
}

}  // namespace tierd
