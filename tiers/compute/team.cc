#include "tiers/compute/team.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/base/time.h"
#include "core/system/cores.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tierd {
namespace {

// Waking a parked thread takes 20 to 40 us; the caller alone is faster for work shorter than this.
constexpr uint64_t kWorthWakingNs = 100'000;
// The caller alone is faster for work shorter than this, even if the others are awake.
constexpr uint64_t kWorthSharingNs = 2'000;
constexpr uint32_t kSpinsBeforeYield = 4096;  // about 0.1 ms

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

Team::Team(const Options& options) : options_(options) {
  try {
    for (uint32_t i = 1; i < options.workers; ++i) threads_.emplace_back([this, i] { worker(i); });
  } catch (const std::system_error& error) {
    end();
    throw std::system_error(error.code(), fmt::format("starting {} compute threads", options.workers));
  }
}

Team::~Team() {
  end();
}

void Team::end() {
  ending_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::take_part(uint32_t index) {
  const auto& work = *job_.work;
  const uint64_t n = job_.n;
  uint64_t begin = job_.next.load(std::memory_order_relaxed);
  while (begin < n) {
    const uint64_t piece = std::max(job_.grain, (n - begin) / (2 * workers()));
    const uint64_t end = std::min(n, begin + piece);
    if (!job_.next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
    work(begin, end, index);
    begin = job_.next.load(std::memory_order_relaxed);
  }
}

void Team::run(uint64_t n, uint64_t grain, uint64_t cost_ns,
               const std::function<void(uint64_t, uint64_t, uint32_t)>& work) {
  if (n == 0) return;
  const bool asleep = parked_.load(std::memory_order_relaxed) != 0;
  if (threads_.empty() || n <= grain || cost_ns < (asleep ? kWorthWakingNs : kWorthSharingNs)) {
    work(0, n, 0);
    return;
  }
  ++launches_;
  job_.next.store(0, std::memory_order_relaxed);
  job_.n = n;
  job_.grain = std::max<uint64_t>(1, grain);
  job_.work = &work;
  busy_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  // A worker announces that it parks before it reads the epoch a last time, so one of the two sees the other.
  if (parked_.load(std::memory_order_seq_cst) != 0) {
    ++wake_ups_;
    epoch_.notify_all();
  }
  take_part(0);
  // If other processes use the machine, the last worker may be waiting for this very core.
  for (uint32_t spins = 1; busy_.load(std::memory_order_acquire) != 0; ++spins) {
    relax();
    if (spins % kSpinsBeforeYield == 0) std::this_thread::yield();
  }
}

void Team::worker(uint32_t index) {
  if (!options_.cores.empty()) (void)bind_this_thread(options_.cores[index]);
  uint32_t seen = 0;
  for (;;) {
    const uint64_t idle_since = now_ns();
    for (uint32_t spins = 0; epoch_.load(std::memory_order_acquire) == seen; ++spins) {
      relax();
      if (spins % 64 != 63 || now_ns() - idle_since < options_.spin_ns) continue;
      parked_.fetch_add(1, std::memory_order_seq_cst);
      if (epoch_.load(std::memory_order_seq_cst) == seen) epoch_.wait(seen, std::memory_order_acquire);
      parked_.fetch_sub(1, std::memory_order_relaxed);
    }
    seen = epoch_.load(std::memory_order_acquire);
    if (ending_.load(std::memory_order_acquire)) return;
    take_part(index);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace tierd
