#include "tools/lab/activity/expert_caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/align.h"
#include "core/engine/model_plan.h"
#include "core/watch/trace/what_if.h"
#include "tools/evaluation/alternatives.h"

namespace tierd {
namespace {

constexpr uint32_t kQuarter = 4;  // a static set is learned from this part of the text
const std::vector<std::string> kCaches = {"cache.name=lru", "cache.name=lfu", "cache.name=fifo",
                                          "cache.name=residency-window"};

// Returns the header of a run that has only sites of experts.
TraceHeader header_of(const Routing& routing) {
  TraceHeader header;
  for (uint32_t layer = 0; layer < routing.layers; ++layer) {
    Site& site = header.sites.all.emplace_back();
    site.name = fmt::format("layers.{}.experts", layer);
    site.layer = static_cast<uint16_t>(layer);
    cut_site(site, Experts{.experts = routing.experts});
    site.set = Site::Set::chosen;
    site.editions = {layer};
    Edition& edition = header.sites.editions.emplace_back();
    edition.owner = layer;
    edition.n = site.n;
    const uint64_t bytes = std::clamp<uint64_t>(routing.expert_bytes[layer], 1, kMostExpertBytes);
    edition.slot_bytes = static_cast<uint32_t>(align_up(bytes, kDirectIoAlignment));
    edition.first_extent = layer * routing.experts;
    edition.bytes.assign(edition.n, edition.slot_bytes);
  }
  const uint32_t largest = std::ranges::max(header.sites.editions, {}, &Edition::slot_bytes).slot_bytes;
  Topology& topology = header.scheduler.topology;
  topology.units = {{.agent = 1, .memory = 1}};
  topology.links = {{.from = kStore, .to = 1, .agent = 2}};
  Memory& memory = topology.memories.emplace_back();
  memory.agent = 1;
  memory.reserved.assign(routing.layers, routing.experts);
  memory.staging_blocks = 8;
  memory.block_bytes = largest;
  header.scheduler.max_rows = 1;
  header.max_messages = 64;
  header.max_units = std::max(routing.experts, routing.layers);
  header.agents = {{"dram", 64}, {"flash", 64}};
  header.predictor.name = "dense";
  header.quantizer.name = "plain";
  header.cache.name = "lru";
  header.balancer.name = "single";
  return header;
}

// Prompts bypass the caches, so they are left out.
std::vector<Asked> asked_of(const Routing& routing) {
  std::vector<Asked> asked = {FillBegins{}, SequenceBegins{0, {}}};
  for (uint32_t step = 0; step < routing.generated.size(); ++step) {
    for (const Routing::Choice& choice : routing.generated[step]) {
      AskedPass pass;
      pass.begins.site = choice.layer;
      pass.begins.step = step;
      pass.begins.rows = 1;
      pass.begins.sequences = {0};
      pass.activated = activated_event(choice.layer, ActiveSet::of(choice.experts));
      asked.emplace_back(PackedPass(std::move(pass)));
    }
    asked.emplace_back(StepEnds{step});
  }
  return asked;
}

// For the cache `static`: how often the first tokens chose each expert.
std::shared_ptr<const PluginTensors> heat_of(const Routing& routing, size_t tokens) {
  auto heat = std::make_shared<PluginTensors>();
  for (uint32_t layer = 0; layer < routing.layers; ++layer) {
    PluginTensors::Tensor& tensor = heat->tensors.emplace_back();
    tensor.name = fmt::format("layers.{}.experts", layer);
    tensor.dims = {routing.experts};
    tensor.data.assign(routing.experts, 0.0f);
  }
  for (size_t t = 0; t < tokens; ++t) {
    for (const Routing::Choice& choice : routing.generated[t]) {
      for (const uint32_t expert : choice.experts) heat->tensors[choice.layer].data[expert] += 1;
    }
  }
  return heat;
}

uint64_t chosen_of(const Routing& routing) {
  uint64_t chosen = 0;
  for (const Routing::Token& token : routing.generated) {
    for (const Routing::Choice& choice : token) chosen += choice.experts.size();
  }
  return chosen;
}

// [layers] the choices of the generated tokens.
std::vector<LayerChoices> choices_by_layer(const Routing& routing) {
  std::vector<LayerChoices> layers(routing.layers);
  for (const Routing::Token& token : routing.generated) {
    for (const Routing::Choice& choice : token) layers[choice.layer].push_back(&choice.experts);
  }
  return layers;
}

ExpertCacheRow row_of(uint32_t percent, std::string policy, uint64_t hits, uint64_t chosen) {
  return {.memory_percent = percent,
          .policy = std::move(policy),
          .hits = hits,
          .misses = chosen - hits,
          .hit_rate = static_cast<double>(hits) / static_cast<double>(std::max<uint64_t>(1, chosen)),
          .evictions = {}};
}

// Plays the routing with one cache after the other.
struct Playing {
  const Routing& routing;
  const ChooseStrategy& choose;
  TraceHeader header = header_of(routing);
  std::vector<Asked> asked = asked_of(routing);
  uint64_t chosen = chosen_of(routing);

  uint64_t arena_bytes(uint32_t slots) const {
    uint64_t bytes = 0;
    for (const Edition& edition : header.sites.editions) bytes += uint64_t{slots} * edition.slot_bytes;
    return bytes;
  }

  // `heat`: of the cache `static`; else NULL.
  Result<ExpertCacheRow> play(uint32_t percent, std::string policy, uint64_t arena_bytes,
                              const StrategyConfig& cache,
                              std::shared_ptr<const PluginTensors> heat = nullptr) const {
    TraceHeader changed = header;
    changed.cache = cache;
    changed.tier_caches.clear();
    TIERD_ASSIGN(StrategyChoices choices, choose_recorded(changed, choose));
    if (heat) choices.cache.tensors = std::move(heat);
    TIERD_ASSIGN(const WhatIf result, what_if(header, asked, choices, arena_bytes));
    ExpertCacheRow row = row_of(percent, std::move(policy), result.counters.hits, chosen);
    row.evictions = result.counters.evictions;
    return row;
  }

  // Appends the rows of one share of memory: the first of `caches` is the header's own, and left out.
  Status add_rows(uint32_t percent, const std::vector<Alternative>& caches,
                  std::vector<ExpertCacheRow>& rows) const {
    const uint32_t slots = std::max<uint32_t>(1, routing.experts * percent / 100);
    const uint64_t arena = arena_bytes(slots);
    rows.push_back(row_of(percent, "random", chosen * slots / routing.experts, chosen));
    for (size_t i = 1; i < caches.size(); ++i) {
      const std::string& name = caches[i].name;
      if (caches[i].arena_bytes != header.arena_bytes())
        return Error{Code::invalid_argument, name, "is not supported here; set the room with --memory"};
      TIERD_ASSIGN(rows.emplace_back(), play(percent, name.substr(name.starts_with("cache.name=") ? 11 : 0),
                                             arena, caches[i].cache));
    }
    const StrategyConfig fixed{.name = "static"};
    const size_t tokens = routing.generated.size();
    TIERD_ASSIGN(rows.emplace_back(), play(percent, "static, of the first quarter", arena, fixed,
                                           heat_of(routing, tokens / kQuarter)));
    TIERD_ASSIGN(rows.emplace_back(),
                 play(percent, "static, hindsight", arena, fixed, heat_of(routing, tokens)));
    uint64_t best = 0;
    for (const LayerChoices& choices : choices_by_layer(routing)) best += best_possible_hits(choices, slots);
    rows.push_back(row_of(percent, "best possible", best, chosen));
    return {};
  }
};

}  // namespace

uint64_t best_possible_hits(const LayerChoices& choices, uint32_t slots) {
  constexpr size_t kNever = std::numeric_limits<size_t>::max();
  struct Expert {
    size_t next = kNever;  // the next entry of `choices` that has it
    bool kept = false;
  };
  std::unordered_map<uint32_t, Expert> experts;
  // For each expert of each choice the next choice that has it, in reverse order.
  std::vector<size_t> again;
  for (size_t c = choices.size(); c-- > 0;) {
    for (auto expert = choices[c]->rbegin(); expert != choices[c]->rend(); ++expert)
      again.push_back(std::exchange(experts[*expert].next, c));
  }
  std::set<std::pair<size_t, uint32_t>> kept;  // by the next choice
  uint64_t hits = 0;
  for (const std::vector<uint32_t>* choice : choices) {
    for (const uint32_t number : *choice) {
      Expert& expert = experts[number];
      if (expert.kept) {
        ++hits;
        kept.erase({expert.next, number});
      }
      expert = {again.back(), true};
      again.pop_back();
      kept.emplace(expert.next, number);
    }
    while (kept.size() > slots) {
      const auto last = std::prev(kept.end());
      experts[last->second].kept = false;
      kept.erase(last);
    }
  }
  return hits;
}

Result<ExpertCacheFigures> expert_caches(const Routing& routing, const ExpertCacheOptions& options,
                                         const ChooseStrategy& choose) {
  const Playing playing{.routing = routing, .choose = choose};
  TIERD_ASSIGN(const auto caches,
               parse_alternatives(playing.header, options.caches.empty() ? kCaches : options.caches));
  const size_t tokens = routing.generated.size();
  ExpertCacheFigures figures{
      .model = routing.model,
      .layers = routing.layers,
      .experts = routing.experts,
      .prompt_tokens = routing.prompt.size(),
      .tokens = tokens,
      .chosen = static_cast<double>(playing.chosen) / static_cast<double>(tokens * routing.layers),
      .rows = {}};
  for (const uint32_t percent : options.memory) TIERD_TRY(playing.add_rows(percent, caches, figures.rows));
  return figures;
}

std::string expert_caches_text(const ExpertCacheFigures& result) {
  std::vector<uint32_t> memory;
  std::vector<std::string> policies;
  const auto once = [](auto& list, const auto& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  };
  for (const ExpertCacheRow& row : result.rows) {
    once(memory, row.memory_percent);
    once(policies, row.policy);
  }
  std::string text = fmt::format("{}{}{} tokens, {} layers, {:.3g} of {} experts\n\n{:<32}", result.model,
                                 result.model.empty() ? "" : ": ", result.tokens, result.layers,
                                 result.chosen, result.experts, "hits, with room for");
  for (const uint32_t percent : memory) text += fmt::format("{:>9} %", percent);
  text += '\n';
  for (const std::string& policy : policies) {
    text += fmt::format("{:<32}", policy);
    for (const ExpertCacheRow& row : result.rows) {
      if (row.policy == policy) text += fmt::format("{:>9.1f} %", 100 * row.hit_rate);
    }
    text += '\n';
  }
  return text;
}

}  // namespace tierd
