#include "tests/gpu/cuda_on_host/fibers.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace on_host {
namespace {

namespace ctx = boost::context;

constexpr size_t kStackBytes = 256 << 10;

enum class Waits : uint8_t { not_at_all, for_block, for_warp, ended };

struct Thread {
  Indices at;
  Waits waits = Waits::not_at_all;
  unsigned lanes = 0;  // of the exchange that the thread waits for
  uint64_t handed = 0;
  struct Carrier* carrier = nullptr;  // set while the thread runs or waits
};

// A fiber that runs threads one after the other. Most kernels have no barrier and need only one carrier.
struct Carrier {
  ctx::fiber fiber;
  ctx::fiber back;  // the fiber that resumed it
  Thread* thread = nullptr;
  const std::function<void()>* body = nullptr;
};

struct Runner {
  std::mt19937_64 order{1};
  std::deque<std::unique_ptr<Carrier>> all;
  std::vector<Carrier*> idle;
  std::vector<Thread> threads;
  Thread* running = nullptr;

  Carrier& carrier() {
    if (idle.empty()) {
      Carrier& made = *all.emplace_back(std::make_unique<Carrier>());
      made.fiber =
          ctx::fiber(std::allocator_arg, ctx::fixedsize_stack(kStackBytes), [&made](ctx::fiber&& back) {
            made.back = std::move(back);
            for (;;) {
              (*made.body)();
              made.thread->waits = Waits::ended;
              made.back = std::move(made.back).resume();
            }
            return ctx::fiber();
          });
      idle.push_back(&made);
    }
    Carrier& free = *idle.back();
    idle.pop_back();
    return free;
  }

  void resume(Thread& thread, const std::function<void()>& body) {
    if (thread.carrier == nullptr) {
      thread.carrier = &carrier();
      thread.carrier->thread = &thread;
      thread.carrier->body = &body;
    }
    thread.waits = Waits::not_at_all;
    running = &thread;
    Carrier& carried = *thread.carrier;
    carried.fiber = std::move(carried.fiber).resume();
    running = nullptr;
    if (thread.waits != Waits::ended) return;
    idle.push_back(thread.carrier);
    thread.carrier = nullptr;
  }

  void wait(Waits what) {
    Thread& me = *running;
    me.waits = what;
    Carrier& carried = *me.carrier;
    carried.back = std::move(carried.back).resume();
  }

  [[noreturn]] void diverged(const char* what) {
    std::fprintf(stderr, "a kernel diverges: %s\n", what);
    std::abort();
  }

  // Completes the exchanges of whole warps, else the barrier. Returns whether any thread continues.
  bool release(std::vector<bool>& goes_on) {
    bool any = false;
    for (size_t first = 0; first < threads.size(); first += kWarpLanes) {
      const size_t end = std::min(first + kWarpLanes, threads.size());
      const auto at_warp =
          std::count_if(threads.begin() + static_cast<long>(first), threads.begin() + static_cast<long>(end),
                        [](const Thread& t) { return t.waits == Waits::for_warp; });
      if (at_warp == 0) continue;
      if (static_cast<size_t>(at_warp) != end - first || end - first != kWarpLanes)
        diverged("not all lanes of a warp take part in an exchange");
      uint64_t handed[kWarpLanes];
      for (size_t i = 0; i < kWarpLanes; ++i) {
        if (threads[first + i].lanes != threads[first].lanes) diverged("lanes exchange over other distances");
        handed[i] = threads[first + i].handed;
      }
      for (size_t i = 0; i < kWarpLanes; ++i) {
        threads[first + i].handed = handed[i ^ threads[first].lanes];
        goes_on[first + i] = any = true;
      }
    }
    if (any) return true;
    const auto waiting = std::count_if(threads.begin(), threads.end(),
                                       [](const Thread& t) { return t.waits == Waits::for_block; });
    if (waiting == 0) return false;
    if (static_cast<size_t>(waiting) != threads.size())
      diverged("not all threads of a block reach a barrier");
    goes_on.assign(threads.size(), true);
    return true;
  }

  void block(dim3 number, dim3 grid, dim3 dim, const std::function<void()>& body) {
    threads.assign(dim.x, Thread());
    for (unsigned t = 0; t < dim.x; ++t) threads[t].at = {dim3(t, 0, 0), number, dim, grid};
    std::vector<unsigned> order_of(dim.x);
    std::iota(order_of.begin(), order_of.end(), 0U);
    std::vector<bool> goes_on(dim.x, true);
    for (bool any = true; any;) {
      std::shuffle(order_of.begin(), order_of.end(), order);
      for (const unsigned t : order_of) {
        if (goes_on[t]) resume(threads[t], body);
      }
      goes_on.assign(dim.x, false);
      any = release(goes_on);
    }
  }
};

// Never destroyed: destroying fibers unwinds their stacks by an exception, which AddressSanitizer does not
// support there.
Runner& runner() {
  static Runner& runner = *new Runner;
  return runner;
}

}  // namespace

void shuffle(uint64_t seed) {
  runner().order.seed(seed);
}

const Indices& indices() {
  return runner().running->at;
}

void run_grid(dim3 grid, dim3 block, const std::function<void()>& body) {
  if (block.y != 1 || block.z != 1 || block.x > 1024) runner().diverged("blocks have one dimension here");
  std::vector<dim3> numbers;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) numbers.emplace_back(x, y, z);
    }
  }
  std::shuffle(numbers.begin(), numbers.end(), runner().order);
  for (const dim3& number : numbers) runner().block(number, grid, block, body);
}

void wait_for_block() {
  runner().wait(Waits::for_block);
}

uint64_t exchange_bits(unsigned mask, uint64_t bits, unsigned lanes) {
  if (mask != ~0U) runner().diverged("exchanges are of whole warps here");
  Thread& me = *runner().running;
  me.handed = bits;
  me.lanes = lanes;
  runner().wait(Waits::for_warp);
  return me.handed;
}

}  // namespace on_host
