#include "core/kernel/pass/unit_pass.h"

#include <algorithm>

namespace tierd {

UnitPass::HandedOut UnitPass::hand_out(std::vector<Unit>& units, bool in_order) {
  for (Gathering* const gathering : gatherings_) {
    const MessageId move = gathering->arrivals().hand_out(units);
    if (!units.empty()) return {gathering->edition(), move};
    if (in_order && !gathering->handed_out()) return {};
  }
  for (Gathering* const gathering : gatherings_) {
    if (in_order) break;
    const MessageId move = gathering->arrivals().hand_out_moving(units);
    if (!units.empty()) return {gathering->edition(), move};
  }
  return {};
}

void UnitPass::computed_by(MessageId message) {
  for (Gathering* const gathering : gatherings_) gathering->arrivals().computed_by(message);
}

void UnitPass::computed(MessageId message) {
  for (Gathering* const gathering : gatherings_) gathering->arrivals().computed(message);
}

bool UnitPass::handed_out() const {
  return std::ranges::all_of(gatherings_, &Gathering::handed_out);
}

Status UnitPass::status() const {
  for (const Gathering* const gathering : gatherings_) TIERD_TRY(gathering->status());
  return {};
}

}  // namespace tierd
