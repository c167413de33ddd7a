#include "tiers/flash/bounce_buffer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {

Result<BounceBuffer> BounceBuffer::create(uint64_t bytes) {
  TIERD_CHECK(bytes % kDirectIoAlignment == 0);
  BounceBuffer buffer;
  if (bytes == 0) return buffer;
  buffer.memory_ = reserve_read_memory(bytes);
  if (buffer.memory_ == nullptr) {
    return Error{Code::no_space, "bounce buffer", fmt::format("cannot allocate {} B", bytes)};
  }
  buffer.bytes_ = bytes;
  buffer.free_ = {{0, bytes}};
  return buffer;
}

std::span<std::byte> BounceBuffer::take(uint64_t bytes) {
  TIERD_CHECK(bytes != 0 && bytes % kDirectIoAlignment == 0);
  const auto room = std::ranges::find_if(free_, [bytes](const Room& at) { return at.bytes >= bytes; });
  if (room == free_.end()) return {};
  const std::span<std::byte> taken(memory_.get() + room->offset, bytes);
  room->offset += bytes;
  room->bytes -= bytes;
  if (room->bytes == 0) free_.erase(room);
  return taken;
}

void BounceBuffer::give_back(std::span<std::byte> taken) {
  Room room = {static_cast<uint64_t>(taken.data() - memory_.get()), taken.size()};
  auto next = std::ranges::upper_bound(free_, room.offset, {}, &Room::offset);
  TIERD_CHECK(next == free_.end() || room.offset + room.bytes <= next->offset);
  if (next != free_.end() && room.offset + room.bytes == next->offset) {
    room.bytes += next->bytes;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    Room& before = *(next - 1);
    TIERD_CHECK(before.offset + before.bytes <= room.offset);
    if (before.offset + before.bytes == room.offset) {
      before.bytes += room.bytes;
      return;
    }
  }
  free_.insert(next, room);
}

}  // namespace tierd
