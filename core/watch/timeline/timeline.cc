#include "core/watch/timeline/timeline.h"

#include <algorithm>

#include "core/base/check.h"

namespace tierd {

// Reserved memory that is not written yet costs nothing.
Timeline::Timeline(size_t most) : most_(most) {
  TIERD_CHECK(most != 0);
  slices_.reserve(std::min(most, kMost));
}

void Timeline::add(const Slice& slice) {
  if (slices_.size() < most_) {
    slices_.push_back(slice);
    return;
  }
  ++dropped_;
  whole_from_ns_ = std::max(whole_from_ns_, slices_[oldest_].end_ns);
  slices_[oldest_] = slice;
  oldest_ = (oldest_ + 1) % most_;
}

void Timeline::pass_begins(SiteId site, uint32_t step, uint16_t rows, bool prefill, uint64_t ns) {
  passes_end(ns);
  if (!step_) {
    step_.emplace(
        Slice{.begin_ns = ns, .kind = Slice::Kind::step, .prefill = prefill, .rows = rows, .step = step});
  }
  pass_.emplace(Slice{.begin_ns = ns, .kind = Slice::Kind::pass, .rows = rows, .step = step, .site = site});
}

void Timeline::passes_end(uint64_t ns) {
  if (!pass_) return;
  pass_->end_ns = ns;
  add(*pass_);
  pass_.reset();
}

void Timeline::step_ends(uint64_t ns) {
  passes_end(ns);
  if (!step_) return;  // the step was given up before its first pass
  step_->end_ns = ns;
  add(*step_);
  step_.reset();
}

void Timeline::served(const Message& message, const Done& done) {
  if (message.op == Op::raise || message.op == Op::cancel) return;
  Slice slice;
  slice.begin_ns = done.start_ns;
  slice.end_ns = std::max(done.start_ns, done.done_ns);
  slice.kind = Slice::Kind::message;
  // Only reads ahead have an expiry step, and keep it when they are raised.
  const bool ahead = message.expires_step != kNoStep;
  slice.priority = ahead ? Priority::prefetch : message.priority;
  slice.raised = ahead && message.priority == Priority::demand;
  slice.rows = message.rows;
  slice.agent = message.agent;
  slice.step = message.step;
  slice.site = message.site;
  slice.op = message.op;
  slice.status = done.status;
  slice.flags = message.flags;
  slice.sites = message.n_sites;
  slice.units = done.n_done;
  slice.reads = done.reads;
  slice.bytes = done.bytes;
  slice.queued_ns = message.queued_ns;
  add(slice);
}

void Timeline::predictor_asked(SiteId site, const char* what, uint64_t begin_ns, uint64_t end_ns) {
  Slice slice;
  slice.begin_ns = begin_ns;
  slice.end_ns = end_ns;
  slice.kind = Slice::Kind::predictor;
  slice.step = step_ ? step_->step : 0;
  slice.site = site;
  slice.asked = what;
  add(slice);
}

void Timeline::waited(bool on_demand, uint64_t begin_ns, uint64_t end_ns) {
  Slice slice;
  slice.begin_ns = begin_ns;
  slice.end_ns = end_ns;
  slice.kind = Slice::Kind::wait;
  slice.on_demand = on_demand;
  slice.step = step_ ? step_->step : 0;
  slice.site = pass_ ? pass_->site : kNoSiteId;
  add(slice);
}

std::vector<const Slice*> Timeline::sorted() const {
  std::vector<const Slice*> slices;
  slices.reserve(slices_.size());
  for (const Slice& slice : slices_) slices.push_back(&slice);
  std::sort(slices.begin(), slices.end(), [](const Slice* a, const Slice* b) {
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns;
    return a->end_ns != b->end_ns ? a->end_ns > b->end_ns : a < b;
  });
  return slices;
}

}  // namespace tierd
