#include "core/kernel/arenas.h"

#include <fmt/format.h>

#include <utility>

namespace tierd {

Task<Status> Arenas::tell() {
  for (Arena& arena : arenas_) {
    Status told = co_await arena.tell();
    if (!told.ok()) co_return told;
  }
  co_return Status{};
}

Status Arenas::resizable() const {
  for (uint32_t u = 0; u < arenas_.size(); ++u) TIERD_TRY(arenas_[u].resizable(strategies_.caches[u]));
  return {};
}

// All caches have answered before anything is changed.
Task<Status> Arenas::resize(std::vector<uint64_t> parts) {
  if (Status able = resizable(); !able.ok()) co_return able;
  std::vector<ResizedCache> answers;
  for (uint32_t u = 0; u < arenas_.size(); ++u) {
    auto answer = ask(u, parts[u]);
    if (!answer.ok()) co_return answer.error();
    answers.push_back(std::move(*answer));
  }
  Status status;
  for (uint32_t u = 0; u < arenas_.size(); ++u) {
    const Status resized = co_await arenas_[u].resize(parts[u], std::move(answers[u]));
    if (status.ok()) status = resized;
  }
  co_return status;
}

Result<std::vector<uint32_t>> Arenas::unevenly_split() {
  std::vector<uint32_t> units;
  for (uint32_t u = 0; u < arenas_.size(); ++u) {
    auto& cache = strategies_.caches[u];
    if (cache.table.resplit == nullptr || !arenas_[u].resizable(cache).ok()) continue;
    uint32_t wanted = 0;
    TIERD_TRY(cache.call(&tierd_cache_1::resplit, "resplit", &wanted));
    if (wanted > 1) return cache.fault("resplit", fmt::format("{} is neither 0 nor 1", wanted));
    if (wanted == 1) units.push_back(u);
  }
  return units;
}

Task<Status> Arenas::split_anew(std::vector<uint32_t> units) {
  for (const uint32_t u : units) {
    const uint64_t bytes = arenas_[u].bytes();
    auto answer = ask(u, bytes);
    if (!answer.ok()) co_return answer.error();
    Status split = co_await arenas_[u].resize(bytes, std::move(*answer));
    if (!split.ok()) co_return split;
  }
  co_return Status{};
}

Result<ResizedCache> Arenas::ask(uint32_t unit, uint64_t bytes) {
  return arenas_[unit].ask(strategies_.caches[unit], bytes, placement_.at_home(sites_.editions, unit));
}

}  // namespace tierd
