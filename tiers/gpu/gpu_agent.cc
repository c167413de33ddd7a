#include "tiers/gpu/gpu_agent.h"

#include <algorithm>
#include <utility>

namespace tierd {

GpuAgent::GpuAgent(std::unique_ptr<Device> device, const Clock& clock, uint32_t credits)
    : device_(std::move(device)), clock_(clock), credits_(credits) {}

Submit GpuAgent::submit(const Message& message, const Payload& payload) {
  if (held_ == credits_) return Submit::busy;
  ++held_;
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

// Whether a request waits or is under way.
bool GpuAgent::open(const MessageId& id) const {
  return std::ranges::any_of(lanes_, [&](const Lane& lane) {
    return lane.waiting.holds(id) || (lane.running && lane.running->id == id);
  });
}

// The copies are begun first: they go on while the host's threads compute.
Drive GpuAgent::drive() {
  const bool copied = advance(Device::Engine::copy);
  const bool computed = advance(Device::Engine::compute);
  return copied || computed || soon() ? Drive::busy : Drive::idle;
}

bool GpuAgent::soon() const {
  for (size_t engine = 0; engine < lanes_.size(); ++engine) {
    if (lanes_[engine].running && device_->soon(static_cast<Device::Engine>(engine))) return true;
  }
  return false;
}

// Returns whether something was over, or was begun.
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
  const size_t n = std::min(done.size(), done_.size());
  std::copy_n(done_.begin(), n, done.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(n));
  held_ -= static_cast<uint32_t>(n);
  return n;
}

bool GpuAgent::waiting() const {
  return std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.running.has_value(); });
}

MadeAgent made_with(std::unique_ptr<Device> device, const Clock& clock) {
  MadeAgent made;
  made.backend = device->backend();
  made.products = device.get();
  made.load = [device = device.get()](uint64_t offset, std::span<const std::byte> bytes) {
    device->load(offset, bytes);
  };
  made.counts = [device = device.get()] { return device->counts(); };
  made.agent = std::make_unique<GpuAgent>(std::move(device), clock);
  return made;
}

}  // namespace tierd
