// Which plugin the kernel's thread is in, for whoever watches over it from another one: a plugin that never
// returns cannot be told by the deadline, which is looked at when it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/time.h"

namespace tierd {

class PluginCalls {
 public:
  // A call, for as long as this lives. `plugin` ("cache 'lru'") and `function` live as long as the process.
  // `calls` may be NULL: nobody watches.
  class Scope {
   public:
    Scope(PluginCalls* calls, const std::string* plugin, const char* function) : calls_(calls) {
      if (calls_ == nullptr) return;
      calls_->plugin_.store(plugin, std::memory_order_relaxed);
      calls_->function_.store(function, std::memory_order_relaxed);
      calls_->since_ns_.store(now_ns(), std::memory_order_release);
    }
    ~Scope() {
      if (calls_ != nullptr) calls_->since_ns_.store(0, std::memory_order_release);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PluginCalls* const calls_;
  };

  struct Running {
    std::string plugin;
    std::string function;
    uint64_t ns = 0;  // since it was called
  };
  // [any thread] The call that has not returned.
  std::optional<Running> running() const {
    const uint64_t since = since_ns_.load(std::memory_order_acquire);
    const std::string* const plugin = plugin_.load(std::memory_order_relaxed);
    const char* const function = function_.load(std::memory_order_relaxed);
    if (since == 0 || plugin == nullptr) return std::nullopt;
    const uint64_t now = now_ns();
    // Another call may have begun while this one was looked at.
    if (since_ns_.load(std::memory_order_acquire) != since) return std::nullopt;
    return Running{*plugin, function, now > since ? now - since : 0};
  }

 private:
  std::atomic<const std::string*> plugin_{nullptr};
  std::atomic<const char*> function_{nullptr};
  std::atomic<uint64_t> since_ns_{0};  // 0: none
};

// The name of a plugin for PluginCalls::Scope: kept for good, the same for the same text.
const std::string* lasting_name(const std::string& text);

}  // namespace tierd
