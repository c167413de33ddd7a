// Messages between the kernel and the tier agents. A message is plain data without pointers, so that it can
// be logged, replayed, shuffled or sent elsewhere; what it refers to comes beside it, as a payload. All
// requests come from the kernel; each accepted request completes exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>

namespace tierd {

using MemoryId = uint16_t;
// The packed model. Every stored edition is valid there, and a place in it is the number of an extent.
inline constexpr MemoryId kStore = 0;

// A place in any other memory, and in an agent's buffers, is a number of units of 64 B from the beginning.
// Only the agent that a memory belongs to, or that carries neurons there or from there, knows where that is.
inline constexpr uint64_t kPlaceUnit = 64;
inline constexpr uint64_t kMostMemoryBytes = (uint64_t{1} << 32) * kPlaceUnit;

// read: neurons of the store into a memory. move: neurons from one memory into another, or inside one. run:
// dense segments around a site, neurons between them, or one of both; or several sites, one after the other
// (a joint run). resize: which of a memory's arena addresses are in use. raise, cancel: advice about a
// request that was sent.
enum class Op : uint8_t { read, move, run, resize, raise, cancel };
// The order of transfers: a demand overtakes prefetches, both overtake migrations.
enum class Priority : uint8_t { demand, prefetch, migration };
inline constexpr int kPriorities = 3;

enum MessageFlags : uint8_t {
  kRunBefore = 1,  // run: the site's dense segment `before` first
  kRunAfter = 2,   // run: the site's dense segment `after` when the neurons are done
  kPartial = 4,    // run, with the first neurons: results are zero before they come, which not all may do
  kMeasure = 8,    // run: what each neuron contributes is written down beside the results
  kMasked = 16,    // run: the payload says which rows use which neurons
  kRecode = 32,    // read, move: neurons become the message's edition, which is made of the one they come in
  kTell = 64,      // run: which neurons give something is written down where kMeasure writes how much
};

// A request's name: a slot in the kernel's table and its generation; a stale generation is ignored.
struct MessageId {
  uint32_t slot = 0;
  uint32_t generation = 0;
  bool operator==(const MessageId&) const = default;
};

inline constexpr uint32_t kNoStep = UINT32_MAX;

struct Message {
  MessageId id;
  // raise, cancel: the request that is meant. run: a move of the same agent, accepted before, that has to be
  // over before the run is begun. Where the move has failed, the run completes as cancelled.
  MessageId about;
  Op op = Op::read;
  Priority priority = Priority::demand;  // raise: what it gets
  // The agent's lane that serves it. Lanes work side by side, and each serves one message at a time.
  uint8_t lane = 0;
  uint8_t flags = 0;
  uint16_t agent = 0;
  MemoryId from = 0;    // read, move: the memory that neurons come from
  MemoryId memory = 0;  // that they go to; run: that they are computed from; resize: that is meant
  uint16_t rows = 0;    // of the batch
  uint32_t step = 0;
  // A prefetch is worthless after this step and is dropped when its turn comes.
  uint32_t expires_step = kNoStep;
  uint32_t site = 0;        // of a joint run the first one
  uint32_t edition = 0;     // read, move, run: of the neurons; a read's, and a joint run's, first one
  uint32_t n_units = 0;     // in the payload
  uint32_t unit_bytes = 0;  // move: of each slot, in the memory that it comes from
  uint16_t n_takes = 0;     // in the payload
  uint8_t n_gives = 0;      // in the payload
  uint8_t n_sites = 0;      // in the payload: a joint run's
  uint64_t queued_ns = 0;   // wall or virtual
  bool operator==(const Message&) const = default;
};
static_assert(sizeof(Message) == 64 && std::is_trivially_copyable_v<Message>);

// An entry of a message's list. read: `unit`, an extent of the store, goes to `place` in the message's
// memory. With kRecode this is so for the neurons of all editions that are made of others in that memory.
//
// move: the bytes of a slot go from `unit`, a place in the memory `from`, to `place`; in the order of the
// list. Where the payload has lengths, so many bytes of each slot go, and what is behind them in the new slot
// may be anything. With kRecode they become those of a slot of the message's edition: bitmaps on this side of
// the link, what is encoded anew on the other side, so that it crosses in the fewer bits.
//
// run: `unit`, a neuron of the site, is at `place` in the memory.
//
// resize: what is between the places `unit` and `place` is in use; ascending, and apart. Everything else of
// the arena is given back to the system: its bytes are lost, its addresses stay, and may be in use again.
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
  // Where the batch's buffers hold this row's input (a head is computed for some rows only).
  uint32_t row = 0;
};
static_assert(sizeof(RowInfo) == 16);

// Activations of another agent that a run needs: [Message::rows] lines of floats, `stride` from one to the
// next. Agents compute from buffers of their own: what is taken is copied, or added, there.
struct Take {
  // input: what the site computes from; choice: which neurons each row uses, where the segment before has
  // chosen. Both are taken after this agent's own segment before. results: what the other agent has computed
  // of the site. They are taken before the segment after: where results are added, they are added to this
  // agent's, in the order of the list; else those of `neurons` are put in their places.
  enum class What : uint8_t { input, choice, results } what = What::input;
  uint32_t stride = 0;
  // The columns that are taken; they are the same in the lines of both agents.
  uint32_t first = 0;
  uint32_t columns = 0;
  const float* values = nullptr;  // at column 0
  std::span<const uint32_t> neurons = {};
};

// Activations that are wanted outside of the agent once a run is over: [Message::rows] lines of floats, of
// which these columns, at their places in the activations that the agent has registered. They stay there
// until a run of a later pass names the site that they belong to. Where an agent computes in what it has
// registered, there is nothing to do.
struct Give {
  uint32_t place = 0;   // of the first line's column 0
  uint32_t stride = 0;  // from one line to the next
  uint32_t first = 0;
  uint32_t columns = 0;
  bool operator==(const Give&) const = default;
};

// One site of a joint run, in which it comes once: the next `n_units` of the message's units, and flags as
// those of a message (before, after, partial), which a joint run has none of itself.
struct SiteRun {
  uint32_t site = 0;
  uint32_t edition = 0;
  uint32_t n_units = 0;
  uint32_t flags = 0;
  bool operator==(const SiteRun&) const = default;
};
static_assert(sizeof(SiteRun) == 16);

// What a message refers to: memory of the kernel's, which stays as it is until the completion. Where an agent
// is not in this process, it is copied along.
struct Payload {
  std::span<const Unit> units = {};
  std::span<const RowInfo> rows = {};  // run: [Message::rows]
  // run, with kMasked: which rows use which neuron, [neurons of the site x words of a row mask]. Else all use
  // all.
  std::span<const uint64_t> masks = {};
  std::span<const Take> takes = {};  // run
  std::span<const Give> gives = {};  // run
  // move, with kRecode: [Message::n_units] which neurons they are.
  std::span<const uint32_t> neurons = {};
  // A joint run's, in their order; it takes nothing and has no masks, and what it gives is the last one's.
  // Empty: the message is about one site.
  std::span<const SiteRun> sites = {};
  // move: [Message::n_units] the bytes of each slot that are moved, at most Message::unit_bytes. Empty: all.
  std::span<const uint32_t> lengths = {};

  // Returns the bytes of a slot that a move takes from the memory that it comes from.
  uint64_t moved_bytes(const Message& message, size_t unit) const {
    return lengths.empty() ? message.unit_bytes : lengths[unit];
  }
  // The same of all slots.
  uint64_t moved_bytes(const Message& message) const {
    return lengths.empty() ? uint64_t{units.size()} * message.unit_bytes
                           : std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  }
};

// lost: the agent is not there any more. Whatever it had accepted, and whatever it is sent, completes so.
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
  // Index in the list of the first unit that failed; of a joint run, of the first site, n_sites where that is
  // not known.
  uint32_t first_bad = 0;
  uint32_t bad_extent = 0;  // read: the extent of that unit that failed
  uint32_t reads = 0;       // read: requests to the device, continuations and repeats included
  uint64_t bytes = 0;       // moved, or touched by compute
  uint64_t start_ns = 0;
  uint64_t done_ns = 0;
  bool operator==(const Done&) const = default;
};
static_assert(sizeof(Done) == 56 && std::is_trivially_copyable_v<Done>);

}  // namespace tierd
