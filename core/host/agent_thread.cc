#include "core/host/agent_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>

#include "core/base/check.h"
#include "core/base/cores.h"
#include "core/base/time.h"

namespace tierd {
namespace {
// A wake-up cannot be lost (see `submit`); this only bounds how long a device without a descriptor waits for
// `drive`.
constexpr uint64_t kLongestParkNs = 5'000'000;
}  // namespace

AgentThread::AgentThread(Agent& agent, const Options& options)
    : agent_(agent), requests_(agent.credits()), completions_(agent.credits()) {
  done_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  TIERD_CHECK(done_fd_ >= 0);
  if (agent.wait_fd() >= 0) waiter_.watch(agent.wait_fd());
  thread_ = std::thread([this, options] { run(options); });
}

AgentThread::~AgentThread() {
  ending_.store(true, std::memory_order_release);
  waiter_.stop();
  thread_.join();
  close(done_fd_);
}

Submit AgentThread::submit(const Message& message, const Payload& payload) {
  if (open_ == credits()) return Submit::busy;
  TIERD_CHECK(requests_.push({message, payload}));
  ++open_;
  // Pairs with the fence in `run`: either the thread sees the message before it parks, or we see that it is
  // parked.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_relaxed)) {
    wake_ups_.fetch_add(1, std::memory_order_relaxed);
    waiter_.stop();
  }
  return Submit::ok;
}

size_t AgentThread::poll(std::span<Done> done) {
  if (done_signalled_.load(std::memory_order_relaxed))
    done_signalled_.exchange(false, std::memory_order_acq_rel);
  // The thread says that it signals before it writes: until all that it announced has been read the
  // descriptor may turn readable yet, and whoever sleeps on it would not.
  if (signals_.load(std::memory_order_acquire) != signals_read_) {
    uint64_t count = 0;
    if (read(done_fd_, &count, sizeof count) == sizeof count) signals_read_ += count;
  }
  size_t n = 0;
  while (n < done.size() && completions_.pop(done[n])) ++n;
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
    if (!done_signalled_.exchange(true, std::memory_order_acq_rel)) {
      signals_.fetch_add(1, std::memory_order_release);
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = write(done_fd_, &one, sizeof one);
    }
  }
  return busy;
}

void AgentThread::run(const Options& options) {
  if (options.core) (void)bind_this_thread(*options.core);
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
  // What a device still writes is awaited by the thread that asked for it: nobody else is told of its end.
  while (agent_.waiting()) (void)work();
}

}  // namespace tierd
