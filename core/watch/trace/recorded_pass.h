// A pass of a trace as the scheduler is asked for it again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/observer.h"
#include "core/watch/trace/event.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// What the kernel takes for granted of a pass: of the event at which `trace` stands. Error: corrupt, naming
// it.
Status check_pass(const PassBegins& begins, const TraceReader& trace);

// The same of the neurons that an event lists: its site has them, and they ascend.
Status check_listed(const Activated& activated, const TraceReader& trace);
Status check_listed(const Measured& measured, const TraceReader& trace);
Status check_listed(const HasFired& fired, const TraceReader& trace);

// A pass, with what it refers to; `begins` as check_pass found it.
class RecordedPass {
 public:
  explicit RecordedPass(const PassBegins& begins);
  RecordedPass(const RecordedPass&) = delete;
  RecordedPass& operator=(const RecordedPass&) = delete;

  // Lives as long as this object.
  const Pass& pass() const { return pass_; }

 private:
  ActiveSet given_;
  std::vector<uint64_t> sequences_;
  Pass pass_;
};

// What a trace recorded of a pass of `site`; an event that is missing, of another site or unsound is NULL to
// whoever checks it: everything was active then, nothing was measured. Which rows used which neurons is not
// in a trace: where that was told apart, each is said to use all.
ActiveSet recorded_set(const Activated* activated, const SiteTable& sites, SiteId site, uint32_t rows);
ActiveSet recorded_set(const Measured* measured, const SiteTable& sites, SiteId site);
// Likewise what has fired: nothing, where that is not known.
Fired recorded_firing(const HasFired* fired, const SiteTable& sites, SiteId site);

// Likewise what a pass of `site` looked ahead to: nothing, where that is not known.
class RecordedWishes {
 public:
  RecordedWishes(const SiteTable& sites, const Topology& topology)
      : sites_(sites), topology_(topology), wishes_(sites.most_neurons()) {}
  // Live until the next call.
  const WishList& of(const LookedAhead* recorded, SiteId site);

 private:
  const SiteTable& sites_;
  const Topology& topology_;
  WishList wishes_;
};

}  // namespace tierd
