// Events as bytes: a tag, the time since the previous event, and the fields that are not zero, as numbers of
// seven bits a byte. Lists of neurons and units are written as runs of equal steps, so a dense site costs as
// much as one neuron.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/watch/trace/event.h"

namespace tierd {

// A block with more events, or with lists of more entries, is refused.
inline constexpr uint32_t kMostEventsInBlock = 1u << 16;
inline constexpr uint64_t kMostListedInBlock = 1u << 22;

// Appends events to a block of bytes. Times are relative to the previous event of the block.
class EventEncoder {
 public:
  void add(const Event& event);
  // Returns whether the next block should begin.
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

// Returns all events of a block, which is untrusted. Error: corrupt, with the number of the event in the
// block.
Result<std::vector<Event>> decode_events(std::span<const std::byte> block, const std::string& origin,
                                         uint64_t most_listed = kMostListedInBlock);

}  // namespace tierd
