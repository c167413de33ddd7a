// A pass of a trace as a request to the scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/observer.h"
#include "core/watch/trace/event.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// Checks the properties of a pass that the kernel assumes. `trace` is at the event of the pass, which errors
// name. Error: corrupt.
Status check_pass(const PassBegins& begins, const TraceReader& trace);

// Check the neurons that an event lists: the site has them, and they ascend.
Status check_listed(const Activated& activated, const TraceReader& trace);
Status check_listed(const Measured& measured, const TraceReader& trace);
Status check_listed(const HasFired& fired, const TraceReader& trace);

// A pass with the data that it refers to; check_pass accepted `begins`.
class RecordedPass {
 public:
  explicit RecordedPass(const PassBegins& begins);
  RecordedPass(const RecordedPass&) = delete;
  RecordedPass& operator=(const RecordedPass&) = delete;

  // Valid as long as this object.
  const Pass& pass() const { return pass_; }

 private:
  ActiveSet given_;
  std::vector<uint64_t> sequences_;
  Pass pass_;
};

// Return the recorded set of a pass of `site`. If the event is NULL, of another site or invalid, all neurons
// were active, or none were measured. A trace has no row masks: if rows used different neurons, each row is
// assumed to use all of them.
ActiveSet recorded_set(const Activated* activated, const SiteTable& sites, SiteId site, uint32_t rows);
ActiveSet recorded_set(const Measured* measured, const SiteTable& sites, SiteId site);
// Returns the recorded firing, likewise; empty if it is not known.
Fired recorded_firing(const HasFired* fired, const SiteTable& sites, SiteId site);

// The recorded wishes of a pass of `site`, likewise; empty if they are not known.
class RecordedWishes {
 public:
  RecordedWishes(const SiteTable& sites, const Topology& topology)
      : sites_(sites), topology_(topology), wishes_(sites.most_neurons()) {}
  // Returns wishes that are valid until the next call.
  const WishList& of(const LookedAhead* recorded, SiteId site);

 private:
  const SiteTable& sites_;
  const Topology& topology_;
  WishList wishes_;
};

}  // namespace tierd
