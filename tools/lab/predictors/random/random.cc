// Each neuron is active with a given probability, drawn anew for every site of every step: the baseline for
// predictors. Lossy.
#include "tierd/plugin.hpp"

namespace {

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::number("p", "0.5", 0, 1, "the share of neurons that are active")),
};

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Random {
 public:
  static constexpr uint32_t kCaps = TIERD_PREDICTOR_LOSSY;

  explicit Random(const tierd::Host& host) : host_(host), state_(host.seed()), p_(host.number("p")) {}

  void predict(uint32_t site, const tierd_rows_view&, tierd_set_out& out) {
    out.n = 0;
    for (uint32_t neuron = 0; neuron < host_.site(site).n; ++neuron) {
      // 53 bits, in [0, 1): p = 1 takes all, p = 0 none.
      const double drawn = static_cast<double>(next(state_) >> 11) * 0x1p-53;
      if (drawn < p_ && out.n < out.cap) out.idx[out.n++] = neuron;
    }
  }

 private:
  tierd::Host host_;
  uint64_t state_;
  double p_;
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::predictor<Random>("random", "1.0", "each neuron is active with probability p (for comparison)"),
    kParams))
