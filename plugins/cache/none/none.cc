// Keeps nothing: every neuron that a step uses is read for that step.
#include <algorithm>

#include "tierd/plugin.hpp"

namespace {

class None {
 public:
  explicit None(const tierd::Host& host) : n_editions_(host.n_editions()) {}

  void share(uint64_t, uint32_t* max_slots) { std::fill_n(max_slots, n_editions_, 0u); }

  void admit(const tierd_set_view& missing, int, uint32_t, uint8_t* verdict, tierd_victims_out& victims) {
    std::fill_n(verdict, missing.n, uint8_t{TIERD_VERDICT_BYPASS});
    victims.n = 0;
  }

 private:
  uint32_t n_editions_;
};

}  // namespace

TIERD_PLUGIN(tierd::cache<None>("none", "1.0", "keeps nothing"))
