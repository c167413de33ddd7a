// The agent of a store on flash: brings extents of its file to where a message says, and says when they have
// all landed. It owns the disk, not the memory: destinations are leased to it until the completion.
//
//   read    units {extent number, place in the message's memory}, in any
//           order. A unit that begins a neuron in pieces (ExtentPieces) stands for all of them. Completes
//           once, when every extent has landed or failed: n_done and bytes count what landed and has the
//           right checksum; the status, `error` (errno), `first_bad` and `bad_extent` are those of the first
//           bad unit of the list. Errors: io_error (ENODATA: the file ends inside the extent), corrupt
//           (wrong checksum), invalid_argument (no such extent, or one that needs the bounce buffer and does
//           not fit). A read of one extent that failed with EIO is not tried again here: the kernel retries.
//           When extents are read as one and the read breaks off, those behind that point are read again,
//           each alone: what fails is what would have failed by itself.
//   cancel  What has not been started of the read that is meant is dropped, which makes it `cancelled`
//           once what has been started is over; a read that was started as a whole ends as usual. The cancel
//           itself completes ok at once; n_done is the number of units dropped, 0 for an id not known (any
//           more).
//   raise   A queued prefetch or migration becomes a demand, behind the demands queued
//           already. Completes ok at once; n_done is the number of units that were still to be started.
//
// The device reads whole blocks of 4096 bytes. Extents whose place in the file and in memory are multiples of
// it land where they belong; others, and those that are to be expanded (kRecode), come through the bounce
// buffer and are copied, or expanded, into their places, together with neighbours
// of the same message between which the gap is worth reading through (tiers/flash/read_join.h). While the
// bounce buffer is full, what needs it waits, and what is behind it in the queue as well; what only goes
// better by way of it lands where it belongs.
//
// Where the memory is apart (FlashOptions::apart), everything comes through the bounce buffer and is copied
// by whoever reaches that memory. A read's part of the bounce buffer is free again when its copies are over,
// and a unit counts as landed then. A copy that fails gives its status to the message.
//
// Order: within a message by offset in the file. Demands before prefetches before migrations, first come
// first served inside a class, decided whenever the device has room; what has been given to the device is not
// overtaken. A prefetch whose `expires_step` lies before the newest step seen in any message is dropped at
// its turn, as `cancelled`.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/clock.h"
#include "core/agent/counts.h"
#include "core/agent/extent_table.h"
#include "core/agent/message.h"
#include "core/agent/pool.h"
#include "core/base/counter.h"
#include "tiers/flash/apart_memory.h"
#include "tiers/flash/bounce_buffer.h"
#include "tiers/flash/device.h"
#include "tiers/flash/expansion.h"
#include "tiers/flash/landed_check.h"
#include "tiers/flash/read_join.h"

namespace tierd {

struct FlashOptions {
  uint32_t credits = 64;
  std::span<const ExtentPieces> pieces = {};  // of neurons that are more than one extent; outlive the agent
  Expansion expansion = {};                   // of what reads with kRecode bring
  // Extents are read as one up to this. A larger extent is one read all the same.
  uint64_t max_read_bytes = uint64_t{1} << 20;
  // The device gets no more reads while it has so many bytes to bring, and a few reads at least: it serves
  // all that it has side by side, so that a demand would wait for whatever was asked for before it. (A 7B
  // model in channels, half of it left out: 550 ms a token with all of a pass in flight, 460 with 2 MiB.)
  uint64_t in_flight_bytes = UINT64_MAX;
  // At most so many bytes of the file between two extents of a message are read and thrown away, for the sake
  // of one request less; this happens only where there is a bounce buffer.
  uint64_t gap_bytes = 0;
  // Extents of up to 64 KiB are read through the bounce buffer, while there is room in it, even if they could
  // land where they belong.
  bool prefer_bounce = false;
  bool verify = true;  // checksums of every extent, every time
  // Else the device only takes its time: nothing is copied, and there is nothing to verify.
  bool brings = true;
  // Reads are for this memory, whatever messages call it. It outlives the agent.
  ApartMemory* apart = nullptr;
  // Checks what has landed, in the agent's place. It outlives the agent.
  LandedCheck* check = nullptr;
  bool lands_anywhere = false;  // the device takes any offset, size and address
};

class FlashAgent final : public Agent {
 public:
  // `pools` and what `extents` points to outlive the agent.
  FlashAgent(uint16_t agent, const PoolTable& pools, const Clock& clock, std::unique_ptr<BlockDevice> device,
             ExtentTable extents, const FlashOptions& options, BounceBuffer bounce = {});
  ~FlashAgent() override;

  std::string_view name() const override { return "flash"; }
  uint32_t credits() const override { return options_.credits; }
  Submit submit(const Message& message, const Payload& payload) override;
  // Gives the device new reads before it spends time on the checksums of those that have landed. Stays busy
  // while a read pauses after EAGAIN, since no descriptor would tell its end.
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return device_->wait_fd(); }
  bool waiting() const override { return in_device_ != 0 || copying_ != 0; }

  // [any thread]
  AgentCounts counts() const;

 private:
  // Each counts for the member of the same name in ReadCounts.
  struct Counters {
    Counter bytes, extents, verified_bytes, asked_bytes, read_bytes, wasted_bytes;
    Counter reads, joined, short_reads, retries;
    std::array<Counter, kReadSizes> reads_of_size;
    Counter failed_extents, dropped_extents;
    Counter checksum_ns, copy_ns, expand_ns, in_flight_ns;
  };
  // A `read` message from submit to completion.
  struct Request {
    Message message = {};
    std::vector<Landing> landings = {};  // by offset
    uint32_t next = 0;                   // first of them that has not been started
    uint32_t end = 0;                    // of those to start; less than all after a cancel
    uint32_t reads = 0;                  // started and not yet settled, or to be started again
    uint32_t first_bad = 0;
    Done done = {};
    bool open = false;
    bool bad = false;
    bool dropped = false;
  };
  // One read of the file, for one or more neighbouring units of a request.
  struct Read {
    uint32_t request = 0;
    uint32_t first = 0;  // landing
    uint32_t count = 0;
    bool bounced = false;  // `into` is of the bounce buffer
    uint64_t offset = 0;
    std::span<std::byte> into = {};
    uint64_t needed = 0;     // bytes from the start up to the end of the last unit
    uint64_t landed = 0;     // bytes from the start that are in memory
    uint16_t error = 0;      // errno that ended it early
    uint32_t retries = 0;    // in its whole life
    uint64_t resume_ns = 0;  // not to be tried again before
  };

  // A landing whose read together with others broke off.
  struct Alone {
    uint32_t request = 0;
    uint32_t landing = 0;
  };

  bool reap();
  bool refill();
  bool settle_landed();
  bool end_copies();

  void accept(const Message& message, std::span<const Unit> units);
  void accept_read(const Message& message, std::span<const Unit> units);
  uint32_t cancel(const MessageId& id);
  uint32_t raise(const MessageId& id);

  Request* find(const MessageId& id);
  Request* next_request();
  bool is_demand(const Read& read) const;
  bool waits_for_demands(const Request& request) const;
  void add_landings(Request& request, std::span<const Unit> units);
  // each(number, bytes behind the unit's destination) for the extents that a unit of a list stands for.
  template <class Each>
  void each_extent(uint32_t extent, Each each) const;
  bool is_inside(const Landing& landing) const;
  bool start_next_read(Request& request);
  bool start_read(Request& request, uint32_t first, const Join& join);
  void push(uint32_t read);
  void landed(uint32_t read, int32_t result);
  bool retry(Read& read, uint64_t pause_ns);
  // False: it is over when its copies are.
  bool settle(uint32_t read);
  void settle_unit(Request& request, const Read& read, uint32_t index);
  LandedCheck::Found check(const Landing& landing, const std::byte* from) const;
  void add_copy(const Landing& landing, const std::byte* from);
  void count_landed(Request& request, const ExtentRef& extent);
  void end(uint32_t read);

  void drop_rest(Request& request);
  void mark_bad(Request& request, uint32_t unit, uint32_t extent, DoneStatus status, uint16_t error);
  void mark_unexpanded(Request& request, const Landing& landing, const Error& error);
  uint32_t number_of(const Landing& landing) const {
    return static_cast<uint32_t>(landing.extent - extents_.data());
  }
  void leave_queue(const Request& request);
  void complete_if_over(Request& request);
  void complete(const Message& message, DoneStatus status, uint32_t n_done = 0);
  uint32_t index_of(const Request& request) const {
    return static_cast<uint32_t>(&request - requests_.data());
  }

  const uint16_t agent_;
  const PoolTable& pools_;
  const Clock& clock_;
  const ExtentTable extents_;
  const FlashOptions options_;
  BounceBuffer bounce_;  // the device goes first: it waits for the reads that write there
  const JoinRules rules_;
  const std::unique_ptr<BlockDevice> device_;

  std::vector<Request> requests_;  // one per credit
  std::vector<uint32_t> free_requests_;
  std::array<std::vector<uint32_t>, kPriorities> queue_;  // requests with units to start, oldest first
  std::vector<Read> reads_;  // twice the device's depth: in the device, or waiting for their checksum
  std::vector<uint32_t> free_reads_;
  std::vector<uint32_t> again_;  // to be continued or tried again
  std::vector<Alone> alone_;
  std::string said_;              // the last line on an expansion that failed
  std::vector<uint32_t> landed_;  // to be verified
  std::vector<DeviceDone> reaped_;
  std::vector<ApartMemory::Copy> copies_;  // of one read
  std::vector<ApartMemory::Copied> copied_;
  std::vector<Done> done_;  // to be polled
  uint32_t accepted_ = 0;   // and not yet polled: the credits in use
  uint32_t in_device_ = 0;
  uint64_t bytes_in_device_ = 0;
  uint32_t demands_in_device_ = 0;  // reads for them
  uint32_t copying_ = 0;            // reads whose copies are not over
  uint32_t newest_step_ = 0;
  Counters counters_;
  Counter in_flight_since_ns_;  // 0: nothing is in the device
};

}  // namespace tierd
