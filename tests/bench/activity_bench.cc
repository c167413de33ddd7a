// Measures the time to draw a token: 80 layers of 28,672 neurons (Llama-2-70B), on one thread.
#include <benchmark/benchmark.h>

#include <string>

#include "core/base/check.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

void token(benchmark::State& state, const std::string& name) {
  const auto profile = read_activity_profile(name);
  TIERD_CHECK_MSG(profile.ok(), name);
  auto activity = StickyActivity::create(*profile, {.neurons = std::vector<uint32_t>(80, 28672)});
  TIERD_CHECK(activity.ok());
  activity->next_token(0);  // draws the sequence's rates, too
  for (auto _ : state) activity->next_token(0);
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  for (const std::string& name : tierd::known_activity_profiles()) {
    benchmark::RegisterBenchmark(name.c_str(), [name](benchmark::State& state) {
      tierd::token(state, name);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
