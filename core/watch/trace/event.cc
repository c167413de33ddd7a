#include "core/watch/trace/event.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierd {
namespace {

std::string site_name(SiteId site, const SiteTable& sites) {
  return site < sites.size() ? sites[site].name : fmt::format("site {}", site);
}
// Returns the owner's name, with the number of the edition if it has several.
std::string edition_name(EditionId edition, const SiteTable& sites) {
  if (edition >= sites.editions.size()) return fmt::format("edition {}", edition);
  const Site& owner = sites[sites.editions[edition].owner];
  if (owner.editions.size() == 1) return owner.name;
  const auto place = std::ranges::find(owner.editions, edition) - owner.editions.begin();
  return fmt::format("{} (edition {})", owner.name, place);
}
std::string id_text(MessageId id) {
  return fmt::format("#{}.{}", id.slot, id.generation);
}

// Returns the text of each event.
class Text {
 public:
  explicit Text(const SiteTable& sites) : sites_(sites) {}

  std::string operator()(const FillBegins&) const { return "fill"; }
  std::string operator()(const PassBegins& e) const {
    return fmt::format("pass {} of step {}, {} rows{}{}", site_name(e.site, sites_), e.step, e.rows,
                       e.bypass_caches ? ", past the caches" : "",
                       e.given ? ", given " + runs_text(*e.given) : "");
  }
  std::string operator()(const SequenceBegins& e) const {
    return fmt::format("sequence {} begins{}", e.sequence, e.label.empty() ? "" : ": " + e.label);
  }
  std::string operator()(const SequenceEnds& e) const { return fmt::format("sequence {} ends", e.sequence); }
  std::string operator()(const StepEnds& e) const { return fmt::format("step {} ends", e.step); }
  std::string operator()(const RowsKept& e) const {
    return fmt::format("{} of {} rows kept", e.kept, e.rows);
  }
  std::string operator()(const DrainBegins&) const { return "drain"; }
  std::string operator()(const Resized& e) const {
    std::string text = "arenas:";
    for (const std::optional<uint64_t>& part : e.parts)
      text += part ? fmt::format(" {} B", *part) : " as before";
    return text;
  }
  std::string operator()(const Swapped& e) const {
    return fmt::format("{} '{}' takes over{}", e.kind, e.strategy.name,
                       e.tier.empty() ? "" : " in " + e.tier);
  }
  std::string operator()(const Interrupted&) const { return "interrupted"; }
  std::string operator()(const Activated& e) const {
    return fmt::format("active in {}: {}{}", site_name(e.site, sites_),
                       e.neurons ? runs_text(*e.neurons) : "all",
                       std::string(e.by_row ? ", by row" : "") + (e.scores.empty() ? "" : ", ranked"));
  }
  std::string operator()(const LookedAhead& e) const {
    std::string text = fmt::format("{} looks ahead", site_name(e.site, sites_));
    for (const LookedAhead::Wish& wish : e.wishes) {
      text +=
          fmt::format("{} {}, {} on: {}", &wish == e.wishes.data() ? ":" : ";", site_name(wish.site, sites_),
                      wish.distance, wish.neurons ? runs_text(*wish.neurons) : "all");
    }
    return text;
  }
  std::string operator()(const Measured& e) const {
    return fmt::format("measured in {}: {}", site_name(e.site, sites_), runs_text(e.neurons));
  }
  std::string operator()(const HasFired& e) const {
    return fmt::format("fired in {}: {}", site_name(e.site, sites_), runs_text(e.neurons));
  }
  std::string operator()(const Evicted& e) const {
    return fmt::format("evict {} {}{}", edition_name(e.edition, sites_), runs_text(e.neurons),
                       e.memory == 1 ? "" : fmt::format(" in memory {}", e.memory));
  }
  std::string operator()(const Settled& e) const { return fmt::format("residency {:016x}", e.residency); }
  std::string operator()(const Posted& e) const {
    const Message& m = e.message;
    std::string text = fmt::format("post {} {} {}", id_text(m.id), name(m.op), site_name(m.site, sites_));
    if (m.op == Op::move || m.op == Op::resize) {
      text += fmt::format(", {} {}{} in memory {}", e.units.size(), m.op == Op::move ? "slots" : "ranges",
                          m.from != m.memory && m.op == Op::move ? fmt::format(" of memory {}", m.from) : "",
                          m.memory);
    } else if (!e.sites.empty()) {
      text += fmt::format(", {} sites, the last one {}, {} neurons", e.sites.size(),
                          site_name(e.sites.back().site, sites_), e.units.size());
    } else if (!e.units.empty()) {
      std::vector<uint32_t> neurons;
      const bool read = m.op == Op::read && m.edition < sites_.editions.size();
      for (const Unit& unit : e.units) {
        if (!read) {
          neurons.push_back(unit.unit);
          continue;
        }
        // One read fetches neurons of several sites if they are contiguous in the store.
        const Edition& edition = sites_.editions[m.edition];
        const uint32_t neuron = edition.neuron_of(unit.unit);
        if (neuron < edition.n && edition.extent_of(neuron) == unit.unit) neurons.push_back(neuron);
      }
      text += fmt::format(" {} at {}+{}", runs_text(neurons), m.memory,
                          uint64_t{e.units.front().place} * kPlaceUnit);
    }
    text += fmt::format(", step {}, {}, to agent {}", m.step, name(m.priority), m.agent);
    if (m.flags != 0) {
      text += fmt::format("{}{}{}", (m.flags & kRunBefore) != 0 ? ", before" : "",
                          (m.flags & kRunAfter) != 0 ? ", after" : "",
                          (m.flags & kPartial) != 0 ? ", partial" : "");
      if ((m.flags & kMeasure) != 0) text += ", measured";
      if ((m.flags & kMasked) != 0) text += ", by row";
    }
    if (m.n_takes != 0) text += fmt::format(", takes {}", m.n_takes);
    if (m.n_gives != 0) text += fmt::format(", gives {}", m.n_gives);
    if (m.op == Op::run && m.about != MessageId{}) text += ", behind " + id_text(m.about);
    return text;
  }
  std::string operator()(const TurnBegins&) const { return "turn"; }
  std::string operator()(const Sent& e) const { return "send " + id_text(e.id); }
  std::string operator()(const Delivered& e) const {
    const Done& d = e.done;
    return fmt::format("done {} {}{}, {} units, {} B", id_text(d.id), status_name(d.status),
                       e.withdrawn ? " before it was sent" : "", d.n_done, d.bytes);
  }

 private:
  const SiteTable& sites_;
};

}  // namespace

std::optional<std::vector<uint32_t>> listed(const ActiveSet& set) {
  if (set.is_all()) return std::nullopt;
  return std::vector<uint32_t>(set.indices(), set.indices() + set.size());
}

Activated activated_event(SiteId site, const ActiveSet& set) {
  Activated event{site, listed(set), set.row_masks() != nullptr};
  if (set.scores() != nullptr) event.scores.assign(set.scores(), set.scores() + set.size());
  return event;
}

LookedAhead looked_ahead_event(SiteId site, const WishList& wishes) {
  LookedAhead event{site, {}};
  for (const WishList::Wish& wish : wishes.all()) {
    LookedAhead::Wish& recorded = event.wishes.emplace_back(
        LookedAhead::Wish{wish.site, wish.distance, std::nullopt, wish.memory, wish.edition});
    const std::span<const uint32_t> listed = wish.all ? std::span<const uint32_t>() : wishes.neurons(wish);
    if (!wish.all) recorded.neurons.emplace(listed.begin(), listed.end());
    const std::span<const float> scores = wishes.scores(wish);
    recorded.scores.assign(scores.begin(), scores.end());
  }
  return event;
}

Measured measured_event(SiteId site, const ActiveSet& active) {
  return {site, {active.indices(), active.indices() + active.size()}};
}

PassBegins pass_event(SiteId site, const Pass& pass) {
  PassBegins begins{site, pass.step, pass.rows, pass.bypass_caches, std::nullopt, {}};
  if (pass.given != nullptr) begins.given = listed(*pass.given);
  // RowInfo has sequences in 32 bits.
  for (const uint64_t sequence : pass.sequences) begins.sequences.push_back(static_cast<uint32_t>(sequence));
  return begins;
}

bool Swapped::operator==(const Swapped& other) const {
  const auto same = [](const Setting& a, const Setting& b) { return a.key == b.key && a.value == b.value; };
  const StrategyConfig& a = strategy;
  const StrategyConfig& b = other.strategy;
  return kind == other.kind && tier == other.tier && a.name == b.name && a.tensors == b.tensors &&
         std::equal(a.settings.begin(), a.settings.end(), b.settings.begin(), b.settings.end(), same);
}

bool Posted::operator==(const Posted& other) const {
  Message same_time = other.message;
  same_time.queued_ns = message.queued_ns;
  return message == same_time && units == other.units && sites == other.sites;
}

bool Delivered::operator==(const Delivered& other) const {
  Done same_time = other.done;
  same_time.start_ns = done.start_ns;
  same_time.done_ns = done.done_ns;
  return done == same_time && withdrawn == other.withdrawn;
}

std::string event_text(const Event& event, const SiteTable& sites) {
  return std::visit(Text(sites), event.what);
}

std::string runs_text(const std::vector<uint32_t>& neurons) {
  std::string text;
  for (size_t i = 0; i < neurons.size();) {
    size_t end = i + 1;
    while (end < neurons.size() && neurons[end] == neurons[end - 1] + 1) ++end;
    if (!text.empty()) text += ' ';
    text += end - i == 1 ? fmt::format("{}", neurons[i]) : fmt::format("{}-{}", neurons[i], neurons[end - 1]);
    i = end;
  }
  return text.empty() ? "none" : text;
}

}  // namespace tierd
