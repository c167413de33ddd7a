#include "tools/tierd/token_bytes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "tiers/flash/break_even.h"

namespace tierd {
namespace {

constexpr ForecastAsked kAsked = {
    .prompt_tokens = 1, .warming_tokens = 3, .decoded_tokens = 4, .settling_tokens = 56};

constexpr const char* kGap = "gap";  // a parameter of the agent that reads the store
constexpr const char* kMeasuredGap = "auto";

// Relative speeds of the other disks, and the difference up to which their bytes count as the same.
constexpr double kOtherDisks[] = {1.0 / 16, 16};
constexpr double kSameShare = 0.05;
constexpr double kSameBytes = 16'384;

bool is_too_small_for_gaps(const RunPlan& plan) {
  return plan.config.clock == "wall" && plan.store.manifest().data_bytes < kLeastGapFile;
}

// Returns whether the run reads over the same gaps as virtual time does.
bool knows_gap(const RunPlan& plan, const MachineRates& rates) {
  return !rates.disk_unknown || is_too_small_for_gaps(plan) ||
         plan.tiers.store.agent.get<std::string>(kGap).value_or(kMeasuredGap) != kMeasuredGap;
}

MachineDescription with_disk(MachineDescription machine, double times_as_fast) {
  std::vector<ReadCurve::Point> points = machine.disk.reads.points();
  for (ReadCurve::Point& point : points) point.bytes_per_second *= times_as_fast;
  machine.disk.reads = ReadCurve(std::move(points));
  machine.disk.latency_ns =
      static_cast<uint64_t>(static_cast<double>(machine.disk.latency_ns) / times_as_fast);
  return machine;
}

// Returns the configuration with the plan's capacities, since "auto" would see less free memory by now.
Config with_capacities(const RunPlan& plan) {
  Config config = plan.config;
  for (size_t t = 0; t < plan.tiers.memories.size(); ++t)
    config.tier(plan.tiers.memories[t].config.name).capacity = std::to_string(plan.memory.tiers[t].capacity);
  return config;
}

Result<std::vector<Forecast>> play_on_other_disks(const Runtime& runtime, RuntimeOptions options) {
  const Config config = with_capacities(runtime.plan());
  const MachineDescription machine = *options.play_on;
  options.force = true;  // a run that is played takes no memory for weights
  std::vector<Forecast> others;
  for (const double times_as_fast : kOtherDisks) {
    options.play_on = with_disk(machine, times_as_fast);
    TIERD_ASSIGN(RunPlan plan, plan_run(config, options));
    TIERD_ASSIGN(const std::unique_ptr<Runtime> other_runtime, Runtime::create(std::move(plan), options));
    TIERD_ASSIGN(Forecast other, play(*other_runtime, kAsked));
    others.push_back(std::move(other));
  }
  return others;
}

// Returns the bytes of a run whose reads depend on activations, and which therefore cannot be played.
TokenBytes bytes_by_text(const PlannedTraffic& traffic) {
  const auto nothing = [](uint64_t most) { return most == 0 ? std::optional(0.0) : std::nullopt; };
  TokenBytes bytes;
  bytes.flash = nothing(traffic.streamed_bytes);
  for (const uint64_t most : traffic.link_bytes) bytes.links.push_back(nothing(most));
  bytes.why_unknown = "the bytes of a token depend on the text";
  return bytes;
}

TokenBytes bytes_of(const Forecast& played, const std::vector<Forecast>& others, const RunPlan& plan,
                    const MachineRates& rates) {
  TokenBytes bytes;
  const auto if_the_same = [&](const auto& of) -> std::optional<double> {
    const double here = of(played);
    const auto is_same = [&](const Forecast& other) {
      return std::abs(of(other) - here) <= kSameShare * here + kSameBytes;
    };
    if (std::ranges::all_of(others, is_same)) return here;
    bytes.why_unknown = "the bytes that are loaded ahead depend on the speeds of disk and processor";
    return std::nullopt;
  };
  for (size_t l = 0; l < played.link_bytes.size(); ++l)
    bytes.links.push_back(if_the_same([l](const Forecast& of) { return of.link_bytes[l]; }));
  const bool has_small_neurons = plan.store.manifest().layout != Layout::row;
  if (knows_gap(plan, rates) || !has_small_neurons || played.flash_bytes == 0) {
    bytes.flash = if_the_same([](const Forecast& of) { return of.flash_bytes; });
  } else {
    bytes.why_unknown = *rates.disk_unknown;
  }
  return bytes;
}

}  // namespace

Result<PlayedBytes> foretell_bytes(Runtime& runtime, const RuntimeOptions& options,
                                   const PlannedTraffic& traffic, const MachineRates& rates) {
  Result<Forecast> played = play(runtime, kAsked);
  if (!played.ok()) return PlayedBytes{std::move(played), bytes_by_text(traffic)};
  TIERD_ASSIGN(const std::vector<Forecast> others, play_on_other_disks(runtime, options));
  TokenBytes bytes = bytes_of(*played, others, runtime.plan(), rates);
  return PlayedBytes{std::move(played), std::move(bytes)};
}

MachineDescription machine_to_play_on(const RunPlan& plan, const MachineRates& rates) {
  MachineDescription machine = rates.machine;
  // Where requests cost nothing, reading over a gap is never faster.
  if (is_too_small_for_gaps(plan))
    machine.disk.reads = ReadCurve({{1, machine.disk.reads.points().back().bytes_per_second}});
  return machine;
}

}  // namespace tierd
