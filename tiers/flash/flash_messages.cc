// The part of the flash agent that handles messages, up to queueing their reads. flash_agent.cc has the reads
// themselves and the completions.
#include <algorithm>

#include "core/base/time.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {

void FlashAgent::accept(const Message& message, std::span<const Unit> units) {
  switch (message.op) {
    case Op::read:
      return accept_read(message, units);
    case Op::cancel:
      return complete(message, DoneStatus::ok, cancel(message.about));
    case Op::raise:
      return complete(message, DoneStatus::ok, raise(message.about));
    case Op::move:
    case Op::run:
    case Op::resize:
      break;
  }
  complete(message, DoneStatus::invalid_argument);
}

void FlashAgent::accept_read(const Message& message, std::span<const Unit> units) {
  const auto priority = static_cast<size_t>(message.priority);
  if (priority >= queue_.size()) return complete(message, DoneStatus::invalid_argument);
  const uint32_t slot = free_requests_.back();
  free_requests_.pop_back();
  Request& request = requests_[slot];
  std::vector<Landing> landings = std::move(request.landings);  // reuses their allocation
  landings.clear();
  request = {.message = message, .landings = std::move(landings), .open = true};
  add_landings(request, units);
  request.end = static_cast<uint32_t>(request.landings.size());
  if (request.end != 0) queue_[priority].push_back(slot);
  complete_if_over(request);
}

template <class Each>
void FlashAgent::each_extent(uint32_t extent, Each each) const {
  const auto of =
      std::ranges::find_if(options_.pieces, [extent](const ExtentPieces& p) { return p.begin(extent); });
  if (of == options_.pieces.end()) return each(extent, 0);
  for (uint32_t piece = 0; piece < of->pieces; ++piece) each(extent + piece * of->n, piece * of->apart);
}

bool FlashAgent::is_inside(const Landing& landing) const {
  return options_.apart == nullptr ||
         landing.place * kPlaceUnit + landing.extent->bytes <= options_.apart->bytes();
}

// Appends the readable extents in the order of the file; the others are marked bad at once.
void FlashAgent::add_landings(Request& request, std::span<const Unit> units) {
  for (uint32_t unit = 0; unit < units.size(); ++unit) {
    each_extent(units[unit].unit, [&](uint32_t extent, uint32_t behind) {
      Landing landing = {.unit = unit};
      if (extent < extents_.size()) {
        landing.extent = &extents_[extent];
        if ((request.message.flags & kRecode) != 0) landing.expanded = options_.expansion.bytes(extent);
        landing.place = static_cast<uint32_t>(units[unit].place + behind / kPlaceUnit);
        const uint64_t bytes = landing.expanded != 0 ? landing.expanded : landing.extent->bytes;
        if (options_.apart == nullptr) landing.into = pools_.at(request.message.memory, landing.place, bytes);
        if (readable(landing, rules_) && is_inside(landing)) return request.landings.push_back(landing);
      }
      mark_bad(request, unit, extent, DoneStatus::invalid_argument, 0);
    });
  }
  // Duplicates of an extent keep the order of the list.
  const auto before = [](const Landing& a, const Landing& b) { return a.begin() < b.begin(); };
  if (!std::ranges::is_sorted(request.landings, before)) std::ranges::stable_sort(request.landings, before);
}

uint32_t FlashAgent::cancel(const MessageId& id) {
  Request* request = find(id);
  if (request == nullptr) return 0;
  const uint32_t dropped = request->end - request->next;
  if (dropped != 0) {
    leave_queue(*request);
    drop_rest(*request);
  }
  return dropped;
}

uint32_t FlashAgent::raise(const MessageId& id) {
  Request* request = find(id);
  if (request == nullptr || request->next == request->end) return 0;
  if (request->message.priority != Priority::demand) {
    leave_queue(*request);
    request->message.priority = Priority::demand;
    queue_[static_cast<size_t>(Priority::demand)].push_back(index_of(*request));
  }
  return request->end - request->next;
}

AgentCounts FlashAgent::counts() const {
  AgentCounts now;
  now.read.bytes = counters_.bytes.get();
  now.read.extents = counters_.extents.get();
  now.read.verified_bytes = counters_.verified_bytes.get();
  now.read.asked_bytes = counters_.asked_bytes.get();
  now.read.read_bytes = counters_.read_bytes.get();
  now.read.wasted_bytes = counters_.wasted_bytes.get();
  now.read.reads = counters_.reads.get();
  for (size_t i = 0; i < kReadSizes; ++i) now.read.reads_of_size[i] = counters_.reads_of_size[i].get();
  now.read.joined = counters_.joined.get();
  now.read.short_reads = counters_.short_reads.get();
  now.read.retries = counters_.retries.get();
  now.read.failed_extents = counters_.failed_extents.get();
  now.read.dropped_extents = counters_.dropped_extents.get();
  now.read.checksum_ns = counters_.checksum_ns.get();
  now.read.copy_ns = counters_.copy_ns.get();
  now.read.expand_ns = counters_.expand_ns.get();
  now.read.in_flight_ns = counters_.in_flight_ns.get();
  if (const uint64_t since = in_flight_since_ns_.get(); since != 0) {
    now.read.in_flight_ns += clock_.now_ns() - since;
  }
  return now;
}

FlashAgent::Request* FlashAgent::find(const MessageId& id) {
  const auto found = std::ranges::find_if(
      requests_, [&](const Request& request) { return request.open && request.message.id == id; });
  return found == requests_.end() ? nullptr : &*found;
}

}  // namespace tierd
