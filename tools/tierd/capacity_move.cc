#include "tools/tierd/capacity_move.h"

#include <fmt/format.h>

#include "core/base/log.h"
#include "core/base/units.h"

namespace tierd {
namespace {

std::string bytes_text(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

}  // namespace

Status move_capacity(Runtime& runtime, const CapacityMove& move, bool quiet) {
  const size_t before = runtime.budget_changes().size();
  Status changed = runtime.set_capacity(move.capacity, move.fit, move.tier);
  if (runtime.budget_changes().size() != before && !quiet) {
    const Runtime::BudgetChange& change = runtime.budget_changes().back();
    say(fmt::format("{}: {} -> {}{}, of which weights have {}{}{}",
                    runtime.plan().tiers.memories[move.tier].key("capacity"), bytes_text(change.from),
                    bytes_text(change.to), change.raised_to_least ? " (raised to the least)" : "",
                    bytes_text(change.resident), move.why.empty() ? "" : "; ", move.why));
  }
  return changed;
}

}  // namespace tierd
