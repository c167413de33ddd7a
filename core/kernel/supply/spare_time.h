// What a memory fetches while nobody computes from the memories that it fetches from: neurons that should be
// here, and that nobody waits for. They come a message at a time, so that the pass behind waits for one of
// them at most.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/sources.h"
#include "core/kernel/supply/transfers.h"

namespace tierd {

// A message that is over, of those that no pass waits for.
struct SpareMove {
  uint64_t start_ns = 0;
  uint64_t done_ns = 0;
  uint64_t neurons = 0;
  uint64_t bytes = 0;
};

class SpareTime {
 public:
  // The memory. Everything referred to outlives this.
  struct Context {
    MemoryId id;
    const Dispatcher& dispatcher;
    const SiteTable& sites;
    const Residency& residency;
    Admission& admission;
    Sources& sources;
    Transfers& transfers;
  };
  explicit SpareTime(const Context& context) : context_(context) {}

  // Behind what was asked for before. What is here, or on its way, or in no memory next to this one, is left
  // out.
  void ask(WantedNeurons wanted, bool moves_home) { asked_.push_back({std::move(wanted), moves_home, 0}); }
  // Starts the next message, unless one is under way. The cache is asked for room for what it brings, and
  // nothing is evicted for more than that. Error: plugin_fault.
  Status start();
  // Forgets what was not started.
  void end() { asked_.clear(); }

  // Notes the end of a message that it has started.
  void moved(const Done& done) { moves_.push_back({done.start_ns, done.done_ns, done.n_done, done.bytes}); }
  // Returns the messages that ended since the last call of `take_moves`.
  const std::vector<SpareMove>& moves() const { return moves_; }
  std::vector<SpareMove> take_moves() { return std::exchange(moves_, {}); }

 private:
  struct Asked {
    WantedNeurons wanted;
    bool moves_home;
    size_t next;  // of its neurons
  };
  void take_some(Asked& asked);
  Status start_some(const Asked& asked);

  Context context_;
  std::deque<Asked> asked_;
  std::vector<uint32_t> some_;  // of one message
  std::vector<SpareMove> moves_;
};

}  // namespace tierd
