// Messages between the kernel and the tier agents. A message is plain data without pointers, so it can be
// logged, replayed, shuffled or sent elsewhere; a payload beside it has the data that it refers to. All
// requests are sent by the kernel; each accepted request completes exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>

#include "core/base/enum_names.h"

namespace tierd {

using MemoryId = uint16_t;
// The packed model. Every stored edition is valid there; a place in it is the number of an extent.
inline constexpr MemoryId kStore = 0;

// A place in any other memory, and in an agent's buffers, is an offset in units of 64 B. Only the agent that
// owns a memory, or that carries neurons to or from it, knows the memory's address.
inline constexpr uint64_t kPlaceUnit = 64;
inline constexpr uint64_t kMostMemoryBytes = (uint64_t{1} << 32) * kPlaceUnit;

// read: neurons of the store into a memory. move: neurons from one memory into another, or inside one. run:
// dense segments around a site, neurons between them, or one of both; or several sites, one after the other
// (a joint run). resize: sets the ranges of a memory's arena that are in use. raise, cancel: advice about a
// request that was sent.
enum class Op : uint8_t { read, move, run, resize, raise, cancel };
constexpr std::array<std::string_view, 6> names_of(Op) {
  return {"read", "move", "run", "resize", "raise", "cancel"};
}
// The order of transfers: a demand overtakes prefetches, both overtake migrations.
enum class Priority : uint8_t { demand, prefetch, migration };
constexpr std::array<std::string_view, 3> names_of(Priority) {
  return {"demand", "prefetch", "migration"};
}
inline constexpr int kPriorities = 3;

enum MessageFlags : uint8_t {
  kRunBefore = 1,  // run: the site's dense segment `before` first
  kRunAfter = 2,   // run: the site's dense segment `after` when the neurons are done
  kPartial = 4,  // run, with the first neurons: results are cleared first, since some neurons may be missing
  kMeasure = 8,  // run: writes the contribution of each neuron beside the results
  kMasked = 16,  // run: the payload has row masks
  kRecode = 32,  // read, move: converts neurons to the message's edition, which is made of their present one
  kTell = 64,    // run: writes whether each neuron fires, where kMeasure writes its contribution
};

// The identity of a request: a slot in the kernel's table and its generation; a stale generation is ignored.
struct MessageId {
  uint32_t slot = 0;
  uint32_t generation = 0;
  bool operator==(const MessageId&) const = default;
};

inline constexpr uint32_t kNoStep = UINT32_MAX;

struct Message {
  MessageId id;
  // raise, cancel: the request that is meant. run: an earlier move of the same agent that must be over before
  // the run begins. If that move has failed, the run completes as cancelled.
  MessageId about;
  Op op = Op::read;
  Priority priority = Priority::demand;  // raise: the new priority
  // The agent's lane that serves it. Lanes work in parallel, and each serves one message at a time.
  uint8_t lane = 0;
  uint8_t flags = 0;
  uint16_t agent = 0;
  MemoryId from = 0;    // read, move: the source memory
  MemoryId memory = 0;  // destination; run: the memory computed from; resize: the memory resized
  uint16_t rows = 0;    // of the batch
  uint32_t step = 0;
  // A prefetch is useless after this step and is dropped when its turn comes.
  uint32_t expires_step = kNoStep;
  uint32_t site = 0;        // of a joint run the first site
  uint32_t edition = 0;     // read, move, run: of the neurons; of a read or joint run of several, the first
  uint32_t n_units = 0;     // in the payload
  uint32_t unit_bytes = 0;  // move: of each slot in the source memory
  uint16_t n_takes = 0;     // in the payload
  uint8_t n_gives = 0;      // in the payload
  uint8_t n_sites = 0;      // in the payload, for a joint run
  uint64_t queued_ns = 0;   // by the wall clock or the virtual one
  bool operator==(const Message&) const = default;
};
static_assert(sizeof(Message) == 64 && std::is_trivially_copyable_v<Message>);

// An entry of a message's list. read: extent `unit` of the store is read to `place` in the message's memory.
// With kRecode this holds for the neurons of all editions that are made of others in that memory.
//
// move: copies a slot from `unit`, a place in the memory `from`, to `place`, in the order of the list. If the
// payload has lengths, only so many bytes of each slot are copied, and the rest of the new slot is undefined.
// With kRecode they are converted to the message's edition: bitmaps are expanded at the destination, other
// neurons are encoded at the source, so that the smaller form crosses the link.
//
// run: `unit`, a neuron of the site, is at `place` in the memory.
//
// resize: the range from place `unit` to `place` is in use; ranges ascend and are disjoint. The rest of the
// arena is returned to the system: its bytes are lost, its addresses stay, and may be used again later.
struct Unit {
  uint32_t unit = 0;
  uint32_t place = 0;
  bool operator==(const Unit&) const = default;
};
static_assert(sizeof(Unit) == 8);

// One row of the batch: a token of a sequence at a position.
struct RowInfo {
  uint32_t token = 0;
  uint32_t position = 0;
  uint32_t sequence = 0;  // slot of the KV cache
  // The row of the batch's buffers with this row's input (a head is computed for some rows only).
  uint32_t row = 0;
};
static_assert(sizeof(RowInfo) == 16);

// Activations of another agent that a run needs: [Message::rows] lines of floats, `stride` floats apart.
// Agents compute from buffers of their own: a take is copied, or added, there.
struct Take {
  // input: the input of the site; choice: the output of the router before it. Both are taken after this
  // agent's own segment before. results: the other agent's results of the site, taken before the segment
  // after. If results are added, they are added to this agent's in the order of the list; else those of
  // `neurons` are copied to their places.
  enum class What : uint8_t { input, choice, results } what = What::input;
  uint32_t stride = 0;
  // The columns taken; the same in the lines of both agents.
  uint32_t first = 0;
  uint32_t columns = 0;
  const float* values = nullptr;  // at column 0
  std::span<const uint32_t> neurons = {};
};

// Activations that other agents or the kernel read once a run is over: these columns of [Message::rows] lines
// of floats, at their places in the agent's registered activations. They stay there until a run of a later
// pass names their site. An agent that computes in its registered activations has nothing to do.
struct Give {
  uint32_t place = 0;   // of the first line's column 0
  uint32_t stride = 0;  // from one line to the next
  uint32_t first = 0;
  uint32_t columns = 0;
  bool operator==(const Give&) const = default;
};

// One site of a joint run, which contains each site once: the next `n_units` of the message's units, and
// flags as of a message (before, after, partial); the joint run's own flags have none of these.
struct SiteRun {
  uint32_t site = 0;
  uint32_t edition = 0;
  uint32_t n_units = 0;
  uint32_t flags = 0;
  bool operator==(const SiteRun&) const = default;
};
static_assert(sizeof(SiteRun) == 16);

// The data that a message refers to: memory of the kernel's, unchanged until the completion. For an agent in
// another process it would be copied along.
struct Payload {
  std::span<const Unit> units = {};
  std::span<const RowInfo> rows = {};  // run: [Message::rows]
  // run, with kMasked: row masks, [neurons of the site x words of a row mask]. Otherwise every row uses every
  // neuron.
  std::span<const uint64_t> masks = {};
  std::span<const Take> takes = {};  // run
  std::span<const Give> gives = {};  // run
  // move, with kRecode: [Message::n_units] the numbers of the neurons.
  std::span<const uint32_t> neurons = {};
  // The sites of a joint run, in order. A joint run has no takes and no masks, and its gives belong to the
  // last site. Empty: the message is about one site.
  std::span<const SiteRun> sites = {};
  // move: [Message::n_units] bytes to move of each slot, at most Message::unit_bytes. Empty: all.
  std::span<const uint32_t> lengths = {};

  // Returns the bytes of a slot that a move reads from the source memory.
  uint64_t moved_bytes(const Message& message, size_t unit) const {
    return lengths.empty() ? message.unit_bytes : lengths[unit];
  }
  // Returns the sum over all slots.
  uint64_t moved_bytes(const Message& message) const {
    return lengths.empty() ? uint64_t{units.size()} * message.unit_bytes
                           : std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  }
};

// lost: the agent does not work any more. All its accepted and later messages complete so.
enum class DoneStatus : uint8_t {
  ok,
  cancelled,
  io_error,
  corrupt,
  no_space,
  invalid_argument,
  internal,
  lost
};
constexpr const char* status_name(DoneStatus status) {
  constexpr const char* kNames[] = {"ok",       "cancelled",        "io_error", "corrupt",
                                    "no_space", "invalid_argument", "internal", "lost"};
  return kNames[static_cast<size_t>(status)];
}

struct Done {
  MessageId id;
  DoneStatus status = DoneStatus::ok;
  uint8_t lane = 0;     // the message's
  uint16_t error = 0;   // errno or a device's code
  uint32_t n_done = 0;  // units completed
  // Index in the list of the first failed unit; for a joint run, of the first failed site, n_sites if that is
  // not known.
  uint32_t first_bad = 0;
  uint32_t bad_extent = 0;  // read: the failed extent of that unit
  uint32_t reads = 0;       // read: requests to the device, continuations and repeats included
  uint64_t bytes = 0;       // moved, or touched by compute
  uint64_t start_ns = 0;
  uint64_t done_ns = 0;
  bool operator==(const Done&) const = default;
};
static_assert(sizeof(Done) == 56 && std::is_trivially_copyable_v<Done>);

}  // namespace tierd
