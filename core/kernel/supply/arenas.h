// The arenas of all memories: how bytes come to them, and how their caches split them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/kernel/placement.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/arena.h"

namespace tierd {

// [memories] bytes of each one's arena; none: it keeps what it has.
using ArenaParts = std::vector<std::optional<uint64_t>>;

class Arenas {
 public:
  // Everything referred to outlives the arenas.
  Arenas(const SiteTable& sites, Strategies& strategies, const Placement& placement, const Topology& topology)
      : sites_(sites), strategies_(strategies), placement_(placement), topology_(topology) {}
  // The next memory's.
  void add(Dispatcher& dispatcher, Residency& residency, Supply& supply, const Memory& memory,
           Notice& changed) {
    arenas_.emplace_back(dispatcher, sites_, residency, supply, static_cast<MemoryId>(arenas_.size() + 1),
                         memory, changed);
  }

  // Tells each agent what is in use, unless it was told.
  Task<Status> tell();
  // Error: unsupported or plugin_fault, naming the cache or the agent that cannot have another size.
  Status resizable(MemoryId memory) const;

  // What follows: between two steps, when nothing is leased or pinned. Errors: those of `resizable`, and
  // plugin_fault, with everything as it was; internal, see Arena::resize.

  // `parts`: what the caches may split from now on.
  Task<Status> resize(ArenaParts parts);
  // Indices of the memories whose caches want another split of what they have.
  Result<std::vector<uint32_t>> unevenly_split();
  // These get it.
  Task<Status> split_anew(std::vector<uint32_t> memories);

 private:
  Result<ResizedCache> ask(size_t m, uint64_t bytes);

  const SiteTable& sites_;
  Strategies& strategies_;
  const Placement& placement_;
  const Topology& topology_;
  std::deque<Arena> arenas_;  // [memories]
};

}  // namespace tierd
