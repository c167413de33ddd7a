#include "tools/tierd/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <string_view>

#include "core/base/log.h"
#include "tools/tierd/capacity_move.h"

namespace tierd {
namespace {

std::atomic<bool> the_hangup{false};

// Returns the configuration of a kind of strategy, or NULL for another table.
template <class AnyConfig>
auto strategy_of(AnyConfig& config, std::string_view kind) -> decltype(&config.cache) {
  if (kind == "predictor") return &config.predictor;
  if (kind == "quantizer") return &config.quantizer;
  if (kind == "cache") return &config.cache;
  return kind == "balancer" ? &config.balancer : nullptr;
}

void ask_for(Arguments& arguments, const std::string& tier, const std::string& capacity) {
  TierConfig& config = arguments.config.tier(tier);
  config.capacity = capacity;
  arguments.overrides.push_back(fmt::format("{}.capacity={}", config.table(), capacity));
}

// Returns the known loss of the run that `arguments` would start, see tell_loss. None for a run that cannot
// be planned: the change itself fails, too, and gives the reason.
Result<std::optional<KnownLoss>> tell_loss_of(const Arguments& arguments) {
  RuntimeOptions options;
  options.fit = arguments.fit;
  options.quiet = true;
  options.force = true;  // the planned memory is in use by this run
  const auto plan = plan_run(arguments.config, options);
  if (!plan.ok()) return std::optional<KnownLoss>();
  return tell_loss(*plan, arguments);
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
  say(anew.ok() ? broken.error().origin + " is created again" : anew.error().line());
}

void Reload::take_file(Runtime& runtime) {
  const auto read = load_config(arguments_.config_file, arguments_.overrides);
  if (!read.ok()) return say("the configuration is not applied: " + read.error().line());
  std::set<std::string> swapped;
  for (const std::string& key : changed_keys(in_force_, *read)) {
    const auto is_changed = [&](const TierConfig& tier) { return key == tier.table() + ".capacity"; };
    const auto tier = std::ranges::find_if(read->tiers, is_changed);
    if (tier != read->tiers.end() && runtime.plan().tiers.find(tier->name) != nullptr) {
      const auto taken = take_capacity(runtime, tier->name, tier->capacity);
      if (!taken.ok()) say(taken.error().line());
      continue;
    }
    const std::string kind = key.substr(0, key.find('.'));
    if (strategy_of(in_force_, kind) == nullptr) {
      say(fmt::format("{}: {}: takes effect after a restart", arguments_.config_file, key));
    } else if (swapped.insert(kind).second) {
      const StrategyConfig next = *strategy_of(*read, kind);
      Arguments changed = present(runtime);
      *strategy_of(changed.config, kind) = next;
      const auto known = tell_loss_of(changed);
      const Status taken = known.ok() ? runtime.swap(kind, next) : Status(known.error());
      say(taken.ok() ? fmt::format("{} '{}' is now used", kind, next.name) : taken.error().line());
      if (taken.ok()) *strategy_of(in_force_, kind) = next;
    }
  }
}

Arguments Reload::present(const Runtime& runtime) const {
  Arguments now = arguments_;
  now.config = runtime.plan().config;
  std::set<size_t> moved;
  for (const Runtime::BudgetChange& change : runtime.budget_changes()) moved.insert(change.tier);
  for (const size_t tier : moved) {
    ask_for(now, runtime.plan().tiers.memories[tier].config.name,
            std::to_string(runtime.budget(tier).capacity()));
  }
  return now;
}

Result<std::optional<KnownLoss>> Reload::take_capacity(Runtime& runtime, const std::string& tier,
                                                       const std::string& capacity) {
  Arguments changed = present(runtime);
  ask_for(changed, tier, capacity);
  TIERD_ASSIGN(std::optional<KnownLoss> loss, tell_loss_of(changed));
  const size_t before = runtime.budget_changes().size();
  const TierTable& tiers = runtime.plan().tiers;
  const auto number = static_cast<size_t>(tiers.find(tier) - tiers.memories.data());
  const Status moved = move_capacity(runtime, {number, capacity, arguments_.fit}, arguments_.quiet);
  if (runtime.budget_changes().size() != before) in_force_.tier(tier).capacity = capacity;
  TIERD_TRY(moved);
  return loss;
}

}  // namespace tierd
