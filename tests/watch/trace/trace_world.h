// Headers and events for tests of traces.
#pragma once

#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/watch/trace/event.h"
#include "core/watch/trace/header.h"
#include "tests/kernel/add_site.h"

namespace tierd {

// Returns a header of three sites. The first is given and has the edition of the last, none of its own:
// edition 0 is that of site 1, edition 1 that of site 2.
inline TraceHeader small_header() {
  TraceHeader header;
  header.facts = {{"model", "small \"one\""}, {"clock", "wall"}};
  for (SiteId s = 0; s < 3; ++s) {
    Site site;
    Edition edition;
    site.name = "site " + std::to_string(s);
    site.layer = static_cast<uint16_t>(s);
    site.n = 5;
    site.n_in = 64;
    site.n_out = 80;
    edition.label = 4;
    edition.slot_bytes = 4096;
    edition.first_extent = s * 5;
    edition.bytes = {4000, 4000, 4000, 4000, 1000};
    if (s == 0) {
      site.set = Site::Set::given;
      site.editions = {1};
      header.sites.all.push_back(site);
    } else {
      add_site(header.sites, site, edition);
    }
  }
  header.slots = {{2, 5}};
  Topology& topology = header.scheduler.topology;
  topology.units = {{.agent = 1, .memory = 1}};
  topology.links = {{.from = kStore, .to = 1, .agent = 2}};
  Memory& memory = topology.memories.emplace_back();
  memory.agent = 1;
  memory.arena_bytes = 7 * 4096;
  memory.reserved = {5, 5};
  memory.resizes = true;
  memory.staging_offset = 10 * 4096;
  memory.staging_blocks = 2;
  memory.block_bytes = 8192;
  header.max_messages = 64;
  header.max_units = 5;
  header.agents = {{"dram", 8}, {"flash", 4}};
  header.seed = UINT64_MAX;
  header.predictor.name = "dense";
  header.quantizer.name = "plain";
  header.cache.name = "lru";
  header.cache.settings = {
      {"a", int64_t{-7}, ""}, {"b", 0.5, ""}, {"c", true, ""}, {"d", std::string("x"), ""}};
  header.tier_caches["dram"].name = "fifo";
  header.tier_caches["dram"].tensors = "heat.safetensors";
  header.balancer.name = "single";
  return header;
}

// The same header, where the last site, and with it the first, has a second edition: number 2.
inline TraceHeader header_of_several_editions() {
  TraceHeader header = small_header();
  Edition& second = header.sites.editions.emplace_back(header.sites.editions[1]);
  second.label = 2;
  second.slot_bytes = 2048;
  second.first_extent = 15;
  second.bytes.assign(second.n, 2000);
  for (const SiteId site : {0u, 2u}) header.sites[site].editions = {1, 2};
  header.slots = {{2, 4, 1}};
  header.scheduler.topology.memory(1).reserved = {5, 5, 5};
  return header;
}

inline std::vector<uint32_t> draw_neurons(Random& random) {
  std::vector<uint32_t> neurons;
  for (uint32_t at = random.below(9), n = random.below(20); n > 0; --n) {
    neurons.push_back(at);
    at += random.below(3) == 0 ? 1 + random.below(1000) : 1;
  }
  return neurons;
}

// Returns a random event, in which any field may be at its bounds.
inline Event draw_event(Random& random, uint64_t& ns) {
  const auto number = [&](uint64_t most) -> uint64_t {
    switch (random.below(4)) {
      case 0:
        return 0;
      case 1:
        return most;
      default:
        return (uint64_t{random.below(UINT32_MAX)} << 32 | random.below(UINT32_MAX)) %
               (most == UINT64_MAX ? most : most + 1);
    }
  };
  const auto u32 = [&] { return static_cast<uint32_t>(number(UINT32_MAX)); };
  const auto u16 = [&] { return static_cast<uint16_t>(number(UINT16_MAX)); };
  const auto u8 = [&] { return static_cast<uint8_t>(number(UINT8_MAX)); };
  const auto maybe = [&]() -> std::optional<std::vector<uint32_t>> {
    if (random.below(3) == 0) return std::nullopt;
    return draw_neurons(random);
  };
  const auto scores = [&] {
    std::vector<float> drawn(random.below(4));
    for (float& score : drawn) score = random.symmetric();
    return drawn;
  };
  ns += random.below(5) == 0 ? number(1u << 30) : random.below(200);
  Event event;
  event.ns = ns;
  switch (random.below(20)) {
    case 0:
      event.what = FillBegins{};
      break;
    case 1:
      event.what = PassBegins{u32(), u32(), u16(), random.below(2) == 0, maybe(), draw_neurons(random)};
      break;
    case 2:
      event.what = StepEnds{u32()};
      break;
    case 3:
      event.what = DrainBegins{};
      break;
    case 4: {
      Swapped swapped{"cache", {"lfu", "", "heat.safetensors", small_header().cache.settings}};
      if (maybe()) swapped.tier = "dram";
      event.what = swapped;
      break;
    }
    case 5:
      event.what = Interrupted{};
      break;
    case 6:
      event.what = Activated{u32(), maybe(), random.below(2) == 0, scores()};
      break;
    case 7:
      event.what = Evicted{u16(), u32(), draw_neurons(random)};
      break;
    case 8:
      event.what = Settled{number(UINT64_MAX)};
      break;
    case 9: {
      Posted posted;
      Message& m = posted.message;
      m.id = {u32(), u32()};
      m.op = static_cast<Op>(random.below(6));
      m.priority = static_cast<Priority>(random.below(kPriorities));
      m.lane = u8();
      m.flags = u8();
      m.agent = u16();
      m.step = u32();
      m.expires_step = u32();
      m.site = u32();
      m.rows = u16();
      m.memory = u16();
      m.from = u16();
      m.about = {u32(), u32()};
      m.n_units = u32();
      m.unit_bytes = u32();
      m.n_takes = u16();
      m.n_gives = static_cast<uint8_t>(u16());
      m.n_sites = static_cast<uint8_t>(u16());
      m.edition = u32();
      for (const uint32_t neuron : draw_neurons(random)) posted.units.push_back({neuron, u32()});
      for (uint32_t n = random.below(3); n > 0; --n) posted.sites.push_back({u32(), u32(), u32(), u32()});
      event.what = std::move(posted);
      break;
    }
    case 10:
      event.what = TurnBegins{};
      break;
    case 11:
      event.what = Sent{{u32(), u32()}};
      break;
    case 12:
      event.what =
          SequenceBegins{number(UINT64_MAX), random.below(2) == 0 ? "" : "request-" + std::to_string(u32())};
      break;
    case 13:
      event.what = SequenceEnds{number(UINT64_MAX)};
      break;
    case 14:
      event.what = Resized{{number(UINT64_MAX), std::nullopt, number(UINT64_MAX)}};
      break;
    case 15:
      event.what = Measured{u32(), draw_neurons(random)};
      break;
    case 16: {
      const uint32_t rows = u16();
      event.what = RowsKept{rows, static_cast<uint32_t>(number(rows))};
      break;
    }
    case 17: {
      LookedAhead ahead{u32(), {}};
      for (uint32_t i = random.below(4); i > 0; --i)
        ahead.wishes.push_back({u32(), u32(), maybe(), u32(), u32(), scores()});
      event.what = std::move(ahead);
      break;
    }
    case 18: {
      HasFired fired{u32(), draw_neurons(random), {}};
      for (size_t i = 0; i < fired.neurons.size(); ++i) fired.counts.push_back(u32());
      event.what = std::move(fired);
      break;
    }
    default: {
      Delivered delivered;
      Done& d = delivered.done;
      d.id = {u32(), u32()};
      d.status = static_cast<DoneStatus>(random.below(8));
      d.lane = u8();
      d.error = u16();
      d.n_done = u32();
      d.first_bad = u32();
      d.bad_extent = u32();
      d.reads = u32();
      d.bytes = number(UINT64_MAX);
      d.start_ns = number(UINT64_MAX);
      d.done_ns = number(UINT64_MAX);
      delivered.withdrawn = random.below(2) == 0;
      event.what = delivered;
    }
  }
  return event;
}

}  // namespace tierd
