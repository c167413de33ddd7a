#include "tiers/gpu/host_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "tiers/link/timer.h"

namespace tierd {

Result<std::unique_ptr<HostDevice>> HostDevice::create(const DramAgent::Options& options, const Link& link,
                                                       PoolTable& pools, const Clock& clock, ComputePlan plan,
                                                       const ComputeKernels& kernels,
                                                       std::unique_ptr<Team> team) {
  TIERD_ASSIGN(Descriptor timer, make_timer());
  std::unique_ptr<HostDevice> device(new HostDevice(options, link, pools, clock, kernels, std::move(timer)));
  TIERD_ASSIGN(device->given_, ReservedMemory::reserve(buffer_offsets(plan).back()));
  TIERD_ASSIGN(device->computes_,
               DramAgent::create(options, device->own_, std::move(plan), kernels, std::move(team)));
  TIERD_ASSIGN(device->direct_,
               HostDirectPath::create(device->own_.memory(options.memory), device->link_, clock));
  pools.add_activations(options.number, device->given_.bytes());
  return device;
}

void HostDevice::load(uint64_t offset, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, own_.memory(memory_).subspan(offset, bytes.size()).begin());
}

// A copy over the link may have begun while this thread was busy.
void HostDevice::begin(Engine engine, const DeviceRequest& request) {
  const Message& message = request.message;
  Running running{request, clock_.now_ns(), 0, {}};
  if (message.op == Op::move && message.from != memory_) {
    own_.add_memory(message.from, pools_.memory(message.from));
    if (link_.takes_time()) {
      const EmulatedLink::Crossing crossing =
          link_.carry(computes_->crossing_bytes(message, request.payload), request.since_ns);
      running.start_ns = crossing.start_ns;
      running.over_ns = crossing.over_ns;
      ring_at(timer_, running.over_ns);
    }
    // The sender encodes while the link carries what was encoded before.
    if (computes_->encodes(message)) running.done = carry_out(request);
  }
  running_[static_cast<size_t>(engine)] = running;
}

std::optional<Done> HostDevice::over(Engine engine) {
  std::optional<Running>& running = running_[static_cast<size_t>(engine)];
  TIERD_CHECK(running.has_value());
  if (running->over_ns > clock_.now_ns()) return std::nullopt;
  if (running->over_ns != 0) ring_at(timer_, 0);
  const Running now = *std::exchange(running, std::nullopt);
  Done done = now.done ? *now.done : carry_out(now.request);
  done.start_ns = now.start_ns;
  done.done_ns = clock_.now_ns();
  return done;
}

Done HostDevice::carry_out(const DeviceRequest& request) {
  Done done;
  TIERD_CHECK(computes_->submit(request.message, request.payload) == Submit::ok);
  computes_->drive();
  TIERD_CHECK(computes_->poll({&done, 1}) == 1);
  if (done.status == DoneStatus::ok) {
    for (const Give& asked : request.payload.gives) give(asked, request.message.rows);
  }
  return done;
}

void HostDevice::give(const Give& give, uint32_t rows) {
  for (uint32_t r = 0; r < rows; ++r) {
    const uint64_t at = give.place * kPlaceUnit + (uint64_t{r} * give.stride + give.first) * sizeof(float);
    std::memcpy(given_.data() + at, own_.activations(number_).data() + at, give.columns * sizeof(float));
  }
}

}  // namespace tierd
