// Messages between the kernel and the tier agents: plain data without pointers, so that a message can be
// logged, replayed, shuffled or sent over a socket. All requests come from the kernel; each accepted request
// completes exactly once. Lists and data are spans in an agent's pool and stay unchanged until the
// completion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tierd {

// The kernel's own number among those that have pools: lists and masks of rows lie there. Agents are numbered
// from 1, in the order in which they are added.
inline constexpr uint16_t kKernel = 0;

// Bytes in a pool of an agent. `offset` counts units of 64 B, so that 256 GB can be named; `bytes` 0 is
// "none".
struct Span {
  uint16_t agent = 0;
  uint16_t pool = 0;
  uint32_t offset = 0;
  uint32_t bytes = 0;
  bool operator==(const Span&) const = default;
};
inline constexpr uint64_t kSpanUnit = 64;
inline constexpr uint64_t kMostPoolBytes = (uint64_t{1} << 32) * kSpanUnit;

// read: neurons of the store into a memory. move: neurons from one memory into another, or inside one. edit:
// advice, a request that was sent gets this message's priority. resize: which of an arena's addresses are in
// use.
enum class Op : uint8_t { read, copy, compute, run, edit, move, resize, cancel, stats, stop };
// The order of transfers: a demand overtakes prefetches, both overtake migrations.
enum class Priority : uint8_t { demand, prefetch, migration };
inline constexpr int kPriorities = 3;
// The parts of an agent that work side by side; each serves one message at a time under the modelled clock.
enum class EngineKind : uint8_t { read, copy, compute };
inline constexpr int kEngines = 3;

enum MessageFlags : uint8_t {
  kRunBefore = 1,  // compute: run the site's dense segment `before` first
  kRunAfter = 2,   // compute: run the site's dense segment `after` when the units are done
  kPartial = 4,    // with the first neurons: results are zero before they come, which not all may do
  kInput = 8,      // copy: the site's input; else the results of the list's neurons
  kMeasure = 16,   // compute: what each neuron contributes is written down beside the results
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
  Op op = Op::read;
  Priority priority = Priority::demand;
  EngineKind engine = EngineKind::read;
  uint8_t flags = 0;
  uint16_t agent = 0;
  uint16_t part = 0;  // copy: whose results, the number of a unit
  uint32_t step = 0;
  uint32_t expires_step =
      kNoStep;  // a prefetch is worthless after this step and is dropped when its turn comes
  uint32_t site = 0;
  uint32_t rows = 0;       // of the batch
  uint64_t queued_ns = 0;  // wall or virtual
  Span list = {};          // UnitList: what to read, compute, move or keep; cancel, edit: a MessageId
  // compute, run: RowInfo[rows]; move: the agent and the pool that the neurons come from.
  Span in = {};
  // compute: which rows use which neuron, uint64_t[neurons of the site x words of a row mask], or none: all
  // use all; stats: where the counts go; move: the size of a slot in `bytes`.
  Span aux = {};
  uint32_t edition = 0;  // read, compute, move: of the neurons that the list names; a read's first one
  bool operator==(const Message&) const = default;
};
static_assert(sizeof(Message) == 80 && std::is_trivially_copyable_v<Message>);

enum class DoneStatus : uint8_t { ok, cancelled, io_error, corrupt, no_space, invalid_argument, internal };
constexpr const char* status_name(DoneStatus status) {
  constexpr const char* kNames[] = {"ok",       "cancelled",        "io_error", "corrupt",
                                    "no_space", "invalid_argument", "internal"};
  return kNames[static_cast<size_t>(status)];
}

struct Done {
  MessageId id;
  DoneStatus status = DoneStatus::ok;
  EngineKind engine = EngineKind::read;
  uint16_t aux = 0;         // errno or a device's code
  uint32_t n_done = 0;      // units completed
  uint32_t first_bad = 0;   // index in the list of the first unit that failed
  uint32_t bad_extent = 0;  // read: the extent of that unit that failed
  uint32_t reads = 0;       // read: requests to the device, continuations and repeats included
  uint64_t bytes = 0;       // moved, or touched by compute
  uint64_t start_ns = 0;
  uint64_t done_ns = 0;
  bool operator==(const Done&) const = default;
};
static_assert(sizeof(Done) == 56 && std::is_trivially_copyable_v<Done>);

// The layout of a `list` span: the header, then `count` entries. Entry `offset`s are in units of 64 B inside
// (agent, pool), which is where the bytes come to lie (read, move) or lie (compute).
//
// move: in their order, each takes the bytes of a slot from `unit` in the memory that `in` names to `offset`,
// both in 64 B. resize: `unit` to `offset` is in use, both in 64 B; ascending, and apart. Everything else of
// the arena is given back to the system: its bytes are lost, its addresses stay, and may be in use again
// after a later resize.
struct UnitList {
  uint32_t count = 0;
  uint16_t agent = 0;
  uint16_t pool = 0;
};
struct Unit {
  // read: number of the extent in the store; compute: number of the neuron in the site; move, resize: see
  // above
  uint32_t unit = 0;
  uint32_t offset = 0;  // in 64 B
  bool operator==(const Unit&) const = default;
};
static_assert(sizeof(UnitList) == 8 && sizeof(Unit) == 8);

// One row of the batch: a token of a sequence at a position.
struct RowInfo {
  uint32_t token = 0;
  uint32_t position = 0;
  uint32_t sequence = 0;  // slot of the KV cache
  uint32_t row =
      0;  // where the batch's buffers hold this row's input (a head is computed for some rows only)
};
static_assert(sizeof(RowInfo) == 16);

}  // namespace tierd
