#include "core/kernel/supply/arenas.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace tierd {

Task<Status> Arenas::tell() {
  for (Arena& arena : arenas_) {
    Status told = co_await arena.tell();
    if (!told.ok()) co_return told;
  }
  co_return Status{};
}

Status Arenas::resizable(MemoryId memory) const {
  return arenas_[memory - 1u].resizable(strategies_.caches[memory - 1u]);
}

// Asks all caches before it changes anything.
Task<Status> Arenas::resize(ArenaParts parts) {
  std::vector<std::optional<ResizedCache>> answers(arenas_.size());
  for (uint32_t m = 0; m < arenas_.size(); ++m) {
    if (!parts[m]) continue;
    if (Status able = resizable(static_cast<MemoryId>(m + 1)); !able.ok()) co_return able;
    auto answer = ask(m, *parts[m]);
    if (!answer.ok()) co_return answer.error();
    answers[m] = std::move(*answer);
  }
  Status status;
  for (uint32_t m = 0; m < arenas_.size(); ++m) {
    if (!answers[m]) continue;
    const Status resized = co_await arenas_[m].resize(*parts[m], std::move(*answers[m]));
    if (status.ok()) status = resized;
  }
  co_return status;
}

Result<std::vector<uint32_t>> Arenas::unevenly_split() {
  std::vector<uint32_t> memories;
  for (uint32_t m = 0; m < arenas_.size(); ++m) {
    auto& cache = strategies_.caches[m];
    if (cache.table.resplit == nullptr || !arenas_[m].resizable(cache).ok()) continue;
    uint32_t wanted = 0;
    TIERD_TRY(cache.call(&tierd_cache_1::resplit, "resplit", &wanted));
    if (wanted > 1) return cache.fault("resplit", fmt::format("{}, expected 0 or 1", wanted));
    if (wanted == 1) memories.push_back(m);
  }
  return memories;
}

Task<Status> Arenas::split_anew(std::vector<uint32_t> memories) {
  for (const uint32_t m : memories) {
    const uint64_t bytes = arenas_[m].bytes();
    auto answer = ask(m, bytes);
    if (!answer.ok()) co_return answer.error();
    Status split = co_await arenas_[m].resize(bytes, std::move(*answer));
    if (!split.ok()) co_return split;
  }
  co_return Status{};
}

Result<ResizedCache> Arenas::ask(size_t m, uint64_t bytes) {
  return arenas_[m].ask(strategies_.caches[m], bytes,
                        placement_.at_home(sites_.editions, topology_, static_cast<MemoryId>(m + 1)));
}

}  // namespace tierd
