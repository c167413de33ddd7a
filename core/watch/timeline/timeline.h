// The times of a run: slices of one size, in memory; the latest ones are kept if there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/site.h"

namespace tierd {

// A slice from its beginning to its end, in ns of the caller's clock.
struct Slice {
  // step: of decode or prefill; pass: one site of it, as the kernel walks it; message: in its agent;
  // predictor: a call of it; wait: nothing to do but to wait for an agent.
  enum class Kind : uint8_t { step, pass, message, predictor, wait };

  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  Kind kind = Kind::step;
  bool prefill = false;    // step
  bool on_demand = false;  // wait: the present pass lacks bytes, and no unit computes
  bool raised = false;     // message: read ahead, and waited for before it landed
  uint16_t rows = 0;       // step, pass, message
  uint16_t agent = 0;      // message
  uint32_t step = 0;
  SiteId site = kNoSiteId;      // not for a step; of a message about several sites the first
  const char* asked = nullptr;  // predictor: a literal
  // The members below describe a message. `priority` is the one with which it was posted.
  Op op = Op::read;
  Priority priority = Priority::demand;
  DoneStatus status = DoneStatus::ok;
  uint8_t flags = 0;
  uint8_t sites = 0;   // of a joint run; 0: the message is about one site
  uint32_t units = 0;  // extents of a read, neurons of a run
  uint32_t reads = 0;  // requests to the device
  uint64_t bytes = 0;
  uint64_t queued_ns = 0;  // the time of posting

  bool is_read() const { return kind == Kind::message && op == Op::read; }
  bool computes() const { return kind == Kind::message && op == Op::run; }
};
static_assert(sizeof(Slice) <= 72);

class Timeline {
 public:
  static constexpr size_t kMost = size_t{1} << 18;  // slices: 18 MiB, some 100 steps of a 7B model

  // `most`: the most slices to keep.
  explicit Timeline(size_t most = kMost);

  // Report events, in the order in which they happen. A pass ends where the next one begins, or with the last
  // of its step.
  void pass_begins(SiteId site, uint32_t step, uint16_t rows, bool prefill, uint64_t ns);
  void passes_end(uint64_t ns);
  void step_ends(uint64_t ns);
  // Reports a message that an agent has served, as delivered. Advice takes no time and is left out.
  void served(const Message& message, const Done& done);
  void predictor_asked(SiteId site, const char* what, uint64_t begin_ns, uint64_t end_ns);
  void waited(bool on_demand, uint64_t begin_ns, uint64_t end_ns);
  void add(const Slice& slice);

  // Returns the slices by beginning; of those that begin together, the longest first, so that a contained
  // slice follows its container.
  std::vector<const Slice*> sorted() const;
  size_t size() const { return slices_.size(); }
  // Return the number of dropped slices, and the end of the last one of them: all later slices are kept.
  uint64_t dropped() const { return dropped_; }
  uint64_t whole_from_ns() const { return whole_from_ns_; }

 private:
  size_t most_;
  std::vector<Slice> slices_;  // a ring, once it is full
  size_t oldest_ = 0;
  uint64_t dropped_ = 0;
  uint64_t whole_from_ns_ = 0;
  std::optional<Slice> step_;  // the open step
  std::optional<Slice> pass_;
};

}  // namespace tierd
