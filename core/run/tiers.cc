#include "core/run/tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "core/run/checked_keys.h"
#include "core/run/strategy_choices.h"
#include "core/store/encoding_choice.h"
#include "core/system/cores.h"

namespace tierd {
namespace {

constexpr uint32_t kMostMemories = 32;
constexpr uint32_t kMostCore = 4095;

// The lane of an agent that moves neurons, while its first lane computes.
constexpr uint8_t kCopyLane = 1;
// The lane of an agent that reads directly, while the others compute and move.
constexpr uint8_t kReadLane = 2;

// The keys of a tier's table that the host reads itself; for the store's tier the first three.
constexpr std::array<std::string_view, 11> kKeysOfTier = {"kind",     "thread",     "cores", "count",
                                                          "capacity", "staging",    "over",  "link",
                                                          "compute",  "compressed", "recode"};
constexpr std::span<const std::string_view> kKeysOfStore = std::span(kKeysOfTier).first(3);

Error wrong(const Tier& tier, std::string_view key, std::string what) {
  return {Code::invalid_argument, tier.key(key), std::move(what)};
}

std::optional<uint32_t> core_in(std::string_view text) {
  uint32_t core = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), core);
  const bool whole = status == std::errc() && end == text.data() + text.size() && core <= kMostCore;
  return whole ? std::optional(core) : std::nullopt;
}

// Parses "0-3,8": each core once, and at most as many as exist, since each gets a thread. `most`: 0 if the
// number is not known. Error: invalid_argument naming the tier's key.
Result<std::vector<uint32_t>> parse_cores(const Tier& tier, size_t most) {
  std::vector<uint32_t> cores;
  std::set<uint32_t> named;
  std::stringstream parts(tier.config.cores);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t dash = std::min(part.find('-'), part.size());
    const auto first = core_in(std::string_view(part).substr(0, dash));
    const auto last = dash == part.size() ? first : core_in(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last < *first)
      return wrong(tier, "cores",
                   fmt::format("'{}' is not a list of cores; expected one such as 0-3,8", tier.config.cores));
    for (uint32_t core = *first; core <= *last; ++core) {
      if (!named.insert(core).second) return wrong(tier, "cores", fmt::format("{} is named twice", core));
      cores.push_back(core);
    }
  }
  if (most != 0 && cores.size() > most) {
    return wrong(
        tier, "cores",
        fmt::format("'{}' names {} cores, but this process has {}", tier.config.cores, cores.size(), most));
  }
  return cores;
}

class TierChooser {
 public:
  explicit TierChooser(const Config& config)
      : path_(plugin_path(config)), most_cores_(config.machine.empty() ? own_cores().units.size() : 0) {
    for (const TierConfig& tier : config.tiers) {
      if (tier.count != 0) tiers_.push_back({tier, {}});
    }
  }

  Result<TierTable> choose() {
    for (Tier& tier : tiers_) TIERD_TRY(load(tier));
    TIERD_TRY(take_store());
    for (Tier& tier : tiers_) {
      TIERD_ASSIGN(heights_[tier.config.name], height(tier, 0));
    }
    std::ranges::stable_sort(tiers_, {}, [&](const Tier& tier) {
      return std::pair(heights_[tier.config.name], tier.config.name);
    });
    TIERD_TRY(number());
    for (const Tier& tier : tiers_) TIERD_TRY(add(tier));
    TIERD_TRY(check_reach());
    table_.memories = std::move(tiers_);
    return std::move(table_);
  }

 private:
  Status load(Tier& tier) const {
    const std::string& name = tier.config.agent();
    TIERD_ASSIGN(const std::string file, path_.find("agent", name, tier.key("kind")));
    TIERD_ASSIGN(const AgentEntry* const entry, load_agent(file, name));
    TIERD_ASSIGN(tier.agent, choose_settings(*entry, file, tier.config.table(), tier.config.settings,
                                             reads_store(*entry) ? kKeysOfStore : std::span(kKeysOfTier)));
    TIERD_ASSIGN(tier.cores, parse_cores(tier, most_cores_));
    return check_named(tier.config.cache, tier.config.table() + ".cache", "a cache");
  }

  static bool reads_store(const AgentEntry& entry) { return (entry.serves & serves(Op::read)) != 0; }
  static bool serves_op(const Tier& tier, Op op) { return (tier.agent.entry->serves & serves(op)) != 0; }

  Status take_store() {
    const auto reads = [](const Tier& tier) { return reads_store(*tier.agent.entry); };
    const auto found = std::ranges::find_if(tiers_, reads);
    if (found == tiers_.end()) {
      std::string agents;
      for (const Tier& tier : tiers_) {
        agents +=
            fmt::format("{}'{}' of {}", agents.empty() ? "" : ", ", tier.config.agent(), tier.config.table());
      }
      return Error{Code::invalid_argument, "tiers",
                   fmt::format("no tier's agent serves 'read' ({}); set the agent of one tier to one that "
                               "does, such as 'flash' (tiers.NAME.kind)",
                               agents.empty() ? "there are no tiers" : agents)};
    }
    if (const auto second = std::find_if(found + 1, tiers_.end(), reads); second != tiers_.end()) {
      return wrong(*second, "kind",
                   fmt::format("agent '{}' serves 'read', as the agent of {} does; expected one such agent",
                               second->config.agent(), found->config.table()));
    }
    const TierConfig plain;
    const TierConfig& is = found->config;
    const auto is_said = [&](std::string_view key, bool same) -> Status {
      if (same) return {};
      return wrong(*found, key, "is set, but does not apply to the tier that reads the store");
    };
    TIERD_TRY(is_said("count", is.count == plain.count));
    TIERD_TRY(is_said("capacity", is.capacity == plain.capacity));
    TIERD_TRY(is_said("staging", is.staging == plain.staging));
    TIERD_TRY(is_said("over", is.over == plain.over));
    TIERD_TRY(is_said("link", is.link == plain.link));
    TIERD_TRY(is_said("compute", is.compute == plain.compute));
    TIERD_TRY(is_said("compressed", is.compressed == plain.compressed));
    TIERD_TRY(is_said("recode", is.recode == plain.recode));
    TIERD_TRY(is_said("cache.name", is.cache.name.empty()));
    table_.store = std::move(*found);
    tiers_.erase(found);
    if (tiers_.empty())
      return Error{Code::invalid_argument, "tiers", "no tier has a memory; add one such as [tiers.dram]"};
    return {};
  }

  Tier* find(std::string_view name) {
    const auto found = std::ranges::find(tiers_, name, [](const Tier& tier) { return tier.config.name; });
    return found != tiers_.end() ? &*found : nullptr;
  }
  bool is_store(std::string_view name) const { return name.empty() || name == table_.store.config.name; }

  // Returns the number of tiers that this one lies over.
  Result<uint32_t> height(const Tier& tier, size_t depth) {
    if (is_store(tier.config.over)) return 0U;
    const Tier* const below = find(tier.config.over);
    if (below == nullptr) return wrong(tier, "over", fmt::format("there is no tier '{}'", tier.config.over));
    if (depth == tiers_.size())
      return wrong(tier, "over", "the tier is over itself, directly or through others");
    TIERD_ASSIGN(const uint32_t of_below, height(*below, depth + 1));
    return of_below + 1;
  }

  Status number() {
    uint16_t agent = 1;
    MemoryId memory = 1;
    UnitId unit = 0;
    table_.store.first_agent = agent++;  // it is driven first: reads continue while others compute
    for (Tier& tier : tiers_) {
      const uint32_t count = tier.config.count;
      if (count > kMostMemories || count + memory - 1 > kMostMemories)
        return wrong(tier, "count",
                     fmt::format("{} agents make more than {} memories in total", count, kMostMemories));
      tier.first_agent = agent;
      tier.first_memory = memory;
      tier.first_unit = unit;
      agent = static_cast<uint16_t>(agent + count);
      memory = static_cast<MemoryId>(memory + count);
      if (!tier.config.compute) continue;
      if (!serves_op(tier, Op::run))
        return wrong(tier, "kind", fmt::format("agent '{}' does not serve 'run'", tier.config.agent()));
      unit = static_cast<UnitId>(unit + count);
    }
    if (unit == 0)
      return Error{Code::invalid_argument, "tiers", "no tier computes; set compute = true in one"};
    return {};
  }

  // Adds the tier's memories, links and units.
  Status add(const Tier& tier) {
    TIERD_ASSIGN(const std::vector<MemoryId> below, memories_below(tier));
    TIERD_ASSIGN(const std::vector<MemoryId> linked, linked_to(tier));
    Topology& topology = table_.topology;
    for (uint32_t i = 0; i < tier.config.count; ++i) {
      const auto id = static_cast<MemoryId>(tier.first_memory + i);
      Memory& memory = topology.memories.emplace_back();
      memory.name = tier.config.name;
      memory.agent = static_cast<uint16_t>(tier.first_agent + i);
      memory.over = below[i];
      std::vector<MemoryId> sources = linked;
      if (sources.empty() || std::ranges::find(sources, memory.over) == sources.end())
        sources.push_back(memory.over);
      const bool directly = tier.reads_directly();
      // The store serves neurons that no nearer memory holds.
      if (directly && std::ranges::find(sources, kStore) == sources.end()) sources.push_back(kStore);
      for (const MemoryId from : sources) {
        if (from == id) continue;  // a memory of a self-linked tier has no link to itself
        if (from == kStore && directly) {
          topology.links.push_back({.from = from, .to = id, .agent = memory.agent, .lane = kReadLane});
        } else if (from == kStore) {
          topology.links.push_back({.from = from, .to = id, .agent = table_.store.first_agent});
        } else {
          topology.links.push_back({.from = from, .to = id, .agent = memory.agent, .lane = kCopyLane});
        }
      }
      const bool joint_runs = (tier.agent.entry->serves & kJoinsRuns) != 0;
      if (tier.config.compute)
        topology.units.push_back({.agent = memory.agent, .memory = id, .joint_runs = joint_runs});
    }
    return {};
  }

  // Checks that reads can land in every memory with a link from the store, unless its own agent reads, and
  // that neurons can leave every memory with a link to another. A memory that is apart must lie over one of
  // the host's even if its agent reads directly: the tier of that memory holds the memory of the process, and
  // its cache holds only neurons that cross the link.
  Status check_reach() const {
    for (const Link& link : table_.topology.links) {
      const Tier& to = tier_of(link.to);
      const bool over_store = table_.topology.memory(link.to).over == kStore;
      if (link.from == kStore && to.apart() && (over_store || !to.reads_directly())) {
        return wrong(
            to, to.config.link.empty() ? "over" : "link",
            fmt::format("agent '{}' has a memory of its own device, into which reads from the store cannot "
                        "land; set a tier that it fetches from, as in tiers.{}.over = \"dram\"",
                        to.config.agent(), to.config.name));
      }
      if (link.from != kStore && tier_of(link.from).apart()) {
        return wrong(to, to.config.link.empty() ? "over" : "link",
                     fmt::format("no other agent can access the memory of agent '{}'",
                                 tier_of(link.from).config.agent()));
      }
    }
    return {};
  }
  const Tier& tier_of(MemoryId memory) const {
    return *std::ranges::find_if(tiers_, [&](const Tier& tier) {
      return memory >= tier.first_memory && memory < tier.first_memory + tier.config.count;
    });
  }

  // Returns, for each of the tier's memories, the one that it lies over.
  Result<std::vector<MemoryId>> memories_below(const Tier& tier) {
    std::vector<MemoryId> below(tier.config.count, kStore);
    if (is_store(tier.config.over)) return below;
    const Tier& lower = *find(tier.config.over);
    if (lower.config.count != 1 && lower.config.count != tier.config.count) {
      return wrong(
          tier, "over",
          fmt::format("{} is {}, and {} is {}; expected {} to be 1, or both to be equal", tier.key("count"),
                      tier.config.count, lower.key("count"), lower.config.count, lower.key("count")));
    }
    for (uint32_t i = 0; i < below.size(); ++i)
      below[i] = static_cast<MemoryId>(lower.first_memory + (lower.config.count == 1 ? 0 : i));
    return below;
  }

  // Returns the memories that `link` names, in order.
  Result<std::vector<MemoryId>> linked_to(const Tier& tier) {
    std::vector<MemoryId> linked;
    std::set<const Tier*> named;  // NULL: the store
    std::stringstream names(tier.config.link);
    for (std::string name; std::getline(names, name, ',');) {
      std::erase(name, ' ');
      const Tier* const from = find(name);
      if ((from != nullptr || is_store(name)) && !named.insert(from).second)
        return wrong(tier, "link", fmt::format("'{}' is named twice", name));
      if (is_store(name)) {
        linked.push_back(kStore);
      } else if (from == nullptr) {
        return wrong(tier, "link", fmt::format("there is no tier '{}'", name));
      } else if (from->first_memory > tier.first_memory) {
        return wrong(tier, "link", fmt::format("'{}' is not below this tier", name));
      } else if (from == find(tier.config.name) && tier.config.count < 2) {
        return wrong(tier, "link", fmt::format("'{}' has one memory, which cannot fetch from itself", name));
      } else {
        for (uint32_t i = 0; i < from->config.count; ++i)
          linked.push_back(static_cast<MemoryId>(from->first_memory + i));
      }
    }
    const bool moves = !is_store(tier.config.over) ||
                       std::ranges::any_of(linked, [](MemoryId from) { return from != kStore; });
    if (moves && !serves_op(tier, Op::move))
      return wrong(tier, "kind",
                   fmt::format("agent '{}' does not serve 'move', which fetches neurons from other memories",
                               tier.config.agent()));
    return linked;
  }

  const PluginPath path_;
  const size_t most_cores_;  // 0: unknown, for a described machine
  std::vector<Tier> tiers_;
  std::map<std::string, uint32_t> heights_;
  TierTable table_;
};

}  // namespace

const Tier* TierTable::find(std::string_view name) const {
  const auto found = std::ranges::find(memories, name, [](const Tier& tier) { return tier.config.name; });
  return found != memories.end() ? &*found : nullptr;
}

const Tier& TierTable::tier_of(MemoryId memory) const {
  if (memory == kStore) return store;
  size_t tier = 0;
  while (memory >= memories[tier].first_memory + memories[tier].config.count) ++tier;
  return memories[tier];
}

Result<std::vector<uint32_t>> TierTable::units_named(const std::string& name, const char* key) const {
  std::vector<uint32_t> units;
  if (name.empty()) return units;
  std::string all;
  for (const Tier& tier : memories) {
    if (!tier.config.compute) continue;
    for (uint32_t i = 0; i < tier.config.count; ++i) {
      const std::string number = fmt::format("{}.{}", tier.config.name, i);
      if (name == tier.config.name || name == number) units.push_back(tier.first_unit + i);
      all += (all.empty() ? "" : ", ") + number;
    }
  }
  if (!units.empty()) return units;
  return Error{Code::invalid_argument, key,
               fmt::format("there is no unit '{}'; expected one of {}, or a tier's name for all of its units",
                           name, all)};
}

// Chooses whether the tier holds expanded neurons; neurons expanded below are never compressed again.
Status TierTable::choose_form(Tier& tier, std::string_view codec) const {
  const Tier* expanded_below = nullptr;
  bool from_store = false;
  for (const Link& link : topology.links) {
    if (&tier_of(link.to) != &tier) continue;
    from_store = from_store || link.from == kStore;
    if (link.from != kStore && tier_of(link.from).expands) expanded_below = &tier_of(link.from);
  }
  const bool must = from_store && !codec.empty();
  if (tier.config.compressed == "kept" && (expanded_below != nullptr || must)) {
    return wrong(tier, "compressed",
                 must ? fmt::format("is 'kept', but neurons that codec '{}' compressed cannot be computed "
                                    "from; set \"expanded\"",
                                    codec)
                      : fmt::format("is 'kept', but {}, from which the tier fetches, has expanded neurons; "
                                    "set \"auto\" or \"expanded\"",
                                    expanded_below->config.table()));
  }
  tier.expands = must || expanded_below != nullptr || tier.config.compressed == "expanded";
  for (const Link& link : topology.links) {
    if (!tier.expands || &tier_of(link.to) != &tier) continue;
    if (link.from != kStore && tier_of(link.from).expands) continue;
    if (link.from == kStore && tier.reads_directly()) {
      return wrong(tier, kDirectParameter,
                   "neurons that are read directly cannot be expanded on their way; set tiers." +
                       tier.config.name + ".direct = false");
    }
    const Tier& carrier = link.from == kStore ? store : tier;
    const bool can = (carrier.agent.entry->serves & kRecodes) != 0;
    if (!can || (link.from != kStore && !tier.config.compute)) {
      return wrong(tier, "compressed",
                   fmt::format("is 'expanded', but agent '{}' does not expand the neurons that it fetches",
                               carrier.config.agent()));
    }
  }
  return {};
}

Status TierTable::choose_forms(std::string_view codec) {
  for (Tier& tier : memories) TIERD_TRY(choose_form(tier, codec));
  return {};
}

// Checks that a tier can recode. Links from a memory that already recodes carry its editions unchanged.
Status TierTable::check_recoding(const Tier& tier) const {
  const std::string can_recode = "neurons are recoded by the agent that computes from them, but ";
  if (!tier.config.compute || (tier.agent.entry->serves & kRecodes) == 0)
    return wrong(tier, "recode",
                 can_recode + "agent '" + tier.config.agent() + "' does not recode, or does not compute");
  for (const Link& link : topology.links) {
    if (link.from != kStore || &tier_of(link.to) != &tier) continue;
    return wrong(tier, "recode",
                 "neurons that are read from the store are not recoded; put a tier between them (tiers." +
                     tier.config.name + ".over), or store these editions (model.editions)");
  }
  return {};
}

Result<Recoding> TierTable::choose_recoding() {
  Recoding chosen;
  for (Tier& tier : memories) {
    const std::string& said = tier.config.recode;
    const std::string key = tier.key("recode");
    TIERD_ASSIGN(std::vector<Encoding> encodings, parse_editions(said, key));
    if (encodings.empty()) continue;
    TIERD_TRY(check_recoding(tier));
    if (!chosen.encodings.empty() && chosen.encodings != encodings) {
      return wrong(tier, "recode",
                   fmt::format("'{}' differs from {}; expected the same editions in all tiers that recode",
                               said, chosen.key));
    }
    tier.recodes = true;
    chosen = {std::move(encodings), key};
  }
  return chosen;
}

Result<TierTable> choose_tiers(const Config& config) {
  return TierChooser(config).choose();
}

}  // namespace tierd
