#include "tools/tierd/pressure_relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "tools/tierd/capacity_move.h"

namespace tierd {
namespace {

constexpr uint64_t kMs = 1'000'000;   // in ns
constexpr uint64_t kLook = 50 * kMs;  // between two looks, each of which reads files
Result<std::unique_ptr<PressureSource>> source_of(const PressureConfig& config) {
  constexpr uint64_t kUs = 1000;
  if (config.source == "psi")
    return watch_stalls(stall_files(), {config.stall_ms * kUs, config.window_ms * kUs});
  const auto group = own_control_group("memory");
  if (!group) return Error{Code::unsupported, "memory cgroup", "this process is in no memory cgroup"};
  return watch_limit(*group, config.limit_percent / 100.0);
}

}  // namespace

Result<std::unique_ptr<PressureRelief>> PressureRelief::create(Runtime& runtime, bool quiet) {
  const PressureConfig& config = runtime.plan().config.pressure;
  if (config.source == "off") return std::unique_ptr<PressureRelief>();
  Options options;
  TIERD_ASSIGN(options.step_bytes, runtime.capacity_bytes(config.step, "pressure.step"));
  TIERD_ASSIGN(options.least_bytes, runtime.capacity_bytes(config.least, "pressure.least"));
  options.hold_ns = config.window_ms * kMs;
  options.calm_ns = config.calm_ms * kMs;
  options.quiet = quiet;
  const uint64_t capacity = runtime.budget().capacity();
  if (options.step_bytes == 0)
    return Error{Code::invalid_argument, "pressure.step", "is 0 bytes, expected more"};
  if (std::max(options.least_bytes, runtime.least_capacity()) >= capacity) {
    return Error{Code::invalid_argument, "pressure.least",
                 fmt::format("the minimum of {} bytes, and {} bytes in use apart from resident weights, "
                             "leave no room to shrink a capacity of {} bytes",
                             options.least_bytes, runtime.least_capacity(), capacity)};
  }
  TIERD_TRY(runtime.resizable());
  auto source = source_of(config);
  if (!source.ok()) {
    return Error{
        Code::unsupported, "pressure.source",
        fmt::format("'{}' is not available on this machine: {}", config.source, source.error().line())};
  }
  return std::make_unique<PressureRelief>(runtime, std::move(*source), options);
}

PressureRelief::PressureRelief(Runtime& runtime, std::unique_ptr<PressureSource> source,
                               const Options& options)
    : runtime_(runtime),
      source_(std::move(source)),
      options_(options),
      wanted_(runtime.budget().capacity()),
      changes_(runtime.budget_changes().size()) {}

void PressureRelief::look(uint64_t now_ns) {
  if (now_ns < next_look_) return;
  next_look_ = now_ns + kLook;
  const uint64_t capacity = runtime_.budget().capacity();
  if (runtime_.budget_changes().size() != changes_) {  // a signal or a client has set the capacity
    wanted_ = capacity;
    changes_ = runtime_.budget_changes().size();
  }
  if (source_->pressed()) {
    calm_since_ = now_ns;
    const uint64_t least = std::max(options_.least_bytes, runtime_.least_capacity());
    if (now_ns < next_shrink_ || capacity <= least) return;
    next_shrink_ = now_ns + options_.hold_ns;
    if (move(capacity - std::min(options_.step_bytes, capacity - least), "memory is short"))
      ++counts_.shrinks;
  } else if (capacity < wanted_ && now_ns - calm_since_ >= options_.calm_ns) {
    calm_since_ = now_ns;
    if (move(capacity + std::min(options_.step_bytes, wanted_ - capacity), "memory is no longer short"))
      ++counts_.grows;
  }
}

bool PressureRelief::move(uint64_t to, const char* why) {
  const Status moved = move_capacity(runtime_, {0, std::to_string(to), false, why}, options_.quiet);
  if (!moved.ok()) say(moved.error().line());
  return std::exchange(changes_, runtime_.budget_changes().size()) != changes_;
}

}  // namespace tierd
