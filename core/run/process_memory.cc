#include "core/run/process_memory.h"

#include <algorithm>
#include <vector>

namespace tierd {
namespace {

constexpr uint64_t kAlways = 8u << 20;
constexpr uint64_t kOfExtent = 16;  // table bytes per extent of the store
constexpr uint64_t kOfNeuron = 36;  // per neuron and memory: residency, cache, lists of a pass, a length
constexpr uint64_t kOfStack = 8u << 20;
constexpr uint64_t kOfHeap = 64u << 20;  // per thread, in glibc
constexpr uint64_t kOtherThreads = 4;    // besides those that compute

}  // namespace

uint64_t process_bytes(const Manifest& manifest, uint64_t memories) {
  uint64_t neurons = 0;
  for (const StoredSite* site : manifest.stored()) neurons += site->neurons();
  return kAlways + manifest.extents.size() * kOfExtent + neurons * memories * kOfNeuron;
}

MemoryLimit memory_for_tiers(const Manifest& manifest, uint64_t memories, uint32_t threads) {
  using Counts = MemoryLimit::Counts;
  std::vector<MemoryLimit> limits = memory_limits();
  for (MemoryLimit& limit : limits) {
    uint64_t of_thread = limit.counts == Counts::pages ? 0 : kOfStack;
    if (limit.counts == Counts::addresses) of_thread += kOfHeap;
    const uint64_t beside = process_bytes(manifest, memories) + (threads + kOtherThreads) * of_thread;
    const uint64_t left = less_reserve(limit.left_bytes);
    limit.left_bytes = left - std::min(left, beside);
    limit.beside_bytes = beside;
  }
  return tightest(limits);
}

}  // namespace tierd
