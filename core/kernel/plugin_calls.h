// The plugin call that the kernel's thread is in, for a watcher on another thread: the deadline is checked
// when a call returns, so it cannot detect a call that never does. The watcher also detects pauses of the
// whole process, for which no plugin is to blame: its own ticks are late then.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/time.h"

namespace tierd {

class PluginCalls {
 public:
  // A call, for the lifetime of the scope. `plugin` ("cache 'lru'") and `function` live as long as the
  // process. `calls` may be NULL: there is no watcher.
  class Scope {
   public:
    Scope(PluginCalls* calls, const std::string* plugin, const char* function) : calls_(calls) {
      if (calls_ == nullptr) return;
      calls_->plugin_.store(plugin, std::memory_order_relaxed);
      calls_->function_.store(function, std::memory_order_relaxed);
      paused_before_ns_ = calls_->paused_ns_.load(std::memory_order_relaxed);
      calls_->paused_before_ns_.store(paused_before_ns_, std::memory_order_relaxed);
      calls_->since_ns_.store(now_ns(), std::memory_order_release);
    }
    ~Scope() {
      if (calls_ != nullptr) calls_->since_ns_.store(0, std::memory_order_release);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    // Returns how long the process was paused since the call began, as far as a watcher can tell.
    uint64_t paused_ns() const { return calls_ == nullptr ? 0 : calls_->paused(paused_before_ns_, now_ns()); }

   private:
    PluginCalls* const calls_;
    uint64_t paused_before_ns_ = 0;
  };

  struct Running {
    std::string plugin;
    std::string function;
    uint64_t ns = 0;  // since it was called, without pauses of the process
  };
  // [any thread] Returns the call that has not returned.
  std::optional<Running> running() const {
    const uint64_t since = since_ns_.load(std::memory_order_acquire);
    const std::string* const plugin = plugin_.load(std::memory_order_relaxed);
    const char* const function = function_.load(std::memory_order_relaxed);
    const uint64_t paused_before = paused_before_ns_.load(std::memory_order_relaxed);
    if (since == 0 || plugin == nullptr) return std::nullopt;
    const uint64_t now = now_ns();
    // Another call may have begun while this one was read.
    if (since_ns_.load(std::memory_order_acquire) != since) return std::nullopt;
    const uint64_t took = now > since ? now - since : 0;
    return Running{*plugin, function, took - std::min(took, paused(paused_before, now))};
  }

  // [watcher's thread] Called every kTickNs, before `running`: a tick that is much later indicates a pause.
  static constexpr uint64_t kTickNs = 50'000'000;
  void tick() {
    const uint64_t now = now_ns();
    const uint64_t late = lateness(now);
    paused_ns_.store(paused_ns_.load(std::memory_order_relaxed) + late, std::memory_order_relaxed);
    ticked_ns_.store(now, std::memory_order_release);
  }

 private:
  // A later tick indicates a pause; a watcher that only waits for a processor may be this late.
  static constexpr uint64_t kLateNs = 3 * kTickNs;

  // Returns how late the next tick is; 0 if there is no watcher.
  uint64_t lateness(uint64_t now) const {
    const uint64_t ticked = ticked_ns_.load(std::memory_order_acquire);
    return ticked == 0 || now < ticked + kLateNs ? 0 : now - ticked - kTickNs;
  }
  uint64_t paused(uint64_t before, uint64_t now) const {
    return lateness(now) + paused_ns_.load(std::memory_order_relaxed) - before;
  }

  std::atomic<uint64_t> paused_ns_{0};  // of all pauses so far
  std::atomic<uint64_t> ticked_ns_{0};
  std::atomic<uint64_t> paused_before_ns_{0};  // pauses before the call
  std::atomic<const std::string*> plugin_{nullptr};
  std::atomic<const char*> function_{nullptr};
  std::atomic<uint64_t> since_ns_{0};  // 0: no call
};

// Returns a permanent copy of a plugin's name, for PluginCalls::Scope; the same pointer for the same text.
const std::string* lasting_name(const std::string& text);

}  // namespace tierd
