#include "core/watch/trace/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "core/base/time.h"
#include "core/kernel/post/task.h"
#include "core/time/idle_agent.h"
#include "core/time/modelled_agent.h"
#include "core/watch/trace/recorded_activity.h"
#include "core/watch/trace/recorded_pass.h"

namespace tierd {
namespace {

// No message takes any time.
class Free final : public Cost {
 public:
  uint64_t ns(const Message&, const Payload&, bool) const override { return 0; }
};

Status run(Dispatcher& dispatcher, Task<Status> task) {
  while (!task.done()) {
    if (!dispatcher.turn() && !dispatcher.wait())
      return Error{Code::internal, "replay", "the kernel waits for nothing"};
  }
  return task.take();
}

// Repeats the engine's requests.
class Asker {
 public:
  Asker(WeightlessKernel& kernel, RecordedActivity& remembered, WhatIf& result)
      : kernel_(kernel), remembered_(remembered), result_(result) {}

  Status operator()(const FillBegins&) {
    TIERD_TRY(run(kernel_.dispatcher(), kernel_.scheduler().fill({})));
    result_.filled_bytes += kernel_.scheduler().counters().read_bytes - counted_.read_bytes;
    counted_ = kernel_.scheduler().counters();
    return {};
  }
  Status operator()(const PackedPass& packed) {
    const PassBegins& begins = remembered_.begin(packed).begins;
    prefill_ = begins.bypass_caches;
    const RecordedPass recorded(begins);
    return run(kernel_.dispatcher(), kernel_.scheduler().pass(packed.site(), recorded.pass()));
  }
  Status operator()(const StepEnds& ends) {
    TIERD_TRY(run(kernel_.dispatcher(), kernel_.scheduler().end_step(ends.step)));
    const SchedulerCounters& now = kernel_.scheduler().counters();
    ++result_.steps;
    if (!prefill_) {
      ++result_.decode_steps;
      add_figures(result_.counters, figures_between(counted_, now));
    }
    counted_ = now;
    return {};
  }
  Status operator()(const SequenceBegins& begins) {
    return kernel_.scheduler().begin_sequence(begins.sequence, begins.label);
  }
  Status operator()(const SequenceEnds& ends) {
    kernel_.scheduler().end_sequence(ends.sequence);
    return {};
  }
  Status operator()(const RowsKept& rows) {
    kernel_.scheduler().rows_kept(rows.rows, rows.kept);
    return {};
  }
  Status operator()(const DrainBegins&) { return run(kernel_.dispatcher(), kernel_.scheduler().drain()); }

 private:
  WeightlessKernel& kernel_;
  RecordedActivity& remembered_;
  WhatIf& result_;
  SchedulerCounters counted_;  // at the beginning of the step
  bool prefill_ = false;
};

}  // namespace

Result<std::vector<Asked>> read_asked(TraceReader& trace) {
  std::vector<Asked> asked;
  std::optional<AskedPass> pass;  // its further events may follow
  const auto ask = [&](Asked what) {
    if (pass) asked.emplace_back(PackedPass(std::move(*pass)));
    pass.reset();
    asked.push_back(std::move(what));
  };
  trace.rewind();
  for (; const Event* event = trace.peek(); trace.next()) {
    if (const auto* begins = event->as<PassBegins>()) {
      TIERD_TRY(check_pass(*begins, trace));
      if (pass) asked.emplace_back(PackedPass(std::move(*pass)));
      pass.emplace(AskedPass{*begins});
    } else if (const auto* activated = event->as<Activated>()) {
      TIERD_TRY(check_listed(*activated, trace));
      if (pass) pass->activated = *activated;
    } else if (const auto* ahead = event->as<LookedAhead>()) {
      if (pass) pass->looked_ahead = *ahead;
    } else if (const auto* measured = event->as<Measured>()) {
      TIERD_TRY(check_listed(*measured, trace));
      if (pass) pass->measured = *measured;
    } else if (const auto* fired = event->as<HasFired>()) {
      TIERD_TRY(check_listed(*fired, trace));
      if (pass) pass->fired = *fired;
    } else if (const auto* ends = event->as<StepEnds>()) {
      ask(*ends);
    } else if (const auto* sequence = event->as<SequenceBegins>()) {
      ask(*sequence);
    } else if (const auto* over = event->as<SequenceEnds>()) {
      ask(*over);
    } else if (const auto* rows_kept = event->as<RowsKept>()) {
      ask(*rows_kept);
    } else if (event->as<FillBegins>() != nullptr) {
      ask(FillBegins{});
    } else if (event->as<DrainBegins>() != nullptr) {
      ask(DrainBegins{});
    } else if (event->as<Resized>() != nullptr) {
      return Error{Code::unsupported, trace.path(),
                   fmt::format("event {}: the budget changed here; what-if asks about runs that have one",
                               trace.position())};
    }
  }
  TIERD_TRY(trace.status());
  if (pass) asked.emplace_back(PackedPass(std::move(*pass)));
  return asked;
}

Result<WhatIf> what_if(const TraceHeader& header, const std::vector<Asked>& asked,
                       const StrategyChoices& strategies, uint64_t arena_bytes) {
  const Free free;
  VirtualClock clock;
  std::deque<IdleAgent> idle;
  std::deque<ModelledAgent> modelled;
  std::vector<Agent*> agents;
  for (const TraceAgent& agent : header.agents) {
    idle.emplace_back(header.sites.editions, agent.credits);
    agents.push_back(&modelled.emplace_back(idle.back(), free, clock));
  }
  const uint64_t begin = now_ns();
  RecordedActivity remembered(header.sites, header.scheduler.topology);
  TIERD_ASSIGN(const auto kernel, WeightlessKernel::create(header, strategies, header.divide(arena_bytes),
                                                           clock, agents, remembered));
  WhatIf result;
  Asker asker(*kernel, remembered, result);
  for (const Asked& what : asked) TIERD_TRY(std::visit(asker, what));
  result.ns = now_ns() - begin;
  result.messages = kernel->dispatcher().messages();
  return result;
}

}  // namespace tierd
