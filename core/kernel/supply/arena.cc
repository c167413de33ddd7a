#include "core/kernel/supply/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierd {

Arena::Arena(Dispatcher& dispatcher, const SiteTable& sites, Residency& residency, Supply& supply,
             MemoryId id, Memory memory, Notice& changed)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      supply_(supply),
      id_(id),
      memory_(std::move(memory)),
      changed_(changed) {}

Arena::~Arena() = default;

Status Arena::resizable(const Strategy<tierd_cache_1>& cache) const {
  if (cache.quarantined()) return cache.error();
  if (cache.table.resize == nullptr) {
    return Error{Code::unsupported, fmt::format("cache '{}'", cache.name),
                 "cannot change its size while a run goes on"};
  }
  if (!memory_.resizes) {
    return Error{Code::unsupported, fmt::format("agent {}", memory_.agent),
                 "serves neither 'move' nor 'resize': its memory keeps the size that it has"};
  }
  return {};
}

Result<ResizedCache> Arena::ask(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                                std::vector<uint32_t> at_home) const {
  std::vector<uint32_t> most = std::move(at_home);
  for (EditionId e = 0; e < most.size(); ++e) most[e] = std::min(most[e], memory_.reserved[e]);
  return resized(cache, sites_, residency_, bytes, std::move(most));
}

Task<Status> Arena::resize(uint64_t bytes, ResizedCache answer) {
  memory_.arena_bytes = bytes;
  status_ = {};
  unmoved_.clear();
  Notice& changed = changed_;
  const std::vector<Edition>& editions = sites_.editions;
  std::vector<std::vector<Residency::Move>> moves(editions.size());
  for (EditionId e = 0; e < editions.size(); ++e) {
    supply_.shrink(e, answer.victims[e]);
    moves[e] = residency_.resize(e, answer.slots[e]);
    if (moves[e].empty()) continue;
    std::vector<Unit> units;
    for (const auto& [neuron, from, to] : moves[e]) units.push_back({place(e, from), place(e, to)});
    Message move = message(Op::move);
    move.site = editions[e].owner;
    move.edition = e;
    move.from = move.memory;
    move.unit_bytes = editions[e].slot_bytes;
    while (!dispatcher_.can_post()) co_await changed;
    ++open_;
    dispatcher_.post(move, {.units = units}, *this);
  }
  while (open_ != 0) co_await changed;
  const Status moved = status_;
  for (const EditionId e : unmoved_) {
    std::vector<uint32_t> lost;
    for (const Residency::Move& move : moves[e]) lost.push_back(move.neuron);
    supply_.shrink(e, lost);
  }
  told_ = false;
  Status told = co_await tell();
  co_return moved.ok() ? told : moved;
}

Task<Status> Arena::tell() {
  if (told_ || !memory_.resizes) co_return Status{};
  const std::vector<Unit> ranges = in_use();
  TIERD_CHECK(ranges.size() <= dispatcher_.max_units());
  Notice& changed = changed_;
  status_ = {};
  while (!dispatcher_.can_post()) co_await changed;
  ++open_;
  dispatcher_.post(message(Op::resize), {.units = ranges}, *this);
  while (open_ != 0) co_await changed;
  told_ = status_.ok();
  co_return status_;
}

Message Arena::message(Op op) const {
  Message message;
  message.op = op;
  message.agent = memory_.agent;
  message.memory = id_;
  return message;
}

// Editions whose slots lie side by side are one range.
std::vector<Unit> Arena::in_use() const {
  std::vector<Unit> ranges;
  for (EditionId e = 0; e < sites_.editions.size(); ++e) {
    if (residency_.max_slots(e) == 0) continue;
    const uint32_t begin = place(e, 0), end = place(e, residency_.max_slots(e));
    if (!ranges.empty() && ranges.back().place == begin) {
      ranges.back().place = end;
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

// In units of kPlaceUnit.
uint32_t Arena::place(EditionId edition, uint32_t slot) const {
  const uint64_t offset =
      memory_.arena_offset[edition] + uint64_t{slot} * sites_.editions[edition].slot_bytes;
  return static_cast<uint32_t>(offset / kPlaceUnit);
}

void Arena::on_done(const Message& message, const Done& done) {
  --open_;
  if (done.status != DoneStatus::ok) {
    if (message.op == Op::move) unmoved_.push_back(message.edition);
    if (status_.ok() && done.status == DoneStatus::lost) status_ = dispatcher_.lost(message.agent);
    if (status_.ok()) {
      status_ = Error{
          Code::internal, fmt::format("agent {}", message.agent),
          fmt::format("{} failed: {}", message.op == Op::move ? "move" : "resize", status_name(done.status))};
    }
  }
  dispatcher_.wake(changed_);
}

}  // namespace tierd
