#include "tools/tierd/report.h"

#include <sys/resource.h>

#include "core/run/forecast.h"

namespace tierd {
namespace {

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

StepFigures step_figures(const StepTimes& times) {
  return {times, times.tokens, times.wall_ns};
}

DecodeFigures decode_figures(Runtime& runtime, const RunResult& result, const ReadCounts& flash) {
  DecodeFigures decode{step_figures(runtime.engine().decode_times()),
                       figures_between(ReadFigures{result.flash_before}, ReadFigures{flash}),
                       trend_figures(result.decode_read_bytes)};
  if (result.decode_ns != 0) {
    const RunProgress progress = progress_of(runtime, result);
    decode.all.tokens = progress.decoded_tokens;
    decode.all.tokens_ns = progress.decode_ns;
  }
  return decode;
}

NeuronFigures neuron_figures(const SchedulerCounters& counters) {
  return {.hits = counters.hits,
          .staged = counters.staged,
          .misses = counters.misses,
          .evictions = counters.evictions,
          .wasted = counters.wasted,
          .prefetch_failed = counters.prefetch_failed,
          .retries = counters.retries,
          .measured_bytes = counters.measured_bytes};
}

ReportLines forecast_lines(const RunFigures& run) {
  if (!run.forecast) return {};
  if (run.forecast->unknown) return {{"forecast", *run.forecast->unknown}};
  const double rate = *run.forecast->tokens_per_second;
  return {
      {"forecast", fmt::format("{:.2f} tokens/s in virtual time, by {}; {:.0f} % of it were measured", rate,
                               run.forecast->machine, 100 * run.decode.all.tokens_per_second() / rate)}};
}

ReportLines time_lines(const RunFigures& run) {
  const StepFigures &decode = run.decode.all, &prefill = run.prefill;
  ReportLines lines = {
      {"decode", fmt::format("{:.2f} tokens/s, {} tokens", decode.tokens_per_second(), decode.tokens)}};
  append(lines, forecast_lines(run));
  lines.emplace_back(
      "prefill", fmt::format("{:.2f} tokens/s, {} tokens; first token after {}, load {}",
                             prefill.tokens_per_second(), prefill.tokens,
                             format_duration(run.first_token_ms / 1e3), format_duration(run.load_ms / 1e3)));
  const StepTimes& times = decode.times;
  lines.emplace_back(
      "per token",
      fmt::format(
          "{:.3g} ms = compute {:.3g} + predictor {:.3g} + stall {:.3g} + reading {:.3g} + management "
          "{:.3g}; I/O {:.3g} beside",
          decode.ms(times.wall_ns), decode.ms(times.compute_ns), decode.ms(times.predictor_ns),
          decode.ms(times.stall_ns), decode.ms(times.reading_ns), decode.ms(times.management_ns()),
          decode.ms(run.decode.reads.in_flight_ns)));
  if (run.pipeline) lines.emplace_back("pipeline", pipeline_text(*run.pipeline));
  if (const LossesFigures& lost = run.lost; lost.agents != 0) {
    lines.emplace_back(
        "lost", fmt::format("{} of the agents; {} tokens of the KV cache were computed again, all in {}",
                            lost.agents, lost.tokens, format_duration(lost.ms() / 1e3)));
  }
  if (const SpeculationFigures& guesses = run.speculation; guesses.guessed != 0) {
    lines.emplace_back("speculation",
                       fmt::format("{} of {} guesses were right; {:.2f} tokens a step", guesses.right,
                                   guesses.guessed, per(run.generated_tokens, times.steps)));
  }
  return lines;
}

ReportLines byte_lines(const DecodeFigures& decode) {
  using T = StepTimes;
  const double step_seconds = decode.all.ms(decode.all.times.wall_ns) / 1e3;
  const auto rate = [&](double bytes) { return format_rate(step_seconds > 0 ? bytes / step_seconds : 0); };
  const double read = decode.each<&ReadCounts::read_bytes>(decode);
  const double resident = decode.all.each<&T::resident_bytes>(decode.all);
  return {{"bytes/token", fmt::format("read {} in {:.0f} reads ({}) for {} wanted of flash; resident {} ({})",
                                      size_text(read), decode.each<&ReadCounts::reads>(decode), rate(read),
                                      size_text(decode.all.each<&T::read_bytes>(decode.all)),
                                      size_text(resident), rate(resident))}};
}

ReportLines neuron_lines(const RunFigures& run) {
  const NeuronFigures& neurons = run.neurons;
  ReportLines lines = {
      {"neurons",
       fmt::format("{} hits, {} read ahead in time, {} misses, {} evicted, {} read in vain", neurons.hits,
                   neurons.staged, neurons.misses, neurons.evictions, neurons.wasted.value_or(0))}};
  if (run.experts) lines.emplace_back("experts", experts_text(*run.experts));
  if (!run.prediction.empty()) lines.emplace_back("predicted", prediction_text(run.prediction));
  if (run.used) lines.emplace_back("used", used_text(*run.used, run.strategies.predictor.strategy));
  if (run.loss) lines.emplace_back("loss", loss_text(*run.loss));
  if (run.pressure) {
    lines.emplace_back("pressure",
                       fmt::format("{} steps down, {} up", run.pressure->shrinks, run.pressure->grows));
  }
  return lines;
}

}  // namespace

ConfigurationFigures configuration_figures(const Runtime& runtime) {
  const RunPlan& plan = runtime.plan();
  const Manifest& manifest = plan.store.manifest();
  return {.model = manifest.config.name.empty() ? manifest.config.architecture : manifest.config.name,
          .tensor_bytes = manifest.tensor_bytes,
          .predictor = plan.config.predictor.name,
          .cache = plan.config.cache.name,
          .clock = plan.config.clock,
          .kernels = runtime.compute_backend(),
          .threads = runtime.threads(),
          .context = plan.memory.model.context,
          .prefill_chunk = plan.memory.model.max_rows,
          .device = runtime.flash_backend(),
          .seed = plan.config.seed};
}

RunProgress progress_of(Runtime& runtime, const RunResult& result) {
  const StepTimes& decode = runtime.engine().decode_times();
  if (result.decode_ns == 0) return {decode.wall_ns, decode.tokens, result.generated_tokens};
  // Virtual time includes neither sampling nor drafting.
  const bool virtual_time = runtime.plan().config.clock == "model";
  return {virtual_time ? decode.wall_ns : result.decode_ns, result.decoded_tokens, result.generated_tokens};
}

RunFigures run_figures(Runtime& runtime, const RunResult& result) {
  const RunPlan& plan = runtime.plan();
  const ReadCounts flash = runtime.flash_counts();
  RunFigures run;
  run.configuration = configuration_figures(runtime);
  run.store = plan.store.directory();
  run.load_ms = ms_each(result.load_ns, 1);
  run.first_token_ms = ms_each(result.first_token_ns, 1);
  run.prompt_tokens = result.prompt_tokens;
  run.generated_tokens = result.generated_tokens;
  run.prefill = step_figures(runtime.engine().prefill_times());
  run.decode = decode_figures(runtime, result, flash);
  run.neurons = neuron_figures(runtime.scheduler().counters());
  run.prediction = prediction_figures(runtime);
  run.used = used_figures(used_counts(runtime) - result.used_before, plan.config.predictor);
  if (plan.store.manifest().config.is_mixture()) run.experts = expert_figures(runtime);
  run.flash = flash_figures(runtime, flash, result.disk_bytes_before);
  if (const Timeline* timeline = runtime.timeline()) run.pipeline = pipeline_figures(*timeline);
  run.strategies = strategies_figures(runtime);
  run.encoded_anew = stored_anew(plan.store);
  run.compute = {runtime.compute_counts()};
  run.tiers = tier_figures(runtime);
  run.links = link_figures(runtime, result);
  run.units = units_figures(runtime);
  run.idle = idle_figures(runtime);
  run.pressure = result.pressure;
  run.peak_rss_bytes = peak_rss_bytes();
  run.energy = {result.energy};
  run.lost = {runtime.engine().losses()};
  run.speculation = {result.guessed_tokens, result.right_guesses};
  return run;
}

std::optional<ForecastFigures> forecast_figures(const Runtime& runtime, const RunFigures& run) {
  const Config& config = runtime.plan().config;
  const auto tokens = static_cast<uint32_t>(run.decode.all.tokens);
  if (config.machine.empty() || config.clock != "wall" || tokens == 0) return std::nullopt;
  RuntimeOptions options;
  options.fit = runtime.plan().memory.tiers.front().raised_to_least;
  const auto told =
      forecast(config, options,
               {.prompt_tokens = static_cast<uint32_t>(run.prefill.tokens), .decoded_tokens = tokens});
  ForecastFigures figures{config.machine, {}, {}};
  if (told.ok()) {
    figures.tokens_per_second = 1e9 / told->step_ns;
  } else {
    figures.unknown = told.error().line();
  }
  return figures;
}

std::string report_text(const RunFigures& run) {
  const ConfigurationFigures& configuration = run.configuration;
  ReportLines lines = time_lines(run);
  append(lines, strategy_lines(run.strategies));
  append(lines, unit_lines(run.units, run.idle));
  append(lines, byte_lines(run.decode));
  append(lines, flash_lines(run.flash, run.decode.trend));
  append(lines, neuron_lines(run));
  append(lines, tier_lines(run.tiers, run.links, run.decode.all.ms(run.decode.all.times.wall_ns)));
  if (!run.encoded_anew.empty()) lines.emplace_back("encoded anew", encodings_text(run.encoded_anew));
  if (run.recoded) append(lines, recoding_lines(*run.recoded));
  append(lines, energy_lines(run.energy));
  lines.emplace_back("process", fmt::format("peak {}", size_text(run.peak_rss_bytes)));
  if (const double error = run.compute.activation_error; error > 0) {
    lines.emplace_back(
        "lossy",
        fmt::format("activations as int8, relative error {:.2g} (--set compute.activations=f32 is exact)",
                    error));
  }
  return fmt::format("{}, {} of weights; {} threads, {}, {}\n", configuration.model,
                     size_text(configuration.tensor_bytes), configuration.threads, configuration.kernels,
                     configuration.device) +
         text_of(lines);
}

}  // namespace tierd
