#include "core/kernel/supply/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierd {

Arena::~Arena() = default;

Status Arena::resizable(const Strategy<tierd_cache_1>& cache) const {
  if (cache.quarantined()) return cache.error();
  if (cache.table.resize == nullptr) {
    return Error{Code::unsupported, fmt::format("cache '{}'", cache.name),
                 "cannot change its size during a run"};
  }
  if (!memory_.resizes) {
    return Error{Code::unsupported, fmt::format("agent {}", memory_.agent),
                 "serves neither 'move' nor 'resize', so the size of its memory cannot change"};
  }
  return {};
}

Result<ResizedCache> Arena::ask(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                                std::vector<uint32_t> at_home) const {
  std::vector<uint32_t> most = std::move(at_home);
  for (EditionId e = 0; e < most.size(); ++e) most[e] = std::min(most[e], memory_.reserved[e]);
  return resized(cache, context_.sites, context_.residency, bytes, std::move(most));
}

Task<Status> Arena::resize(uint64_t bytes, ResizedCache answer) {
  memory_.arena_bytes = bytes;
  status_ = {};
  unmoved_.clear();
  Notice& changed = context_.changed;
  const std::vector<Edition>& editions = context_.sites.editions;
  std::vector<std::vector<Residency::Move>> moves(editions.size());
  for (EditionId e = 0; e < editions.size(); ++e) {
    admission_.shrink(e, answer.victims[e]);
    moves[e] = context_.residency.resize(e, answer.slots[e]);
    if (moves[e].empty()) continue;
    std::vector<Unit> units;
    for (const auto& [neuron, from, to] : moves[e]) units.push_back({place(e, from), place(e, to)});
    Message move = message(Op::move);
    move.site = editions[e].owner;
    move.edition = e;
    move.from = move.memory;
    move.unit_bytes = editions[e].slot_bytes;
    while (!context_.dispatcher.can_post()) co_await changed;
    ++open_;
    context_.dispatcher.post(move, {.units = units}, *this);
  }
  while (open_ != 0) co_await changed;
  const Status moved = status_;
  for (const EditionId e : unmoved_) {
    std::vector<uint32_t> lost;
    for (const Residency::Move& move : moves[e]) lost.push_back(move.neuron);
    admission_.shrink(e, lost);
  }
  told_ = false;
  Status told = co_await tell();
  co_return moved.ok() ? told : moved;
}

Task<Status> Arena::tell() {
  if (told_ || !memory_.resizes) co_return Status{};
  const std::vector<Unit> ranges = in_use();
  TIERD_CHECK(ranges.size() <= context_.dispatcher.max_units());
  Notice& changed = context_.changed;
  status_ = {};
  while (!context_.dispatcher.can_post()) co_await changed;
  ++open_;
  context_.dispatcher.post(message(Op::resize), {.units = ranges}, *this);
  while (open_ != 0) co_await changed;
  told_ = status_.ok();
  co_return status_;
}

Message Arena::message(Op op) const {
  Message message;
  message.op = op;
  message.agent = memory_.agent;
  message.memory = context_.id;
  return message;
}

// Returns the ranges of addresses in use. Editions whose slots are contiguous are one range.
std::vector<Unit> Arena::in_use() const {
  std::vector<Unit> ranges;
  for (EditionId e = 0; e < context_.sites.editions.size(); ++e) {
    if (context_.residency.max_slots(e) == 0) continue;
    const uint32_t begin = place(e, 0), end = place(e, context_.residency.max_slots(e));
    if (!ranges.empty() && ranges.back().place == begin) {
      ranges.back().place = end;
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

// Returns the place of a slot in units of kPlaceUnit.
uint32_t Arena::place(EditionId edition, uint32_t slot) const {
  const uint64_t offset =
      memory_.arena_offset[edition] + uint64_t{slot} * context_.sites.editions[edition].slot_bytes;
  return static_cast<uint32_t>(offset / kPlaceUnit);
}

void Arena::on_done(const Message& message, const Done& done) {
  --open_;
  if (done.status != DoneStatus::ok) {
    if (message.op == Op::move) unmoved_.push_back(message.edition);
    if (status_.ok() && done.status == DoneStatus::lost) status_ = context_.dispatcher.lost(message.agent);
    if (status_.ok()) {
      status_ = Error{
          Code::internal, fmt::format("agent {}", message.agent),
          fmt::format("{} failed: {}", message.op == Op::move ? "move" : "resize", status_name(done.status))};
    }
  }
  context_.dispatcher.wake(context_.changed);
}

}  // namespace tierd
