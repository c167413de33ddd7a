#include "tools/tierd/reload.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

#include "core/base/log.h"
#include "core/base/units.h"

namespace tierd {
namespace {

constexpr const char* kCapacity = "tiers.dram.capacity";

std::atomic<bool> the_hangup{false};

std::string bytes_text(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

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
      take_capacity(runtime, read->dram_capacity);
    } else {
      say(fmt::format("{}: {}: takes a restart", arguments_.config_file, key));
    }
  }
}

void Reload::take_capacity(Runtime& runtime, const std::string& capacity) {
  const size_t before = runtime.budget_changes().size();
  const Status changed = runtime.set_capacity(capacity, arguments_.fit);
  if (runtime.budget_changes().size() != before) {
    in_force_.dram_capacity = capacity;
    const Runtime::BudgetChange& change = runtime.budget_changes().back();
    if (!arguments_.quiet) {
      say(fmt::format("{}: {} -> {}{}, of which weights have {}", kCapacity, bytes_text(change.from),
                      bytes_text(change.to), change.raised_to_least ? " (raised to the least)" : "",
                      bytes_text(change.resident)));
    }
  }
  if (!changed.ok()) say(changed.error().line());
}

}  // namespace tierd
