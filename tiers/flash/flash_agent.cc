#include "tiers/flash/flash_agent.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/base/take_first.h"
#include "core/base/time.h"

namespace tierd {
namespace {

// Retries of one read after EINTR, EAGAIN, an empty read and the like, before its error (or the end of the
// file) is reported.
constexpr uint32_t kMostRetries = 100;
// After EAGAIN: 20 µs, doubling up to 2 ms, so that all retries together take about 0.2 s.
constexpr uint64_t kFirstPauseNs = 20'000;
constexpr uint64_t kLongestPauseNs = 2'000'000;
// Bytes verified in one call of drive, about half a millisecond: the driving thread has other work.
constexpr uint64_t kVerifyBytes = uint64_t{8} << 20;
// The device is polled and refilled at least this often while checksums are computed.
constexpr uint64_t kRefillBytes = uint64_t{256} << 10;

// Reads that share the bounce buffer: a few large ones would leave the device idle between them (measured
// with three: 0.8 GB/s of 2.7 GB/s).
constexpr uint64_t kBouncedAtOnce = 8;

// New reads go to the device when an eighth of its depth is free: started together they cost one system call
// and one kick of the device, and seven eighths keep it busy meanwhile.
constexpr uint32_t kBatchesOfDepth = 8;
// A lower limit whatever their size: with fewer reads a disk idles between them.
constexpr uint32_t kLeastInFlight = 8;
// While demands are in flight, a prefetch begins only if less than a quarter of the allowed bytes are in
// flight, because concurrent reads slow each other down.
constexpr uint64_t kPrefetchPart = 4;
// Reads that start together go to the device in batches, so that it works while the others are prepared.
constexpr uint32_t kStartedAtOnce = 16;

// Returns the index into ReadCounts::reads_of_size.
size_t size_class(uint64_t bytes) {
  const auto log = static_cast<size_t>(std::bit_width(bytes / kLeastReadSize | 1) - 1);
  return std::min(log, kReadSizes - 1);
}

LandsDirectly directly(const FlashOptions& options) {
  if (options.apart != nullptr) return LandsDirectly::nothing;
  return options.lands_anywhere ? LandsDirectly::anything : LandsDirectly::blocks;
}

}  // namespace

FlashAgent::FlashAgent(uint16_t agent, const PoolTable& pools, const Clock& clock,
                       std::unique_ptr<BlockDevice> device, ExtentTable extents, const FlashOptions& options,
                       BounceBuffer bounce)
    : agent_(agent),
      pools_(pools),
      clock_(clock),
      extents_(extents),
      options_(options),
      bounce_(std::move(bounce)),
      rules_{.max_read_bytes = options.max_read_bytes,
             .gap_bytes = options.gap_bytes,
             .bounce_bytes = bounce_.bytes(),
             .max_bounced_bytes = bounce_.bytes() / kBouncedAtOnce,
             .prefer_bounce = options.prefer_bounce,
             .directly = directly(options)},
      device_(std::move(device)),
      requests_(options.credits),
      reads_(size_t{2} * device_->depth()),
      reaped_(device_->depth()) {
  TIERD_CHECK(options.credits > 0);
  for (uint32_t i = options.credits; i-- > 0;) free_requests_.push_back(i);
  for (auto i = static_cast<uint32_t>(reads_.size()); i-- > 0;) free_reads_.push_back(i);
  for (auto& queue : queue_) queue.reserve(options.credits);
  again_.reserve(reads_.size());
  landed_.reserve(reads_.size());
  if (options.apart != nullptr) copied_.resize(reads_.size());
  done_.reserve(options.credits);
}

FlashAgent::~FlashAgent() {
  if (options_.apart != nullptr) options_.apart->release();
}

// ---- messages

Submit FlashAgent::submit(const Message& message, const Payload& payload) {
  TIERD_CHECK(message.agent == agent_);
  if (accepted_ == options_.credits) return Submit::busy;
  ++accepted_;
  if (message.step != kNoStep) newest_step_ = std::max(newest_step_, message.step);
  accept(message, payload.units);
  return Submit::ok;
}

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
  now.read.with(counters_, [](uint64_t& to, const Counter& from) { to = from.get(); });
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

// ---- reads

Drive FlashAgent::drive() {
  bool worked = reap();
  worked |= refill();
  worked |= settle_landed();
  worked |= end_copies();
  return worked || !again_.empty() ? Drive::busy : Drive::idle;
}

bool FlashAgent::reap() {
  const size_t n = device_->poll(reaped_);
  if (n == 0) return false;
  in_device_ -= static_cast<uint32_t>(n);
  for (const DeviceDone& done : std::span(reaped_).first(n)) {
    const Read& read = reads_[done.token];
    bytes_in_device_ -= read.into.size() - read.landed;
    if (is_demand(read)) --demands_in_device_;
  }
  if (in_device_ == 0) {
    const uint64_t since = in_flight_since_ns_.get();
    in_flight_since_ns_.set(0);
    counters_.in_flight_ns.add(clock_.now_ns() - since);
  }
  for (const DeviceDone& done : std::span(reaped_).first(n)) {
    landed(static_cast<uint32_t>(done.token), done.result);
  }
  return true;
}

// Reads that were begun continue before new ones begin; then the queues in the order of their priority.
bool FlashAgent::refill() {
  const uint64_t pushed_before = counters_.reads.get();
  if (!again_.empty()) {
    const uint64_t now = clock_.now_ns();
    std::erase_if(again_, [&](uint32_t read) {
      if (in_device_ == device_->depth() || reads_[read].resume_ns > now) return false;
      push(read);
      return true;
    });
  }
  const bool batch = device_->depth() - in_device_ >= std::max(1u, device_->depth() / kBatchesOfDepth);
  const auto room = [&] {
    return batch && in_device_ < device_->depth() && !free_reads_.empty() &&
           (in_device_ < kLeastInFlight || bytes_in_device_ < options_.in_flight_bytes);
  };
  while (!alone_.empty() && room()) {
    Request& request = requests_[alone_.back().request];
    const uint32_t landing = alone_.back().landing;
    if (!start_read(request, landing, next_join(std::span(request.landings).subspan(landing, 1), rules_)))
      break;
    alone_.pop_back();
  }
  for (uint32_t started = 0; alone_.empty() && room();) {
    Request* request = next_request();
    if (request == nullptr || waits_for_demands(*request) || !start_next_read(*request)) break;
    if (++started % kStartedAtOnce == 0) device_->flush();
  }
  if (counters_.reads.get() == pushed_before) return false;
  device_->flush();
  return true;
}

bool FlashAgent::is_demand(const Read& read) const {
  return requests_[read.request].message.priority == Priority::demand;
}

bool FlashAgent::waits_for_demands(const Request& request) const {
  return request.message.priority != Priority::demand && demands_in_device_ != 0 &&
         bytes_in_device_ >= options_.in_flight_bytes / kPrefetchPart;
}

FlashAgent::Request* FlashAgent::next_request() {
  for (auto& queue : queue_) {
    while (!queue.empty()) {
      Request& request = requests_[queue.front()];
      const Message& message = request.message;
      if (message.priority != Priority::prefetch || message.expires_step >= newest_step_) return &request;
      leave_queue(request);
      drop_rest(request);
    }
  }
  return nullptr;
}

// Returns false if the read needs the bounce buffer and the buffer has no room now.
bool FlashAgent::start_next_read(Request& request) {
  const uint32_t first = request.next;
  const std::span<const Landing> units = std::span(request.landings).subspan(first, request.end - first);
  Join join = next_join(units, rules_);
  if (!start_read(request, first, join)) {
    join = next_direct_join(units, rules_);
    if (join.count == 0) return false;
    TIERD_CHECK(start_read(request, first, join));
  }
  request.next += join.count;
  if (request.done.start_ns == 0) request.done.start_ns = clock_.now_ns();
  counters_.joined.add(join.count - 1);
  counters_.wasted_bytes.add(join.wasted_bytes);
  for (uint32_t i = first; i != request.next; ++i) {
    counters_.asked_bytes.add(request.landings[i].extent->bytes);
  }
  ++request.reads;
  if (request.next == request.end) leave_queue(request);
  return true;
}

bool FlashAgent::start_read(Request& request, uint32_t first, const Join& join) {
  const std::span<std::byte> into =
      join.bounced ? bounce_.take(join.bytes) : std::span(request.landings[first].into, join.bytes);
  if (into.empty()) return false;
  uint64_t end = 0;
  for (uint32_t i = first; i != first + join.count; ++i) end = std::max(end, request.landings[i].end());
  const uint32_t read = free_reads_.back();
  free_reads_.pop_back();
  reads_[read] = {.request = index_of(request),
                  .first = first,
                  .count = join.count,
                  .bounced = join.bounced,
                  .offset = join.offset,
                  .into = into,
                  .needed = end - join.offset};
  push(read);
  return true;
}

void FlashAgent::push(uint32_t index) {
  const Read& read = reads_[index];
  if (in_device_ == 0) in_flight_since_ns_.set(clock_.now_ns());
  ++in_device_;
  const std::span<std::byte> rest = read.into.subspan(read.landed);
  bytes_in_device_ += rest.size();
  if (is_demand(read)) ++demands_in_device_;
  counters_.reads.add(1);
  ++requests_[read.request].done.reads;
  counters_.reads_of_size[size_class(rest.size())].add(1);
  uint64_t asked = 0;
  for (const Landing& landing : std::span(requests_[read.request].landings).subspan(read.first, read.count))
    asked += landing.extent->bytes;
  TIERD_CHECK(device_->push({.token = index,
                             .offset = read.offset + read.landed,
                             .into = rest,
                             .checked = options_.verify || !options_.brings ? asked : 0,
                             .copied = read.bounced ? asked : 0}));
}

// Handles the device's result for a read: it has ended, continues, is retried, or has failed.
void FlashAgent::landed(uint32_t index, int32_t result) {
  Read& read = reads_[index];
  read.resume_ns = 0;
  if (result >= 0) {
    counters_.read_bytes.add(static_cast<uint64_t>(result));
    TIERD_CHECK(static_cast<uint64_t>(result) <= read.into.size() - read.landed);
    // The end of the last block may be behind the end of a file that was cut short.
    if (read.landed + static_cast<uint64_t>(result) >= read.needed) {
      read.landed += static_cast<uint64_t>(result);
      return landed_.push_back(index);
    }
    // Direct I/O continues only at a multiple of 4096, unless the device takes any offset: the bytes behind
    // the last multiple are read again.
    const uint64_t part = options_.lands_anywhere ? 1 : kDirectIoAlignment;
    const uint64_t whole = static_cast<uint64_t>(result) / part * part;
    read.landed += whole;
    counters_.short_reads.add(1);
    if (whole != 0 || retry(read, 0)) return again_.push_back(index);
    result = -ENODATA;
  }
  if (result == -EINTR && retry(read, 0)) return again_.push_back(index);
  if (result == -EAGAIN) {
    const uint64_t pause = kFirstPauseNs << std::min(read.retries, 16u);
    if (retry(read, std::min(pause, kLongestPauseNs))) return again_.push_back(index);
  }
  // A disk with blocks larger than 4096 refuses the continuation: read once more from the start.
  if (result == -EINVAL && read.landed != 0 && retry(read, 0)) {
    read.landed = 0;
    return again_.push_back(index);
  }
  read.error = static_cast<uint16_t>(-result);
  landed_.push_back(index);
}

bool FlashAgent::retry(Read& read, uint64_t pause_ns) {
  if (read.retries == kMostRetries) return false;
  ++read.retries;
  counters_.retries.add(1);
  if (pause_ns != 0) read.resume_ns = clock_.now_ns() + pause_ns;
  return true;
}

bool FlashAgent::settle_landed() {
  if (landed_.empty()) return false;
  uint64_t since_refill = 0;
  uint64_t total = 0;
  size_t n = 0;
  // Reaping appends to `landed_` while it is walked.
  for (; n < landed_.size() && total < kVerifyBytes; ++n) {
    const uint32_t index = landed_[n];
    const uint64_t bytes = reads_[index].into.size();
    if (settle(index)) end(index);
    total += bytes;
    since_refill += bytes;
    if (options_.verify && since_refill >= kRefillBytes) {
      since_refill = 0;
      reap();
      refill();
    }
  }
  landed_.erase(landed_.begin(), landed_.begin() + static_cast<ptrdiff_t>(n));
  return true;
}

// Counts the units of a read that has ended, one by one: those before the point where it broke off are good.
bool FlashAgent::settle(uint32_t index) {
  Read& read = reads_[index];
  Request& request = requests_[read.request];
  copies_.clear();
  for (uint32_t i = read.first; i != read.first + read.count; ++i) {
    const Landing& landing = request.landings[i];
    if (landing.end() - read.offset <= read.landed) {
      settle_unit(request, read, i);
    } else if (read.count != 1) {
      alone_.push_back({read.request, i});
      ++request.reads;
    } else {
      mark_bad(request, landing.unit, number_of(landing), DoneStatus::io_error, read.error);
    }
  }
  if (copies_.empty()) return true;
  ++copying_;
  options_.apart->begin(index, copies_);
  return false;
}

// Frees the read's part of the bounce buffer, which has no user any more.
void FlashAgent::end(uint32_t index) {
  const Read& read = reads_[index];
  Request& request = requests_[read.request];
  if (read.bounced) bounce_.give_back(read.into);
  free_reads_.push_back(index);
  --request.reads;
  complete_if_over(request);
}

bool FlashAgent::end_copies() {
  if (copying_ == 0) return false;
  const size_t n = options_.apart->poll(copied_);
  copying_ -= static_cast<uint32_t>(n);
  for (const ApartMemory::Copied& copied : std::span(copied_).first(n)) {
    const auto index = static_cast<uint32_t>(copied.token);
    const Read& read = reads_[index];
    Request& request = requests_[read.request];
    for (const Landing& landing : std::span(request.landings).subspan(read.first, read.count)) {
      if (landing.copied_by != index) continue;
      if (copied.status == DoneStatus::ok) {
        count_landed(request, *landing.extent);
      } else {
        mark_bad(request, landing.unit, number_of(landing), copied.status, copied.error);
      }
    }
    end(index);
  }
  return n != 0;
}

LandedCheck::Found FlashAgent::check(const Landing& landing, const std::byte* from) const {
  const ExtentRef& extent = *landing.extent;
  if (options_.check != nullptr) return options_.check->check(number_of(landing), extent, from);
  const bool right = checksum({from, extent.bytes}) == extent.checksum;
  return right ? LandedCheck::Found::right : LandedCheck::Found::wrong;
}

// Units that are adjacent both in the file and in the memory make one copy.
void FlashAgent::add_copy(const Landing& landing, const std::byte* from) {
  const uint64_t to = landing.place * kPlaceUnit;
  const uint64_t bytes = landing.extent->bytes;
  if (!copies_.empty()) {
    ApartMemory::Copy& last = copies_.back();
    if (last.from + last.bytes == from && last.to + last.bytes == to) {
      last.bytes += bytes;
      return;
    }
  }
  copies_.push_back({from, to, bytes});
}

void FlashAgent::settle_unit(Request& request, const Read& read, uint32_t index) {
  Landing& landing = request.landings[index];
  const ExtentRef& extent = *landing.extent;
  const std::byte* from = read.into.data() + (extent.offset - read.offset);
  const auto is_corrupt = [&] {
    const uint64_t begin = clock_.now_ns();
    const LandedCheck::Found found = check(landing, from);
    counters_.checksum_ns.add(clock_.now_ns() - begin);
    if (found == LandedCheck::Found::right) counters_.verified_bytes.add(extent.bytes);
    return found == LandedCheck::Found::wrong;
  };
  if (options_.verify && is_corrupt())
    return mark_bad(request, landing.unit, number_of(landing), DoneStatus::corrupt, 0);
  if (options_.apart != nullptr) {
    landing.copied_by = static_cast<uint32_t>(&read - reads_.data());
    return add_copy(landing, from);
  }
  if (landing.expanded != 0 && options_.brings) {
    const uint64_t begin = clock_.now_ns();
    const Status expanded =
        options_.expansion.expand(number_of(landing), {from, extent.bytes}, {landing.into, landing.expanded});
    counters_.expand_ns.add(clock_.now_ns() - begin);
    if (!expanded.ok()) return mark_unexpanded(request, landing, expanded.error());
  } else if (read.bounced && options_.brings) {
    const uint64_t begin = clock_.now_ns();
    std::memcpy(landing.into, from, extent.bytes);
    counters_.copy_ns.add(clock_.now_ns() - begin);
  }
  count_landed(request, extent);
}

void FlashAgent::count_landed(Request& request, const ExtentRef& extent) {
  ++request.done.n_done;
  request.done.bytes += extent.bytes;
  counters_.extents.add(1);
  counters_.bytes.add(extent.bytes);
}

// ---- the end of a request

void FlashAgent::leave_queue(const Request& request) {
  std::erase(queue_[static_cast<size_t>(request.message.priority)], index_of(request));
}

void FlashAgent::drop_rest(Request& request) {
  counters_.dropped_extents.add(request.end - request.next);
  request.dropped = true;
  request.end = request.next;
  complete_if_over(request);
}

void FlashAgent::mark_bad(Request& request, uint32_t unit, uint32_t extent, DoneStatus status,
                          uint16_t error) {
  counters_.failed_extents.add(1);
  if (request.bad && request.first_bad <= unit) return;
  request.bad = true;
  request.first_bad = unit;
  request.done.bad_extent = extent;
  request.done.status = status;
  request.done.error = error;
}

// The codec's message is only known here and is logged; the completion has its kind (Transfers::error).
void FlashAgent::mark_unexpanded(Request& request, const Landing& landing, const Error& error) {
  std::string line = error.line();
  if (line != said_) spdlog::warn("{}", line);  // once, since each later read may fail in the same way
  said_ = std::move(line);
  switch (error.code) {
    case Code::corrupt:
      return mark_bad(request, landing.unit, number_of(landing), DoneStatus::corrupt, EBADMSG);
    case Code::no_space:
      return mark_bad(request, landing.unit, number_of(landing), DoneStatus::no_space, ENOMEM);
    default:
      return mark_bad(request, landing.unit, number_of(landing), DoneStatus::internal, EBADMSG);
  }
}

void FlashAgent::complete_if_over(Request& request) {
  if (!request.open || request.next != request.end || request.reads != 0) return;
  Done done = request.done;
  done.id = request.message.id;
  done.lane = request.message.lane;
  done.done_ns = clock_.now_ns();
  if (done.start_ns == 0) done.start_ns = done.done_ns;  // no extent had to be read
  if (request.bad) done.first_bad = request.first_bad;
  if (request.dropped) done.status = DoneStatus::cancelled;
  done_.push_back(done);
  request.open = false;
  free_requests_.push_back(index_of(request));
}

void FlashAgent::complete(const Message& message, DoneStatus status, uint32_t n_done) {
  const uint64_t now = clock_.now_ns();
  done_.push_back({.id = message.id,
                   .status = status,
                   .lane = message.lane,
                   .n_done = n_done,
                   .start_ns = now,
                   .done_ns = now});
}

size_t FlashAgent::poll(std::span<Done> done) {
  const size_t n = take_first(done_, done);
  accepted_ -= static_cast<uint32_t>(n);
  return n;
}

}  // namespace tierd
