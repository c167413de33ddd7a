// A few threads that compute one piece of work together, then the next. The caller is worker 0; the others
// spin for a moment between two pieces, so that consecutive pieces of a step need no wake-ups, and then park.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace tierd {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): padding keeps shared members in separate lines
class Team {
 public:
  struct Options {
    uint32_t workers = 1;              // the caller included
    std::vector<uint32_t> cores = {};  // [workers] of each worker; the caller binds itself; empty: unbound
    // How long an idle worker spins before it parks: about the cost of waking it, so that in the worst case
    // the cost doubles. The gaps inside a dense step, in which the caller normalizes, quantizes and serves
    // the kernel, are shorter (15 to 40 us); waits for a disk are far longer.
    uint64_t spin_ns = 50'000;
  };
  // Throws std::system_error if a thread cannot be created.
  explicit Team(const Options& options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  uint32_t workers() const { return static_cast<uint32_t>(threads_.size()) + 1; }

  // Calls work(begin, end, worker) for pieces that cover [0, n) once; returns when all are done. Pieces have
  // at least `grain` items (except the last) and shrink towards the end, so that the workers finish together.
  // `cost_ns`, an estimate, decides whether parked workers are woken. One caller at a time.
  void run(uint64_t n, uint64_t grain, uint64_t cost_ns,
           const std::function<void(uint64_t begin, uint64_t end, uint32_t worker)>& work);

  uint64_t launches() const { return launches_; }  // pieces of work done by more than the caller
  uint64_t wake_ups() const { return wake_ups_; }  // of them, those for which a parked worker was woken

 private:
  struct alignas(64) Job {
    std::atomic<uint64_t> next{0};
    uint64_t n = 0;
    uint64_t grain = 1;
    const std::function<void(uint64_t, uint64_t, uint32_t)>* work = nullptr;
  };
  void end();
  void worker(uint32_t index);
  void take_part(uint32_t index);

  Options options_;
  Job job_;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts launches
  alignas(64) std::atomic<uint32_t> busy_{0};   // workers that have yet to leave the present job
  alignas(64) std::atomic<uint32_t> parked_{0};
  std::atomic<bool> ending_{false};
  uint64_t launches_ = 0;
  uint64_t wake_ups_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace tierd
