#include "core/kernel/post/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace tierd {
namespace {

constexpr uint32_t kMostTurnsHeld = 6;
constexpr size_t kMostAgents = 64;

// Control messages (cancel, raise): no caller waits for their completion.
class Ignore : public CompletionSink {
 public:
  void on_done(const Message&, const Done&) override {}
};
Ignore ignore;

}  // namespace

Dispatcher::Dispatcher(const PoolTable& pools, Clock& clock, Waiter& waiter, const Options& options)
    : options_(options), pools_(pools), clock_(clock), entries_(options.max_messages), waiter_(waiter) {
  for (uint32_t slot = options.max_messages; slot-- > 0;) free_.push_back(slot);
  if (options.shuffle_seed) shuffle_.emplace(*options.shuffle_seed);
}

Dispatcher::~Dispatcher() {
  stop_watching();
}

void Dispatcher::stop_watching() {
  for (AgentState& state : agents_) {
    if (state.wait_fd >= 0) waiter_.forget(std::exchange(state.wait_fd, -1));
  }
}

uint16_t Dispatcher::add_agent(Agent& agent) {
  TIERD_CHECK(agents_.size() < kMostAgents);
  AgentState state;
  state.agent = &agent;
  state.wait_fd = agent.wait_fd();
  state.credits = agent.credits();
  agents_.push_back(std::move(state));
  lost_.push_back(false);
  if (agents_.back().wait_fd >= 0) waiter_.watch(agents_.back().wait_fd);
  return static_cast<uint16_t>(agents_.size());
}

MessageId Dispatcher::post(Message message, const Payload& payload, CompletionSink& sink) {
  const size_t sites = std::max<size_t>(payload.sites.size(), 1);
  TIERD_CHECK(can_post() && payload.units.size() <= sites * options_.max_units);
  TIERD_CHECK(payload.gives.size() <= UINT8_MAX && sites <= UINT8_MAX);
  TIERD_CHECK(message.agent >= 1 && message.agent <= agents_.size());
  const uint32_t slot = free_.back();
  free_.pop_back();
  Entry& entry = entries_[slot];
  TIERD_CHECK(entry.state == State::free);
  message.id = {slot, entry.message.id.generation + 1};
  message.queued_ns = resuming_ns_ != 0 ? resuming_ns_ : now_ns();
  message.n_units = static_cast<uint32_t>(payload.units.size());
  message.n_takes = static_cast<uint16_t>(payload.takes.size());
  message.n_gives = static_cast<uint8_t>(payload.gives.size());
  message.n_sites = static_cast<uint8_t>(payload.sites.size());
  if (observer_ != nullptr) observer_->posted(message, payload);
  entry.message = message;
  entry.units.assign(payload.units.begin(), payload.units.end());
  entry.gives.assign(payload.gives.begin(), payload.gives.end());
  entry.neurons.assign(payload.neurons.begin(), payload.neurons.end());
  entry.lengths.assign(payload.lengths.begin(), payload.lengths.end());
  entry.sites.assign(payload.sites.begin(), payload.sites.end());
  entry.payload = payload;
  entry.payload.units = entry.units;
  entry.payload.neurons = entry.neurons;
  entry.payload.lengths = entry.lengths;
  entry.payload.gives = entry.gives;
  entry.payload.sites = entry.sites;
  entry.sink = &sink;
  entry.state = State::waiting;
  agents_[message.agent - 1u].waiting[static_cast<size_t>(message.priority)].push_back(slot);
  ++in_flight_;
  ++messages_;
  return message.id;
}

Error Dispatcher::lost(uint16_t agent) const {
  const Agent& of = *agents_[agent - 1u].agent;
  const std::string because = of.lost_because();
  return {Code::lost, fmt::format("agent {} ({})", agent, of.name()),
          because.empty() ? "is lost" : fmt::format("is lost: {}", because)};
}

// A lost agent may still read the messages that it holds at this moment.
void Dispatcher::note_lost(uint16_t agent) {
  if (lost_[agent - 1u]) return;
  lost_[agent - 1u] = true;
  if (!first_lost_) first_lost_ = agent;
  for (Entry& entry : entries_)
    entry.left_behind = entry.state == State::sent && entry.message.agent == agent;
}

Dispatcher::Entry* Dispatcher::find(MessageId id) {
  if (id.slot >= entries_.size()) return nullptr;
  Entry& entry = entries_[id.slot];
  return entry.state != State::free && entry.message.id == id ? &entry : nullptr;
}

void Dispatcher::remove_waiting(const Entry& entry, uint32_t slot) {
  auto& queue = agents_[entry.message.agent - 1u].waiting[static_cast<size_t>(entry.message.priority)];
  queue.erase(std::find(queue.begin(), queue.end(), slot));
}

// Sends an agent advice about a request that it holds. Drops it if no entry is free.
void Dispatcher::send_control(const Entry& target, Op op, Priority priority) {
  if (!can_post()) return;
  Message control;
  control.op = op;
  control.agent = target.message.agent;
  control.lane = target.message.lane;
  control.priority = priority;
  control.step = target.message.step;
  control.about = target.message.id;
  (void)post(control, {}, ignore);
}

void Dispatcher::cancel(MessageId id) {
  Entry* entry = find(id);
  if (entry == nullptr) return;
  if (entry->state == State::waiting) {
    remove_waiting(*entry, id.slot);
    entry->state = State::sent;  // no agent has it; its completion follows
    Done done;
    done.id = id;
    done.status = DoneStatus::cancelled;
    done.lane = entry->message.lane;
    done.start_ns = done.done_ns = now_ns();
    cancelled_.push_back(done);
    return;
  }
  send_control(*entry, Op::cancel, Priority::demand);
}

void Dispatcher::raise(MessageId id, Priority priority) {
  Entry* entry = find(id);
  if (entry == nullptr || entry->message.priority <= priority) return;
  const bool waits = entry->state == State::waiting;
  if (waits) remove_waiting(*entry, id.slot);
  entry->message.priority = priority;
  if (observer_ != nullptr) observer_->raised(entry->message);
  if (waits) {
    agents_[entry->message.agent - 1u].waiting[static_cast<size_t>(priority)].push_back(id.slot);
  } else {
    send_control(*entry, Op::raise, priority);
  }
}

bool Dispatcher::send() {
  bool sent = false;
  for (AgentState& state : agents_) {
    bool busy = false;  // then no later request may overtake the refused one
    for (auto& queue : state.waiting) {
      while (!busy && !queue.empty() && state.credits > 0) {
        const uint32_t slot = queue.front();
        Entry& entry = entries_[slot];
        if (state.agent->submit(entry.message, entry.payload) == Submit::busy) {
          busy = true;
          continue;
        }
        entry.state = State::sent;
        queue.pop_front();
        --state.credits;
        sent = true;
        if (observer_ != nullptr) observer_->sent(entry.message);
      }
    }
  }
  return sent;
}

bool Dispatcher::drive() {
  bool busy = false;
  uint64_t then = now_ns();
  const auto drive_one = [&](size_t agent) {
    busy |= agents_[agent].agent->drive() == Drive::busy;
    const uint64_t now = now_ns();
    agents_[agent].driven_ns += now - then;
    then = now;
    // Deliveries are rare, so the clock is read again only after one.
    if (!collect(agent)) return;
    busy = true;
    then = now_ns();
  };
  const size_t n = agents_.size();
  if (!shuffle_) {
    for (size_t i = 0; i < n; ++i) drive_one(i);
    return busy;
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[shuffle_->below(static_cast<uint32_t>(i))]);
  for (const size_t agent : order) {
    if (shuffle_->below(3) == 0) {
      busy = true;  // the agent is skipped in this turn and may have work
    } else {
      drive_one(agent);
    }
  }
  return busy;
}

bool Dispatcher::collect(size_t agent) {
  bool any = false;
  while (const size_t n = agents_[agent].agent->poll(polled_)) {
    any = true;
    for (size_t i = 0; i < n; ++i) {
      if (shuffle_) {
        held_.push_back({polled_[i], shuffle_->below(kMostTurnsHeld)});
      } else {
        deliver(polled_[i]);
      }
    }
  }
  return any;
}

void Dispatcher::deliver(const Done& done, bool had_credit) {
  Entry* entry = find(done.id);
  TIERD_CHECK_MSG(entry != nullptr && entry->state == State::sent,
                  "a request completed twice or was never sent");
  const Message message = entry->message;
  CompletionSink* sink = entry->sink;
  if (done.status == DoneStatus::lost) note_lost(message.agent);
  entry->state = State::free;
  if (entry->left_behind) {
    left_behind_.push_back(std::move(*entry));
    *entry = {};
    entry->message = message;  // keeps the generation of the slot
  }
  free_.push_back(done.id.slot);
  if (had_credit) ++agents_[message.agent - 1u].credits;
  --in_flight_;
  if (observer_ != nullptr) observer_->delivered(message, done, !had_credit);
  sink->on_done(message, done);
}

bool Dispatcher::turn() {
  if (observer_ != nullptr) observer_->turn_begins();
  bool happened = send();
  happened |= deliver_all();
  if (!woken_.empty()) {
    happened = true;
    resuming_ns_ = now_ns();
    // Resumed coroutines may post, but nothing is delivered or resumed before the next turn.
    resuming_.swap(woken_);
    for (Notice* notice : resuming_) notice->notify();
    resuming_.clear();
    resuming_ns_ = 0;
  }
  return happened;
}

void Dispatcher::wake(Notice& notice) {
  // Usually the notice that was woken last.
  if (!woken_.empty() && woken_.back() == &notice) return;
  if (std::find(woken_.begin(), woken_.end(), &notice) == woken_.end()) woken_.push_back(&notice);
}

bool Dispatcher::deliver_all() {
  bool happened = false;
  // Requests that were cancelled before they were sent hold no credit.
  for (std::vector<Done> cancelled = std::move(cancelled_); const Done& done : cancelled) {
    deliver(done, false);
    happened = true;
  }
  happened |= drive();
  if (shuffle_ && !held_.empty()) {
    happened = true;
    for (size_t i = held_.size(); i > 1; --i) {
      std::swap(held_[i - 1], held_[shuffle_->below(static_cast<uint32_t>(i))]);
    }
    for (size_t i = 0; i < held_.size();) {
      // An agent completes a move before a run that waits for it; the shuffle keeps this order.
      const Entry* const entry = find(held_[i].done.id);
      const bool behind = entry != nullptr && entry->message.op == Op::run && find(entry->message.about);
      if (behind) {
        ++i;
      } else if (held_[i].turns-- == 0) {
        const Done done = held_[i].done;
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
        deliver(done);
      } else {
        ++i;
      }
    }
  }
  return happened;
}

std::optional<uint64_t> Dispatcher::wait() {
  const uint64_t begin = now_ns();
  if (!clock_.wait(waiter_)) return std::nullopt;
  const uint64_t end = now_ns();
  if (observer_ != nullptr) observer_->waited(begin, end);
  return end - begin;
}

Dispatcher::QueueState Dispatcher::queue(uint16_t agent) const {
  const AgentState& state = agents_[agent - 1u];
  QueueState queue{state.credits, 0};
  for (const std::deque<uint32_t>& waiting : state.waiting) queue.waiting += waiting.size();
  return queue;
}

}  // namespace tierd
