#include "core/run/run_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/watch/energy/nvml.h"
#include "core/watch/energy/rapl.h"

namespace tierd {
namespace {

constexpr uint64_t kLookNs = 1'000'000'000;
constexpr double kGb = 1e9;
constexpr const char* kStoodFor = "the host stands for it";

// Returns whether the host stands for the GPU of a tier, in wall time.
bool is_stood_for(const Runtime& runtime, size_t tier) {
  // The prefix of the backend of an agent for whose device this machine stands (tiers/gpu).
  constexpr std::string_view kHost = "host";
  return runtime.plan().tiers.memories[tier].computes_apart() && runtime.plan().config.clock != "model" &&
         runtime.backend(tier).starts_with(kHost);
}

FoundMeter find_gpu(const Runtime& runtime) {
  const std::vector<Tier>& tiers = runtime.plan().tiers.memories;
  uint32_t gpus = 0;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    if (!tiers[tier].computes_apart()) continue;
    gpus += tiers[tier].config.count;
    if (is_stood_for(runtime, tier)) return Error{Code::unsupported, tiers[tier].config.table(), kStoodFor};
  }
  if (gpus == 0) return Error{Code::not_found, "tiers", "no GPU computes"};
  if (gpus > 1) {
    return Error{Code::unsupported, "tiers",
                 fmt::format("{} agents compute on GPUs, and it is not known which GPU each uses", gpus)};
  }
  TIERD_ASSIGN(const NvmlLibrary library, load_nvml());
  return nvml_meter(library);
}

UsedParts used_parts(const Runtime& runtime, const PowerDescription& power) {
  const std::vector<Tier>& tiers = runtime.plan().tiers.memories;
  bool host_computes = false;
  double gpus = 0, bytes = 0;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    if (tiers[tier].computes_apart() && !is_stood_for(runtime, tier)) gpus += tiers[tier].config.count;
    if (tiers[tier].apart()) continue;
    host_computes = host_computes || tiers[tier].config.compute;
    bytes += static_cast<double>(runtime.budget(tier).used());
  }
  // The kernel's thread always runs.
  const double cores = host_computes ? runtime.threads() : 1;
  return {std::min(1.0, cores / power.processor_cores), gpus, bytes / kGb, 1};
}

EnergyMeters find_meters(const Runtime& runtime) {
  if (runtime.plan().config.clock == "model")
    return no_meters(
        {Code::unsupported, "run.clock", "virtual time has no measured energy, only a computed one"});
  return {rapl_meter(kPowercap, "package"), find_gpu(runtime), rapl_meter(kPowercap, "dram")};
}

}  // namespace

RunEnergy::RunEnergy(Runtime& runtime) : RunEnergy(runtime, find_meters(runtime)) {}

RunEnergy::RunEnergy(Runtime& runtime, EnergyMeters meters)
    : runtime_(runtime), begin_ns_(runtime.dispatcher().now_ns()) {
  const auto& power = runtime.plan().power;
  if (power) ledger_.emplace(*power, std::move(meters), reading({}));
}

void RunEnergy::loaded() {
  load_ns_ = runtime_.dispatcher().now_ns() - begin_ns_;
  look_now({});
}

void RunEnergy::look(const RunProgress& progress) {
  if (runtime_.dispatcher().now_ns() >= next_ns_) look_now(progress);
}

void RunEnergy::look_now(const RunProgress& progress) {
  if (!ledger_) return;
  const EnergyReading now = reading(progress);
  ledger_->look(now);
  next_ns_ = now.now_ns + kLookNs;
}

std::optional<EnergyTotals> RunEnergy::totals() const {
  if (!ledger_) return std::nullopt;
  EnergyTotals totals = ledger_->totals();
  const std::vector<Tier>& tiers = runtime_.plan().tiers.memories;
  for (size_t tier = 0; tier < tiers.size(); ++tier) {
    if (is_stood_for(runtime_, tier))
      totals.not_counted.push_back(
          {EnergyPart::gpu, fmt::format("{}: {}", tiers[tier].config.table(), kStoodFor)});
  }
  return totals;
}

EnergyReading RunEnergy::reading(const RunProgress& progress) const {
  const Engine& engine = runtime_.engine();
  const uint64_t decode_ns = std::max(progress.decode_ns, engine.decode_times().wall_ns);
  EnergyReading now;
  now.now_ns = runtime_.dispatcher().now_ns();
  now.busy_ns = load_ns_ + engine.prefill_times().wall_ns + decode_ns;
  now.decode_ns = progress.decode_ns;
  now.decoded_tokens = progress.decoded_tokens;
  now.generated_tokens = progress.generated_tokens;
  now.flash_bytes = runtime_.flash_counts().read_bytes;
  now.used = used_parts(runtime_, *runtime_.plan().power);
  return now;
}

}  // namespace tierd
