// The agent of a store on flash: reads extents of its file to the places that a message names, and completes
// the message when all have landed. It owns the disk, not the memory: destinations are leased to it until the
// completion.
//
//   read    units {extent number, place in the message's memory}, in any order. A unit that begins a neuron
//           in pieces (ExtentPieces) stands for all of them. Completes once, when every extent has landed or
//           failed: n_done and bytes count the extents that landed with the right checksum; the status,
//           `error` (errno), `first_bad` and `bad_extent` are those of the first bad unit of the list.
//           Errors: io_error (ENODATA: the file ends inside the extent), corrupt (wrong checksum),
//           invalid_argument (no such extent, or one that needs the bounce buffer and does not fit). A read
//           of one extent that failed with EIO is not retried here: the kernel retries. When extents are read
//           as one and the read breaks off, those behind that point are read again, each alone, so that only
//           extents fail that would have failed by themselves.
//   cancel  The units of that read that have not been started are dropped; it completes as `cancelled` once
//           its started units have ended. A read of which all units were started ends as usual. The cancel
//           itself completes ok at once; n_done is the number of units dropped, 0 for an unknown id.
//   raise   A queued prefetch or migration becomes a demand, behind the demands queued already. Completes ok
//           at once; n_done is the number of units that were still to be started.
//
// The device reads whole blocks of 4096 bytes. Extents whose offsets in the file and in memory are multiples
// of it land at their destinations; others, and those to be expanded (kRecode), are read into the bounce
// buffer and copied, or expanded, to their destinations, together with neighbours of the same message if the
// gap between them is worth reading (tiers/flash/read_join.h). While the bounce buffer is full, reads that
// need it wait, and so do those behind them in the queue; reads that are only faster through it land at their
// destinations.
//
// If the memory is apart (FlashOptions::apart), everything is read into the bounce buffer and copied by the
// agent that reaches the memory. A read's part of the bounce buffer is free again when its copies have ended,
// and a unit counts as landed then. A copy that fails gives its status to the message.
//
// Order: within a message by offset in the file. Demands before prefetches before migrations, first come
// first served inside a class, decided whenever the device has room; reads in the device are not overtaken. A
// prefetch whose `expires_step` is before the newest step seen in any message is dropped at its turn, as
// `cancelled`.
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
  std::span<const ExtentPieces> pieces = {};  // neurons of more than one extent; must outlive the agent
  Expansion expansion = {};                   // for reads with kRecode
  // Extents are joined into reads of at most this size. A larger extent is one read all the same.
  uint64_t max_read_bytes = uint64_t{1} << 20;
  // The device gets no more reads while it has so many bytes in flight, and a few reads at least: it serves
  // all reads concurrently, so that a demand would wait for all reads before it. (A 7B model in channels,
  // half of it left out: 550 ms a token with all of a pass in flight, 460 with 2 MiB.)
  uint64_t in_flight_bytes = UINT64_MAX;
  // The most bytes of the file between two extents of a message that are read and thrown away to save a
  // request; only if there is a bounce buffer.
  uint64_t gap_bytes = 0;
  // Extents of up to 64 KiB are read through the bounce buffer, while there is room in it, even if they could
  // land at their destinations.
  bool prefer_bounce = false;
  bool verify = true;  // checksums of every extent, every time
  // False: the device only takes its time; nothing is copied or verified.
  bool brings = true;
  // All reads are for this memory, whatever memory messages name. It must outlive the agent.
  ApartMemory* apart = nullptr;
  // Checks extents that have landed, in the agent's place. It must outlive the agent.
  LandedCheck* check = nullptr;
  bool lands_anywhere = false;  // the device takes any offset, size and address
};

class FlashAgent final : public Agent {
 public:
  // `pools` and the objects that `extents` points to must outlive the agent.
  FlashAgent(uint16_t agent, const PoolTable& pools, const Clock& clock, std::unique_ptr<BlockDevice> device,
             ExtentTable extents, const FlashOptions& options, BounceBuffer bounce = {});
  ~FlashAgent() override;

  std::string_view name() const override { return "flash"; }
  uint32_t credits() const override { return options_.credits; }
  Submit submit(const Message& message, const Payload& payload) override;
  // Gives the device new reads before it verifies those that have landed. Returns busy while a read pauses
  // after EAGAIN, since no descriptor signals the end of a pause.
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  int wait_fd() const override { return device_->wait_fd(); }
  bool waiting() const override { return in_device_ != 0 || copying_ != 0; }

  // [any thread]
  AgentCounts counts() const;

 private:
  // A `read` message from submit to completion.
  struct Request {
    Message message = {};
    std::vector<Landing> landings = {};  // by offset
    uint32_t next = 0;                   // the first landing that has not been started
    uint32_t end = 0;                    // of the landings to start; less than all after a cancel
    uint32_t reads = 0;                  // started and not yet settled, or waiting to be started again
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
    uint64_t needed = 0;     // bytes from the start to the end of the last unit
    uint64_t landed = 0;     // bytes from the start that are in memory
    uint16_t error = 0;      // errno that ended it early
    uint32_t retries = 0;    // in its whole life
    uint64_t resume_ns = 0;  // no retry before this time
  };

  // A landing that is read again by itself, because its joined read broke off.
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
  // Calls each(number, offset from the unit's destination in bytes) for the extents of a list's unit.
  template <class Each>
  void each_extent(uint32_t extent, Each each) const;
  bool is_inside(const Landing& landing) const;
  bool start_next_read(Request& request);
  bool start_read(Request& request, uint32_t first, const Join& join);
  void push(uint32_t read);
  void landed(uint32_t read, int32_t result);
  bool retry(Read& read, uint64_t pause_ns);
  // Returns false if the read ends only when its copies do.
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
  BounceBuffer bounce_;  // the device is destroyed first: it waits for the reads that write there
  const JoinRules rules_;
  const std::unique_ptr<BlockDevice> device_;

  std::vector<Request> requests_;  // one per credit
  std::vector<uint32_t> free_requests_;
  std::array<std::vector<uint32_t>, kPriorities> queue_;  // requests with units to start, oldest first
  std::vector<Read> reads_;  // twice the device's depth: in the device, or waiting for their checksum
  std::vector<uint32_t> free_reads_;
  std::vector<uint32_t> again_;  // reads to continue or to retry
  std::vector<Alone> alone_;
  std::string said_;              // the last line logged about a failed expansion
  std::vector<uint32_t> landed_;  // reads to verify
  std::vector<DeviceDone> reaped_;
  std::vector<ApartMemory::Copy> copies_;  // of one read
  std::vector<ApartMemory::Copied> copied_;
  std::vector<Done> done_;  // to be polled
  uint32_t accepted_ = 0;   // accepted and not yet polled: the credits in use
  uint32_t in_device_ = 0;
  uint64_t bytes_in_device_ = 0;
  uint32_t demands_in_device_ = 0;  // reads for demands
  uint32_t copying_ = 0;            // reads whose copies have not ended
  uint32_t newest_step_ = 0;
  ReadCountsOf<Counter> counters_;
  Counter in_flight_since_ns_;  // 0: no read is in the device
};

}  // namespace tierd
