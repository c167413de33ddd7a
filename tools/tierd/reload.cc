#include "tools/tierd/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/log.h"
#include "tools/tierd/capacity_move.h"
#include "tools/tierd/known_loss.h"

namespace tierd {
namespace {

std::atomic<bool> the_hangup{false};

// Returns the configuration of a kind of strategy, NULL for another table.
template <class AnyConfig>
auto strategy_of(AnyConfig& config, std::string_view kind) -> decltype(&config.cache) {
  if (kind == "predictor") return &config.predictor;
  if (kind == "quantizer") return &config.quantizer;
  if (kind == "cache") return &config.cache;
  return kind == "balancer" ? &config.balancer : nullptr;
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
  if (!arguments_.config_file.empty()) take_file(runtime);
  const Status broken = runtime.quarantine();
  if (broken.ok()) return;
  const Status anew = runtime.make_anew();
  say(anew.ok() ? broken.error().origin + " is made anew" : anew.error().line());
}

void Reload::take_file(Runtime& runtime) {
  const auto read = load_config(arguments_.config_file, arguments_.overrides);
  if (!read.ok()) return say("not taken over: " + read.error().line());
  std::set<std::string> swapped;
  for (const std::string& key : changed_keys(in_force_, *read)) {
    const auto is_changed = [&](const TierConfig& tier) { return key == tier.table() + ".capacity"; };
    const auto tier = std::ranges::find_if(read->tiers, is_changed);
    if (tier != read->tiers.end() && runtime.plan().tiers.find(tier->name) != nullptr) {
      const Status taken = take_capacity(runtime, tier->name, tier->capacity);
      if (!taken.ok()) say(taken.error().line());
      continue;
    }
    const std::string kind = key.substr(0, key.find('.'));
    if (strategy_of(in_force_, kind) == nullptr) {
      say(fmt::format("{}: {}: takes a restart", arguments_.config_file, key));
    } else if (swapped.insert(kind).second) {
      const StrategyConfig next = *strategy_of(*read, kind);
      Status taken = tell_loss_with(runtime, kind, next);
      if (taken.ok()) taken = runtime.swap(kind, next);
      say(taken.ok() ? fmt::format("{} '{}' is in force", kind, next.name) : taken.error().line());
      if (taken.ok()) *strategy_of(in_force_, kind) = next;
    }
  }
}

Status Reload::tell_loss_with(const Runtime& runtime, const std::string& kind,
                              const StrategyConfig& next) const {
  Arguments arguments = arguments_;
  arguments.config = runtime.plan().config;
  *strategy_of(arguments.config, kind) = next;
  RuntimeOptions options;
  options.quiet = true;
  options.force = true;  // the memory that is planned for is in use
  const auto plan = plan_run(arguments.config, options);
  if (!plan.ok()) return {};  // nor can it be swapped, which says why
  TIERD_TRY(tell_loss(*plan, arguments));
  return {};
}

Status Reload::take_capacity(Runtime& runtime, const std::string& tier, const std::string& capacity) {
  const size_t before = runtime.budget_changes().size();
  const TierTable& tiers = runtime.plan().tiers;
  const auto number = static_cast<size_t>(tiers.find(tier) - tiers.memories.data());
  Status moved = move_capacity(runtime, {number, capacity, arguments_.fit}, arguments_.quiet);
  if (runtime.budget_changes().size() != before) in_force_.tier(tier).capacity = capacity;
  return moved;
}

}  // namespace tierd
