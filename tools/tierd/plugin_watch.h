// A plugin that does not return: a server or a run names it, and ends, since its thread cannot be taken back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "core/kernel/plugin_calls.h"

namespace tierd {

class PluginWatch {
 public:
  // `deadline_ns` is what a call may take; 0: the usual. A plugin that has not returned after ten times that
  // is named, and `stuck` is told why; after thirty times that, which is half a minute by default, the
  // process ends with status 1. Time in which the process stood still does not count. `stuck` is called on
  // this object's thread, with an empty text when the call has returned after all. `calls` outlives it.
  // `what` ends: "server".
  PluginWatch(PluginCalls& calls, uint64_t deadline_ns, std::string what,
              std::function<void(std::string)> stuck);
  ~PluginWatch();
  PluginWatch(const PluginWatch&) = delete;
  PluginWatch& operator=(const PluginWatch&) = delete;

 private:
  void look();

  PluginCalls& calls_;
  const uint64_t deadline_ns_;
  const std::string what_;
  const std::function<void(std::string)> stuck_;
  bool told_ = false;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tierd
