// Carries messages between the kernel and the agents: holds the credits and the waiting requests, drives the
// agents that share the kernel's thread, and delivers each completion to the sink of its request. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/message.h"
#include "core/agent/pool.h"
#include "core/agent/waiter.h"
#include "core/base/random.h"
#include "core/base/result.h"
#include "core/kernel/observer.h"
#include "core/kernel/post/clocks.h"
#include "core/kernel/post/task.h"

namespace tierd {

// Receives completions. Called from Dispatcher::turn; may post, cancel, raise and wake.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void on_done(const Message& message, const Done& done) = 0;
};

class Dispatcher {
 public:
  struct Options {
    uint32_t max_messages = 256;  // in flight and waiting together
    uint32_t max_units = 1024;    // in the list of one message; of a joint run, for each of its sites
    // For tests: agents are driven and completions delivered in an order drawn from this seed, some delayed.
    std::optional<uint64_t> shuffle_seed;
  };

  // `pools`, `clock` and `waiter` outlive the dispatcher, which alone uses the waiter meanwhile.
  Dispatcher(const PoolTable& pools, Clock& clock, Waiter& waiter, const Options& options);
  ~Dispatcher();

  // Returns the agent's number, counted from 1 in the order of adding. The agent outlives the dispatcher.
  uint16_t add_agent(Agent& agent);

  // Receives every event. Optional. Set it before the first message; it must outlive the dispatcher.
  void set_observer(KernelObserver* observer) { observer_ = observer; }
  KernelObserver* observer() const { return observer_; }

  // Returns the values in an agent's buffers, to be read between its messages; NULL without weights.
  const float* values(uint16_t agent, uint32_t place, uint64_t floats) const {
    return pools_.values(agent, place, floats);
  }

  bool can_post(uint32_t messages = 1) const { return free_.size() >= messages; }
  uint32_t max_units() const { return options_.max_units; }
  const Options& options() const { return options_; }
  // Queues the request; it is sent as soon as the agent has a credit, by priority, then in order. Needs
  // can_post(). Copies the payload's units (at most max_units), gives, neurons, lengths and sites; everything
  // else that it refers to must stay until the completion.
  MessageId post(Message message, const Payload& payload, CompletionSink& sink);
  // Advises to cancel: a request that still waits here completes as cancelled in the next turn; for one that
  // was sent, the agent receives the advice.
  void cancel(MessageId id);
  // Serves a request that still waits (here or at its agent) with this priority.
  void raise(MessageId id, Priority priority);

  // Sends waiting requests, drives the agents, delivers completions, and resumes woken coroutines. Returns
  // whether anything happened.
  bool turn();
  // Resumes the coroutine that waits at `notice` once this turn has delivered everything, so that completions
  // of one turn are handled together. If called from a resumed coroutine, resumes it in the next turn, after
  // sending the requests posted so far. The notice outlives that turn.
  void wake(Notice& notice);
  // Waits until something may have happened; for use when `turn` returned false. Returns the time waited in
  // ns, or nullopt if the clock knows that nothing will ever happen.
  std::optional<uint64_t> wait();

  uint64_t now_ns() const { return clock_.now_ns(); }
  // Returns the error that an agent is lost: Code::lost.
  Error lost(uint16_t agent) const;
  // Returns the first agent that completed a message as lost.
  std::optional<uint16_t> first_lost() const { return first_lost_; }
  uint16_t agents() const { return static_cast<uint16_t>(agents_.size()); }
  uint32_t in_flight() const { return in_flight_; }  // posted and not yet delivered
  // Returns the time spent in driving an agent.
  uint64_t driven_ns(uint16_t agent) const { return agents_[agent - 1u].driven_ns; }
  uint64_t messages() const { return messages_; }  // posted so far
  Waiter& waiter() { return waiter_; }
  // Stops the waiter from watching the agents; to be called before they close their descriptors.
  void stop_watching();

  // The requests that an agent may still be sent, and those that wait for a credit.
  struct QueueState {
    uint32_t credits = 0;
    uint64_t waiting = 0;
  };
  QueueState queue(uint16_t agent) const;

 private:
  enum class State : uint8_t { free, waiting, sent };
  struct Entry {
    Message message;
    std::vector<Unit> units;
    std::vector<Give> gives;
    std::vector<uint32_t> neurons;
    std::vector<uint32_t> lengths;
    std::vector<SiteRun> sites;
    Payload payload;
    CompletionSink* sink = nullptr;
    State state = State::free;
    bool left_behind = false;  // its agent was lost while it held the message
  };
  struct AgentState {
    Agent* agent = nullptr;
    int wait_fd = -1;
    uint32_t credits = 0;
    std::deque<uint32_t> waiting[kPriorities];
    uint64_t driven_ns = 0;
  };
  struct Held {
    Done done;
    uint32_t turns;
  };

  Entry* find(MessageId id);
  bool send();
  bool deliver_all();
  bool drive();
  bool collect(size_t agent);
  void deliver(const Done& done, bool had_credit = true);
  void remove_waiting(const Entry& entry, uint32_t slot);
  void note_lost(uint16_t agent);
  void send_control(const Entry& target, Op op, Priority priority);

  Options options_;
  const PoolTable& pools_;
  Clock& clock_;
  KernelObserver* observer_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::vector<AgentState> agents_;  // agent n at n - 1
  std::vector<Done> cancelled_;     // to be delivered in the next turn
  std::array<Done, 32> polled_;     // from one agent
  std::vector<Held> held_;
  std::vector<Notice*> woken_;     // to be resumed, in this turn or the next
  std::vector<Notice*> resuming_;  // those that this turn resumes; a member to reuse its memory
  uint64_t resuming_ns_ = 0;       // the time of resumption, used as queued_ns of their messages; else 0
  std::optional<Random> shuffle_;
  Waiter& waiter_;
  std::optional<uint16_t> first_lost_;
  std::vector<bool> lost_;         // [agents]
  std::deque<Entry> left_behind_;  // messages of lost agents, whose threads may still read them
  uint32_t in_flight_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace tierd
