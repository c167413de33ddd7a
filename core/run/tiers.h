// The tables [tiers.NAME] of a configuration, evaluated: agents that are loaded and checked, and the numbers
// of agents, memories and units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/kernel/counters.h"
#include "core/kernel/flow.h"
#include "core/kernel/memory.h"
#include "core/strategy/agent_file.h"

namespace tierd {

struct Tier {
  TierConfig config;
  AgentChoice agent;
  std::vector<uint32_t> cores =
      {};  // that its threads are bound to; none: as run.threads and run.bind have it
  // Its agents, memories and units are numbered consecutively from these.
  uint16_t first_agent = 0;
  MemoryId first_memory = kStore;  // for the tier that reads the store: the store
  UnitId first_unit = 0;           // for a tier that computes
  bool expands = false;            // it holds compressed neurons of the store expanded
  bool recodes = false;            // neurons are encoded anew on their way there

  // See kMemoryApart.
  bool apart() const { return is_apart(*agent.entry); }
  // For example a GPU.
  bool computes_apart() const { return apart() && config.compute; }
  // See kReadsDirectly: its agents read from the store into their own memories.
  bool reads_directly() const {
    return (agent.entry->serves & kReadsDirectly) != 0 && agent.get<bool>(kDirectParameter).value_or(false);
  }
  std::string key(std::string_view name) const { return config.table() + "." + std::string(name); }
};

// The traffic from one tier into another.
struct TierLink {
  std::string from, to;
  LinkCounters counters;

  static constexpr auto figures() {
    using F = TierLink;
    return std::tuple(Figure{&F::from, "from", Quantity::text, Adds::latest, "the tier below"},
                      Figure{&F::to, "to", Quantity::text, Adds::latest, "the tier above"},
                      Figure{&F::counters, "", Quantity::parts, Adds::sum, ""});
  }
};

// The encodings in which stored neurons are also held, and the key that names them.
struct Recoding {
  std::vector<Encoding> encodings;
  std::string key;
};

class TierTable {
 public:
  Tier store;                  // the tier that reads the store
  std::vector<Tier> memories;  // from the lowest upwards, at one height by name
  Topology topology;           // of all memories, without arenas and staging

  const Tier* find(std::string_view name) const;
  const Tier& tier_of(MemoryId memory) const;
  // Decides which tiers hold compressed neurons of the store expanded: bitmaps, or neurons of `codec` if it
  // is not empty, which units cannot compute from. Error: invalid_argument naming tiers.NAME.compressed.
  Status choose_forms(std::string_view codec);
  // Decides which tiers recode, and into what. Error: invalid_argument naming tiers.NAME.recode.
  Result<Recoding> choose_recoding();
  // Returns the units of all agents of "dram", or for "dram.1" that of the second one. Error:
  // invalid_argument naming `key`.
  Result<std::vector<uint32_t>> units_named(const std::string& name, const char* key) const;

 private:
  Status choose_form(Tier& tier, std::string_view codec) const;
  Status check_recoding(const Tier& tier) const;
};

// Evaluates the tables. Errors name a file or a key: those of loading; invalid_argument for agents that do
// not serve the operations of their tier, for tiers that lie over none or over each other, for too many
// memories.
Result<TierTable> choose_tiers(const Config& config);

}  // namespace tierd
