#include "core/kernel/pass/takes.h"

#include <algorithm>

namespace tierd {
namespace {

uint32_t count_of(const UnitColumns& columns, uint32_t width) {
  return std::min(columns.count, width - columns.first);
}

// `width`: the number of columns of the matrix.
Take take(const Dispatcher& dispatcher, Take::What what, uint16_t agent, const ActivationPlace& place,
          uint32_t rows, const UnitColumns& columns, uint32_t width) {
  Take take{
      .what = what, .stride = place.stride, .first = columns.first, .columns = count_of(columns, width)};
  if (place.there()) take.values = dispatcher.values(agent, place.offset, uint64_t{rows} * place.stride);
  return take;
}

}  // namespace

std::span<const Take> take_input(const Dispatcher& dispatcher, const Topology& topology, const Site& site,
                                 UnitId unit, uint32_t rows, std::vector<Take>& takes) {
  takes.clear();
  if (site.given()) return takes;
  for (const UnitColumns& columns : site.flow.input) {
    if (columns.unit == unit) continue;
    const uint16_t agent = topology.units[columns.unit].agent;
    takes.push_back(take(dispatcher, Take::What::input, agent, site.input, rows, columns, site.n_in));
    if (site.chosen())
      takes.push_back(take(dispatcher, Take::What::choice, agent, site.choice, rows, {}, site.n));
  }
  return takes;
}

void take_results(const Dispatcher& dispatcher, const Topology& topology, const Site& site,
                  const Giving& giving, uint32_t rows, std::span<const PassPlan::Share> shares,
                  std::vector<Take>& takes) {
  const uint16_t agent = topology.units[giving.from].agent;
  for (const UnitColumns& columns : site.flow.output) {
    if (columns.unit != giving.to) continue;
    Take results = take(dispatcher, Take::What::results, agent, site.output, rows, columns, site.n_out);
    if (site.added) {
      // An agent adds all neurons that it computed into one sum, whatever their editions.
      takes.push_back(results);
      continue;
    }
    for (const PassPlan::Share& share : shares) {
      if (share.neurons->size() == 0) continue;
      results.neurons = {share.neurons->indices(), share.neurons->size()};
      takes.push_back(results);
    }
  }
}

void give(const ActivationPlace& place, const UnitColumns& columns, uint32_t width,
          std::vector<Give>& gives) {
  gives.push_back({place.offset, place.stride, columns.first, count_of(columns, width)});
}

}  // namespace tierd
