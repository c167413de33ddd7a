#include "core/watch/trace/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/row_mask.h"
#include "core/watch/trace/header_fields.h"

namespace tierd {
namespace {

using nlohmann::json;

// Limits above any real model, since the reader allocates what a header claims.
constexpr uint64_t kMostSites = 1u << 20;
constexpr uint64_t kMostNeurons = 1u << 26;
// A kernel takes some 100 bytes a neuron, so a short header must not claim many. A site and its edition take
// some 400 header bytes; those of a dense model of 340B have 73,728 neurons, and an embedding may have one
// for each word.
constexpr uint64_t kMostNeuronsOfByte = 256;
constexpr uint64_t kMostNeuronsOfAny = 1u << 18;
constexpr uint64_t kMostBlocks = 1u << 20;
constexpr uint64_t kMostMaskBytes = 1u << 28;
constexpr uint64_t kMostStride = 1u << 12;  // layers of a group
constexpr uint64_t kMostEditionsOfSite = 16;
constexpr uint64_t kMostEditions = kMostSites * kMostEditionsOfSite;
constexpr uint64_t kMostReach = 3 * kMostNeurons;  // extents from a site's first neuron to its last
constexpr uint64_t kMostAgents = 64;
constexpr uint64_t kMostUnits = 32;
constexpr uint64_t kMostLinks = 1024;
constexpr uint64_t kMostPartsOfUnit = 3;  // queries, keys, values
constexpr uint64_t kMostMessages = 1u << 16;
constexpr uint64_t kMostListBytes = 1u << 30;
constexpr uint64_t kMostBytes = uint64_t{1} << 46;

// Returns [5, 5, 5, 7] as [[3, 5], [1, 7]].
json runs(const std::vector<uint32_t>& values) {
  json list = json::array();
  for (size_t i = 0; i < values.size();) {
    size_t n = 1;
    while (i + n < values.size() && values[i + n] == values[i]) ++n;
    list.push_back({n, values[i]});
    i += n;
  }
  return list;
}

json strategy_json(const StrategyConfig& strategy) {
  json settings = json::object();
  for (const Setting& setting : strategy.settings) {
    std::visit([&](const auto& value) { settings[setting.key] = value; }, setting.value);
  }
  return {{"name", strategy.name}, {"tensors", strategy.tensors}, {"settings", settings}};
}

json columns_json(const std::vector<UnitColumns>& columns) {
  json list = json::array();
  for (const UnitColumns& part : columns) list.push_back({part.unit, part.first, part.count});
  return list;
}

json site_json(const Site& site) {
  json object = {{"name", site.name},
                 {"layer", site.layer},
                 {"op_group", site.op_group},
                 {"layer_group", site.layer_group},
                 {"slicing", site.label},
                 {"added", site.added},
                 {"run", site.run},
                 {"set", static_cast<uint8_t>(site.set)},
                 {"measurable", site.contribution.there()},
                 {"neurons", site.n},
                 {"n_in", site.n_in},
                 {"n_out", site.n_out},
                 {"input_of", columns_json(site.flow.input)},
                 {"before", site.flow.before},
                 {"output_to", columns_json(site.flow.output)},
                 {"editions", site.editions}};
  if (site.of_expert()) object["expert"] = site.expert;
  if (site.never_silent) object["never_silent"] = true;
  return object;
}

json edition_json(const Edition& edition) {
  json object = {{"owner", edition.owner},           {"encoding", edition.label},
                 {"slot_bytes", edition.slot_bytes}, {"first_extent", edition.first_extent},
                 {"stride", edition.stride},         {"bytes", runs(edition.bytes)}};
  if (edition.made_of != kNoEdition) object["made_of"] = edition.made_of;
  return object;
}

// `width`: the width of the matrix of these columns.
std::vector<UnitColumns> read_columns(HeaderFields& fields, const json& object, const char* key,
                                      uint32_t width) {
  std::vector<UnitColumns> columns;
  for (const json& part : fields.list(object, key, kMostUnits * kMostPartsOfUnit)) {
    const bool good = part.is_array() && part.size() == 3 &&
                      std::ranges::all_of(part, [](const json& n) { return n.is_number_unsigned(); }) &&
                      part[0].get<uint64_t>() < kMostUnits && part[1].get<uint64_t>() < std::max(width, 1U) &&
                      part[2].get<uint64_t>() <= UINT32_MAX;
    if (!good) {
      fields.fail(key, "is not unit, first column and number of columns of each part");
      break;
    }
    columns.push_back({part[0].get<UnitId>(), part[1].get<uint32_t>(), part[2].get<uint32_t>()});
  }
  if (columns.empty()) fields.fail(key, "is nobody");
  return columns;
}

// `most_neurons`: the limit that is left.
Site read_site(HeaderFields& fields, const json& object, uint64_t most_neurons) {
  Site site;
  site.name = fields.text(object, "name");
  site.layer = static_cast<uint16_t>(fields.number(object, "layer", UINT16_MAX));
  site.op_group = static_cast<uint16_t>(fields.number(object, "op_group", UINT16_MAX));
  site.layer_group = static_cast<uint16_t>(fields.number(object, "layer_group", UINT16_MAX));
  if (object.contains("expert"))
    site.expert = static_cast<uint32_t>(fields.number(object, "expert", kNoExpertNumber - 1));
  if (object.contains("never_silent")) site.never_silent = fields.flag(object, "never_silent");
  site.label = static_cast<uint8_t>(fields.number(object, "slicing", UINT8_MAX));
  site.added = fields.flag(object, "added");
  site.run = static_cast<uint32_t>(fields.number(object, "run", kMostNeurons));
  site.set = static_cast<Site::Set>(fields.number(object, "set", static_cast<uint64_t>(Site::Set::chosen)));
  if (fields.flag(object, "measurable")) site.contribution.offset = 0;  // the place is not used
  site.n = static_cast<uint32_t>(fields.number(object, "neurons", kMostNeurons));
  if (site.n > most_neurons)
    fields.fail("neurons", fmt::format("are {} of {}, {} more are believed of a header of this size", site.n,
                                       site.name, most_neurons));
  site.n_in = static_cast<uint32_t>(fields.number(object, "n_in", UINT32_MAX));
  site.n_out = static_cast<uint32_t>(fields.number(object, "n_out", UINT32_MAX));
  site.flow.input = read_columns(fields, object, "input_of", site.n_in);
  site.flow.before = fields.flag(object, "before");
  site.flow.output = read_columns(fields, object, "output_to", site.n_out);
  if (site.flow.holder() == Flow::kNoUnit && (site.flow.before || site.chosen()))
    fields.fail("input_of", "is more than the one unit that runs the segment before");
  fields.numbers(object, "editions", kMostEditionsOfSite, kMostEditions, site.editions);
  if (site.editions.empty()) fields.fail("editions", "are none");
  if (site.n == 0) fields.fail("neurons", "is 0");
  if (site.run == 0) fields.fail("run", "is 0");
  return site;
}

// `sites`: of the header; one of them owns the edition. `most_neurons`: the limit that is left.
Edition read_edition(HeaderFields& fields, const json& object, const SiteTable& sites,
                     uint64_t most_neurons) {
  Edition edition;
  edition.owner = static_cast<SiteId>(fields.number(object, "owner", sites.size() - 1));
  edition.n = fields.good() ? sites[edition.owner].n : 0;
  if (edition.n > most_neurons) {
    fields.fail("editions",
                fmt::format("have too many neurons: {} of {}, {} more are believed of a header of "
                            "this size",
                            edition.n, sites[edition.owner].name, most_neurons));
    return edition;
  }
  edition.label = static_cast<uint16_t>(fields.number(object, "encoding", UINT16_MAX));
  if (object.contains("made_of"))
    edition.made_of = static_cast<EditionId>(fields.number(object, "made_of", kMostEditions));
  edition.slot_bytes = static_cast<uint32_t>(fields.number(object, "slot_bytes", UINT32_MAX));
  edition.first_extent =
      static_cast<uint32_t>(fields.number(object, "first_extent", UINT32_MAX - kMostReach));
  edition.stride = static_cast<uint32_t>(fields.number(object, "stride", kMostStride));
  for (const json& run : fields.list(object, "bytes", edition.n)) {
    const bool pair = run.is_array() && run.size() == 2 && run[0].is_number_unsigned() &&
                      run[1].is_number_unsigned() && run[1].get<uint64_t>() <= UINT32_MAX;
    if (!pair || run[0].get<uint64_t>() > edition.n - edition.bytes.size()) {
      fields.fail("bytes", "is not one number a neuron");
      return edition;
    }
    edition.bytes.insert(edition.bytes.end(), run[0].get<uint64_t>(), run[1].get<uint32_t>());
  }
  if (edition.bytes.size() != edition.n) fields.fail("bytes", "is not one number a neuron");
  if (edition.stride == 0) fields.fail("stride", "is 0");
  if (edition.stride * uint64_t{edition.n} > kMostReach) fields.fail("stride", "leads too far");
  if (edition.slot_bytes == 0 || edition.slot_bytes % kPlaceUnit != 0)
    fields.fail("slot_bytes", "is not a multiple of 64");
  return edition;
}

// Returns whether a link leads from the memory that this one lies over, which fetches neurons that no memory
// holds.
bool is_reached(const Topology& topology, MemoryId memory) {
  const MemoryId over = topology.memory(memory).over;
  return std::ranges::any_of(topology.links,
                             [&](const Link& link) { return link.to == memory && link.from == over; });
}

void read_topology(HeaderFields& fields, const json& object, TraceHeader& header) {
  Topology& topology = header.scheduler.topology;
  const uint64_t agents = header.agents.size();
  const size_t editions = header.sites.editions.size();
  const auto agent_of = [&](const json& from) {
    const auto agent = static_cast<uint16_t>(fields.number(from, "agent", agents));
    if (agent == 0) fields.fail("agent", "is 0; agents are numbered from 1");
    return agent;
  };
  const auto numbers = [&](const json& from, const char* key, std::vector<uint32_t>& list) {
    fields.numbers(from, key, editions, UINT32_MAX, list);
    if (list.size() != editions) fields.fail(key, "is not one number an edition");
  };
  for (const json& from : fields.list(object, "memories", kMostUnits)) {
    Memory& memory = topology.memories.emplace_back();
    memory.agent = agent_of(from);
    memory.name = fields.text(from, "name");
    memory.over = static_cast<MemoryId>(fields.number(from, "over", topology.memories.size() - 1));
    memory.arena_bytes = fields.number(from, "arena_bytes", kMostBytes);
    if (from.contains("held")) numbers(from, "held", memory.held);
    numbers(from, "slots", header.slots.emplace_back());
    numbers(from, "reserved", memory.reserved);
    memory.resizes = fields.flag(from, "resizes");
    memory.staging_offset = fields.number(from, "staging_offset", kMostBytes);
    memory.staging_blocks = static_cast<uint32_t>(fields.number(from, "staging_blocks", kMostBlocks));
    if (memory.staging_blocks < 2) fields.fail("staging_blocks", "is less than 2");
    memory.block_bytes = static_cast<uint32_t>(fields.number(from, "block_bytes", UINT32_MAX));
  }
  const size_t memories = topology.memories.size();
  if (memories == 0) fields.fail("memories", "are none");
  for (const json& from : fields.list(object, "links", kMostLinks)) {
    Link& link = topology.links.emplace_back();
    link.from = static_cast<MemoryId>(fields.number(from, "from", memories));
    link.to = static_cast<MemoryId>(fields.number(from, "to", memories));
    if (link.to == kStore) return fields.fail("to", "is the store");
    if (link.from == link.to) return fields.fail("from", "is the memory itself");
    const auto same = [&](const Link& other) { return other.from == link.from && other.to == link.to; };
    if (std::ranges::count_if(topology.links, same) != 1) return fields.fail("links", "are the same twice");
    link.agent = agent_of(from);
    link.lane = static_cast<uint8_t>(fields.number(from, "lane", UINT8_MAX));
  }
  for (size_t m = 0; m < memories && fields.good(); ++m) {
    if (!is_reached(topology, static_cast<MemoryId>(m + 1)))
      fields.fail("links", "do not reach every memory");
  }
  for (const json& from : fields.list(object, "units", kMostUnits)) {
    ComputeUnit& unit = topology.units.emplace_back();
    unit.memory = static_cast<MemoryId>(fields.number(from, "memory", memories));
    if (unit.memory == kStore) fields.fail("memory", "is the store");
    if (std::ranges::count(topology.units, unit.memory, &ComputeUnit::memory) != 1)
      fields.fail("memory", "is that of another unit");
    unit.agent = agent_of(from);
    if (std::ranges::count(topology.units, unit.agent, &ComputeUnit::agent) != 1)
      fields.fail("agent", "is that of another unit");
    unit.lane = static_cast<uint8_t>(fields.number(from, "lane", UINT8_MAX));
    unit.joint_runs = fields.flag(from, "joint_runs");
  }
  if (topology.units.empty()) fields.fail("units", "are none");
}

// Checks that each edition is held as itself, as one made of it, or as the one that it is made of.
void check_held(HeaderFields& fields, const TraceHeader& header) {
  const std::vector<Edition>& editions = header.sites.editions;
  for (EditionId e = 0; e < editions.size(); ++e) {
    const EditionId made_of = editions[e].made_of;
    if (made_of == kNoEdition) continue;
    if (made_of >= e || editions[made_of].made_of != kNoEdition || editions[made_of].n != editions[e].n)
      return fields.fail("made_of", "is no stored edition of its shape before it");
  }
  for (const Memory& memory : header.scheduler.topology.memories) {
    for (EditionId e = 0; e < memory.held.size(); ++e) {
      const EditionId held = memory.held[e];
      const bool related = held == e || (held < editions.size() &&
                                         (editions[held].made_of == e || editions[e].made_of == held));
      if (!related || !memory.holds(held)) return fields.fail("held", "names no edition that is its like");
    }
  }
}

// Checks the properties that the kernel assumes.
void check_sites(HeaderFields& fields, const TraceHeader& header) {
  for (SiteId s = 0; s < header.sites.size() && fields.good(); ++s) {
    const Site& site = header.sites[s];
    if (uint64_t{site.n} * mask_words(header.scheduler.max_rows) * sizeof(uint64_t) > kMostMaskBytes)
      return fields.fail("max_rows", "is too large");
    if (site.n > header.max_units) return fields.fail("max_units", "is less than the neurons of a site");
    const auto is_there = [&](const UnitColumns& part) {
      return part.unit < header.scheduler.topology.units.size();
    };
    if (!std::ranges::all_of(site.flow.input, is_there)) return fields.fail("input_of", "names no unit");
    if (!std::ranges::all_of(site.flow.output, is_there)) return fields.fail("output_to", "names no unit");
    for (const EditionId e : site.editions) {
      if (std::ranges::count(site.editions, e) != 1) return fields.fail("editions", "name one twice");
      if (e >= header.sites.editions.size() || header.sites.editions[e].n != site.n)
        return fields.fail("editions", "name none of its shape");
      for (const Memory& memory : header.scheduler.topology.memories) {
        const uint64_t slot_bytes = header.sites.editions[memory.held_as(e)].slot_bytes;
        if (std::min(site.n, site.run) * slot_bytes > memory.block_bytes)
          return fields.fail("block_bytes", "is less than what is computed together");
      }
    }
  }
  const std::vector<Edition>& editions = header.sites.editions;
  if (editions.size() > header.max_units) return fields.fail("max_units", "is less than there are editions");
  for (EditionId e = 0; e < editions.size() && fields.good(); ++e) {
    for (const auto& slots : header.slots) {
      if (slots[e] > editions[e].n) return fields.fail("slots", "are more than neurons");
    }
    for (const Memory& memory : header.scheduler.topology.memories) {
      if (memory.reserved[e] > editions[e].n) return fields.fail("reserved", "are more than neurons");
    }
  }
}

}  // namespace

std::string header_json(const TraceHeader& header) {
  json sites = json::array();
  for (const Site& site : header.sites) sites.push_back(site_json(site));
  json editions = json::array();
  for (const Edition& edition : header.sites.editions) editions.push_back(edition_json(edition));
  json agents = json::array();
  for (const TraceAgent& agent : header.agents)
    agents.push_back({{"name", agent.name}, {"credits", agent.credits}});
  const Scheduler::Options& s = header.scheduler;
  json memories = json::array();
  for (size_t m = 0; m < s.topology.memories.size(); ++m) {
    const Memory& memory = s.topology.memories[m];
    memories.push_back({{"agent", memory.agent},
                        {"name", memory.name},
                        {"over", memory.over},
                        {"arena_bytes", memory.arena_bytes},
                        {"slots", header.slots[m]},
                        {"reserved", memory.reserved},
                        {"resizes", memory.resizes},
                        {"staging_offset", memory.staging_offset},
                        {"staging_blocks", memory.staging_blocks},
                        {"block_bytes", memory.block_bytes}});
    if (!memory.held.empty()) memories.back()["held"] = memory.held;
  }
  json links = json::array();
  for (const Link& link : s.topology.links)
    links.push_back({{"from", link.from}, {"to", link.to}, {"agent", link.agent}, {"lane", link.lane}});
  json units = json::array();
  for (const ComputeUnit& unit : s.topology.units)
    units.push_back({{"agent", unit.agent},
                     {"memory", unit.memory},
                     {"lane", unit.lane},
                     {"joint_runs", unit.joint_runs}});
  json tier_caches = json::object();
  for (const auto& [tier, cache] : header.tier_caches) tier_caches[tier] = strategy_json(cache);
  return json{{"facts", header.facts},
              {"sites", sites},
              {"editions", editions},
              {"memories", memories},
              {"links", links},
              {"units", units},
              {"prefetch", s.prefetch},
              {"read_attempts", s.read_attempts},
              {"max_rows", s.max_rows},
              {"measure_every", s.measure_every},
              {"max_messages", header.max_messages},
              {"max_units", header.max_units},
              {"agents", agents},
              {"seed", header.seed},
              {"predictor", strategy_json(header.predictor)},
              {"quantizer", strategy_json(header.quantizer)},
              {"cache", strategy_json(header.cache)},
              {"tier_caches", tier_caches},
              {"balancer", strategy_json(header.balancer)},
              {"heat", strategy_json(header.heat)}}
      .dump();
}

Result<TraceHeader> parse_header(std::string_view text, const std::string& origin) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return Error{Code::corrupt, origin, "the header is no JSON object"};
  HeaderFields fields(origin);
  TraceHeader header;
  const json& facts = fields.at(object, "facts");
  if (facts.is_object()) {
    for (const auto& [key, value] : facts.items()) {
      if (value.is_string()) header.facts[key] = value.get<std::string>();
    }
  }
  const uint64_t most_neurons = std::min(kMostNeurons, kMostNeuronsOfAny + kMostNeuronsOfByte * text.size());
  uint64_t neurons = most_neurons;
  for (const json& site : fields.list(object, "sites", kMostSites)) {
    header.sites.all.push_back(read_site(fields, site, neurons));
    if (!fields.good()) return fields.error();
    neurons -= header.sites.all.back().n;
  }
  if (header.sites.size() == 0) fields.fail("sites", "are none");
  std::vector<Edition>& editions = header.sites.editions;
  neurons = most_neurons;
  for (const json& edition : fields.list(object, "editions", kMostEditions)) {
    if (!fields.good()) return fields.error();
    editions.push_back(read_edition(fields, edition, header.sites, neurons));
    if (!fields.good()) return fields.error();
    neurons -= editions.back().n;
  }
  for (const json& agent : fields.list(object, "agents", kMostAgents)) {
    header.agents.push_back(
        {fields.text(agent, "name"), static_cast<uint32_t>(fields.number(agent, "credits", kMostMessages))});
    if (header.agents.back().credits == 0) fields.fail("credits", "are 0");
  }
  Scheduler::Options& scheduler = header.scheduler;
  read_topology(fields, object, header);
  scheduler.prefetch = fields.flag(object, "prefetch");
  scheduler.read_attempts = static_cast<uint32_t>(fields.number(object, "read_attempts", UINT16_MAX));
  scheduler.max_rows = static_cast<uint32_t>(fields.number(object, "max_rows", UINT16_MAX));
  scheduler.measure_every = static_cast<uint32_t>(fields.number(object, "measure_every", UINT32_MAX));
  header.max_messages = static_cast<uint32_t>(fields.number(object, "max_messages", kMostMessages));
  header.max_units = static_cast<uint32_t>(fields.number(object, "max_units", kMostNeurons));
  if (header.max_messages < 2) fields.fail("max_messages", "is less than 2");
  if (uint64_t{header.max_units} * sizeof(Unit) * header.max_messages > kMostListBytes)
    fields.fail("max_units", "is too large");
  header.seed = fields.number(object, "seed", UINT64_MAX);
  header.predictor = fields.strategy(object, "predictor");
  header.quantizer = fields.strategy(object, "quantizer");
  header.cache = fields.strategy(object, "cache");
  const json& tier_caches = fields.at(object, "tier_caches");
  if (!tier_caches.is_object()) fields.fail("tier_caches", "is not a table");
  for (const auto& [tier, cache] : tier_caches.items()) {
    if (!fields.good()) return fields.error();
    header.tier_caches[tier] = fields.strategy(tier_caches, tier.c_str());
  }
  header.balancer = fields.strategy(object, "balancer");
  header.heat = fields.strategy(object, "heat");
  if (fields.good()) check_held(fields, header);
  if (fields.good()) check_sites(fields, header);
  if (!fields.good()) return fields.error();
  return header;
}

std::vector<uint64_t> TraceHeader::parts() const {
  std::vector<uint64_t> parts;
  for (const Memory& memory : scheduler.topology.memories) parts.push_back(memory.arena_bytes);
  return parts;
}

uint64_t TraceHeader::arena_bytes() const {
  uint64_t bytes = 0;
  for (const Memory& memory : scheduler.topology.memories) bytes += memory.arena_bytes;
  return bytes;
}

std::vector<uint64_t> TraceHeader::divide(uint64_t bytes) const {
  std::vector<uint64_t> divided = parts();
  if (divided.size() == 1) return {bytes};
  const uint64_t all = std::max<uint64_t>(arena_bytes(), 1);
  for (uint64_t& part : divided) {
    part = bytes == all ? part
                        : static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(part) /
                                                static_cast<double>(all));
  }
  return divided;
}

}  // namespace tierd
