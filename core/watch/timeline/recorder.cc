#include "core/watch/timeline/recorder.h"

namespace tierd {
namespace {

bool is_demand(const Message& message) {
  return message.op == Op::read && message.priority == Priority::demand;
}
bool is_work(Op op) {
  return op == Op::run;
}

}  // namespace

void TimelineRecorder::pass_begins(SiteId site, const Pass& pass) {
  timeline_.pass_begins(site, pass.step, pass.rows, pass.bypass_caches, clock_.now_ns());
}

void TimelineRecorder::step_ends(uint32_t) {
  timeline_.passes_end(clock_.now_ns());
}

void TimelineRecorder::settled(const std::function<uint64_t()>&) {
  timeline_.step_ends(clock_.now_ns());
}

void TimelineRecorder::posted(const Message& message, const Payload&) {
  demands_ += is_demand(message) ? 1 : 0;
  computing_ += is_work(message.op) ? 1 : 0;
}

void TimelineRecorder::raised(const Message& message) {
  demands_ += is_demand(message) ? 1 : 0;
}

void TimelineRecorder::delivered(const Message& message, const Done& done, bool withdrawn) {
  demands_ -= is_demand(message) ? 1 : 0;
  computing_ -= is_work(message.op) ? 1 : 0;
  if (!withdrawn) timeline_.served(message, done);
}

void TimelineRecorder::predictor_asked(SiteId site, const char* what, uint64_t begin_ns, uint64_t end_ns) {
  timeline_.predictor_asked(site, what, begin_ns, end_ns);
}

void TimelineRecorder::waited(uint64_t begin_ns, uint64_t end_ns) {
  timeline_.waited(demands_ != 0 && computing_ == 0, begin_ns, end_ns);
}

}  // namespace tierd
