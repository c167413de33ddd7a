// Events as bytes: a tag, the time since the event before, and the fields that are not zero, as numbers of
// seven bits a byte. Lists of neurons and units are written as runs of equal steps, so that a dense site
// costs as much as one neuron.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/event.h"

namespace tierd {

// A block with more events, or whose lists hold more entries, is not believed.
inline constexpr uint32_t kMostEventsInBlock = 1u << 16;
inline constexpr uint64_t kMostListedInBlock = 1u << 22;

// Appends events to a block of bytes. Times are relative to the event before in the same block.
class EventEncoder {
 public:
  void add(const Event& event);
  // Time to begin the next block.
  bool full() const { return bytes_.size() >= kBlockBytes || listed_ >= kMostListedInBlock / 4; }
  std::span<const std::byte> bytes() const { return bytes_; }
  uint32_t events() const { return events_; }
  void clear();

 private:
  std::vector<std::byte> bytes_;
  static constexpr size_t kBlockBytes = 64u << 10;
  uint64_t last_ns_ = 0;
  uint64_t listed_ = 0;  // entries of lists
  uint32_t events_ = 0;
};

// Returns all events of a block; nothing of it is trusted. Error: corrupt, with the number of the event in
// the block.
Result<std::vector<Event>> decode_events(std::span<const std::byte> block, const std::string& origin,
                                         uint64_t most_listed = kMostListedInBlock);

}  // namespace tierd
