#include "tools/tier/trace/timeline.h"

#include <utility>

#include "core/watch/timeline/chrome.h"
#include "tools/tier/trace/messages.h"

namespace tierd {
namespace {

// Feeds a Timeline as a TimelineRecorder does, but for the predictor's and the idle times, which traces lack.
class Follower {
 public:
  Follower(const StepRange& steps, Timeline& timeline) : steps_(steps), timeline_(timeline) {}

  void take(const Event& event) {
    if (const auto* begins = event.as<PassBegins>()) {
      inside_ = steps_.contains(begins->step);
      if (inside_)
        timeline_.pass_begins(begins->site, begins->step, begins->rows, begins->bypass_caches, event.ns);
    } else if (event.as<StepEnds>() != nullptr && inside_) {
      timeline_.passes_end(event.ns);
    } else if (event.as<Settled>() != nullptr && std::exchange(inside_, false)) {
      timeline_.step_ends(event.ns);
    }
    auto served = messages_.take(event);
    if (!served || served->withdrawn || !steps_.contains(served->posted.step)) return;
    served->posted.queued_ns = served->posted_ns;
    timeline_.served(served->posted, served->done);
  }

 private:
  StepRange steps_;
  Timeline& timeline_;
  Messages messages_;
  bool inside_ = false;  // inside a step of the range
};

}  // namespace

Status write_timeline(TraceReader& trace, const StepRange& steps, std::FILE* out, const std::string& name) {
  Timeline timeline(SIZE_MAX);
  Follower follower(steps, timeline);
  for (; const Event* event = trace.peek(); trace.next()) follower.take(*event);
  TIERD_TRY(trace.status());
  TimelineNames names;
  names.facts = trace.header().facts;
  names.sites = &trace.header().sites;
  for (const TraceAgent& agent : trace.header().agents) names.agents.push_back(agent.name);
  return write_chrome_trace(timeline, names, out, name);
}

}  // namespace tierd
