#include "core/run/forecast.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace tierd {
namespace {

constexpr uint32_t kMostSteps = 64;
constexpr uint32_t kTokensApart = 101;  // so that rows of the embedding come from all over it

}  // namespace

Result<double> forecast_step_ns(Config config, const RuntimeOptions& options, const ForecastAsked& asked) {
  config.clock = "model";
  config.execute = "trace";
  config.trace = config.timeline = config.shuffle = "";
  RuntimeOptions quiet;
  quiet.quiet = true;
  quiet.shorten = options.shorten;
  quiet.fit = options.fit;
  quiet.force = options.force;
  TIERD_ASSIGN(RunPlan plan, plan_run(config, quiet));
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), quiet));
  TIERD_TRY(runtime->load());
  Engine& engine = runtime->engine();
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
  const uint32_t prompt = std::min(asked.prompt_tokens, engine.context() - steps);
  TIERD_TRY(engine.begin_sequence(0));
  while (position < prompt) TIERD_TRY(step(std::min(prompt - position, engine.max_rows()), true));
  for (uint32_t i = 0; i < steps; ++i) TIERD_TRY(step(1, false));
  const StepTimes times = engine.decode_times();
  TIERD_TRY(engine.drain());
  engine.end_sequence(0);
  return static_cast<double>(times.wall_ns) / static_cast<double>(std::max<uint64_t>(times.steps, 1));
}

}  // namespace tierd
