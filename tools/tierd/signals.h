// The signals of a process with several threads, one after the other on a thread of their own, where
// everything is allowed.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <thread>

namespace tierd {

class SignalThread {
 public:
  // Keeps them from all threads that are made from now on, and from this one.
  static void reserve(std::initializer_list<int> numbers);

  // `came`: of each of the reserved ones, on this object's thread.
  SignalThread(std::initializer_list<int> numbers, std::function<void(int number)> came);
  // What comes from now on stays pending.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace tierd
