// Computes a site: runs the segments around it on the units that the site's flow names, hands them the
// neurons of their shares as those come in, and lets them take activations from one another. The scheduler
// has one, for the present pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/observer.h"
#include "core/kernel/pass/pass_plan.h"
#include "core/kernel/pass/unit_pass.h"
#include "core/kernel/post/busy_time.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/post/task.h"
#include "core/kernel/site.h"

namespace tierd {

class Computation : private CompletionSink {
 public:
  // `plan` is that of the present pass. Who waits at `changed` is woken by each run that ended. Everything
  // referred to outlives the computation.
  Computation(Dispatcher& dispatcher, const SiteTable& sites, const Topology& topology, const PassPlan& plan,
              Notice& changed);
  ~Computation() override;

  // Begins another pass; the last one is over, or nothing of it runs any more. `gives_next`: somebody beside
  // the units looks at what the next site computes from.
  void begin(SiteId site, const Pass& pass, bool gives_next);
  // Runs the segment before alone, for whoever looks at the input once nothing is running. The dispatcher can
  // post.
  void run_before();
  // What is asked of the neurons; `masks`, where rows use different ones, live until the pass is over.
  struct Asked {
    bool incomplete = false;  // results must be zero before neurons give them
    bool measure = false;     // what each neuron contributes is written down
    bool tell = false;        // or only whether it contributes something
    std::span<const uint64_t> masks = {};
  };
  void ask(const Asked& asked) { asked_ = asked; }
  // Its gatherings are added before anything is posted.
  UnitPass& unit(UnitId unit) { return units_[unit]; }
  std::span<UnitPass> all_units() { return units_; }

  // Posts what can be computed now, as far as there is room for messages.
  void post();

  // Whether a unit was asked to compute, and is not done yet.
  bool running() const;
  // Every unit that the results go to has run its segment after.
  bool over() const;
  // Not ok once a unit has failed, or neurons that are needed cannot be had.
  Status status() const;
  // How long units were busy since the last call; times that overlap are not added up.
  uint64_t take_busy_ns() { return busy_.take(); }

 private:
  void on_done(const Message& message, const Done& done) override;
  void post_to(UnitId unit);
  MessageId post(UnitId unit, Message message, std::span<const Take> takes, bool gives_input = false);
  MessageId post_before(UnitId unit);
  bool computes(UnitId unit) const { return plan_.size(unit) != 0; }
  bool others_compute(UnitId unit) const;
  bool others_are_done(UnitId unit) const;
  std::span<const Take> input_of(UnitId unit);
  std::span<const Take> results_of_others(UnitId unit);
  std::span<const Give> gives_of(UnitId unit, uint8_t flags, bool input);
  const Site& site() const { return sites_[site_]; }
  UnitId units() const { return static_cast<UnitId>(units_.size()); }
  UnitId unit_of(uint16_t agent) const;

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  const Topology& topology_;
  const PassPlan& plan_;
  Notice& changed_;
  BusyTime busy_;

  // The present pass.
  SiteId site_ = kNoSiteId;
  Pass pass_;
  bool gives_next_ = false;
  Asked asked_;
  std::vector<UnitPass> units_;
  uint32_t mergers_ = 0;      // units that run a segment after
  MessageId before_;          // the segment before, where it runs alone
  bool input_ready_ = false;  // it is over, or there is none
  Status status_;             // of the units

  // They belong to the message that is being posted, and are kept for their memory.
  std::vector<Unit> list_;
  std::vector<Give> gives_;
};

}  // namespace tierd
