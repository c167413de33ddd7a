#include "tools/tierd/reload.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

#include "core/base/log.h"
#include "tools/tierd/capacity_move.h"

namespace tierd {
namespace {

constexpr const char* kCapacity = "tiers.dram.capacity";

std::atomic<bool> the_hangup{false};

}  // namespace

Reload::Reload(const Arguments& arguments) : arguments_(arguments), in_force_(arguments.read_config) {
  if (arguments.config_file.empty()) return;
  std::signal(SIGHUP, [](int) { the_hangup.store(true); });
}

void Reload::ask() {
  the_hangup.store(true);
}

void Reload::look(Runtime& runtime) {
  if (!the_hangup.load(std::memory_order_relaxed) || !the_hangup.exchange(false)) return;
  const auto read = load_config(arguments_.config_file, arguments_.overrides);
  if (!read.ok()) return say("not taken over: " + read.error().line());
  for (const std::string& key : changed_keys(in_force_, *read)) {
    if (key == kCapacity) {
      const Status taken = take_capacity(runtime, read->dram_capacity);
      if (!taken.ok()) say(taken.error().line());
    } else {
      say(fmt::format("{}: {}: takes a restart", arguments_.config_file, key));
    }
  }
}

Status Reload::take_capacity(Runtime& runtime, const std::string& capacity) {
  const size_t before = runtime.budget_changes().size();
  Status moved = move_capacity(runtime, {capacity, arguments_.fit}, arguments_.quiet);
  if (runtime.budget_changes().size() != before) in_force_.dram_capacity = capacity;
  return moved;
}

}  // namespace tierd
