// What a run did when: slices of one size, in memory, of which the latest stay when there are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/agent/message.h"
#include "core/kernel/site.h"

namespace tierd {

// From its beginning to its end, in ns of a clock of the caller's.
struct Slice {
  // step: of decode or prefill; pass: one site of it, as the kernel walks it; message: in its agent;
  // predictor: asking it; wait: nothing to do but to wait for an agent.
  enum class Kind : uint8_t { step, pass, message, predictor, wait };

  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  Kind kind = Kind::step;
  bool prefill = false;    // step
  bool on_demand = false;  // wait: for bytes that the present pass lacks, and nothing is being computed
  bool raised = false;     // message: read ahead, and waited for before it was here
  uint16_t rows = 0;       // step, pass, message
  uint16_t agent = 0;      // message
  uint32_t step = 0;
  SiteId site = kNoSiteId;      // all but a step; a message about several sites: the first of them
  const char* asked = nullptr;  // predictor: a literal
  // The members below describe a message. `priority` is that with which it was posted.
  Op op = Op::read;
  Priority priority = Priority::demand;
  DoneStatus status = DoneStatus::ok;
  uint8_t flags = 0;
  uint8_t sites = 0;   // of a joint run; 0: it is about one site
  uint32_t units = 0;  // extents of a read, neurons of a run
  uint32_t reads = 0;  // requests to the device
  uint64_t bytes = 0;
  uint64_t queued_ns = 0;  // when it was posted

  bool is_read() const { return kind == Kind::message && op == Op::read; }
  bool computes() const { return kind == Kind::message && op == Op::run; }
};
static_assert(sizeof(Slice) <= 72);

class Timeline {
 public:
  static constexpr size_t kMost = size_t{1} << 18;  // slices: 18 MiB, some 100 steps of a 7B model

  // `most`: no more slices than this.
  explicit Timeline(size_t most = kMost);

  // What happens, in the order in which it does. Steps and passes are told their beginning and end; of a
  // pass, the end is the beginning of the next one, or the last of its step.
  void pass_begins(SiteId site, uint32_t step, uint16_t rows, bool prefill, uint64_t ns);
  void passes_end(uint64_t ns);
  void step_ends(uint64_t ns);
  // A message that an agent has served, as it was when it was delivered. Advice and questions take no time
  // and are left out.
  void served(const Message& message, const Done& done);
  void predictor_asked(SiteId site, const char* what, uint64_t begin_ns, uint64_t end_ns);
  void waited(bool on_demand, uint64_t begin_ns, uint64_t end_ns);
  void add(const Slice& slice);

  // By their beginning; of those that begin together, the longest first, so that what lies inside another
  // comes behind it.
  std::vector<const Slice*> sorted() const;
  size_t size() const { return slices_.size(); }
  // How many were forgotten, and when the last of those ended: of what began later everything is here.
  uint64_t dropped() const { return dropped_; }
  uint64_t whole_from_ns() const { return whole_from_ns_; }

 private:
  size_t most_;
  std::vector<Slice> slices_;  // a ring, once it is full
  size_t oldest_ = 0;
  uint64_t dropped_ = 0;
  uint64_t whole_from_ns_ = 0;
  std::optional<Slice> step_;  // begun
  std::optional<Slice> pass_;
};

}  // namespace tierd
