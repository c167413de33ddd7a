#include "tools/tierd/signals.h"

#include <pthread.h>

namespace tierd {
namespace {

constexpr int kEnd = SIGUSR2;  // wakes the thread to end it

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  sigaddset(&set, kEnd);
  return set;
}

}  // namespace

void SignalThread::reserve(std::initializer_list<int> numbers) {
  const sigset_t set = set_of(numbers);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalThread::SignalThread(std::initializer_list<int> numbers, std::function<void(int number)> came)
    : thread_([this, set = set_of(numbers), came = std::move(came)] {
        int number = 0;
        while (sigwait(&set, &number) == 0) {
          if (ends_.load()) return;
          if (number != kEnd) came(number);  // kEnd only wakes the thread
        }
      }) {}

SignalThread::~SignalThread() {
  ends_.store(true);
  pthread_kill(thread_.native_handle(), kEnd);
  thread_.join();
}

}  // namespace tierd
