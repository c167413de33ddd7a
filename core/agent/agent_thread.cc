#include "core/agent/agent_thread.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/base/check.h"
#include "core/base/time.h"
#include "core/system/cores.h"

namespace tierd {
namespace {
// Bounds the wait of an agent whose device has no descriptor. A wake-up cannot be lost (see `submit`).
constexpr uint64_t kLongestParkNs = 5'000'000;
// The longest normal time between two polls of a kernel that waits: it waits for 5 ms at most, and may
// compute in between.
constexpr uint64_t kLongestUnseenNs = 1'000'000'000;
}  // namespace

AgentThread::AgentThread(Agent& agent, const Options& options)
    : agent_(agent),
      deadline_ns_(options.deadline_ns),
      requests_(agent.credits()),
      completions_(agent.credits()) {
  accepted_.reserve(agent.credits());
  if (agent.wait_fd() >= 0) waiter_.watch(agent.wait_fd());
  thread_ = std::thread([this, options] { run(options); });
}

AgentThread::~AgentThread() {
  end();
  thread_.join();
}

void AgentThread::end() {
  ending_.store(true, std::memory_order_release);
  waiter_.stop();
}

void AgentThread::leave_behind() {
  end();
  if (is_stuck()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

Submit AgentThread::submit(const Message& message, const Payload& payload) {
  if (open_ == credits()) return Submit::busy;
  if (open_ == 0 && deadline_ns_ != 0) since_ns_ = looked_ns_ = now_ns();
  accepted_.push_back({message.id, message.lane});
  ++open_;
  if (!lost_because_.empty()) return Submit::ok;
  TIERD_CHECK(requests_.push({message, payload}));
  submitted_ = true;
  return Submit::ok;
}

Drive AgentThread::drive() {
  if (!std::exchange(submitted_, false)) return Drive::idle;
  // Pairs with the fence in `serve`: either the thread sees the messages before it parks, or we see that it
  // is parked.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_relaxed)) {
    wake_ups_.fetch_add(1, std::memory_order_relaxed);
    waiter_.stop();
  }
  return Drive::idle;
}

size_t AgentThread::poll(std::span<Done> done) {
  if (done_signalled_.load(std::memory_order_relaxed))
    done_signalled_.exchange(false, std::memory_order_acq_rel);
  // The thread counts a signal before it writes it. Until all counted signals have been read, the descriptor
  // may still become readable, and a sleeper on it would wake in vain.
  if (signals_.load(std::memory_order_acquire) != signals_read_) signals_read_ += done_signal_.take();
  if (!lost_because_.empty()) return poll_lost(done);
  size_t n = 0;
  while (n < done.size() && completions_.pop(done[n])) {
    const auto of = std::ranges::find(accepted_, done[n].id, &Accepted::id);
    TIERD_CHECK_MSG(of != accepted_.end(), "an agent completed what it has not accepted");
    *of = accepted_.back();
    accepted_.pop_back();
    ++n;
  }
  open_ -= static_cast<uint32_t>(n);
  if (n != 0 && deadline_ns_ != 0) since_ns_ = looked_ns_ = now_ns();
  if (n == 0 && open_ != 0 && looks_lost()) return poll_lost(done);
  return n;
}

// Returns whether the agent is found to be lost now, and records why.
bool AgentThread::looks_lost() {
  if (ended_.load(std::memory_order_acquire)) {
    if (!completions_.empty()) return false;
    lost_because_ = failure_;
  } else if (is_overdue()) {
    overdue_ = true;
    lost_because_ =
        fmt::format("it has answered nothing for {:.3g} s", static_cast<double>(deadline_ns_) * 1e-9);
  }
  return !lost_because_.empty();
}

// The kernel polls often while it waits. If the process was paused (SIGSTOP, a suspended virtual machine),
// the poll is late, and the agent did not have that time either.
bool AgentThread::is_overdue() {
  if (deadline_ns_ == 0) return false;
  const uint64_t now = now_ns();
  const uint64_t unseen = now - looked_ns_;
  looked_ns_ = now;
  if (unseen > kLongestUnseenNs) since_ns_ += unseen - kLongestUnseenNs;
  return now - since_ns_ > deadline_ns_;
}

// Completes accepted messages as lost. Later completions of the agent are ignored: their ids are over.
size_t AgentThread::poll_lost(std::span<Done> done) {
  const size_t n = std::min(done.size(), accepted_.size());
  for (size_t i = 0; i < n; ++i) {
    done[i] = {};
    done[i].id = accepted_[i].id;
    done[i].lane = accepted_[i].lane;
    done[i].status = DoneStatus::lost;
    done[i].start_ns = done[i].done_ns = now_ns();
  }
  accepted_.erase(accepted_.begin(), accepted_.begin() + static_cast<std::ptrdiff_t>(n));
  open_ -= static_cast<uint32_t>(n);
  return n;
}

bool AgentThread::work() {
  bool busy = false;
  const auto offer = [this](const Request& request) {
    return agent_.submit(request.message, request.payload);
  };
  Request request;
  while (!refused_.empty() && offer(refused_.front()) == Submit::ok) {
    refused_.pop_front();
    busy = true;
  }
  while (refused_.empty() && requests_.pop(request)) {
    busy = true;
    if (offer(request) == Submit::busy) refused_.push_back(request);
  }
  busy |= agent_.drive() == Drive::busy;
  std::array<Done, 32> done;
  while (const size_t n = agent_.poll(done)) {
    busy = true;
    for (size_t i = 0; i < n; ++i) {
      // There are never more completions than credits.
      TIERD_CHECK(completions_.push(done[i]));
    }
    signal();
  }
  return busy;
}

void AgentThread::signal() {
  if (done_signalled_.exchange(true, std::memory_order_acq_rel)) return;
  signals_.fetch_add(1, std::memory_order_release);
  done_signal_.raise();
}

// An exception of the agent ends only this thread.
void AgentThread::run(const Options& options) {
  if (options.core) (void)bind_this_thread(*options.core);
  if (options.short_slices) take_short_slices();
  try {
    serve(options);
  } catch (const std::exception& thrown) {
    failure_ = fmt::format("its thread has ended: {}", thrown.what());
  } catch (...) {
    failure_ = "its thread has ended by an exception";
  }
  ended_.store(true, std::memory_order_release);
  signal();
}

void AgentThread::serve(const Options& options) {
  uint64_t idle_since = now_ns();
  while (!ending_.load(std::memory_order_acquire)) {
    if (work()) {
      idle_since = now_ns();
      continue;
    }
    if (now_ns() - idle_since < options.spin_ns) continue;
    parked_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (requests_.empty() && !ending_.load(std::memory_order_acquire)) waiter_.wait(kLongestParkNs);
    parked_.store(false, std::memory_order_relaxed);
    waiter_.clear_stop();
  }
  // A device may still write into memory that a request named; only this thread can wait for its end.
  while (agent_.waiting()) (void)work();
}

}  // namespace tierd
