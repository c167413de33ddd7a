#include "tools/measurement/course.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/base/align.h"
#include "core/base/units.h"
#include "core/system/memory_group.h"
#include "tiers/flash/bandwidth.h"
#include "tools/measurement/summary.h"

namespace tierd {
namespace {

constexpr double kDiskSeconds = 1;
constexpr uint64_t kDiskReadBytes = uint64_t{1} << 20;
// Reads in flight, as many as a model's default; 32 MiB outside of the budget.
constexpr uint32_t kDiskDepth = 32;
constexpr double kDiskTolerance = 0.2;

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

double mean(double a, double b) {
  return (a + b) / 2;
}

std::vector<std::vector<double>> disk_of(const std::vector<Round>& rounds) {
  std::vector<std::vector<double>> disk;
  for (const Round& round : rounds) disk.push_back(round.disk);
  return disk;
}

}  // namespace

Status Course::load() {
  if (subject_) return {};
  TIERD_ASSIGN(subject_, Subject::create(arguments_));
  warm_for_.reset();
  TIERD_ASSIGN(PlannedTraffic traffic, runtime().planned_traffic());
  const Store& store = runtime().plan().store;
  disk_path_ = store.data_path();
  if (store.made()) streamed_ = std::move(traffic.streamed);  // a model made from a shape alone is on no disk
  return {};
}

Result<double> Course::measure_disk() {
  if (!streams()) return 0.0;
  ReadPattern pattern;
  pattern.read_bytes = kDiskReadBytes;
  pattern.depth = kDiskDepth;
  // The bytes that the steps stream, because a cache below the disk may keep bytes that are read repeatedly.
  pattern.parts = streamed_;
  pattern.seconds = kDiskSeconds;
  TIERD_ASSIGN(const ReadRate rate, measure_read(disk_path_, pattern, next_disk_read_));
  next_disk_read_ = rate.first;
  return rate.bytes_per_second;
}

// Measures while none of our work is in flight.
Result<Bandwidths> Course::measure_machine() {
  Bandwidths bandwidths;
  TIERD_ASSIGN(bandwidths.memory, subject_->memory_bandwidth());
  TIERD_ASSIGN(bandwidths.flash, measure_disk());
  return bandwidths;
}

void Course::note_memory_use() {
  if (peer_has_run_) return;
  memory_use_ = {.peak_rss_bytes = peak_rss_bytes(), .group = {}};
  if (const auto group = memory_group_use()) memory_use_.group = {group->limit_bytes, group->peak_bytes};
}

Result<PeerRun> Course::run_peer_alone() {
  const PeerArguments& peer = *arguments_.peer;
  if (!peer.keep) subject_.reset();
  const OnCores everywhere(cores_);  // the peer inherits these cores
  bytes_beside_peer_ = std::max(bytes_beside_peer_, resident_bytes());
  peer_has_run_ = true;
  return run_peer(peer.command, peer.rate);
}

Result<Round> Course::run_round(const Workload& test) {
  TIERD_TRY(load());
  if (!warm_for_ || warm_for_->kind != test.kind || peer_has_run_) {
    TIERD_TRY(subject_->warm_up(test));
    warm_for_ = test;
  }
  Round round;
  TIERD_ASSIGN(const Bandwidths before, measure_machine());
  TIERD_ASSIGN(round.ours, subject_->run(test));
  TIERD_ASSIGN(const Bandwidths after, measure_machine());
  round.ours.bandwidths = {mean(before.flash, after.flash), mean(before.memory, after.memory)};
  if (streams()) round.disk.push_back(round.ours.bandwidths.flash);
  note_memory_use();
  if (!arguments_.peer) return round;
  TIERD_ASSIGN(round.peer, run_peer_alone());
  if (streams()) {
    TIERD_ASSIGN(const double last, measure_disk());
    round.disk.push_back(mean(after.flash, last));
  }
  return round;
}

void Course::say(const Measurement& so_far, const Round& round) const {
  if (arguments_.quiet) return;
  std::string line = fmt::format("{}{} {}/{}: {:.3f} tokens/s", name_, so_far.test.name(),
                                 so_far.rounds.size(), arguments_.rounds, round.ours.rate());
  if (round.peer) line += fmt::format(", peer {:.3f}", round.peer->rate);
  for (const double rate : round.disk) line += ", disk " + format_rate(rate);
  fmt::print(stderr, "{}\n", line);
}

Status Course::add_round(Measurement& result) {
  TIERD_ASSIGN(Round round, run_round(result.test));
  result.rounds.push_back(std::move(round));
  say(result, result.rounds.back());
  return {};
}

Status Course::repeat_strays(Measurement& result) {
  for (;;) {
    const std::vector<size_t> strays = find_strays(disk_of(result.rounds), kDiskTolerance);
    result.strays = static_cast<uint32_t>(strays.size());
    // At most as many repetitions as rounds were requested: a disk may never be steady.
    if (strays.empty() || result.repeated == arguments_.rounds) return {};
    if (!arguments_.quiet) {
      fmt::print(stderr, "{}{}: the disk was more than {:.0f} % off its median: a round is repeated\n", name_,
                 result.test.name(), kDiskTolerance * 100);
    }
    result.rounds.erase(result.rounds.begin() + static_cast<ptrdiff_t>(strays.front()));
    ++result.repeated;
    TIERD_TRY(add_round(result));
  }
}

Result<Measurement> Course::measure(const Workload& test) {
  Measurement result;
  result.test = test;
  while (result.rounds.size() < arguments_.rounds) TIERD_TRY(add_round(result));
  TIERD_TRY(repeat_strays(result));
  return result;
}

}  // namespace tierd
