// The order of a measurement: loading, warm-up, blocks with the machine's bandwidths measured between them,
// the peer alternating with ours, and rounds that are repeated if the disk's speed varied.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/measurement/arguments.h"
#include "tools/measurement/figures.h"
#include "tools/measurement/peer.h"
#include "tools/measurement/subject.h"

namespace tierd {

// One block of ours and, with a peer, one run of the peer.
struct Round {
  Block ours;
  std::optional<PeerRun> peer;
  std::vector<double>
      disk;  // sequential bytes per second beside ours and beside the peer; empty if nothing streams
};

struct Measurement {
  Workload test;
  std::vector<Round> rounds;  // the rounds that count
  uint32_t repeated = 0;      // rounds dropped because the disk was off its median
  uint32_t strays = 0;        // such rounds that were kept, since no repetition was left
};

class Course {
 public:
  // `arguments` must outlive the course. `name` is the prefix of its progress lines:
  // "tier-bench: ".
  explicit Course(const Arguments& arguments, std::string name = {})
      : arguments_(arguments), name_(std::move(name)) {}

  // Loads the model unless it is loaded.
  Status load();
  // Frees the model's memory.
  void unload() { subject_.reset(); }
  // Requires `load`.
  Subject& subject() { return *subject_; }
  Runtime& runtime() { return subject_->runtime(); }

  // Runs all rounds, one after the other. Errors: those of Subject, run_peer and measure_read.
  Result<Measurement> measure(const Workload& test);
  // The two parts of measure(), for callers that interleave measurements: one more round; and the repetition
  // of rounds in which the disk's speed varied.
  Status add_round(Measurement& result);
  Status repeat_strays(Measurement& result);

  // The peaks before a peer ran.
  const ProcessFigures& memory_use() const { return memory_use_; }
  // The largest resident bytes of this process while the peer ran.
  uint64_t bytes_beside_peer() const { return bytes_beside_peer_; }

 private:
  Result<Round> run_round(const Workload& test);
  Result<Bandwidths> measure_machine();
  // Returns whether a decode step reads from flash, so that the disk's speed matters.
  bool streams() const { return !streamed_.empty(); }
  Result<double> measure_disk();
  Result<PeerRun> run_peer_alone();
  void note_memory_use();
  void say(const Measurement& so_far, const Round& round) const;

  const Arguments& arguments_;
  const std::string name_;
  const CoreSet cores_ = CoreSet::of_this_thread();
  std::unique_ptr<Subject> subject_;
  std::optional<Workload> warm_for_;
  std::vector<FileRange> streamed_;  // of disk_path_, by a decode step
  std::string disk_path_;
  uint64_t next_disk_read_ = 0;
  ProcessFigures memory_use_;
  uint64_t bytes_beside_peer_ = 0;
  bool peer_has_run_ = false;
};

}  // namespace tierd
