#include "tiers/gpu/gpu_agent.h"

#include <sys/epoll.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/take_first.h"
#include "tiers/gpu/direct_reads.h"

namespace tierd {

GpuAgent::GpuAgent(std::unique_ptr<Device> device, const Clock& clock, uint32_t credits,
                   std::unique_ptr<Agent> reads)
    : device_(std::move(device)), reads_(std::move(reads)), clock_(clock), credits_(credits) {
  if (reads_ == nullptr) return;
  TIERD_CHECK(reads_->credits() == credits);
  ready_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  const DirectPath* const path = device_->direct();
  for (const int fd : {device_->wait_fd(), reads_->wait_fd(), path != nullptr ? path->wait_fd() : -1}) {
    epoll_event readable{.events = EPOLLIN, .data = {}};
    TIERD_CHECK(fd < 0 || epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd, &readable) == 0);
  }
}

Submit GpuAgent::submit(const Message& message, const Payload& payload) {
  if (held_ == credits_) return Submit::busy;
  ++held_;
  const bool about_a_read = std::ranges::find(reading_, message.about) != reading_.end();
  if (reads_ != nullptr && (message.op == Op::read || about_a_read)) {
    TIERD_CHECK(reads_->submit(message, payload) == Submit::ok);
    if (message.op == Op::read) reading_.push_back(message.id);
    return Submit::ok;
  }
  LaneQueue<DeviceRequest>& waiting = lane_of(message.lane).waiting;
  if (message.op == Op::cancel || message.op == Op::raise) {
    if (const auto withdrawn = waiting.advise(message)) end(*withdrawn, DoneStatus::cancelled);
    end(message, DoneStatus::ok);
  } else {
    waiting.push({message, payload, clock_.now_ns()});
  }
  return Submit::ok;
}

void GpuAgent::end(const Message& message, DoneStatus status) {
  const uint64_t now = clock_.now_ns();
  failed_.note(message, status);
  done_.push_back(
      {.id = message.id, .status = status, .lane = message.lane, .start_ns = now, .done_ns = now});
}

// Returns whether the request waits or is under way.
bool GpuAgent::open(const MessageId& id) const {
  return std::ranges::any_of(lanes_, [&](const Lane& lane) {
    return lane.waiting.holds(id) || (lane.running && lane.running->id == id);
  });
}

// Copies and reads are begun first: they continue while the host's threads compute.
Drive GpuAgent::drive() {
  const bool copied = advance(Device::Engine::copy);
  const bool has_read = reads_ != nullptr && read();
  const bool computed = advance(Device::Engine::compute);
  return copied || has_read || computed || soon() ? Drive::busy : Drive::idle;
}

bool GpuAgent::read() {
  bool any = reads_->drive() == Drive::busy;
  std::array<Done, 16> over;
  while (const size_t n = reads_->poll(over)) {
    any = true;
    for (const Done& done : std::span(over).first(n)) {
      std::erase(reading_, done.id);
      done_.push_back(done);
    }
  }
  return any;
}

bool GpuAgent::soon() const {
  for (size_t engine = 0; engine < lanes_.size(); ++engine) {
    if (lanes_[engine].running && device_->soon(static_cast<Device::Engine>(engine))) return true;
  }
  return false;
}

// Returns whether a request ended or was begun.
bool GpuAgent::advance(Device::Engine engine) {
  Lane& lane = lanes_[static_cast<size_t>(engine)];
  bool any = false;
  const auto collect = [&] {
    if (!lane.running) return;
    std::optional<Done> done = device_->over(engine);
    if (!done) return;
    done->id = lane.running->id;
    done->lane = lane.running->lane;
    failed_.note(*lane.running, done->status);
    lane.running.reset();
    done_.push_back(*done);
    any = true;
  };
  collect();
  if (lane.running) return any;
  const auto next = lane.waiting.take_next([this](const MessageId& id) { return open(id); });
  if (!next) return any;
  if (failed_.forbid(next->message)) {
    end(next->message, DoneStatus::cancelled);
    return true;
  }
  lane.running = next->message;
  device_->begin(engine, *next);
  collect();
  return true;
}

size_t GpuAgent::poll(std::span<Done> done) {
  const size_t n = take_first(done_, done);
  held_ -= static_cast<uint32_t>(n);
  return n;
}

bool GpuAgent::waiting() const {
  return (reads_ != nullptr && reads_->waiting()) ||
         std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.running.has_value(); });
}

Result<MadeAgent> made_with(std::unique_ptr<Device> device, const AgentContext& context) {
  MadeAgent reads;
  if (context.read) {
    TIERD_ASSIGN(reads, make_direct_reads(context, *device, GpuAgent::kCredits));
  }
  MadeAgent made;
  made.backend = device->backend();
  made.products = device.get();
  made.load = [device = device.get()](uint64_t offset, std::span<const std::byte> bytes) {
    device->load(offset, bytes);
  };
  made.reading = std::move(reads.reading);
  made.counts = [device = device.get(), read = std::move(reads.counts)] {
    AgentCounts counts = device->counts();
    if (read) counts.read = read().read;
    return counts;
  };
  made.agent = std::make_unique<GpuAgent>(std::move(device), context.clock, GpuAgent::kCredits,
                                          std::move(reads.agent));
  return made;
}

}  // namespace tierd
