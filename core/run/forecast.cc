#include "core/run/forecast.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace tierd {
namespace {

constexpr uint32_t kMostSteps = 64;
constexpr uint32_t kTokensApart = 101;  // spreads the tokens over the rows of the embedding
constexpr double kSettled = 0.01;       // relative difference of means that counts as equal

// Returns the bytes fetched over each link so far.
std::vector<uint64_t> fetched(const Runtime& runtime) {
  std::vector<uint64_t> bytes;
  for (size_t l = 0; l < runtime.plan().tiers.topology.links.size(); ++l)
    bytes.push_back(runtime.scheduler().link_counters(l).bytes);
  return bytes;
}

bool same_bytes(const Forecast& a, const Forecast& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= kSettled * std::max(x, y); };
  return near(a.flash_bytes, b.flash_bytes) && std::ranges::equal(a.link_bytes, b.link_bytes, near);
}

}  // namespace

Result<Forecast> play(Runtime& runtime, const ForecastAsked& asked) {
  TIERD_TRY(runtime.plays());
  TIERD_TRY(runtime.load());
  Engine& engine = runtime.engine();
  std::vector<RowInfo> rows;
  uint32_t position = 0;
  const auto step = [&](uint32_t tokens, bool prefill) -> Status {
    rows.clear();
    for (uint32_t i = 0; i < tokens; ++i, ++position)
      rows.push_back({.token = position * kTokensApart % engine.vocab_size(), .position = position});
    const uint32_t last = tokens - 1;
    const auto logits = engine.step(rows, {&last, 1}, prefill);
    return logits.ok() ? Status() : Status(logits.error());
  };
  const uint32_t steps = std::min({asked.decoded_tokens, kMostSteps, engine.context() / 2});
  const uint32_t warming = std::min(asked.warming_tokens, engine.context() - steps);
  const uint32_t prompt = std::min(asked.prompt_tokens, engine.context() - steps - warming);
  const auto decode = [&]() -> Result<Forecast> {
    const std::vector<uint64_t> before = fetched(runtime);
    engine.reset_times();
    for (uint32_t i = 0; i < steps; ++i) TIERD_TRY(step(1, false));
    const StepTimes times = engine.decode_times();
    const auto counted = static_cast<double>(std::max<uint64_t>(times.steps, 1));
    Forecast means{.step_ns = static_cast<double>(times.wall_ns) / counted,
                   .flash_bytes = static_cast<double>(times.read_bytes) / counted};
    const std::vector<uint64_t> after = fetched(runtime);
    for (size_t l = 0; l < after.size(); ++l)
      means.link_bytes.push_back(static_cast<double>(after[l] - before[l]) / counted);
    return means;
  };
  TIERD_TRY(engine.begin_sequence(0));
  while (position < prompt) TIERD_TRY(step(std::min(prompt - position, engine.max_rows()), true));
  for (uint32_t i = 0; i < warming; ++i) TIERD_TRY(step(1, false));
  TIERD_ASSIGN(Forecast forecast, decode());
  const uint32_t last = std::min(position + asked.settling_tokens, engine.context());
  for (bool settled = false; !settled && position + steps <= last;) {
    TIERD_ASSIGN(Forecast next, decode());
    settled = same_bytes(forecast, next);
    forecast = std::move(next);
  }
  TIERD_TRY(engine.drain());
  engine.end_sequence(0);
  return forecast;
}

Result<Forecast> forecast(Config config, const RuntimeOptions& options, const ForecastAsked& asked) {
  RuntimeOptions played;
  played.quiet = true;
  played.shorten = options.shorten;
  played.shortest_context = options.shortest_context;
  played.fit = options.fit;
  played.counted = options.counted;
  played.force = true;  // a played run allocates no memory for weights
  TIERD_ASSIGN(played.play_on, read_machine(config.machine));
  config.shuffle = "";
  TIERD_ASSIGN(RunPlan plan, plan_run(config, played));
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), played));
  return play(*runtime, asked);
}

}  // namespace tierd
