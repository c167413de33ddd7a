// The neurons that fit stay from the start to the end; the rest passes through. The split is by bytes: every
// edition keeps the same share of its neurons, so that there is always work while the next bytes are fetched.
//
// If the experts of a mixture have operators of their own, a step passes few of them: their editions get the
// bytes that the operators of every step leave. A site whose set is given (an embedding: one row a token)
// uses few of its neurons in a step; its editions get the rest.
#include <algorithm>
#include <utility>
#include <vector>

#include "tierd/policy/fixed_set.hpp"

namespace {

class Pinned : public tierd::FixedSet {
 public:
  explicit Pinned(const tierd::Host& host) : FixedSet(host) {}

  void share(uint64_t bytes, uint32_t* max_slots) {
    const std::vector<uint32_t> most(max_slots, max_slots + host().n_editions());
    std::fill_n(max_slots, host().n_editions(), 0u);
    for (const bool of_experts : {false, true}) {
      bytes = tierd::split_evenly(host(), bytes, most, max_slots, [&](uint32_t e) {
        return host().site_of(e).given == 0 && tierd::of_expert(host(), e) == of_experts;
      });
    }
    tierd::split_evenly(host(), bytes, most, max_slots,
                        [&](uint32_t e) { return host().site_of(e).given != 0; });
    for (uint32_t e = 0; e < host().n_editions(); ++e) {
      std::vector<uint32_t> first;
      for (uint32_t i = 0; i < host().edition(e).n && first.size() < max_slots[e]; ++i) {
        if (host().at_home(e, i)) first.push_back(i);
      }
      keep(e, std::move(first));
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    name_surplus(max_slots, victims);
  }
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Pinned>(
    "pinned", "1.0", "keeps an equal share of each edition, as much as fits, and streams the rest"))
