// Joint runs: passes that follow each other, for which everything is in the memory of the one unit that
// computes, and at whose activations nobody looks, are posted several at a time, as one run, and not waited
// for. Being asked for each site by itself, and telling of each, would keep a GPU idle for a good part of a
// step: while the device computes one joint run, the kernel makes the next.
//
// All decisions about a pass are made in its turn, as if it were computed then; only its gathering stays
// open, and its neurons pinned, until its run is over. The unit serves its runs in order, so that a pass that
// is computed by itself needs nothing but that the joint run before it has been posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/observer.h"
#include "core/kernel/post/busy_time.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/post/task.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/gathering.h"
#include "core/kernel/supply/supply.h"

namespace tierd {

class JointRuns : private CompletionSink {
 public:
  // So many sites are one run at most: a device should not wait long for its first.
  static constexpr size_t kMostSites = 8;

  // Who waits at `changed` is woken by each run that ended. Everything referred to outlives this.
  JointRuns(Dispatcher& dispatcher, const SiteTable& sites, const Topology& topology, Notice& changed);
  ~JointRuns() override;

  // Whether a pass may be part of one, as far as site and topology are concerned.
  bool may_take(SiteId site, const Pass& pass) const;

  // The next pass, behind those that were added and not posted yet: one with the same rows. All neurons of
  // the gathering, which `supply` has made, are resident. It is closed when the run is over; what the pass
  // refers to lives as long.
  void add(SiteId site, const Pass& pass, Supply& supply, Gathering& gathering);
  // Nothing was added that is not posted yet.
  bool empty() const { return next_.sites.empty(); }
  // A pass of these rows can be added.
  bool goes_on_with(const Pass& pass) const;
  // Posts what was added. The dispatcher can post.
  void post();
  // Closes the gatherings of what was added and not posted: the step is given up.
  void forget();

  bool running() const { return !running_.empty(); }
  // Not ok once a run has failed; told once.
  Status take_status() { return std::exchange(status_, Status()); }
  // How long the unit was busy with them since the last call.
  uint64_t take_busy_ns() { return busy_.take(); }

 private:
  struct Gathered {
    Supply* supply = nullptr;
    Gathering* gathering = nullptr;
  };
  struct Run {
    MessageId message;
    std::vector<SiteRun> sites;
    std::vector<Gathered> gathered;  // [sites]
  };

  void on_done(const Message& message, const Done& done) override;
  static void close(const Run& run);
  std::string name_of(const Run& run, size_t failed) const;

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  const Topology& topology_;
  Notice& changed_;
  BusyTime busy_;
  Status status_;
  std::vector<Run> running_;
  Run next_;                 // what was added and not posted yet
  Pass pass_;                // the first of those
  std::vector<Unit> units_;  // of all of them
  std::vector<Unit> list_;   // used by one function, kept for its memory
};

}  // namespace tierd
