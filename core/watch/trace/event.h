// The events of a trace: every input and every decision of the kernel, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/agent/message.h"
#include "core/config/config.h"
#include "core/kernel/observer.h"
#include "core/kernel/site.h"

namespace tierd {

// Requests to the scheduler; see KernelObserver.
struct FillBegins {
  bool operator==(const FillBegins&) const = default;
};
struct PassBegins {
  SiteId site = 0;
  uint32_t step = 0;
  uint16_t rows = 0;
  bool bypass_caches = false;
  // The neurons of a site whose set is given, ascending.
  std::optional<std::vector<uint32_t>> given;
  std::vector<uint32_t> sequences = {};  // [rows]
  bool operator==(const PassBegins&) const = default;
};
PassBegins pass_event(SiteId site, const Pass& pass);
// A sequence of rows, between two steps.
struct SequenceBegins {
  uint64_t sequence = 0;
  std::string label = {};  // the client, such as a request
  bool operator==(const SequenceBegins&) const = default;
};
struct SequenceEnds {
  uint64_t sequence = 0;
  bool operator==(const SequenceEnds&) const = default;
};
struct StepEnds {
  uint32_t step = 0;
  bool operator==(const StepEnds&) const = default;
};
struct RowsKept {
  uint32_t rows = 0;
  uint32_t kept = 0;
  bool operator==(const RowsKept&) const = default;
};
struct DrainBegins {
  bool operator==(const DrainBegins&) const = default;
};
// Arenas get another size, between two steps.
struct Resized {
  std::vector<std::optional<uint64_t>> parts = {};  // [memories] bytes; none: unchanged
  bool operator==(const Resized&) const = default;
};
// A strategy was replaced by another of its kind, between two steps.
struct Swapped {
  std::string kind;
  StrategyConfig strategy;
  std::string tier = {};  // of a cache that a tier has of its own
  bool operator==(const Swapped&) const;
};
// Recording stopped here, because the run was interrupted.
struct Interrupted {
  bool operator==(const Interrupted&) const = default;
};

// Decisions of the scheduler.
struct Activated {
  SiteId site = 0;
  std::optional<std::vector<uint32_t>> neurons;  // ascending; none: all
  bool by_row = false;                           // rows use different neurons
  std::vector<float> scores = {};                // of each neuron, if a strategy ranks them
  bool operator==(const Activated&) const = default;
};
// The wishes of a predictor that read the site's activations, nearest first.
struct LookedAhead {
  struct Wish {
    SiteId site = 0;
    uint32_t distance = 0;
    std::optional<std::vector<uint32_t>> neurons = std::nullopt;  // ascending; none: all
    uint32_t memory = TIERD_NO_MEMORY;
    uint32_t edition = TIERD_NO_EDITION;
    std::vector<float> scores = {};  // of each neuron, if the wish has scores
    bool operator==(const Wish&) const = default;
  };
  SiteId site = 0;
  std::vector<Wish> wishes;
  bool operator==(const LookedAhead&) const = default;
};
// The neurons that fired in a measured pass.
struct Measured {
  SiteId site = 0;
  std::vector<uint32_t> neurons;  // ascending
  bool operator==(const Measured&) const = default;
};
// The report that the strategy with the neurons' heat received.
struct HasFired {
  SiteId site = 0;
  std::vector<uint32_t> neurons;  // ascending
  std::vector<uint32_t> counts;   // rows in which each did
  bool operator==(const HasFired&) const = default;
};
struct Evicted {
  MemoryId memory = 1;
  EditionId edition = 0;
  std::vector<uint32_t> neurons;
  bool operator==(const Evicted&) const = default;
};
struct Settled {
  uint64_t residency = 0;
  bool operator==(const Settled&) const = default;
};

// Messages of the dispatcher. Posts are equal if all their fields except queued_ns are.
struct Posted {
  Message message;
  std::vector<Unit> units;
  std::vector<SiteRun> sites = {};
  bool operator==(const Posted&) const;
};
struct TurnBegins {
  bool operator==(const TurnBegins&) const = default;
};
struct Sent {
  MessageId id;
  bool operator==(const Sent&) const = default;
};
struct Delivered {
  Done done;
  bool withdrawn = false;
  bool operator==(const Delivered&) const;  // compares all fields except the times
};

struct Event {
  uint64_t ns = 0;  // since the start of the trace
  std::variant<FillBegins, PassBegins, StepEnds, DrainBegins, Swapped, Interrupted, Activated, Evicted,
               Settled, Posted, TurnBegins, Sent, Delivered, SequenceBegins, SequenceEnds, Measured, RowsKept,
               Resized, LookedAhead, HasFired>
      what;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&what);
  }
};

Activated activated_event(SiteId site, const ActiveSet& set);
LookedAhead looked_ahead_event(SiteId site, const WishList& wishes);
Measured measured_event(SiteId site, const ActiveSet& active);

// Returns the neurons of a set; none: all.
std::optional<std::vector<uint32_t>> listed(const ActiveSet& set);

// Returns one line for people: "read layers.3.ffn 12-15 …". `sites` give the names.
std::string event_text(const Event& event, const SiteTable& sites);

// Returns the neurons as runs: "0-3 7 9-12".
std::string runs_text(const std::vector<uint32_t>& neurons);

}  // namespace tierd
