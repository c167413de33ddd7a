// The moves of the backend "cuda": slots as they are, bitmaps that the device expands after the link, neurons
// that the host encodes anew before it.
#include <cstdint>
#include <span>

#include "tiers/gpu/cuda/cuda_device.h"

namespace tierd::cuda {

void CudaDevice::move(Engine engine, Running& running) {
  const Message& message = running.request.message;
  if ((message.flags & kRecode) == 0) return move_slots(engine, running);
  if (message.edition < recodings_.size() && recodings_[message.edition])
    return recode(engine, running, *recodings_[message.edition]);
  expand(engine, running);
}

// Moves the units before the first one that cannot be moved.
void CudaDevice::move_slots(Engine engine, Running& running) {
  const auto& [message, payload, since] = running.request;
  const MovedSlots slots{payload.units, message.unit_bytes, payload.lengths};
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  const bool inside = message.from == options_.memory;
  const std::span<const std::byte> source = inside ? std::span<const std::byte>(memory_->data(), end)
                                                   : std::span<const std::byte>(pools_.memory(message.from));
  size_t good = 0;
  for (; good < payload.units.size(); ++good) {
    const Unit& unit = payload.units[good];
    const uint64_t to = unit.place * kPlaceUnit, bytes = slots.length(good);
    if (unit.unit * kPlaceUnit + bytes > source.size() || to + bytes > end) {
      running.done.status = DoneStatus::invalid_argument;
      running.done.first_bad = static_cast<uint32_t>(good);
      break;
    }
    if (inside) map(running, {unit.unit * kPlaceUnit, unit.unit * kPlaceUnit + bytes});
    map(running, {to, to + bytes});
    if (running.done.status != DoneStatus::ok) break;
    running.done.bytes += bytes;
  }
  running.done.n_done = static_cast<uint32_t>(good);
  if (inside) {
    // Copies are queued one after the other: a slot may be emptied by one copy and filled by the next.
    running.queued = good != 0;
    for (size_t i = 0; i < good; ++i) {
      const Unit& unit = slots.units[i];
      if (unit.unit == unit.place) continue;
      running.outcome.then([&] {
        return cudaMemcpyAsync(memory_->data() + unit.place * kPlaceUnit,
                               memory_->data() + unit.unit * kPlaceUnit, slots.length(i),
                               cudaMemcpyDeviceToDevice, stream(engine));
      });
    }
  } else if (good != 0) {
    running.queued = running.transfers = true;
    transfer(engine).begin(slots.first(good), source.data(), memory_->data(), *host_);
    bool over = false;
    running.outcome.then([&] { return transfer(engine).advance(stream(engine), over); });
  }
}

void CudaDevice::refuse(Running& running, size_t unit) {
  running.done.status = DoneStatus::invalid_argument;
  running.done.first_bad = static_cast<uint32_t>(unit);
}

void CudaDevice::recode(Engine engine, Running& running, const NeuronRecoding& recoding) {
  const auto& [message, payload, since] = running.request;
  const std::span<const std::byte> source = pools_.memory(message.from);
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  if (message.from == options_.memory || payload.neurons.size() != payload.units.size() ||
      message.unit_bytes < recoding.from_bytes())
    return refuse(running, 0);
  for (size_t i = 0; i < payload.units.size(); ++i) {
    const uint64_t from = payload.units[i].unit * kPlaceUnit, to = payload.units[i].place * kPlaceUnit;
    if (from + recoding.from_bytes() > source.size() || to + recoding.to_bytes() > end)
      return refuse(running, i);
    map(running, {to, to + recoding.to_bytes()});
    if (running.done.status != DoneStatus::ok) return;
  }
  running.done.n_done = static_cast<uint32_t>(payload.units.size());
  running.done.bytes = payload.units.size() * recoding.to_bytes();
  if (payload.units.empty()) return;
  running.queued = running.transfers = true;
  transfer(engine).begin(payload.units, recoding, source.data(), memory_->data(), *host_);
  bool over = false;
  running.outcome.then([&] { return transfer(engine).advance(stream(engine), over); });
}

void CudaDevice::expand(Engine engine, Running& running) {
  const auto& [message, payload, since] = running.request;
  const std::span<const std::byte> source = pools_.memory(message.from);
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  if (engine != Engine::copy || message.from == options_.memory || !expansion_.has(message.edition) ||
      payload.neurons.size() != payload.units.size())
    return refuse(running, 0);
  for (size_t i = 0; i < payload.units.size(); ++i) {
    const Unit& unit = payload.units[i];
    const uint32_t neuron = payload.neurons[i];
    if (neuron >= expansion_.neurons(message.edition)) return refuse(running, i);
    const uint64_t from = unit.unit * kPlaceUnit, to = unit.place * kPlaceUnit;
    const uint64_t landing_end = to + expansion_.dense_bytes(message.edition, neuron);
    if (expansion_.compressed_bytes(message.edition, neuron) > message.unit_bytes ||
        from + message.unit_bytes > source.size() || landing_end > end)
      return refuse(running, i);
    map(running, {to, landing_end});
    if (running.done.status != DoneStatus::ok) return;
    running.done.bytes += expansion_.crossing_bytes(message.edition, neuron);
  }
  running.done.n_done = static_cast<uint32_t>(payload.units.size());
  if (payload.units.empty()) return;
  running.outcome.then([&, &message = message, &payload = payload] {
    return expansion_.begin({.edition = message.edition,
                             .units = payload.units,
                             .neurons = payload.neurons,
                             .bytes = message.unit_bytes,
                             .source = source.data(),
                             .memory = memory_->data()},
                            *host_, stream(engine));
  });
  if (!running.outcome.ok()) return;
  running.queued = running.transfers = running.expands = true;
  running.outcome.then([&] { return advance(engine, running); });
}

// When the whole move is queued, records the event that signals its end.
cudaError_t CudaDevice::advance(Engine engine, Running& running) {
  bool queued = false;
  const cudaError_t error = expansion_.advance(transfer(engine), stream(engine), queued);
  if (error != cudaSuccess || !queued) return error;
  running.transfers = running.expands = false;
  return cudaEventRecord(event(engine), stream(engine));
}

}  // namespace tierd::cuda
