// Measures the cost of keeping a sliding window of neurons in memory (LLM in a flash, section 3.3: memory is
// managed in time proportional to what changes): evicting, admitting and accounting, without reading or
// computing.
//
//   build/release/bin/window_bench
//
// A token uses `active` of `neurons`, of which `changed` are new; a window of one token evicts as many. A
// cost that depends only on used and changed neurons does not depend on `neurons`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/model/layout/cut.h"
#include "tests/bench/bare_kernel.h"
#include "tests/kernel/add_site.h"

namespace tierd {
namespace {

constexpr uint32_t kNeuronBytes = 16 << 10;

// A network with a range of active neurons that moves on with each token.
class MovingRange {
 public:
  MovingRange(uint32_t neurons, uint32_t active, uint32_t changed)
      : neurons_(neurons),
        active_(active),
        changed_(changed),
        kernel_(network(neurons), {.config = window_of_one_token(),
                                   .arena_bytes = uint64_t{active + changed} * kNeuronBytes,
                                   .block_bytes = 64 * kNeuronBytes}) {
    Strategy<tierd_predictor_1>& predictor = kernel_.strategies().predictor;
    predictor.self = this;
    predictor.table = {};
    predictor.table.predict = [](void* self, uint32_t, const tierd_rows_view*, tierd_set_out* out) {
      return static_cast<const MovingRange*>(self)->predict(*out);
    };
  }

  void token() {
    kernel_.step();
    first_ = (first_ + changed_) % neurons_;
  }
  SchedulerCounters counters() const { return kernel_.counters(); }

 private:
  static SiteTable network(uint32_t neurons) {
    Site site;
    site.name = "network";
    site.n = neurons;
    site.label = kCutNumber<Bundles>;
    site.added = Bundles::kAdded;
    site.stretch = Bundles::kRun;
    Edition edition;
    edition.slot_bytes = kNeuronBytes;
    edition.bytes.assign(neurons, kNeuronBytes);
    SiteTable sites;
    add_site(sites, std::move(site), std::move(edition));
    return sites;
  }
  static Config window_of_one_token() {
    Config config;
    config.cache = {.name = "residency-window",
                    .settings = {{.key = "k", .value = int64_t{1}, .origin = "bench"}}};
    return config;
  }
  int predict(tierd_set_out& out) const {
    const uint32_t end = first_ + active_;
    uint32_t n = 0;
    for (uint32_t i = neurons_; i < end; ++i) out.idx[n++] = i - neurons_;  // the wrapped part
    for (uint32_t i = first_; i < std::min(end, neurons_); ++i) out.idx[n++] = i;
    out.n = n;
    out.all = 0;
    return TIERD_OK;
  }

  const uint32_t neurons_, active_, changed_;
  BareKernel kernel_;
  uint32_t first_ = 0;
};

void window(benchmark::State& state) {
  MovingRange world(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)),
                    static_cast<uint32_t>(state.range(2)));
  for (int i = 0; i < 64; ++i) world.token();
  const SchedulerCounters before = world.counters();
  double tokens = 0;
  for (auto _ : state) {
    world.token();
    ++tokens;
  }
  const SchedulerCounters& after = world.counters();
  state.counters["came"] = static_cast<double>(after.misses - before.misses) / tokens;
  state.counters["left"] = static_cast<double>(after.evictions - before.evictions) / tokens;
}
BENCHMARK(window)
    ->ArgNames({"neurons", "active", "changed"})
    ->ArgsProduct({{4096, 16384, 65536}, {1600}, {0, 100, 400, 1600}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tierd

BENCHMARK_MAIN();
