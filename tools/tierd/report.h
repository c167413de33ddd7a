// The report on a run: one screen for people, one JSON object for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/run/run_energy.h"
#include "core/run/runtime.h"
#include "core/watch/energy/energy_ledger.h"
#include "tools/evaluation/used_share.h"
#include "tools/tierd/pressure_relief.h"

namespace tierd {

// The decode steps in which caches fill. Means over later steps predict the speed of a long text.
inline constexpr size_t kWarmUpSteps = 16;

struct RunResult {
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t load_ns = 0;
  uint64_t first_token_ns = 0;         // from the start of prefill
  uint64_t decoded_tokens = 0;         // taken after the first token: right guesses count, wrong ones do not
  uint64_t decode_ns = 0;              // wall time of decode, with guessing and sampling
  ReadCounts flash_before;             // before the first decode step
  UsedCounts used_before;              // likewise: a prompt uses more neurons than single tokens
  std::vector<TierLink> links_before;  // likewise; empty where no token was decoded
  std::vector<TierLink> links_warm;    // after kWarmUpSteps decode steps; empty where there were fewer
  std::vector<uint64_t> decode_read_bytes;  // of each decode step
  uint64_t guessed_tokens = 0;
  uint64_t right_guesses = 0;
  uint64_t disk_bytes_before = 0;          // system_read_bytes() before anything was loaded
  std::optional<PressureCounts> pressure;  // where pressure is watched
  std::optional<EnergyTotals> energy;      // RunEnergy::totals() at the end
};

// Returns the progress of the run, for RunEnergy.
RunProgress progress_of(Runtime& runtime, const RunResult& result);

// Returns the part of the configuration that every report contains.
nlohmann::json configuration_json(const Runtime& runtime);

nlohmann::json report_json(Runtime& runtime, const RunResult& result);
std::string report_text(const nlohmann::json& report);

// Returns the speed in virtual time beside the measured one, where a run by the wall clock names a machine
// (run.machine). An object with "unknown" where it cannot be played; NULL without a machine or decoded
// tokens.
nlohmann::json forecast_json(const Runtime& runtime, const nlohmann::json& report);

}  // namespace tierd
