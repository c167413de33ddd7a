// The arenas of all memories: changes their sizes, and how their caches split them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/kernel/placement.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/arena.h"

namespace tierd {

// [memories] The bytes of each arena; none: its size stays.
using ArenaParts = std::vector<std::optional<uint64_t>>;

class Arenas {
 public:
  // Everything referred to outlives the arenas.
  Arenas(const SiteTable& sites, Strategies& strategies, const Placement& placement, const Topology& topology)
      : sites_(sites), strategies_(strategies), placement_(placement), topology_(topology) {}
  // Appends the arena of the next memory.
  void add(const SupplyContext& context, Admission& admission) { arenas_.emplace_back(context, admission); }

  // Tells each agent which addresses are in use, unless it was told.
  Task<Status> tell();
  // Error: unsupported or plugin_fault, naming the cache or the agent that does not allow another size.
  Status resizable(MemoryId memory) const;

  // The functions below are called between two steps, when nothing is leased or pinned. Errors: those of
  // `resizable`, and plugin_fault, with everything as it was; internal, see Arena::resize.

  // Gives the arenas new sizes.
  Task<Status> resize(ArenaParts parts);
  // Returns the indices of the memories whose caches want another split of their bytes.
  Result<std::vector<uint32_t>> unevenly_split();
  // Splits the arenas of these memories again.
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
