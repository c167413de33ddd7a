#include "core/kernel/pass/unit_pass.h"

#include <algorithm>

namespace tierd {

EditionId UnitPass::hand_out(std::vector<Unit>& units, bool in_order) {
  const size_t before = units.size();
  for (Gathering* const gathering : gatherings_) {
    gathering->hand_out(units);
    if (units.size() != before) return gathering->edition();
    if (in_order && !gathering->handed_out()) break;
  }
  return kNoEdition;
}

void UnitPass::computed_by(MessageId message) {
  for (Gathering* const gathering : gatherings_) gathering->computed_by(message);
}

void UnitPass::computed(MessageId message) {
  for (Gathering* const gathering : gatherings_) gathering->computed(message);
}

bool UnitPass::handed_out() const {
  return std::ranges::all_of(gatherings_, &Gathering::handed_out);
}

Status UnitPass::status() const {
  for (const Gathering* const gathering : gatherings_) TIERD_TRY(gathering->status());
  return {};
}

}  // namespace tierd
