#include "core/kernel/takes.h"

namespace tierd {
namespace {

Take take(const Dispatcher& dispatcher, Take::What what, uint16_t agent, const ActivationPlace& place,
          uint32_t rows) {
  Take take{.what = what, .stride = place.stride};
  if (place.there()) take.values = dispatcher.values(agent, place.offset, uint64_t{rows} * place.stride);
  return take;
}

}  // namespace

void take_input(const Dispatcher& dispatcher, const Site& site, uint16_t agent, uint32_t rows,
                std::vector<Take>& takes) {
  takes.clear();
  if (site.given()) return;
  takes.push_back(take(dispatcher, Take::What::input, agent, site.input, rows));
  if (site.chosen()) takes.push_back(take(dispatcher, Take::What::choice, agent, site.choice, rows));
}

void take_results(const Dispatcher& dispatcher, const Site& site, uint16_t agent, uint32_t rows,
                  std::span<const PassPlan::Share> shares, std::vector<Take>& takes) {
  Take results = take(dispatcher, Take::What::results, agent, site.output, rows);
  // One sum is made of all that the agent has computed, whichever edition it was in.
  if (site.added) return takes.push_back(results);
  for (const PassPlan::Share& share : shares) {
    if (share.neurons->size() == 0) continue;
    results.neurons = {share.neurons->indices(), share.neurons->size()};
    takes.push_back(results);
  }
}

}  // namespace tierd
