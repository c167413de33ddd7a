#include "core/watch/trace/recorded_pass.h"

#include <fmt/format.h>

#include "core/base/row_mask.h"
#include "core/kernel/plugin_answer.h"

namespace tierd {
namespace {

Status check_listed_of(SiteId site, std::span<const uint32_t> neurons, const TraceReader& trace) {
  const SiteTable& sites = trace.header().sites;
  const auto fail = [&](const std::string& what) {
    return Error{Code::corrupt, trace.path(), fmt::format("event {}: {}", trace.position(), what)};
  };
  if (site >= sites.size()) return fail(fmt::format("site {} of {}", site, sites.size()));
  const Status sound = check_neurons(neurons, sites[site].n);
  return sound.ok() ? sound : fail(fmt::format("{}, {}", sites[site].name, sound.error().detail));
}

}  // namespace

Status check_pass(const PassBegins& begins, const TraceReader& trace) {
  const SiteTable& sites = trace.header().sites;
  const auto fail = [&](const std::string& what) {
    return Error{Code::corrupt, trace.path(), fmt::format("event {}: {}", trace.position(), what)};
  };
  if (begins.site >= sites.size()) return fail(fmt::format("site {} of {}", begins.site, sites.size()));
  const Site& site = sites[begins.site];
  if (site.given() != begins.given.has_value())
    return fail("a set is given where none belongs, or none where one does");
  if (begins.given) {
    for (size_t i = 0; i < begins.given->size(); ++i) {
      const uint32_t neuron = (*begins.given)[i];
      if (neuron >= site.n || (i > 0 && neuron <= (*begins.given)[i - 1]))
        return fail(fmt::format("no neuron of {}, or out of order: {}", site.name, neuron));
    }
  }
  if (begins.rows > trace.header().scheduler.max_rows)
    return fail(
        fmt::format("{} rows, at most {} were expected", begins.rows, trace.header().scheduler.max_rows));
  if (begins.sequences.size() != begins.rows)
    return fail(fmt::format("the sequences of {} rows, of {}", begins.sequences.size(), begins.rows));
  if (begins.step == kNoStep) return fail("a step without a number");
  return {};
}

Status check_listed(const Activated& activated, const TraceReader& trace) {
  static const std::vector<uint32_t> none;
  return check_listed_of(activated.site, activated.neurons ? *activated.neurons : none, trace);
}
Status check_listed(const Measured& measured, const TraceReader& trace) {
  return check_listed_of(measured.site, measured.neurons, trace);
}
Status check_listed(const HasFired& fired, const TraceReader& trace) {
  return check_listed_of(fired.site, fired.neurons, trace);
}

RecordedPass::RecordedPass(const PassBegins& begins)
    : sequences_(begins.sequences.begin(), begins.sequences.end()), pass_{begins.step, begins.rows,
                                                                          {},          begins.bypass_caches,
                                                                          nullptr,     sequences_} {
  if (!begins.given) return;
  given_ = ActiveSet::of(*begins.given);
  pass_.given = &given_;
}

ActiveSet recorded_set(const Activated* activated, const SiteTable& sites, SiteId site, uint32_t rows) {
  const uint32_t n = sites[site].n;
  if (activated == nullptr || activated->site != site) return ActiveSet::all(n);
  const std::optional<std::vector<uint32_t>>& neurons = activated->neurons;
  if (neurons && !check_neurons(*neurons, n).ok()) return ActiveSet::all(n);
  std::vector<float> scores = activated->scores;
  if (scores.size() != (neurons ? neurons->size() : n) || !check_scores(scores).ok()) scores.clear();
  if (!neurons) return ActiveSet::all(n, std::move(scores));
  std::vector<uint64_t> row_masks;
  if (activated->by_row) row_masks.assign(neurons->size() * mask_words(rows), ~uint64_t{0});
  return ActiveSet::of(*neurons, std::move(row_masks), std::move(scores));
}

ActiveSet recorded_set(const Measured* measured, const SiteTable& sites, SiteId site) {
  const bool sound =
      measured != nullptr && measured->site == site && check_neurons(measured->neurons, sites[site].n).ok();
  return sound ? ActiveSet::of(measured->neurons) : ActiveSet();
}

Fired recorded_firing(const HasFired* fired, const SiteTable& sites, SiteId site) {
  const bool sound = fired != nullptr && fired->site == site &&
                     check_neurons(fired->neurons, sites[site].n).ok() &&
                     fired->counts.size() == fired->neurons.size();
  return sound ? Fired{fired->neurons, fired->counts} : Fired();
}

const WishList& RecordedWishes::of(const LookedAhead* recorded, SiteId site) {
  static constexpr uint32_t kNobody = 0;  // stands for an empty list, since NULL means all neurons
  wishes_.open();
  if (recorded != nullptr && recorded->site == site) {
    for (const LookedAhead::Wish& wish : recorded->wishes) {
      tierd_wish again{sizeof again, wish.memory, wish.site, wish.distance,
                       wish.edition, 0,           nullptr,   nullptr};
      if (wish.neurons) {
        again.n = static_cast<uint32_t>(wish.neurons->size());
        again.idx = wish.neurons->empty() ? &kNobody : wish.neurons->data();
        if (wish.scores.size() == wish.neurons->size() && again.n != 0) again.score = wish.scores.data();
      }
      (void)wishes_.add(again);
    }
  }
  wishes_.close();
  if (!check_wishes(wishes_, site, sites_, topology_).ok()) wishes_.open(), wishes_.close();
  return wishes_;
}

}  // namespace tierd
