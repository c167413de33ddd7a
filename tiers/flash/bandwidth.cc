#include "tiers/flash/bandwidth.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/random.h"
#include "core/base/statistics.h"
#include "core/base/time.h"
#include "core/system/memory_limits.h"
#include "tiers/flash/read_memory.h"

namespace tierd {
namespace {

constexpr uint64_t kMostBufferBytes = uint64_t{4} << 30;
constexpr uint64_t kPartBytes = uint64_t{1} << 20;
constexpr uint64_t kMostParts = 256;

Error failed_read(const std::string& path, uint64_t bytes, int32_t result) {
  const std::string why = result == 0 ? "the file ended early" : std::generic_category().message(-result);
  return {Code::io_error, path, fmt::format("a read of at most {} B failed: {}", bytes, why)};
}

// Returns the processor time of this thread in seconds.
double thread_seconds() {
  timespec busy{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy);
  return static_cast<double>(busy.tv_sec) + static_cast<double>(busy.tv_nsec) * 1e-9;
}

// Returns the reads of one round through the file: pieces of read_bytes, shorter at the end of a part. The
// end of a whole file behind the last multiple that direct I/O reads is left out.
Result<std::vector<FileRange>> plan_reads(const std::string& path, const ReadPattern& pattern) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return Error{errno == ENOENT ? Code::not_found : Code::io_error, path,
                 std::generic_category().message(errno)};
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  // Some slack, because file systems account their own blocks differently.
  if (static_cast<uint64_t>(status.st_blocks) * 512 < size / 10 * 9) {
    return Error{Code::invalid_argument, path, "has holes, which are not read from the disk"};
  }
  std::vector<FileRange> parts = pattern.parts;
  if (parts.empty()) parts.push_back({0, size / kDirectIoAlignment * kDirectIoAlignment});
  std::vector<FileRange> reads;
  for (const FileRange& part : parts) {
    if (part.offset % kDirectIoAlignment != 0 || part.bytes % kDirectIoAlignment != 0 || part.offset > size ||
        part.bytes > size - part.offset) {
      return Error{
          Code::invalid_argument, path,
          fmt::format("the range of {} B at {} is not within the {} B of the file in multiples of {} B",
                      part.bytes, part.offset, size, kDirectIoAlignment)};
    }
    for (uint64_t done = 0; done < part.bytes; done += reads.back().bytes) {
      reads.push_back({part.offset + done, std::min(pattern.read_bytes, part.bytes - done)});
    }
  }
  if (reads.empty()) {
    return Error{Code::invalid_argument, path,
                 fmt::format("has {} B, expected at least {} B for a measurement", size, kDirectIoAlignment)};
  }
  return reads;
}

Status check_pattern(const std::string& path, const ReadPattern& pattern) {
  const uint64_t bytes = pattern.read_bytes;
  if (bytes != 0 && bytes % kDirectIoAlignment == 0 && pattern.depth != 0 &&
      bytes <= kMostBufferBytes / pattern.depth && pattern.memory_bytes <= kMostBufferBytes)
    return {};
  return Error{Code::invalid_argument, path,
               fmt::format("{} reads of {} B at once, expected a multiple of {} B, at most {} B together",
                           pattern.depth, bytes, kDirectIoAlignment, kMostBufferBytes)};
}

}  // namespace

Result<uint32_t> measure_round(const std::string& path) {
  constexpr uint32_t kReads = 256;
  constexpr uint64_t kBytes = 64 << 10;
  constexpr int kTries = 9;
  TIERD_ASSIGN(const std::vector<FileRange> parts, spread_parts(path, kPartBytes));
  const ReadMemory memory = reserve_read_memory(kBytes * kReads);
  if (memory == nullptr)
    return Error{Code::no_space, path, fmt::format("cannot allocate {} B", kBytes * kReads)};
  TIERD_ASSIGN(const auto device, open_device(path, {.depth = kReads}));
  device->register_memory({memory.get(), kBytes * kReads});
  Random random(now_ns());
  std::vector<DeviceDone> done(kReads);
  std::vector<double> together;
  for (int i = 0; i < kTries; ++i) {
    for (uint32_t read = 0; read < kReads; ++read) {
      const FileRange& part = parts[random.below(static_cast<uint32_t>(parts.size()))];
      const uint64_t within = random.below(static_cast<uint32_t>(part.bytes / kBytes)) * kBytes;
      TIERD_CHECK(device->push({read, part.offset + within, {memory.get() + read * kBytes, kBytes}}));
    }
    const uint64_t start_ns = now_ns();
    device->flush();
    uint64_t first_ns = 0;
    for (size_t told = 0; told < kReads;) {
      pollfd ready = {.fd = device->wait_fd(), .events = POLLIN, .revents = 0};
      (void)::poll(&ready, 1, -1);
      const size_t n = device->poll(done);
      if (n != 0 && told == 0) first_ns = now_ns();
      for (const DeviceDone& one : std::span(done).first(n)) {
        if (one.result <= 0) return failed_read(path, kBytes, one.result);
      }
      told += n;
    }
    together.push_back(kReads * static_cast<double>(first_ns - start_ns) /
                       static_cast<double>(now_ns() - start_ns));
  }
  return static_cast<uint32_t>(std::max(1.0, std::round(median(together))));
}

Result<std::vector<FileRange>> spread_parts(const std::string& path, uint64_t least_bytes) {
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(path, failed);
  if (failed) return Error{Code::io_error, path, failed.message()};
  if (size < std::max(least_bytes, kPartBytes)) {
    return Error{Code::invalid_argument, path, fmt::format("has {} B, too few for a measurement", size)};
  }
  const uint64_t whole = size / kPartBytes;
  const uint64_t count = std::min(whole, kMostParts);
  const uint64_t apart = whole / count;
  Random random(now_ns());
  std::vector<FileRange> parts;
  for (uint64_t i = 0; i < count; ++i) {
    const auto within = static_cast<uint64_t>(random.uniform() * static_cast<double>(apart));
    parts.push_back({(i * apart + within) * kPartBytes, kPartBytes});
  }
  return parts;
}

Result<ReadPattern> random_reads(const std::string& path, const DeviceOptions& device, uint64_t read_bytes,
                                 uint64_t least_bytes) {
  ReadPattern pattern;
  pattern.read_bytes = read_bytes;
  pattern.depth = device.depth;
  pattern.random = true;
  pattern.seed = now_ns();
  pattern.kind = device.kind;
  pattern.direct = device.direct;
  TIERD_ASSIGN(pattern.parts, spread_parts(path, least_bytes));
  return pattern;
}

namespace {

// The memory that the reads of a measurement use.
struct Room {
  uint32_t depth = 0;  // reads in flight
  ReadMemory buffer;   // for `depth` reads
  ReadMemory memory;   // for `places` reads; null without memory_bytes
  uint64_t places = 0;
};

// Takes at most a quarter of the free memory.
Result<Room> make_room(const std::string& path, const ReadPattern& pattern) {
  const uint64_t bytes = pattern.read_bytes, most = memory_left().left_bytes / 4;
  const auto allocate = [&](uint64_t wanted, ReadMemory& made) -> Status {
    made = reserve_read_memory(wanted);
    if (made == nullptr) return Error{Code::no_space, path, fmt::format("cannot allocate {} B", wanted)};
    return {};
  };
  Room room;
  room.depth = static_cast<uint32_t>(std::clamp<uint64_t>(most / bytes, 1, pattern.depth));
  room.places = std::min(pattern.memory_bytes, most) / bytes;
  TIERD_TRY(allocate(bytes * room.depth, room.buffer));
  if (room.places != 0) TIERD_TRY(allocate(room.places * bytes, room.memory));
  return room;
}

}  // namespace

Result<ReadRate> measure_read(const std::string& path, const ReadPattern& pattern, uint64_t first) {
  const uint64_t bytes = pattern.read_bytes;
  TIERD_TRY(check_pattern(path, pattern));
  TIERD_ASSIGN(const std::vector<FileRange> reads, plan_reads(path, pattern));
  TIERD_ASSIGN(const Room room, make_room(path, pattern));
  // Declared after the memory and so destroyed first: its destructor waits for the reads that write there.
  TIERD_ASSIGN(const auto device,
               open_device(path, {.kind = pattern.kind, .depth = room.depth, .direct = pattern.direct}));
  device->register_memory({room.buffer.get(), bytes * room.depth});

  Random random(pattern.seed);
  std::vector<DeviceDone> done(room.depth);
  ReadRate rate{.device = std::string(device->name()), .first = first % reads.size()};
  uint64_t landed = 0;
  uint64_t finished = 0;
  uint32_t in_flight = 0;
  const auto below = [&](uint64_t n) {
    return static_cast<uint64_t>(random.uniform() * static_cast<double>(n));
  };
  const auto start_one = [&](uint64_t slot) {
    uint64_t number = 0;
    if (pattern.random) {
      number = below(reads.size());
    } else {
      number = rate.first;
      rate.first = (rate.first + 1) % reads.size();
    }
    const FileRange& read = reads[number];
    std::byte* const into =
        room.places == 0 ? room.buffer.get() + slot * bytes : room.memory.get() + below(room.places) * bytes;
    in_flight += device->push({.token = slot, .offset = read.offset, .into = {into, read.bytes}});
  };

  const double busy = thread_seconds();
  const uint64_t start_ns = now_ns();
  const uint64_t end_ns = start_ns + static_cast<uint64_t>(pattern.seconds * 1e9);
  for (uint64_t slot = 0; slot < room.depth; ++slot) start_one(slot);
  device->flush();
  while (in_flight != 0) {
    pollfd ready = {.fd = device->wait_fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&ready, 1, -1);
    const size_t n = device->poll(done);
    const bool more = now_ns() < end_ns;
    for (const DeviceDone& one : std::span(done).first(n)) {
      --in_flight;
      if (one.result <= 0) return failed_read(path, bytes, one.result);
      landed += static_cast<uint64_t>(one.result);
      ++finished;
      if (more) start_one(one.token);
    }
    if (more && n != 0) device->flush();
  }
  const double seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
  rate.bytes_per_second = static_cast<double>(landed) / seconds;
  rate.reads_per_second = static_cast<double>(finished) / seconds;
  rate.thread_seconds = (thread_seconds() - busy) / static_cast<double>(finished);
  return rate;
}

}  // namespace tierd
