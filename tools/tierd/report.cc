#include "tools/tierd/report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/units.h"
#include "core/report/figure_json.h"
#include "core/run/forecast.h"
#include "tools/evaluation/used_share.h"
#include "tools/lab/plan/plan.h"
#include "tools/tierd/encoding_report.h"
#include "tools/tierd/energy_report.h"
#include "tools/tierd/known_loss.h"
#include "tools/tierd/read_report.h"
#include "tools/tierd/recoding_report.h"
#include "tools/tierd/report_numbers.h"
#include "tools/tierd/strategy_report.h"
#include "tools/tierd/tier_report.h"
#include "tools/tierd/unit_report.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr uint64_t kLeastTrendSteps = 32;  // fewer steps show no trend

json times_json(const StepTimes& times) {
  const auto ms = [&](uint64_t ns) { return per(static_cast<double>(ns) * kMs, times.steps); };
  return {{"tokens", times.tokens},
          {"steps", times.steps},
          {"tokens_per_second",
           times.wall_ns == 0 ? 0.0
                              : static_cast<double>(times.tokens) * 1e9 / static_cast<double>(times.wall_ns)},
          {"step_ms", ms(times.wall_ns)},
          {"compute_ms", ms(times.compute_ns)},
          {"stall_ms", ms(times.stall_ns)},
          {"predictor_ms", ms(times.predictor_ns)},
          {"reading_ms", ms(times.reading_ns)},
          {"management_ms", ms(times.management_ns())},
          {"wanted_bytes", per(static_cast<double>(times.read_bytes), times.steps)},
          {"resident_weight_bytes", per(static_cast<double>(times.resident_bytes), times.steps)},
          {"streamed_weight_bytes", per(static_cast<double>(times.streamed_bytes), times.steps)},
          {"messages", per(static_cast<double>(times.messages), times.steps)}};
}

long peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace

json configuration_json(const Runtime& runtime) {
  const RunPlan& plan = runtime.plan();
  const Manifest& manifest = plan.store.manifest();
  return {{"model", manifest.config.name.empty() ? manifest.config.architecture : manifest.config.name},
          {"store", plan.store.directory()},
          {"tensor_bytes", manifest.tensor_bytes},
          {"predictor", plan.config.predictor.name},
          {"cache", plan.config.cache.name},
          {"backend", "host"},
          {"clock", plan.config.clock},
          {"kernels", runtime.compute_backend()},
          {"threads", runtime.threads()},
          {"context", plan.memory.model.context},
          {"prefill_chunk", plan.memory.model.max_rows},
          {"device", runtime.flash_backend()},
          {"seed", plan.config.seed}};
}

RunProgress progress_of(Runtime& runtime, const RunResult& result) {
  const StepTimes& decode = runtime.engine().decode_times();
  if (result.decode_ns == 0) return {decode.wall_ns, decode.tokens, result.generated_tokens};
  // Virtual time includes neither sampling nor drafting.
  const bool virtual_time = runtime.plan().config.clock == "model";
  return {virtual_time ? decode.wall_ns : result.decode_ns, result.decoded_tokens, result.generated_tokens};
}

json report_json(Runtime& runtime, const RunResult& result) {
  const SchedulerCounters& counters = runtime.scheduler().counters();
  const ReadCounts flash = runtime.flash_counts();
  const ComputeCounts compute = runtime.compute_counts();
  json report = configuration_json(runtime);
  report["load_ms"] = static_cast<double>(result.load_ns) * kMs;
  report["first_token_ms"] = static_cast<double>(result.first_token_ns) * kMs;
  report["prefill"] = times_json(runtime.engine().prefill_times());
  report["decode"] = times_json(runtime.engine().decode_times());
  if (result.decode_ns != 0) {
    const RunProgress progress = progress_of(runtime, result);
    report["decode"]["tokens"] = progress.decoded_tokens;
    report["decode"]["tokens_per_second"] =
        per(static_cast<double>(progress.decoded_tokens) * 1e9, progress.decode_ns);
  }
  add_reads(report["decode"], result.flash_before, flash);
  report["decode"]["flash_trend"] = trend_json(result.decode_read_bytes);
  report["neurons"] = {{"hits", counters.hits},       {"staged", counters.staged},
                       {"misses", counters.misses},   {"evictions", counters.evictions},
                       {"wasted", counters.wasted},   {"prefetch_failed", counters.prefetch_failed},
                       {"retries", counters.retries}, {"measured_bytes", counters.measured_bytes}};
  report["prediction"] = prediction_json(runtime);
  report["used"] = figures::value_json(
      used_figures(used_counts(runtime) - result.used_before, runtime.plan().config.predictor));
  if (runtime.plan().store.manifest().config.is_mixture()) report["experts"] = experts_json(runtime);
  report["flash"] = flash_json(runtime, flash);
  report["flash"]["system_read_bytes"] = system_read_bytes() - result.disk_bytes_before;
  if (const Timeline* timeline = runtime.timeline(); timeline != nullptr)
    report["pipeline"] = pipeline_json(*timeline);
  report["strategies"] = strategies_json(runtime);
  report["encoded_anew"] = stored_anew_json(runtime.plan().store);
  report["threads_woken"] = compute.threads_woken;
  report["shared_work"] = compute.shared_work;
  report["activation_error"] = compute.activation_error;
  report["tiers"] = tiers_json(runtime);
  report["units"] = units_json(runtime);
  report["idle_windows"] = idle_json(runtime);
  report["links"] = links_json(runtime, result);
  if (result.pressure)
    report["pressure"] = {{"shrinks", result.pressure->shrinks}, {"grows", result.pressure->grows}};
  report["peak_rss_bytes"] = peak_rss_bytes();
  report["prompt_tokens"] = result.prompt_tokens;
  report["generated_tokens"] = result.generated_tokens;
  report["energy"] = energy_json(result.energy);
  const Losses& losses = runtime.engine().losses();
  report["lost"] = {{"agents", losses.agents},
                    {"tokens_again", losses.tokens},
                    {"ms", static_cast<double>(losses.ns) * kMs}};
  report["speculation"] = {{"guessed", result.guessed_tokens}, {"right", result.right_guesses}};
  return report;
}

json forecast_json(const Runtime& runtime, const json& report) {
  const Config& config = runtime.plan().config;
  const auto tokens = report["decode"]["tokens"].get<uint32_t>();
  if (config.machine.empty() || config.clock != "wall" || tokens == 0) return {};
  RuntimeOptions options;
  options.fit = runtime.plan().memory.tiers.front().raised_to_least;
  const auto told =
      forecast(config, options,
               {.prompt_tokens = report["prefill"]["tokens"].get<uint32_t>(), .decoded_tokens = tokens});
  if (!told.ok()) return {{"machine", config.machine}, {"unknown", told.error().line()}};
  return {{"machine", config.machine}, {"tokens_per_second", 1e9 / told->step_ns}};
}

std::string report_text(const json& r) {
  const json& decode = r["decode"];
  const json& prefill = r["prefill"];
  const json& neurons = r["neurons"];
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", label, value);
  };
  text += fmt::format("{}, {} of weights; {} threads, {}, {}\n", r["model"].get<std::string>(),
                      size_text(r["tensor_bytes"]), r["threads"].get<int>(), r["kernels"].get<std::string>(),
                      r["device"].get<std::string>());
  line("decode", fmt::format("{:.2f} tokens/s, {} tokens", decode["tokens_per_second"].get<double>(),
                             decode["tokens"].get<int>()));
  if (const json forecast = r.value("forecast", json()); forecast.contains("unknown")) {
    line("forecast", forecast["unknown"].get<std::string>());
  } else if (!forecast.is_null()) {
    const auto rate = forecast["tokens_per_second"].get<double>();
    line("forecast", fmt::format("{:.2f} tokens/s in virtual time, by {}; {:.0f} % of it were measured", rate,
                                 forecast["machine"].get<std::string>(),
                                 100 * decode["tokens_per_second"].get<double>() / rate));
  }
  if (r.contains("plan"))
    line("planned", planned_and_achieved(r["plan"], decode["tokens_per_second"].get<double>()));
  line("prefill", fmt::format("{:.2f} tokens/s, {} tokens; first token after {}, load {}",
                              prefill["tokens_per_second"].get<double>(), prefill["tokens"].get<int>(),
                              format_duration(r["first_token_ms"].get<double>() / 1e3),
                              format_duration(r["load_ms"].get<double>() / 1e3)));
  line("per token",
       fmt::format(
           "{:.3g} ms = compute {:.3g} + predictor {:.3g} + stall {:.3g} + reading {:.3g} + management "
           "{:.3g}; I/O {:.3g} beside",
           decode["step_ms"].get<double>(), decode["compute_ms"].get<double>(),
           decode["predictor_ms"].get<double>(), decode["stall_ms"].get<double>(),
           decode["reading_ms"].get<double>(), decode["management_ms"].get<double>(),
           decode["io_ms"].get<double>()));
  if (r.contains("pipeline")) line("pipeline", pipeline_text(r["pipeline"]));
  if (const json& lost = r["lost"]; lost["agents"].get<uint64_t>() != 0) {
    line("lost", fmt::format("{} of the agents; {} tokens of the KV cache were computed again, all in {}",
                             lost["agents"].get<uint64_t>(), lost["tokens_again"].get<uint64_t>(),
                             format_duration(lost["ms"].get<double>() / 1e3)));
  }
  if (const json& speculation = r["speculation"]; speculation["guessed"].get<uint64_t>() != 0) {
    const auto steps = decode["steps"].get<double>();
    line("speculation",
         fmt::format("{} of {} guesses were right; {:.2f} tokens a step",
                     speculation["right"].get<uint64_t>(), speculation["guessed"].get<uint64_t>(),
                     steps > 0 ? r["generated_tokens"].get<double>() / steps : 0));
  }
  const double step_seconds = decode["step_ms"].get<double>() / 1e3;
  const auto rate_of = [&](const json& bytes) {
    return format_rate(step_seconds > 0 ? bytes.get<double>() / step_seconds : 0);
  };
  line("strategies", strategies_text(r["strategies"]));
  if (r["strategies"].contains("heat")) line("heat", heat_text(r["strategies"]["heat"]));
  if (const std::string said = metrics_text(r["strategies"]["balancer"]); !said.empty())
    line("balancer", said);
  for (const auto& [label, value] : unit_lines(r)) line(label, value);
  line("bytes/token",
       fmt::format("read {} in {:.0f} reads ({}) for {} wanted of flash; resident {} ({})",
                   size_text(decode["read_bytes"]), decode["reads"].get<double>(),
                   rate_of(decode["read_bytes"]), size_text(decode["wanted_bytes"]),
                   size_text(decode["resident_weight_bytes"]), rate_of(decode["resident_weight_bytes"])));
  const json& flash = r["flash"];
  if (flash["reads"].get<uint64_t>() != 0) line("flash", flash_text(flash));
  if (const json& trend = decode["flash_trend"];
      trend["steps"].get<uint64_t>() >= kLeastTrendSteps && trend["mean_bytes"].get<double>() > 0)
    line("trend", trend_text(trend));
  if (flash["gap_bytes"].get<uint64_t>() != 0) {
    line("gaps", fmt::format("up to {} are read through; {}", size_text(flash["gap_bytes"]),
                             flash["gap_from"].get<std::string>()));
  }
  if (flash["bounced"].get<bool>())
    line("landing", fmt::format("through the bounce buffer; {}", flash["bounced_from"].get<std::string>()));
  line("neurons", fmt::format("{} hits, {} read ahead in time, {} misses, {} evicted, {} read in vain",
                              neurons["hits"].get<uint64_t>(), neurons["staged"].get<uint64_t>(),
                              neurons["misses"].get<uint64_t>(), neurons["evictions"].get<uint64_t>(),
                              neurons["wasted"].get<uint64_t>()));
  if (r.contains("experts")) line("experts", experts_text(r["experts"]));
  if (!r["prediction"].empty()) line("predicted", prediction_text(r["prediction"]));
  if (!r["used"].is_null())
    line("used", used_text(r["used"], r["strategies"]["predictor"]["name"].get<std::string>()));
  if (r.contains("loss") && !r["loss"].is_null()) line("loss", loss_text(r["loss"]));  // none in a chat's
  if (r.contains("pressure")) {
    line("pressure", fmt::format("{} steps down, {} up", r["pressure"]["shrinks"].get<uint64_t>(),
                                 r["pressure"]["grows"].get<uint64_t>()));
  }
  for (const auto& [label, value] : tier_lines(r)) line(label, value);
  if (!r["encoded_anew"].empty()) line("encoded anew", encodings_text(r["encoded_anew"]));
  if (r.contains("recoded")) {  // measured at the end of a run, but not of a chat
    for (const auto& [label, value] : recoding_lines(r["recoded"])) line(label, value);
  }
  for (const auto& [label, value] : energy_lines(r["energy"])) line(label, value);
  line("process", fmt::format("peak {}", size_text(r["peak_rss_bytes"])));
  if (const double error = r["activation_error"].get<double>(); error > 0) {
    line("lossy",
         fmt::format("activations as int8, relative error {:.2g} (--set compute.activations=f32 is exact)",
                     error));
  }
  return text;
}

}  // namespace tierd
