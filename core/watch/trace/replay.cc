#include "core/watch/trace/replay.h"

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "core/kernel/post/task.h"
#include "core/watch/trace/recorded_pass.h"

namespace tierd {
namespace {

// Compares all requests and decisions of the kernel with the trace, event by event.
class Follower final : public KernelObserver, public Recording {
 public:
  explicit Follower(TraceReader& trace) : trace_(trace) {}

  // Returns the next event, or NULL where the replay ends.
  const Event* next() {
    if (difference_) return nullptr;
    const Event* event = trace_.peek();
    return event == nullptr || event->as<Interrupted>() != nullptr ? nullptr : event;
  }
  template <class T>
  const T* next_as() {
    const Event* event = next();
    return event == nullptr ? nullptr : event->as<T>();
  }
  void passed() {
    ++events_;
    trace_.next();
  }
  void differs(const std::string& now) {
    if (difference_) return;
    const Event* event = trace_.peek();
    difference_ = fmt::format("event {}: recorded: {}; now: {}", trace_.position(),
                              event == nullptr ? "nothing" : event_text(*event, trace_.header().sites), now);
  }
  const std::optional<std::string>& difference() const { return difference_; }
  uint64_t events() const { return events_; }
  uint64_t steps() const { return steps_; }

  void sequence_begins(uint64_t sequence, std::string_view label) override {
    expect(SequenceBegins{sequence, std::string(label)});
  }
  void sequence_ends(uint64_t sequence) override { expect(SequenceEnds{sequence}); }
  void fill_begins() override { expect(FillBegins{}); }
  void pass_begins(SiteId site, const Pass& pass) override {
    rows_ = pass.rows;
    expect(pass_event(site, pass));
  }
  void step_ends(uint32_t step) override { expect(StepEnds{step}); }
  void rows_kept(uint32_t rows, uint32_t kept) override { expect(RowsKept{rows, kept}); }
  void drain_begins() override { expect(DrainBegins{}); }
  void resize_begins(std::span<const std::optional<uint64_t>> parts) override {
    expect(Resized{{parts.begin(), parts.end()}});
  }
  void interrupted() override {}  // a replay is not stopped
  void activated(SiteId site, const ActiveSet& set) override { expect(activated_event(site, set)); }
  void looked_ahead(SiteId site, const WishList& wishes) override {
    expect(looked_ahead_event(site, wishes));
  }
  void measured(SiteId site, const MeasuredPass& pass) override { expect(measured_event(site, pass.active)); }
  void fired(SiteId site, const Fired& fired) override {
    expect(HasFired{site, fired.neurons, fired.counts});
  }
  void evicted(MemoryId memory, EditionId edition, std::span<const uint32_t> neurons) override {
    expect(Evicted{memory, edition, {neurons.begin(), neurons.end()}});
  }
  void settled(const std::function<uint64_t()>& residency) override {
    expect(Settled{residency()});
    ++steps_;
  }
  void posted(const Message& message, const Payload& payload) override {
    expect(Posted{
        message, {payload.units.begin(), payload.units.end()}, {payload.sites.begin(), payload.sites.end()}});
  }
  void turn_begins() override { expect(TurnBegins{}); }
  void sent(const Message& message) override { expect(Sent{message.id}); }
  void delivered(const Message&, const Done& done, bool withdrawn) override {
    expect(Delivered{done, withdrawn});
  }

  // If the trace lacks the event or it is invalid, `expect` reports a difference.
  bool decides(SiteId) const override { return false; }
  ActiveSet predicted(SiteId site, const Pass&) override {
    return recorded_set(next_as<Activated>(), trace_.header().sites, site, rows_);
  }
  const WishList& ahead(SiteId site) override { return wishes_.of(next_as<LookedAhead>(), site); }
  ActiveSet measured(SiteId site) override {
    ActiveSet active = recorded_set(next_as<Measured>(), trace_.header().sites, site);
    expect(measured_event(site, active));
    return active;
  }
  Fired fired(SiteId site) override {
    return recorded_firing(next_as<HasFired>(), trace_.header().sites, site);
  }

 private:
  template <class T>
  void expect(T now) {
    if (difference_) return;
    const Event* event = trace_.peek();
    // After the end of the trace, or a stop of the recording, there is nothing to compare.
    if (event == nullptr || event->as<Interrupted>() != nullptr) return;
    if (const T* recorded = event->as<T>(); recorded != nullptr && *recorded == now) return passed();
    differs(event_text({0, std::move(now)}, trace_.header().sites));
  }

  TraceReader& trace_;
  uint64_t events_ = 0;
  uint64_t steps_ = 0;
  uint32_t rows_ = 0;  // of the present pass
  RecordedWishes wishes_{trace_.header().sites, trace_.header().scheduler.topology};
  std::optional<std::string> difference_;
};

using OpenMessages = std::set<std::pair<uint32_t, uint32_t>>;  // slot and generation: sent and not completed

// An agent of the recorded run. It accepts and completes messages when the recorded agent did, and may
// complete a message of any agent: the order among agents is part of the trace.
class RecordedAgent final : public Agent {
 public:
  RecordedAgent(Follower& follower, OpenMessages& open, uint32_t credits)
      : follower_(follower), open_(open), credits_(credits) {}

  std::string_view name() const override { return "recorded"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload&) override {
    const auto* sent = follower_.next_as<Sent>();
    if (sent == nullptr || sent->id != message.id) return Submit::busy;
    open_.emplace(message.id.slot, message.id.generation);
    return Submit::ok;
  }
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done> done) override {
    const auto* delivered = follower_.next_as<Delivered>();
    if (delivered == nullptr || delivered->withdrawn) return 0;
    const MessageId id = delivered->done.id;
    if (open_.erase({id.slot, id.generation}) == 0) {
      follower_.differs("nothing of that name was sent");
      return 0;
    }
    done[0] = delivered->done;
    return 1;
  }

 private:
  Follower& follower_;
  OpenMessages& open_;
  const uint32_t credits_;
};

// Repeats the requests of the recorded engine. The events that follow show how each ended.
Task<Status> follow(TraceReader& trace, Follower& follower, WeightlessKernel& kernel) {
  Scheduler& scheduler = kernel.scheduler();
  for (;;) {
    if (const auto* begins = follower.next_as<PassBegins>()) {
      if (const Status sound = check_pass(*begins, trace); !sound.ok()) co_return sound.error();
      const RecordedPass recorded(*begins);
      (void)co_await scheduler.pass(begins->site, recorded.pass());
    } else if (const auto* ends = follower.next_as<StepEnds>()) {
      (void)co_await scheduler.end_step(ends->step);
    } else if (const auto* rows = follower.next_as<RowsKept>()) {
      scheduler.rows_kept(rows->rows, rows->kept);
    } else if (const auto* sequence = follower.next_as<SequenceBegins>()) {
      (void)scheduler.begin_sequence(sequence->sequence, sequence->label);
    } else if (const auto* over = follower.next_as<SequenceEnds>()) {
      scheduler.end_sequence(over->sequence);
    } else if (follower.next_as<FillBegins>() != nullptr) {
      (void)co_await scheduler.fill({});
    } else if (follower.next_as<DrainBegins>() != nullptr) {
      (void)co_await scheduler.drain();
    } else if (const auto* resized = follower.next_as<Resized>()) {
      const ArenaParts parts = resized->parts;
      if (parts.size() != kernel.parts().size())
        co_return Error{Code::corrupt, trace.path(), "a budget changes in memories that there are not"};
      const ArenaParts before(kernel.parts().begin(), kernel.parts().end());
      kernel.set_parts(parts);
      const Status done = co_await scheduler.resize(parts);
      if (!done.ok()) kernel.set_parts(before);
    } else {
      co_return Status{};
    }
  }
}

bool asks(const Event& event) {
  return event.as<PassBegins>() != nullptr || event.as<StepEnds>() != nullptr ||
         event.as<FillBegins>() != nullptr || event.as<DrainBegins>() != nullptr ||
         event.as<SequenceBegins>() != nullptr || event.as<SequenceEnds>() != nullptr ||
         event.as<RowsKept>() != nullptr || event.as<Resized>() != nullptr;
}

bool is_kind(std::string_view kind) {
  return kind == "predictor" || kind == "quantizer" || kind == "cache" || kind == "balancer" ||
         kind == "heat";
}

}  // namespace

Result<ReplayResult> replay(TraceReader& trace, const ChooseStrategy& choose) {
  const TraceHeader& header = trace.header();
  Follower follower(trace);
  OpenMessages open;
  std::deque<RecordedAgent> recorded;
  std::vector<Agent*> agents;
  WallClock clock;  // no decision depends on it
  for (const TraceAgent& agent : header.agents) {
    agents.push_back(&recorded.emplace_back(follower, open, agent.credits));
  }
  TIERD_ASSIGN(const StrategyChoices choices, choose_recorded(header, choose));
  TIERD_ASSIGN(const auto kernel,
               WeightlessKernel::create(header, choices, header.parts(), clock, agents, follower));
  kernel->dispatcher().set_observer(&follower);

  ReplayResult result;
  if (kernel->slots() != header.slots) result.difference = "the cache shares the arena out in another way";
  std::unique_ptr<Task<Status>> asked;
  while (!result.difference) {
    const Event* event = follower.next();
    if (event == nullptr) break;
    if (event->as<TurnBegins>() != nullptr) {
      (void)kernel->dispatcher().turn();
    } else if (!asked && asks(*event)) {
      asked = std::make_unique<Task<Status>>(follow(trace, follower, *kernel));
    } else if (const auto* swapped = event->as<Swapped>(); swapped != nullptr && !asked) {
      if (!is_kind(swapped->kind))
        return Error{Code::corrupt, trace.path(), fmt::format("there is no kind '{}'", swapped->kind)};
      const bool heat = swapped->kind == "heat";
      TIERD_ASSIGN(StrategyChoice choice, choose(heat ? "predictor" : swapped->kind, swapped->strategy));
      TIERD_TRY(heat ? kernel->strategies().swap_heat(choice)
                     : kernel->strategies().swap(std::move(choice), kernel->parts(), swapped->tier));
      follower.passed();
    } else {
      follower.differs("nothing of that kind");
    }
    if (asked && asked->done()) {
      TIERD_TRY(asked->take());
      asked.reset();
    }
    result.difference = follower.difference();
  }
  TIERD_TRY(trace.status());
  result.events = follower.events();
  result.steps = follower.steps();
  result.counters = kernel->scheduler().counters();
  const Event* rest = trace.peek();
  result.interrupted = rest != nullptr && rest->as<Interrupted>() != nullptr;
  result.whole = rest != nullptr || trace.whole();
  return result;
}

}  // namespace tierd
