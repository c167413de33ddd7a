// Handles signals of a process with several threads, one at a time on a thread of its own, where every
// function may be called.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <thread>

namespace tierd {

class SignalThread {
 public:
  // Blocks the signals in this thread and in all threads that are created later.
  static void reserve(std::initializer_list<int> numbers);

  // `came` is called for each of the reserved signals, on this object's thread.
  SignalThread(std::initializer_list<int> numbers, std::function<void(int number)> came);
  // Later signals stay pending.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace tierd
