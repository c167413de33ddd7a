// What a run was: one screen for a person, one object for a machine.
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

// The decode steps in which caches fill. Means over the later ones say how a long text goes on.
inline constexpr size_t kWarmUpSteps = 16;

struct RunResult {
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t load_ns = 0;
  uint64_t first_token_ns = 0;         // from the start of prefill
  uint64_t decoded_tokens = 0;         // that were taken after the first one: right guesses, no wrong ones
  uint64_t decode_ns = 0;              // all that passed meanwhile, guessing and sampling included
  ReadCounts flash_before;             // before the first decode step
  UsedCounts used_before;              // likewise: prompts use more than tokens one by one
  std::vector<TierLink> links_before;  // likewise; none where nothing was decoded
  std::vector<TierLink> links_warm;    // after kWarmUpSteps decode steps; none where there were fewer
  std::vector<uint64_t> decode_read_bytes;  // of each decode step
  uint64_t guessed_tokens = 0;
  uint64_t right_guesses = 0;
  uint64_t disk_bytes_before = 0;          // system_read_bytes() before anything was loaded
  std::optional<PressureCounts> pressure;  // where it is watched
  std::optional<EnergyTotals> energy;      // RunEnergy::totals() at the end
};

// How far the run is, for RunEnergy.
RunProgress progress_of(Runtime& runtime, const RunResult& result);

// What of a configuration stands in every report.
nlohmann::json configuration_json(const Runtime& runtime);

nlohmann::json report_json(Runtime& runtime, const RunResult& result);
std::string report_text(const nlohmann::json& report);

// Where a run by the wall clock names a machine (run.machine): what virtual time says of it, beside what was
// measured; an object with "unknown" where it cannot say. NULL: no machine is named, or nothing was decoded.
nlohmann::json forecast_json(const Runtime& runtime, const nlohmann::json& report);

}  // namespace tierd
