// Measures the rate of a disk for bursts of random reads with a pause after each, beside threads that
// compute, as a layer of a sparse model reads. fio reads without pauses and therefore hides the cost of a
// burst: at its beginning the disk has no requests yet, at its end ever fewer reads are in flight.
//
//   build/release/bin/disk_bursts FILE BYTES READS DEPTH THREADS SECONDS
//
// A burst has READS reads of BYTES each (a multiple of 4096), at most DEPTH in flight, into memory that stays
// in caches. THREADS read memory meanwhile, and in the pauses of 5 ms. Prints bytes a second from the begin
// of a burst to the arrival of its last read.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "tiers/flash/device.h"
#include "tiers/flash/read_memory.h"

namespace tierd {
namespace {

constexpr uint64_t kAlignment = 4096;
// As in the flash agent: the first reads are in flight while the others are prepared.
constexpr uint32_t kStartedAtOnce = 16;
constexpr auto kPause = std::chrono::milliseconds(5);

// Threads that read memory beyond every cache, as computing from a resident model does.
class Readers {
 public:
  explicit Readers(uint32_t threads) : memory_(threads == 0 ? 0 : size_t{64} << 20, 1.0F) {
    for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { read(); });
  }
  ~Readers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

 private:
  void read() {
    constexpr size_t kPart = size_t{1} << 16;
    while (!stop_) {
      for (size_t i = 0; i != memory_.size() && !stop_; i += kPart) {
        sum_ = std::accumulate(memory_.begin() + static_cast<ptrdiff_t>(i),
                               memory_.begin() + static_cast<ptrdiff_t>(i + kPart), 0.0F);
      }
    }
  }

  std::vector<float> memory_;
  std::atomic<float> sum_ = 0;  // keeps the reads from being optimised away
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

struct Bursts {
  std::string file;
  uint64_t bytes = 0;
  uint32_t reads = 0;
  uint32_t depth = 0;
  uint32_t threads = 0;
  double seconds = 0;
};

// Runs one burst until its last read has arrived. Errors: io_error.
Status burst(BlockDevice& device, const Bursts& how, std::byte* memory, uint64_t places, Random& random,
             std::vector<DeviceDone>& done) {
  uint32_t started = 0;
  uint32_t landed = 0;
  const auto start = [&](uint64_t slot) {
    const uint64_t place = static_cast<uint64_t>(random.uniform() * static_cast<double>(places));
    device.push(
        {.token = slot, .offset = place * kAlignment, .into = {memory + slot * how.bytes, how.bytes}});
    if (++started % kStartedAtOnce == 0) device.flush();
  };
  while (started < std::min(how.depth, how.reads)) start(started);
  device.flush();
  while (landed != how.reads) {
    pollfd ready = {.fd = device.wait_fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&ready, 1, -1);
    const size_t n = device.poll(done);
    for (const DeviceDone& one : std::span(done).first(n)) {
      ++landed;
      if (one.result != static_cast<int32_t>(how.bytes)) {
        return Error{Code::io_error, how.file, fmt::format("a read gave {} of {} B", one.result, how.bytes)};
      }
      if (started != how.reads) start(one.token);
    }
    if (n != 0) device.flush();
  }
  return {};
}

Result<double> bytes_per_second(const Bursts& how) {
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(how.file, failed);
  if (failed) return Error{Code::io_error, how.file, failed.message()};
  if (how.bytes == 0 || how.bytes % kAlignment != 0 || how.reads == 0 || how.depth == 0 || size < how.bytes) {
    return Error{
        Code::invalid_argument, how.file,
        "reads of a multiple of 4096 B, at most of the file's size, were expected, and one at least"};
  }
  const ReadMemory memory = reserve_read_memory(how.bytes * how.depth);
  if (memory == nullptr) return Error{Code::no_space, how.file, "no memory for the reads"};
  TIERD_ASSIGN(const auto device, open_device(how.file, {.depth = how.depth}));
  device->register_memory({memory.get(), how.bytes * how.depth});

  const Readers readers(how.threads);
  Random random(1);
  std::vector<DeviceDone> done(how.depth);
  uint64_t busy_ns = 0;
  uint64_t bursts = 0;
  for (const uint64_t end = now_ns() + static_cast<uint64_t>(how.seconds * 1e9); now_ns() < end; ++bursts) {
    const uint64_t begin = now_ns();
    TIERD_TRY(burst(*device, how, memory.get(), (size - how.bytes) / kAlignment + 1, random, done));
    busy_ns += now_ns() - begin;
    std::this_thread::sleep_for(kPause);
  }
  return static_cast<double>(bursts * how.reads * how.bytes) / static_cast<double>(busy_ns) * 1e9;
}

int run(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "usage: disk_bursts FILE BYTES READS DEPTH THREADS SECONDS\n");
    return 2;
  }
  const Bursts how = {.file = argv[1],
                      .bytes = std::stoull(argv[2]),
                      .reads = static_cast<uint32_t>(std::stoul(argv[3])),
                      .depth = static_cast<uint32_t>(std::stoul(argv[4])),
                      .threads = static_cast<uint32_t>(std::stoul(argv[5])),
                      .seconds = std::stod(argv[6])};
  const Result<double> rate = bytes_per_second(how);
  if (!rate.ok()) {
    fmt::print(stderr, "disk_bursts: {}\n", rate.error().line());
    return 1;
  }
  fmt::print("{:.0f}\n", *rate);
  return 0;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  try {
    return tierd::run(argc, argv);
  } catch (const std::exception& what) {
    fmt::print(stderr, "disk_bursts: {}\n", what.what());
    return 2;
  }
}
