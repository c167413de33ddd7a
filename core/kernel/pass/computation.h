// Computes a site: runs the segments around it on the units of its flow, hands each unit the neurons of its
// share as they arrive, and lets units take activations from one another. For the present pass.
#pragma once

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
  // `plan` is that of the present pass. Each run that ends wakes `changed`. Everything referred to outlives
  // the computation.
  Computation(Dispatcher& dispatcher, const SiteTable& sites, const Topology& topology, const PassPlan& plan,
              Notice& changed);
  ~Computation() override;

  // Begins another pass; the last one is over, or none of its runs is under way. `gives_next`: the kernel
  // itself reads the input of the next site.
  void begin(SiteId site, const Pass& pass, bool gives_next);
  // Runs the segment before alone; the caller reads the input once nothing is running. The dispatcher can
  // post.
  void run_before();
  // Options of the pass; `masks`, set if rows use different neurons, live until the pass is over.
  struct Asked {
    bool incomplete = false;  // results must be cleared before neurons write them
    bool measure = false;     // the contribution of each neuron is written
    bool tell = false;        // only whether each neuron contributes is written
    std::span<const uint64_t> masks = {};
  };
  void ask(const Asked& asked) { asked_ = asked; }
  // Returns the part of a unit; its gatherings are added before anything is posted.
  UnitPass& unit(UnitId unit) { return units_[unit]; }
  std::span<UnitPass> all_units() { return units_; }

  // Posts the work that can be computed now, as far as there is room for messages.
  void post();

  // Returns whether a unit has an unfinished run.
  bool running() const;
  // Returns whether every unit that receives results has run its segment after.
  bool over() const;
  // Not ok once a unit has failed, or required neurons cannot be fetched.
  Status status() const;
  // Returns how long units were busy since the last call; overlapping times count once.
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
  bool input_ready_ = false;  // the segment before is over, or there is none
  Status status_;             // of the units

  // The lists of the message being posted; members so that their memory is reused.
  std::vector<Unit> list_;
  std::vector<Give> gives_;
};

}  // namespace tierd
