// What fits stays from the start to the end; the rest streams by. The split is by bytes: every site keeps the
// same share of its neurons, so that there is always something to compute while the next bytes come in.
//
// A site whose set is given (an embedding: one row a token) uses few of its neurons in a step; it gets what
// the others leave.
#include <algorithm>
#include <utility>
#include <vector>

#include "tierd/fixed_set.hpp"

namespace {

class Pinned : public tierd::FixedSet {
 public:
  explicit Pinned(const tierd::Host& host) : FixedSet(host) {}

  void share(uint64_t bytes, uint32_t* max_slots) {
    const std::vector<uint32_t> most(max_slots, max_slots + host().n_sites());
    std::fill_n(max_slots, host().n_sites(), 0u);
    bytes = tierd::split_evenly(host(), bytes, most, max_slots, [](const tierd_site_view& s) {
      return s.alias_of == TIERD_NO_SITE && s.given == 0;
    });
    tierd::split_evenly(host(), bytes, most, max_slots,
                        [](const tierd_site_view& s) { return s.alias_of == TIERD_NO_SITE && s.given != 0; });
    for (uint32_t s = 0; s < host().n_sites(); ++s) {
      std::vector<uint32_t> first;
      for (uint32_t i = 0; i < host().site(s).n && first.size() < max_slots[s]; ++i) {
        if (host().at_home(s, i)) first.push_back(i);
      }
      keep(s, std::move(first));
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    name_surplus(max_slots, victims);
  }
};

}  // namespace

TIERD_PLUGIN(tierd::cache<Pinned>("pinned", "1.0",
                                  "what fits stays, an equal share of each site; the rest streams"))
