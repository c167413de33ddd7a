// Receives every input and every decision of the kernel, in order: enough to replay a run without weights,
// and to check that the decisions are the same (core/watch/trace).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/active_set.h"
#include "core/kernel/memory.h"
#include "core/kernel/site.h"
#include "core/kernel/wish_list.h"

namespace tierd {

// One site of one step, as an engine requests it.
struct Pass {
  uint32_t step = 0;
  uint16_t rows = 0;
  std::span<const RowInfo> row_info;    // [rows]; unused in a run without weights
  bool bypass_caches = false;           // prefill: no missing neuron is admitted to a cache
  const ActiveSet* given = nullptr;     // the active set of a site whose set is given, else NULL
  std::span<const uint64_t> sequences;  // [rows]
};

// The result of a pass that computed a site whole.
struct MeasuredPass {
  const ActiveSet& active;  // neurons that contributed
  uint32_t rows = 0;
  const float* x = nullptr;             // [rows x n_in] the input of the site
  const float* contribution = nullptr;  // [rows x n] contribution of each neuron
};

// The computed neurons that fired, ascending, and the number of rows in which each did.
struct Fired {
  std::vector<uint32_t> neurons;
  std::vector<uint32_t> counts;
};

// [kernel thread] Arguments are valid only during the call.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;

  // Requests of the engine to the scheduler.
  virtual void sequence_begins(uint64_t sequence, std::string_view label) = 0;
  virtual void sequence_ends(uint64_t sequence) = 0;
  virtual void fill_begins() = 0;
  virtual void pass_begins(SiteId site, const Pass& pass) = 0;
  virtual void step_ends(uint32_t step) = 0;
  virtual void rows_kept(uint32_t rows, uint32_t kept) = 0;
  virtual void drain_begins() = 0;
  // [memories] bytes of each arena; nullopt: unchanged.
  virtual void resize_begins(std::span<const std::optional<uint64_t>> parts) = 0;
  // A stop request was seen. Its consequences depend on the clock.
  virtual void interrupted() = 0;

  // Decisions of the scheduler.
  virtual void activated(SiteId site, const ActiveSet& set) = 0;
  // The wishes of a predictor that read the site's activations, which a replay cannot recompute.
  virtual void looked_ahead(SiteId site, const WishList& wishes) = 0;
  virtual void measured(SiteId site, const MeasuredPass& pass) = 0;
  // The report that the strategy with the neurons' heat received.
  virtual void fired(SiteId site, const Fired& fired) = 0;
  virtual void evicted(MemoryId memory, EditionId edition, std::span<const uint32_t> neurons) = 0;
  // The step has ended, and caches have split their arenas anew where they wanted that. `residency`: computes
  // the digest of all neurons' places (Residency::digest), which takes a millisecond for a 7B model; call it
  // only if needed.
  virtual void settled(const std::function<uint64_t()>& residency) = 0;

  // Messages of the dispatcher. A turn sends first, then delivers.
  virtual void posted(const Message& message, const Payload& payload) = 0;
  virtual void turn_begins() = 0;
  virtual void sent(const Message& message) = 0;
  // `withdrawn`: cancelled before it was sent; no agent has seen it.
  virtual void delivered(const Message& message, const Done& done, bool withdrawn) = 0;

  // Durations by the wall clock, which a replay cannot reproduce. `what` is a literal: "predict",
  // "look_ahead", "observe".
  virtual void predictor_asked(SiteId, const char* /*what*/, uint64_t /*begin_ns*/, uint64_t /*end_ns*/) {}
  // The thread had nothing to do but to wait for an agent.
  virtual void waited(uint64_t /*begin_ns*/, uint64_t /*end_ns*/) {}
  // The priority of a request was raised; `message` has the new one.
  virtual void raised(const Message& /*message*/) {}
};

// Ignores every event: a base for observers of a few of them.
class SilentObserver : public KernelObserver {
 public:
  void sequence_begins(uint64_t, std::string_view) override {}
  void sequence_ends(uint64_t) override {}
  void fill_begins() override {}
  void pass_begins(SiteId, const Pass&) override {}
  void step_ends(uint32_t) override {}
  void rows_kept(uint32_t, uint32_t) override {}
  void drain_begins() override {}
  void resize_begins(std::span<const std::optional<uint64_t>>) override {}
  void interrupted() override {}
  void activated(SiteId, const ActiveSet&) override {}
  void looked_ahead(SiteId, const WishList&) override {}
  void measured(SiteId, const MeasuredPass&) override {}
  void fired(SiteId, const Fired&) override {}
  void evicted(MemoryId, EditionId, std::span<const uint32_t>) override {}
  void settled(const std::function<uint64_t()>&) override {}
  void posted(const Message&, const Payload&) override {}
  void turn_begins() override {}
  void sent(const Message&) override {}
  void delivered(const Message&, const Done&, bool) override {}
};

}  // namespace tierd
