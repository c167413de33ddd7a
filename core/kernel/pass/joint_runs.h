// Joint runs: consecutive passes whose neurons are all in the memory of the only computing unit, and whose
// activations the kernel does not read, are posted several at a time as one run, without waiting. Posting and
// completing each site alone would leave a GPU idle for much of a step: while the device computes one joint
// run, the kernel prepares the next.
//
// All decisions about a pass are made in its turn, as if it were computed then; only its gathering stays
// open, and its neurons pinned, until its run is over. The unit serves its runs in order, so a pass that is
// computed by itself only requires that the joint run before it has been posted.
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
  // The most sites of one run: a device should not wait long for its first run.
  static constexpr size_t kMostSites = 8;

  // Each run that ends wakes `changed`. Everything referred to outlives this.
  JointRuns(Dispatcher& dispatcher, const SiteTable& sites, const Topology& topology, Notice& changed);
  ~JointRuns() override;

  // Returns whether a pass may be part of a joint run, as far as site and topology are concerned.
  bool may_take(SiteId site, const Pass& pass) const;

  // Appends a pass to the run that is not posted yet; its rows are those of the run's other passes. All
  // neurons of the gathering, which `supply` has made, are resident. The gathering is closed when the run is
  // over; everything the pass refers to lives until then.
  void add(SiteId site, const Pass& pass, Supply& supply, Gathering& gathering);
  // Returns whether no added pass waits to be posted.
  bool empty() const { return next_.sites.empty(); }
  // Returns whether a pass of these rows can be added.
  bool goes_on_with(const Pass& pass) const;
  // Posts the added passes as a run. The dispatcher can post.
  void post();
  // Closes the gatherings of passes that were added and not posted: the step is given up.
  void forget();

  bool running() const { return !running_.empty(); }
  // Not ok once a run has failed; reported once.
  Status take_status() { return std::exchange(status_, Status()); }
  // Returns how long the unit was busy with joint runs since the last call.
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
  Run next_;                 // the passes that are not posted yet
  Pass pass_;                // the first pass of `next_`
  std::vector<Unit> units_;  // of all passes of `next_`
  std::vector<Unit> list_;   // used by one function, kept for its memory
};

}  // namespace tierd
