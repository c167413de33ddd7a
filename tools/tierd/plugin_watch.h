// Watches for plugin calls that do not return: names the plugin, then ends the process.
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
  // `deadline_ns`: the time that a call may take; 0: the default. A plugin that has not returned after ten
  // times that is named, and `stuck` is called with the reason. After thirty times that, half a minute by
  // default, the process ends with status 1. Time in which the process was stopped does not count. `stuck` is
  // called on this object's thread; an empty text means that the call has returned. `calls` must outlive the
  // object. `what`: the program that ends, such as "server".
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
