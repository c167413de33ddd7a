// Strategies whose answers the test gives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "tests/kernel/scripted_agents.h"

namespace tierd {

inline constexpr uint64_t kSequences[64] = {0};  // of the rows

struct Ahead {
  SiteId site;
  uint32_t distance;
  std::optional<Neurons> neurons = std::nullopt;  // none: all
  uint32_t memory = TIERD_NO_MEMORY;
  uint32_t edition = TIERD_NO_EDITION;
  std::vector<float> scores = {};
};

// The neurons that a cache keeps from the start.
struct Wanted {
  EditionId edition;
  std::optional<Neurons> neurons = std::nullopt;  // none: all
};

// The neurons whose home a balancer moves to the unit of a memory.
struct WantedThere {
  uint32_t memory;
  Wanted wanted;
};

using Admit = std::function<int(const tierd_set_view* missing, int priority, uint32_t free_slots,
                                uint8_t* verdict, tierd_victims_out* victims)>;

// The strategies' answers. By default all is active, no wish is made, everything bypasses.
struct Script {
  std::function<int(SiteId, tierd_set_out*)> predict;
  std::function<void(SiteId, const tierd_rows_view*)> sees;  // called before `predict`
  std::function<void(const tierd_set_view* predicted, const tierd_set_view* truth)> observe;
  std::function<std::vector<Ahead>(SiteId)> look_ahead;
  std::function<int(const tierd_set_view*, uint8_t*)> assign;
  std::function<int(const tierd_set_view*, uint8_t*)> choose;
  Admit admit;
  std::function<void(EditionId, tierd_victims_out*)> expire;
  std::function<int(uint64_t, uint32_t*, tierd_victims_out*)> resize;
  uint32_t resplit = 0;  // the cache's answer
  std::function<std::vector<Wanted>()> fill;
  std::function<std::vector<Ahead>(SiteId)> ahead;       // of the cache
  std::function<std::vector<Wanted>(SiteId)> meanwhile;  // `idle` of the cache
  std::function<std::vector<WantedThere>(SiteId)> rebalance;
  std::function<void(const tierd_fired_view*)> fired;
  std::function<int(SiteId, uint8_t*)> heat;  // unset: no plugin keeps heat
  std::map<std::string, int> code;            // return codes of the other functions
  std::vector<std::string> calls;             // of the cache, by edition: "landed 2:1,3"

  // Returns strategies that refer to this script, which must outlive them.
  Strategies strategies();
  // Called by these strategies.
  int call(const std::string& name, EditionId edition, const uint32_t* idx, uint32_t n);
  int hand_over(const std::vector<Ahead>& wishes, WishList& list, const char* what);
  int hand_over(const std::vector<Wanted>& wanted, const char* what);
  int hand_over(const std::vector<WantedThere>& wanted);

  WishList of_predictor = WishList(4096), of_cache = WishList(4096), of_balancer = WishList(4096);
};

// Returns an `admit` that keeps neurons while slots are free and streams the rest.
Admit keep_what_fits();

// Quantizers: by_number gives neuron i the level i % 3, all_in gives all neurons one level.
int by_number(const tierd_set_view* set, uint8_t* level);
std::function<int(const tierd_set_view*, uint8_t*)> all_in(uint8_t level);

}  // namespace tierd
