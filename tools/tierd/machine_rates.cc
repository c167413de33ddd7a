#include "tools/tierd/machine_rates.h"

#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "core/base/disk.h"
#include "core/store/cache_folder.h"
#include "tiers/compute/memory_bandwidth.h"
#include "tiers/flash/bandwidth.h"
#include "tiers/flash/break_even.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr double kBriefMemorySeconds = 0.25;
constexpr uint64_t kBriefMemoryBytes = uint64_t{24} << 20;
constexpr double kBriefReadSeconds = 0.15;  // of each size
constexpr uint64_t kReadBytes[] = {4 << 10, 128 << 10, 512 << 10};
constexpr uint32_t kReadsInFlight = 32;
constexpr uint64_t kAssumedLatencyNs = 100'000;

// Returns the disk of a path, which need not exist.
std::optional<dev_t> disk_of(const std::string& path) {
  struct stat found {};
  if (::stat(nearest_existing(path).c_str(), &found) != 0) return std::nullopt;
  return found.st_dev;
}

// Returns a large file of the model: the store's, or one of its source.
std::string file_to_read(const RunPlan& plan) {
  if (plan.store.made()) return plan.store.data_path();
  const std::string path = plan.source->path();
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return path;
  std::string largest;
  uintmax_t most = 0;
  for (const auto& entry : fs::directory_iterator(path, unknown)) {
    const uintmax_t bytes = entry.is_regular_file(unknown) ? entry.file_size(unknown) : 0;
    if (bytes <= most) continue;
    most = bytes;
    largest = entry.path().string();
  }
  return largest;
}

Result<ReadCurve> measure_disk(const RunPlan& plan) {
  const std::string file = file_to_read(plan);
  if (disk_of(file) != disk_of(plan.store.directory()))
    return Error{Code::unsupported, file, "lies on another disk than the store will"};
  std::vector<ReadCurve::Point> points;
  for (const uint64_t bytes : kReadBytes) {
    TIERD_ASSIGN(ReadPattern pattern, random_reads(file, {.depth = kReadsInFlight}, bytes, kLeastGapFile));
    pattern.seconds = kBriefReadSeconds;
    TIERD_ASSIGN(const ReadRate rate, measure_read(file, pattern));
    points.push_back({bytes, rate.bytes_per_second});
  }
  return ReadCurve(std::move(points));
}

std::optional<MachineDescription> kept_machine(const RunPlan& plan, uint32_t threads) {
  const auto path = machine_file();
  std::error_code unknown;
  if (!path.ok() || !fs::exists(*path, unknown)) return std::nullopt;
  auto machine = read_machine(*path);
  if (!machine.ok() || machine->processor.threads != threads) return std::nullopt;
  const std::string& folder = machine->disk.folder;
  if (folder.empty() || disk_of(folder) != disk_of(plan.store.directory())) return std::nullopt;
  return std::move(*machine);
}

}  // namespace

Result<MachineRates> machine_rates(const RunPlan& plan, uint32_t threads) {
  if (!plan.config.machine.empty()) {
    TIERD_ASSIGN(MachineDescription named, read_machine(plan.config.machine));
    std::string from = named.path;
    return MachineRates{std::move(named), std::move(from), {}};
  }
  if (auto kept = kept_machine(plan, threads)) {
    std::string from = kept->path;
    return MachineRates{std::move(*kept), std::move(from), {}};
  }
  MachineRates rates{any_machine(), std::string(kMeasuredJustNow), {}};
  TIERD_ASSIGN(const double memory, measure_uncached_read(threads, kBriefMemorySeconds, kBriefMemoryBytes));
  rates.machine.processor.memory_rate = memory;
  for (KernelRate& rate : rates.machine.processor.rates) rate.gemv = rate.gemm = memory;
  rates.machine.disk.latency_ns = kAssumedLatencyNs;
  rates.machine.disk.check_rate = memory;
  auto reads = measure_disk(plan);
  if (reads.ok()) {
    rates.machine.disk.reads = std::move(*reads);
  } else {
    rates.disk_unknown = reads.error().line();
  }
  return rates;
}

}  // namespace tierd
