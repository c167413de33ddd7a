#include "tiers/compute/memory_bandwidth.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/align.h"
#include "core/base/time.h"
#include "core/system/memory_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tiers/compute/memory_bandwidth.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // NOLINT: includes this file again for each instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tierd {
namespace HWY_NAMESPACE {

// Returns the sum of n words, n a multiple of 512: eight partial sums, so that only loads limit the speed.
uint64_t sum_words(const uint64_t* words, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (size_t i = 0; i < n; i += 8 * lanes) {
    const uint64_t* at = words + i;
    s0 = hn::Add(s0, hn::Load(d, at));
    s1 = hn::Add(s1, hn::Load(d, at + lanes));
    s2 = hn::Add(s2, hn::Load(d, at + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, at + 3 * lanes));
    s4 = hn::Add(s4, hn::Load(d, at + 4 * lanes));
    s5 = hn::Add(s5, hn::Load(d, at + 5 * lanes));
    s6 = hn::Add(s6, hn::Load(d, at + 6 * lanes));
    s7 = hn::Add(s7, hn::Load(d, at + 7 * lanes));
  }
  const auto low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const auto high = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  // Adds lane by lane: the compiler's own sum of a vector adds signed numbers, whose overflow is undefined.
  HWY_ALIGN uint64_t of_lanes[hn::MaxLanes(d)];
  hn::Store(hn::Add(low, high), d, of_lanes);
  uint64_t sum = 0;
  for (size_t i = 0; i < lanes; ++i) sum += of_lanes[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace tierd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tierd {
namespace {

HWY_EXPORT(sum_words);

constexpr const char* kOrigin = "memory bandwidth";
constexpr uint64_t kAlignment = 64;  // of the widest vector
constexpr uint64_t kShareOfLeft = 4;
constexpr uint64_t kPieceBytes = uint64_t{2} << 20;           // read between two reads of the clock
constexpr uint64_t kLeastUncachedBytes = uint64_t{64} << 10;  // of a thread

// Pages of its own, large ones if the system has them, as for weights.
class Mapping {
 public:
  explicit Mapping(uint64_t bytes) : bytes_(bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    memory_ = static_cast<std::byte*>(memory);
  }
  ~Mapping() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* get() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  uint64_t bytes_;
};

// Cuts memory into pieces and appends them.
void add_pieces(std::span<const std::byte> memory, std::vector<const std::byte*>& pieces) {
  for (uint64_t at = 0; at + kPieceBytes <= memory.size(); at += kPieceBytes)
    pieces.push_back(memory.data() + at);
}

// Each of `parts` threads reads its `part` of the pieces again and again, after calling `prepare` itself.
Result<double> read_parts(const std::vector<const std::byte*>& pieces, uint32_t parts, uint64_t part,
                          double seconds, const std::function<void(uint32_t)>& prepare) {
  std::atomic<uint64_t> read{0};
  std::atomic<uint64_t> begin_ns{UINT64_MAX};
  std::atomic<uint64_t> sink{0};  // keeps the sums from being optimised away
  std::atomic<bool> go{false};
  std::atomic<uint32_t> ready{0};
  const auto work = [&](uint32_t index) {
    prepare(index);
    const std::byte* const* mine = pieces.data() + index * part;
    ready.fetch_add(1);
    while (!go.load()) std::this_thread::yield();
    const uint64_t end_ns = begin_ns.load() + static_cast<uint64_t>(seconds * 1e9);
    uint64_t total = 0;
    uint64_t done = 0;
    do {
      total += HWY_DYNAMIC_DISPATCH(sum_words)(reinterpret_cast<const uint64_t*>(mine[done % part]),
                                               kPieceBytes / sizeof(uint64_t));
      ++done;
    } while (now_ns() < end_ns);
    read.fetch_add(done * kPieceBytes);
    sink.fetch_add(total);
  };

  std::vector<std::thread> workers;
  Result<double> rate = 0.0;
  try {
    for (uint32_t i = 0; i < parts; ++i) workers.emplace_back(work, i);
  } catch (const std::system_error& error) {
    rate = Error{Code::no_space, kOrigin, fmt::format("{} threads: {}", parts, error.what())};
  }
  while (ready.load() != workers.size()) std::this_thread::yield();
  begin_ns = now_ns();
  go = true;
  for (std::thread& worker : workers) worker.join();
  if (!rate.ok()) return rate;
  return static_cast<double>(read.load()) / (static_cast<double>(now_ns() - begin_ns.load()) * 1e-9);
}

}  // namespace

Result<double> measure_memory_read(uint32_t threads, double seconds, uint64_t bytes) {
  threads = std::max(threads, 1u);
  bytes = std::min(bytes, memory_left().left_bytes / kShareOfLeft);
  const uint64_t part = align_up(std::max<uint64_t>(bytes / threads, 1), kPieceBytes);
  const Mapping memory(part * threads);
  if (memory.get() == nullptr) {
    return Error{Code::no_space, kOrigin, fmt::format("no memory for {} B", part * threads)};
  }
  std::vector<const std::byte*> pieces;
  add_pieces({memory.get(), part * threads}, pieces);
  // Each thread writes its part first, so that the pages are allocated near its core.
  return read_parts(pieces, threads, part / kPieceBytes, seconds,
                    [&](uint32_t i) { std::memset(memory.get() + i * part, 1, part); });
}

Result<double> measure_memory_read(uint32_t threads, double seconds,
                                   std::span<const std::span<const std::byte>> memory) {
  threads = std::max(threads, 1u);
  std::vector<const std::byte*> pieces;
  for (const std::span<const std::byte> of : memory) add_pieces(of, pieces);
  const bool aligned = std::all_of(pieces.begin(), pieces.end(), [](const std::byte* piece) {
    return reinterpret_cast<uintptr_t>(piece) % kAlignment == 0;
  });
  if (pieces.size() < threads || !aligned) {
    return Error{Code::invalid_argument, kOrigin,
                 fmt::format("{} B for {} threads: at least {} B a thread were expected, aligned to {} B",
                             pieces.size() * kPieceBytes, threads, kPieceBytes, kAlignment)};
  }
  return read_parts(pieces, threads, pieces.size() / threads, seconds, [](uint32_t) {});
}

Result<double> measure_uncached_read(uint32_t threads, double seconds, uint64_t bytes) {
  threads = std::max(threads, 1u);
  const MemoryLimit limit = memory_left();
  bytes = std::min(bytes, limit.left_bytes / kShareOfLeft);
  const uint64_t part = align_down(bytes / threads, kLeastUncachedBytes);
  if (part == 0) {
    return Error{
        Code::no_space, kOrigin,
        fmt::format("measuring takes {} B for {} threads, a quarter of the {} B that {} leaves is less",
                    kLeastUncachedBytes * threads, threads, limit.left_bytes, limit.source)};
  }
  const Mapping memory(part * threads);
  if (memory.get() == nullptr)
    return Error{Code::no_space, kOrigin, fmt::format("no memory for {} B", part * threads)};
  std::memset(memory.get(), 1, part * threads);
  std::atomic<uint64_t> sink{0};
  uint64_t passes = 0, read_ns = 0, begin_ns = 0;
  std::atomic<bool> over{false};
  const auto end_ns = now_ns() + static_cast<uint64_t>(seconds * 1e9);
  // Between two barriers all threads flush, or all read.
  bool reads = false;
  std::barrier turn(threads, [&]() noexcept {
    const uint64_t now = now_ns();
    if (reads) {
      read_ns += now - begin_ns;
      ++passes;
      if (now >= end_ns) over = true;
    }
    reads = !reads;
    begin_ns = now;
  });
  const auto work = [&](uint32_t index) {
    const std::byte* const mine = memory.get() + index * part;
    while (!over) {
      for (uint64_t at = 0; at < part; at += kAlignment) hwy::FlushCacheline(mine + at);
      turn.arrive_and_wait();
      sink.fetch_add(
          HWY_DYNAMIC_DISPATCH(sum_words)(reinterpret_cast<const uint64_t*>(mine), part / sizeof(uint64_t)));
      turn.arrive_and_wait();
    }
  };
  std::vector<std::jthread> workers;
  try {
    for (uint32_t i = 1; i < threads; ++i) workers.emplace_back(work, i);
  } catch (const std::system_error& error) {
    // The threads that started would wait for those that did not.
    for (uint32_t i = static_cast<uint32_t>(workers.size()) + 1; i < threads; ++i) turn.arrive_and_drop();
    over = true;
    turn.arrive_and_drop();
    return Error{Code::no_space, kOrigin, fmt::format("{} threads: {}", threads, error.what())};
  }
  work(0);
  workers.clear();
  return static_cast<double>(passes * part * threads) * 1e9 / static_cast<double>(read_ns);
}

}  // namespace tierd
#endif  // HWY_ONCE
