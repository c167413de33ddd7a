// The coroutine type of the kernel: started at once, resumed by its owner's event loop, awaited by another
// Task.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace tierd {

template <class T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> continuation = std::noop_coroutine();

    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(Handle self) noexcept { return self.promise().continuation; }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { std::terminate(); }
  };

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool done() const { return handle_.done(); }
  // To be called once done.
  T take() {
    TIERD_CHECK(done());
    return std::move(*handle_.promise().value);
  }

  bool await_ready() const noexcept { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> awaiting) noexcept { handle_.promise().continuation = awaiting; }
  T await_resume() { return take(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// One coroutine waits here until the owner calls `notify`.
class Notice {
 public:
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) noexcept {
    TIERD_CHECK(!waiting_);
    waiting_ = waiting;
  }
  void await_resume() const noexcept {}

  bool awaited() const { return static_cast<bool>(waiting_); }
  // Resumes the coroutine that waits, if any.
  void notify() {
    if (waiting_) std::exchange(waiting_, nullptr).resume();
  }

 private:
  std::coroutine_handle<> waiting_;
};

}  // namespace tierd
