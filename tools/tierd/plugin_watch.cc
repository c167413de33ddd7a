#include "tools/tierd/plugin_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/log.h"
#include "core/kernel/strategies.h"
#include "tools/command_line/exit_code.h"

namespace tierd {
namespace {

constexpr uint64_t kNamedAfter = kWallDeadlines;
constexpr uint64_t kEndedAfter = 3 * kWallDeadlines;
constexpr std::chrono::nanoseconds kBetweenLooks(PluginCalls::kTickNs);

std::string text_of(const PluginCalls::Running& call) {
  return fmt::format("{}: {} has not returned for {:.1f} s", call.plugin, call.function,
                     static_cast<double>(call.ns) * 1e-9);
}

}  // namespace

PluginWatch::PluginWatch(PluginCalls& calls, uint64_t deadline_ns, std::string what,
                         std::function<void(std::string)> stuck)
    : calls_(calls),
      deadline_ns_(deadline_ns != 0 ? deadline_ns : kPluginDeadlineNs),
      what_(std::move(what)),
      stuck_(std::move(stuck)),
      thread_([this] {
        while (!ends_.load()) {
          look();
          std::this_thread::sleep_for(kBetweenLooks);
        }
      }) {}

PluginWatch::~PluginWatch() {
  ends_.store(true);
  thread_.join();
}

void PluginWatch::look() {
  calls_.tick();
  const auto call = calls_.running();
  const bool stuck = call && call->ns > kNamedAfter * deadline_ns_;
  if (stuck && call->ns > kEndedAfter * deadline_ns_) {
    say(fmt::format("{}: the {} ends", text_of(*call), what_));
    std::fflush(nullptr);
    std::_Exit(kFailed);
  }
  if (stuck == told_) return;
  told_ = stuck;
  if (stuck) say(text_of(*call));
  stuck_(stuck ? text_of(*call) : std::string());
}

}  // namespace tierd
