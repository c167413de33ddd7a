#include "core/kernel/supply/spare_time.h"

#include <algorithm>

namespace tierd {
namespace {

// So much one message brings, or one neuron: 20 us of a link of 25 GB/s.
constexpr uint64_t kAtOnceBytes = 512 << 10;

}  // namespace

Status SpareTime::start() {
  while (!asked_.empty()) {
    if (!context_.dispatcher.can_post(static_cast<uint32_t>(context_.transfers.sources().size()))) return {};
    if (std::ranges::any_of(context_.transfers.all(), &Transfer::meanwhile)) return {};
    Asked& asked = asked_.front();
    take_some(asked);
    if (!some_.empty()) TIERD_TRY(start_some(asked));
    if (asked.next == asked.wanted.neurons.size()) asked_.pop_front();
  }
  return {};
}

// The next neurons that can be had, as many as a message should bring.
void SpareTime::take_some(Asked& asked) {
  const auto& [edition, neurons] = asked.wanted;
  const uint64_t most = std::max<uint64_t>(1, kAtOnceBytes / context_.sites.editions[edition].slot_bytes);
  some_.clear();
  for (; asked.next < neurons.size() && some_.size() < most; ++asked.next) {
    const uint32_t neuron = neurons[asked.next];
    if (context_.residency.slot(edition, neuron) == kNoSlot && context_.sources.next_to(edition, neuron))
      some_.push_back(neuron);
  }
}

Status SpareTime::start_some(const Asked& asked) {
  const EditionId edition = asked.wanted.edition;
  FetchList list{.purpose = {context_.sites.editions[edition].owner, kNoStep, context_.id},
                 .edition = edition,
                 .priority = Priority::migration,
                 .any_order = true};
  TIERD_TRY(context_.admission.admit(some_, list));
  // A neuron that may not stay is not worth its message.
  std::erase_if(list.neurons, [](const ToFetch& of) { return !of.keep; });
  list.bypass = true;
  Status found = context_.sources.find(list);
  while (found.ok() && !list.done()) {
    const Transfers::Started started = context_.transfers.start(list);
    if (started.empty()) break;
    for (Transfer* const transfer : started) {
      transfer->meanwhile = true;
      transfer->moves_home = asked.moves_home;
    }
  }
  context_.admission.drop(list);
  context_.sources.leave(list);
  return found;
}

}  // namespace tierd
