#include "tools/lab/plan/plan_machine.h"

#include <fmt/format.h>

#include "core/base/units.h"
#include "core/system/cores.h"
#include "tiers/compute/memory_bandwidth.h"
#include "tiers/flash/bandwidth.h"

namespace tierd {
namespace {

constexpr double kMemorySeconds = 0.3;
constexpr uint64_t kMemoryBytes = uint64_t{256} << 20;
constexpr double kReadSeconds = 0.2;  // of each size
constexpr uint64_t kSmallestRead = uint64_t{4} << 10;
constexpr uint64_t kLargestRead = uint64_t{1} << 20;

// Returns bytes a second of random reads of one size.
Result<double> measure_flash(const RunPlan& plan, const DeviceOptions& device, uint64_t bytes) {
  TIERD_ASSIGN(ReadPattern pattern, random_reads(plan.store.data_path(), device, bytes, kLargestRead));
  pattern.seconds = kReadSeconds;
  TIERD_ASSIGN(const ReadRate rate, measure_read(plan.store.data_path(), pattern));
  return rate.bytes_per_second;
}

}  // namespace

Result<PlanMachine> measure_machine(const RunPlan& plan) {
  const uint32_t threads = plan.config.threads != 0 ? plan.config.threads : available_cores();
  TIERD_ASSIGN(const double memory_rate, measure_memory_read(threads, kMemorySeconds, kMemoryBytes));
  DeviceOptions device;
  if (const auto depth = plan.tiers.store.agent.get<int64_t>("depth"))
    device.depth = static_cast<uint32_t>(*depth);
  std::vector<ReadCurve::Point> points;
  for (uint64_t bytes = kSmallestRead; bytes <= kLargestRead; bytes *= 2) {
    TIERD_ASSIGN(const double rate, measure_flash(plan, device, bytes));
    points.push_back({bytes, rate});
  }
  device.depth = 1;
  TIERD_ASSIGN(const double alone, measure_flash(plan, device, kSmallestRead));
  return PlanMachine{memory_rate, ReadCurve(std::move(points)), static_cast<double>(kSmallestRead) / alone};
}

void add_machine(PlanFigures& found, const PlanMachine& machine) {
  found.memory_bytes_per_second = machine.memory_rate;
  found.first_read_ms = machine.first_read * 1e3;
  for (const ReadCurve::Point& point : machine.flash.points())
    found.flash.push_back({point.bytes, point.bytes_per_second});
}

std::string machine_text(const PlanFigures& found) {
  std::string text =
      fmt::format("measured: DRAM {}; flash, random reads:", format_rate(found.memory_bytes_per_second));
  for (const ReadSpeedFigures& point : found.flash)
    text += fmt::format(" {} KiB {:.2f}", point.read_bytes >> 10, point.bytes_per_second / 1e9);
  return text + fmt::format(" GB/s, one alone {:.3g} ms\n", found.first_read_ms);
}

}  // namespace tierd
