// The rules that plugins of each kind must keep, tried on a simulated core with random sites and traces.
#pragma once

#include <cstdint>
#include <memory>

#include "core/strategy/strategy_instance.h"
#include "tools/tier/conform/report.h"

namespace tierd {

struct SuiteOptions {
  uint64_t seed = 1;
  uint32_t worlds = 24;  // random worlds, the edge cases first
  uint32_t steps = 40;   // of each
  // If set, everything is tried with these tensors and without them, and a plugin may refuse to be made
  // because they do not fit the sites. A plugin that needs tensors which are missing may refuse in any case
  // (TIERD_E_UNSUPPORTED).
  std::shared_ptr<const PluginTensors> tensors;
};

// Runs the suite of the plugin's kind, and the rules for all kinds.
void run_suite(const StrategyChoice& choice, const SuiteOptions& options, Report& report);

// The same for one choice of parameters.
void check_predictor(const StrategyChoice& choice, const SuiteOptions& options, Report& report);
void check_quantizer(const StrategyChoice& choice, const SuiteOptions& options, Report& report);
void check_cache(const StrategyChoice& choice, const SuiteOptions& options, Report& report);
void check_codec(const StrategyChoice& choice, const SuiteOptions& options, Report& report);
void check_balancer(const StrategyChoice& choice, const SuiteOptions& options, Report& report);

}  // namespace tierd
