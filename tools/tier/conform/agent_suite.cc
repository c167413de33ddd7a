#include "tools/tier/conform/agent_suite.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <thread>

#include "core/base/random.h"
#include "core/base/time.h"

namespace tierd {
namespace {

constexpr const char* kAgentMade = "an agent can be made, and has a name";
constexpr const char* kIdle = "an agent without messages has nothing to do";
constexpr const char* kThrows = "no call throws";
constexpr const char* kWaits = "no call waits";
constexpr const char* kRoom = "poll writes as many completions as have room";
constexpr const char* kOnce = "each accepted message completes exactly once";
constexpr const char* kForm = "a completion has its message's lane, and does not end before it starts";
constexpr const char* kStatus = "work that can be done ends ok";
constexpr const char* kResult = "what a completion says is there, and nothing else changed";
constexpr const char* kCredits = "as many messages are taken as there are credits, and busy keeps nothing";
constexpr const char* kCancel = "a cancel completes ok, what it names ok or cancelled";
constexpr const char* kRearranged =
    "what was moved computes the same, what is in use stays, and what was given back can be used again";
constexpr const char* kBehind =
    "a run begins when the move that it names is over, and is cancelled where that has failed";
constexpr const char* kErrors = "what cannot be done is answered with its status and the first bad unit";

constexpr int kLongestMs = 60'000;  // limit for a device's answer
// A call that gives up its core for longer than this has waited. A single such call may have met a lock.
constexpr uint64_t kWaitNs = 5'000'000;
constexpr uint32_t kMostWaits = 8;
// An agent that waits does so in each trial. On a loaded machine, the thread that holds a lock or a page may
// have no core for a while, so that waits show in some trials only.
constexpr uint32_t kTrials = 5;
constexpr std::chrono::milliseconds kBetweenTrials{100};
constexpr size_t kMessages = 400;

uint64_t key(const MessageId& id) {
  return uint64_t{id.slot} << 32 | id.generation;
}

// The kernel's side: records accepted messages and checks each completion against them. After an exception or
// a lost message, which make further calls useless, every call returns at once with an empty result.
class Kernel {
 public:
  // Adds the number of calls that waited to `waits`.
  Kernel(AgentWorld& world, Report& report, uint32_t& waits)
      : world_(world), report_(report), waits_(waits) {}
  ~Kernel() {
    const std::string trespass = world_.trespass();
    report_.check(kResult, trespass.empty(), [&] { return trespass; });
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Returns false for busy.
  bool submit(const Request& request) {
    // The payload is destroyed after the call; the lists that it refers to stay.
    auto payload = std::make_unique<Payload>(request.payload);
    const Submit answer =
        call(Submit::busy, [&] { return world_.agent().submit(request.message, *payload); });
    *payload = {};
    if (answer == Submit::busy) return false;
    open_.emplace(key(request.message.id), request.message);
    return true;
  }
  // Requires a free credit.
  void must_submit(const Request& request) {
    const bool taken = submit(request);
    check(kCredits, taken, [&] {
      return fmt::format("busy with {} of {} credits in use", open_.size(), world_.agent().credits());
    });
    if (!taken) over_ = true;
  }
  Drive drive() {
    return call(Drive::idle, [&] { return world_.agent().drive(); });
  }
  size_t poll(size_t room) {
    const Done untouched = {.id = {UINT32_MAX, 0xa5a5a5a5}};
    std::vector<Done> done(room + world_.agent().credits() + 16, untouched);
    const size_t n = call(size_t{0}, [&] { return world_.agent().poll({done.data(), room}); });
    const bool fits = n <= room && std::all_of(done.begin() + static_cast<ptrdiff_t>(room), done.end(),
                                               [&](const Done& d) { return d.id == untouched.id; });
    check(kRoom, fits, [&] { return fmt::format("{} where {} have room", n, room); });
    if (!fits) over_ = true;
    for (size_t i = 0; i < n && !over_; ++i) complete(done[i]);
    return over_ ? 0 : n;
  }
  // Drives and polls until nothing is open, or `enough` messages have completed; calls `between` after each
  // drive. Sleeps on the agent's descriptor whenever the agent is idle, so that a lost wake-up shows.
  void drain(
      size_t room = 16, size_t enough = SIZE_MAX, const std::function<void()>& between = [] {}) {
    const uint64_t begin_ns = now_ns();
    const size_t until = enough > open_.size() ? 0 : open_.size() - enough;
    while (open_.size() > until && !over_) {
      const Drive drive = this->drive();
      between();
      if (poll(room) != 0 || over_) continue;
      const bool late = now_ns() - begin_ns > uint64_t{kLongestMs} * 1'000'000;
      if (drive == Drive::idle) {
        check(kOnce, world_.agent().waiting(),
              [&] { return fmt::format("idle, nothing awaited, and yet {} open", open_.size()); });
        if (!world_.agent().waiting()) over_ = true;
        pollfd ready = {.fd = world_.agent().wait_fd(), .events = POLLIN, .revents = 0};
        if (!over_ && ::poll(&ready, 1, kLongestMs) != 1) give_up("no completion showed on the descriptor");
      } else if (late) {
        give_up("busy for a minute, and nothing has completed");
      }
    }
  }

  void check(const char* rule, bool holds, const std::function<std::string()>& example) {
    if (!over_) report_.check(rule, holds, example);
  }
  // Checks the statuses of all completed work.
  void check_all_ok() {
    for (const auto& [message, done] : completed_) {
      check(kStatus, done.status == DoneStatus::ok || !world_.promises(), [&, status = done.status] {
        return fmt::format("ended with status {}", static_cast<int>(status));
      });
    }
  }
  size_t open() const { return open_.size(); }
  bool over() const { return over_; }
  const std::vector<std::pair<Message, Done>>& completed() const { return completed_; }
  const std::map<uint64_t, Message>& open_messages() const { return open_; }

 private:
  void give_up(const char* why) {
    check(kOnce, false, [&] { return why; });
    over_ = true;
  }
  void complete(const Done& done) {
    const auto found = open_.find(key(done.id));
    check(kOnce, found != open_.end(), [&] {
      return fmt::format("a completion of {}.{}, for which nobody waits", done.id.slot, done.id.generation);
    });
    if (found == open_.end()) {
      over_ = true;
      return;
    }
    check(kForm, done.lane == found->second.lane && done.start_ns <= done.done_ns, [&] {
      return fmt::format("lane {} for {}, from {} to {} ns", done.lane, found->second.lane, done.start_ns,
                         done.done_ns);
    });
    const std::string wrong = world_.completed(found->second, done);
    check(kResult, wrong.empty(), [&] { return wrong; });
    completed_.emplace_back(found->second, done);
    open_.erase(found);
  }
  // Calls the agent, and records exceptions and waits.
  template <class T, class Call>
  T call(T nothing, Call ask) {
    if (over_) return nothing;
    const auto slept = [] {
      rusage usage{};
      getrusage(RUSAGE_THREAD, &usage);
      return usage.ru_nvcsw;
    };
    const long slept_before = slept();
    const uint64_t begin_ns = now_ns();
    std::string thrown;
    try {
      nothing = ask();
    } catch (const std::exception& error) {
      thrown = error.what();
    } catch (...) {
      thrown = "something";
    }
    if (now_ns() - begin_ns >= kWaitNs && slept() != slept_before) ++waits_;
    check(kThrows, thrown.empty(), [&] { return thrown; });
    if (!thrown.empty()) over_ = true;
    return nothing;
  }

  AgentWorld& world_;
  Report& report_;
  std::map<uint64_t, Message> open_;
  std::vector<std::pair<Message, Done>> completed_;
  uint32_t& waits_;
  bool over_ = false;
};

std::unique_ptr<AgentWorld> make_world(const AgentCase& tried, uint64_t seed, Report& report) {
  auto world = tried.make(seed);
  report.check(kAgentMade, world.ok(), [&] { return world.error().line(); });
  return world.ok() ? std::move(*world) : nullptr;
}

void check_idle(AgentWorld& world, Kernel& kernel) {
  kernel.check(kIdle, kernel.drive() == Drive::idle, [] { return "drive was busy"; });
  kernel.check(kIdle, kernel.poll(1) == 0, [] { return "there was a completion"; });
  kernel.check(kIdle, !world.agent().waiting(), [] { return "something is awaited"; });
}

void has_nothing_to_do_at_first(const AgentCase& tried, uint64_t seed, Report& report, uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  check_idle(*world, kernel);
  kernel.check(kAgentMade, !world->agent().name().empty(), [] { return "it has no name"; });
}

void completes_each_message_exactly_once(const AgentCase& tried, uint64_t seed, Report& report,
                                         uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  Random random(seed);
  for (size_t accepted = 0; accepted < kMessages && !kernel.over();) {
    if (kernel.open() < world->agent().credits()) kernel.must_submit(world->work()), ++accepted;
    if (random.below(3) == 0) kernel.drive();
    if (random.below(3) == 0) kernel.poll(random.below(4));
    if (kernel.open() == world->agent().credits()) kernel.drain(1 + random.below(4), 1);
  }
  kernel.drain(1 + random.below(8));
  kernel.check_all_ok();
  check_idle(*world, kernel);
}

void is_busy_without_credit_and_keeps_nothing(const AgentCase& tried, uint64_t seed, Report& report,
                                              uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  const uint32_t credits = world->agent().credits();
  for (uint32_t i = 0; i < credits; ++i) kernel.must_submit(world->work());
  const Request refused = world->work();
  // A credit is free only after the completion has been polled.
  const auto refuse = [&] {
    if (!kernel.over() && kernel.submit(refused)) {
      kernel.check(kCredits, false, [] { return "more were taken than there are credits"; });
    }
  };
  refuse();
  kernel.drain(1, 1, refuse);
  kernel.must_submit(refused);
  kernel.drain();
  kernel.check(kCredits, kernel.completed().size() == credits + 1,
               [&] { return fmt::format("{} completions of {}", kernel.completed().size(), credits + 1); });
}

void answers_a_cancel_of_whatever(const AgentCase& tried, uint64_t seed, Report& report, uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  Random random(seed);
  const auto spare = [&] { return world->agent().credits() - kernel.open(); };
  for (int i = 0; i < 60 && !kernel.over(); ++i) {
    if (spare() < 2) kernel.drain(4, 2);
    if (kernel.over()) break;
    kernel.must_submit(world->work());
    // The id of a message that is open, has ended, or never existed.
    MessageId target = {.slot = 0x0fffffff, .generation = 678};
    const auto& open = kernel.open_messages();
    if (!open.empty() && random.below(4) != 0) {
      target = std::next(open.begin(), random.below(static_cast<uint32_t>(open.size())))->second.id;
    }
    if (spare() != 0) kernel.must_submit(world->control(Op::cancel, target));
    if (random.below(2) == 0) kernel.drive();
    if (random.below(2) == 0) kernel.poll(2);
  }
  kernel.drain();
  for (const auto& [message, done] : kernel.completed()) {
    const bool good = done.status == DoneStatus::ok ||
                      (message.op != Op::cancel && done.status == DoneStatus::cancelled) ||
                      !world->promises();
    kernel.check(kCancel, good, [&, status = done.status] {
      return fmt::format("ended with status {}", static_cast<int>(status));
    });
  }
}

void keeps_what_is_moved_and_in_use(const AgentCase& tried, uint64_t seed, Report& report, uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  for (int i = 0; i < 60 && !kernel.over(); ++i) {
    const std::optional<Request> rearranged = world->rearrange();
    if (!rearranged) return;
    kernel.must_submit(*rearranged);
    if (world->agent().credits() > 1) kernel.must_submit(world->work());
    kernel.drain();
    if (kernel.over()) return;
    for (const auto& [message, done] : kernel.completed()) {
      kernel.check(kRearranged, done.status == DoneStatus::ok, [&, status = done.status] {
        return fmt::format("ended with status {}", static_cast<int>(status));
      });
    }
  }
}

void begins_a_run_behind_its_move(const AgentCase& tried, uint64_t seed, Report& report, uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  Random random(seed);
  for (int i = 0; i < 40 && !kernel.over(); ++i) {
    const bool fails = random.below(3) == 0;
    const std::optional<AgentWorld::Behind> behind = world->behind(fails);
    if (!behind || behind->moves.size() >= world->agent().credits()) return;
    for (const Request& move : behind->moves) kernel.must_submit(move);
    if (fails && random.below(2) == 0) kernel.drain();  // the run arrives after the failure is known
    kernel.must_submit(behind->run);
    kernel.drain();
    if (kernel.over()) return;
    const DoneStatus run = kernel.completed().back().second.status;
    kernel.check(kBehind, run == (fails ? DoneStatus::cancelled : DoneStatus::ok),
                 [&] { return fmt::format("the run ended {}", status_name(run)); });
  }
}

void says_what_it_cannot_do(const AgentCase& tried, uint64_t seed, Report& report, uint32_t& waits) {
  const auto world = make_world(tried, seed, report);
  if (!world) return;
  Kernel kernel(*world, report, waits);
  for (const AgentWorld::Bad& bad : world->bad()) {
    kernel.must_submit(bad.request);
    kernel.drain();
    if (kernel.over()) return;
    const Done& done = kernel.completed().back().second;
    kernel.check(kErrors, done.status == bad.status && done.first_bad == bad.first_bad, [&] {
      return fmt::format("{}: status {} at unit {}, {} at unit {} was expected", bad.what,
                         static_cast<int>(done.status), done.first_bad, static_cast<int>(bad.status),
                         bad.first_bad);
    });
  }
  // The agent continues as if nothing had happened.
  kernel.must_submit(world->work());
  kernel.drain();
  if (kernel.over()) return;
  kernel.check(kStatus, kernel.completed().back().second.status == DoneStatus::ok || !world->promises(),
               [] { return "not after errors"; });
}

// Tries the rule. If calls waited it is tried again, and the trial with the fewest waits counts.
template <void (*kRule)(const AgentCase&, uint64_t, Report&, uint32_t&)>
void try_rule(const AgentCase& tried, uint64_t seed, Report& report) {
  uint32_t fewest = UINT32_MAX;
  for (uint32_t trial = 0; trial < kTrials && fewest >= kMostWaits && report.holds(kWaits); ++trial) {
    if (trial != 0) std::this_thread::sleep_for(trial * kBetweenTrials);
    uint32_t waits = 0;
    kRule(tried, seed, report, waits);
    fewest = std::min(fewest, waits);
  }
  report.check(kWaits, fewest < kMostWaits, [&] {
    return fmt::format("{} calls or more slept for more than {} ms in each of {} trials", fewest,
                       kWaitNs / 1'000'000, kTrials);
  });
}

constexpr AgentRule kRules[] = {
    {"HasNothingToDoAtFirst", try_rule<has_nothing_to_do_at_first>},
    {"CompletesEachMessageExactlyOnce", try_rule<completes_each_message_exactly_once>},
    {"IsBusyWithoutCreditAndKeepsNothing", try_rule<is_busy_without_credit_and_keeps_nothing>},
    {"AnswersACancelOfWhatever", try_rule<answers_a_cancel_of_whatever>},
    {"KeepsWhatIsMovedAndInUse", try_rule<keeps_what_is_moved_and_in_use>},
    {"BeginsARunBehindItsMove", try_rule<begins_a_run_behind_its_move>},
    {"SaysWhatItCannotDo", try_rule<says_what_it_cannot_do>},
};

}  // namespace

std::span<const AgentRule> agent_rules() {
  return kRules;
}

void run_agent_suite(const AgentChoice& choice, const SuiteOptions& options, Report& report) {
  for (const AgentCase& tried : agent_cases(choice)) {
    for (const AgentRule& rule : kRules) {
      try {
        rule.check(tried, options.seed, report);
      } catch (const std::exception& error) {  // thrown by other functions than submit, drive and poll
        report.check(kThrows, false, [&] { return std::string(error.what()); });
      } catch (...) {
        report.check(kThrows, false, [] { return "something"; });
      }
    }
  }
}

}  // namespace tierd
