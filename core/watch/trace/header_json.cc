#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <vector>

#include "core/report/figure_json.h"
#include "core/watch/trace/header.h"

namespace tierd {
namespace {

// Figures of a header as views of its parts, which outlive them.

struct RecordedSite {
  const Site& of;

  // Unit, first column and number of columns of each part.
  using Columns = std::vector<std::array<uint32_t, 3>>;
  static Columns columns_of(const std::vector<UnitColumns>& parts) {
    Columns columns;
    for (const UnitColumns& part : parts) columns.push_back({part.unit, part.first, part.count});
    return columns;
  }
  std::optional<uint32_t> expert() const { return of.of_expert() ? std::optional(of.expert) : std::nullopt; }
  std::optional<bool> never_silent() const { return of.never_silent ? std::optional(true) : std::nullopt; }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedSite&;
    return std::tuple(
        Figure{[](F f) { return f.of.name; }, "name", text, latest, "its name"},
        Figure{[](F f) { return f.of.layer; }, "layer", count, latest, "number of its layer"},
        Figure{[](F f) { return f.of.op_group; }, "op_group", count, latest, "its place in the layer"},
        Figure{[](F f) { return f.of.layer_group; }, "layer_group", count, latest,
               "layers that are stored together"},
        Figure{[](F f) { return f.of.label; }, "slicing", count, latest, "axis number for plugins"},
        Figure{[](F f) { return f.of.added; }, "added", flag, latest, "results of neurons are added"},
        Figure{[](F f) { return f.of.stretch; }, "run", count, latest,
               "neurons that are summed by themselves"},
        Figure{[](F f) { return static_cast<uint8_t>(f.of.set); }, "set", count, latest,
               "the source of the active set: a predictor, the caller, or the segment before"},
        Figure{[](F f) { return f.of.contribution.there(); }, "measurable", flag, latest,
               "contributions can be written"},
        Figure{[](F f) { return f.of.n; }, "neurons", count, latest, "of the site"},
        Figure{[](F f) { return f.of.n_in; }, "n_in", count, latest, "width of the input"},
        Figure{[](F f) { return f.of.n_out; }, "n_out", count, latest, "width of the results"},
        Figure{[](F f) { return columns_of(f.of.flow.input); }, "input_of", count, latest,
               "units that have the input: unit, first column, columns"},
        Figure{[](F f) { return f.of.flow.before; }, "before", count, latest, "the unit before"},
        Figure{[](F f) { return columns_of(f.of.flow.output); }, "output_to", count, latest,
               "units that take the results: unit, first column, columns"},
        Figure{[](F f) { return f.of.editions; }, "editions", count, latest, "their numbers, the best first"},
        Figure{&RecordedSite::expert, "expert", count, latest, "that it belongs to"},
        Figure{&RecordedSite::never_silent, "never_silent", flag, latest, "each neuron contributes"});
  }
};

struct RecordedEdition {
  const Edition& of;

  std::optional<EditionId> made_of() const {
    return of.made_of != kNoEdition ? std::optional(of.made_of) : std::nullopt;
  }
  // Returns [5, 5, 5, 7] as [[3, 5], [1, 7]].
  std::vector<std::array<uint64_t, 2>> bytes() const {
    std::vector<std::array<uint64_t, 2>> runs;
    for (const uint32_t bytes : of.bytes) {
      if (runs.empty() || runs.back()[1] != bytes) runs.push_back({0, bytes});
      ++runs.back()[0];
    }
    return runs;
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedEdition&;
    return std::tuple(
        Figure{[](F f) { return f.of.owner; }, "owner", count, latest, "number of its site"},
        Figure{[](F f) { return f.of.label; }, "encoding", count, latest, "its number for plugins"},
        Figure{[](F f) { return f.of.slot_bytes; }, "slot_bytes", Quantity::bytes, latest, "of a slot"},
        Figure{[](F f) { return f.of.first_extent; }, "first_extent", count, latest, "of its first neuron"},
        Figure{[](F f) { return f.of.stride; }, "stride", count, latest, "extents to the next neuron's"},
        Figure{&RecordedEdition::bytes, "bytes", Quantity::bytes, latest,
               "stored, of neurons: their number, bytes of each"},
        Figure{&RecordedEdition::made_of, "made_of", count, latest, "number of the stored edition"});
  }
};

struct RecordedMemory {
  const Memory& of;
  const std::vector<uint32_t>& slots;

  std::optional<std::vector<EditionId>> held() const {
    return of.held.empty() ? std::nullopt : std::optional(of.held);
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedMemory&;
    return std::tuple(
        Figure{[](F f) { return f.of.agent; }, "agent", count, latest, "that serves it"},
        Figure{[](F f) { return f.of.name; }, "name", text, latest, "of its tier"},
        Figure{[](F f) { return f.of.over; }, "over", count, latest, "the memory that it lies over"},
        Figure{[](F f) { return f.of.arena_bytes; }, "arena_bytes", bytes, latest, "for neurons"},
        Figure{[](F f) { return f.slots; }, "slots", count, latest, "by edition"},
        Figure{[](F f) { return f.of.reserved; }, "reserved", count, latest,
               "slots that are kept, by edition"},
        Figure{[](F f) { return f.of.resizes; }, "resizes", flag, latest, "the arena may change"},
        Figure{[](F f) { return f.of.staging_offset; }, "staging_offset", bytes, latest, "of the blocks"},
        Figure{[](F f) { return f.of.staging_blocks; }, "staging_blocks", count, latest, "for transfers"},
        Figure{[](F f) { return f.of.block_bytes; }, "block_bytes", bytes, latest, "of such a block"},
        Figure{&RecordedMemory::held, "held", count, latest, "editions that stand for others"});
  }
};

struct RecordedLink {
  const Link& of;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedLink&;
    return std::tuple(Figure{[](F f) { return f.of.from; }, "from", count, latest, "the memory below"},
                      Figure{[](F f) { return f.of.to; }, "to", count, latest, "the memory above"},
                      Figure{[](F f) { return f.of.agent; }, "agent", count, latest, "that carries neurons"},
                      Figure{[](F f) { return f.of.lane; }, "lane", count, latest, "of the agent"});
  }
};

struct RecordedUnit {
  const ComputeUnit& of;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedUnit&;
    return std::tuple(
        Figure{[](F f) { return f.of.agent; }, "agent", count, latest, "that computes"},
        Figure{[](F f) { return f.of.memory; }, "memory", count, latest, "that it computes from"},
        Figure{[](F f) { return f.of.lane; }, "lane", count, latest, "of the agent"},
        Figure{[](F f) { return f.of.joint_runs; }, "joint_runs", flag, latest, "of several sites"});
  }
};

struct RecordedAgent {
  const TraceAgent& of;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedAgent&;
    return std::tuple(
        Figure{[](F f) { return f.of.name; }, "name", text, latest, "its name"},
        Figure{[](F f) { return f.of.credits; }, "credits", count, latest, "messages at a time"});
  }
};

struct RecordedStrategy {
  const StrategyConfig& of;

  std::map<std::string, decltype(Setting::value)> settings() const {
    std::map<std::string, decltype(Setting::value)> settings;
    for (const Setting& setting : of.settings) settings[setting.key] = setting.value;
    return settings;
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedStrategy&;
    return std::tuple(
        Figure{[](F f) { return f.of.name; }, "name", text, latest, "of the plugin"},
        Figure{[](F f) { return f.of.tensors; }, "tensors", text, latest, "file of its tensors"},
        Figure{&RecordedStrategy::settings, "settings", parts, latest, "its parameters by name"});
  }
};

struct RecordedHeader {
  const TraceHeader& of;

  template <typename View, typename Of>
  static std::vector<View> views(const std::vector<Of>& of) {
    std::vector<View> views;
    for (const Of& each : of) views.push_back({each});
    return views;
  }
  std::vector<RecordedMemory> memories() const {
    std::vector<RecordedMemory> memories;
    const std::vector<Memory>& all = of.scheduler.topology.memories;
    for (size_t m = 0; m < all.size(); ++m) memories.push_back({all[m], of.slots[m]});
    return memories;
  }
  std::map<std::string, RecordedStrategy> tier_caches() const {
    std::map<std::string, RecordedStrategy> caches;
    for (const auto& [tier, cache] : of.tier_caches) caches.emplace(tier, RecordedStrategy{cache});
    return caches;
  }
  template <StrategyConfig TraceHeader::*M>
  static RecordedStrategy strategy(const RecordedHeader& header) {
    return {header.of.*M};
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const RecordedHeader&;
    using H = RecordedHeader;
    using T = TraceHeader;
    return std::tuple(
        Figure{[](F f) { return f.of.facts; }, "facts", text, latest, "for people: model, budget, threads …"},
        Figure{[](F f) { return views<RecordedSite>(f.of.sites.all); }, "sites", parts, latest,
               "in the order of a step"},
        Figure{[](F f) { return views<RecordedEdition>(f.of.sites.editions); }, "editions", parts, latest,
               "of the sites"},
        Figure{&H::memories, "memories", parts, latest, "beside the store, by number"},
        Figure{[](F f) { return views<RecordedLink>(f.of.scheduler.topology.links); }, "links", parts, latest,
               "between memories"},
        Figure{[](F f) { return views<RecordedUnit>(f.of.scheduler.topology.units); }, "units", parts, latest,
               "that compute"},
        Figure{[](F f) { return f.of.scheduler.prefetch; }, "prefetch", flag, latest, "reads ahead"},
        Figure{[](F f) { return f.of.scheduler.read_attempts; }, "read_attempts", count, latest,
               "of a read that fails"},
        Figure{[](F f) { return f.of.scheduler.max_rows; }, "max_rows", count, latest, "of a step"},
        Figure{[](F f) { return f.of.scheduler.measure_every; }, "measure_every", count, latest,
               "steps; 0: never"},
        Figure{[](F f) { return f.of.max_messages; }, "max_messages", count, latest, "under way"},
        Figure{[](F f) { return f.of.max_units; }, "max_units", count, latest, "neurons of a message"},
        Figure{[](F f) { return views<RecordedAgent>(f.of.agents); }, "agents", parts, latest, "by number"},
        Figure{[](F f) { return f.of.seed; }, "seed", count, latest, "of the run"},
        Figure{&H::strategy<&T::predictor>, "predictor", parts, latest, "plugin"},
        Figure{&H::strategy<&T::quantizer>, "quantizer", parts, latest, "plugin"},
        Figure{&H::strategy<&T::cache>, "cache", parts, latest, "plugin"},
        Figure{&H::tier_caches, "tier_caches", parts, latest, "plugins of tiers with a cache of their own"},
        Figure{&H::strategy<&T::balancer>, "balancer", parts, latest, "plugin"},
        Figure{&H::strategy<&T::heat>, "heat", parts, latest, "plugin; without a name there is none"});
  }
};

}  // namespace

std::string header_json(const TraceHeader& header) {
  return figures_json(RecordedHeader{header}).dump();
}

std::vector<DeclaredFigure> header_figures() {
  std::vector<DeclaredFigure> figures;
  list_figures<RecordedHeader>("", figures);
  return figures;
}

}  // namespace tierd
