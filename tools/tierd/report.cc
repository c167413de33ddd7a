#include "tools/tierd/report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/units.h"
#include "core/timeline/pipeline.h"
#include "tiers/compute/memory_bandwidth.h"
#include "tiers/flash/bandwidth.h"
#include "tools/tierd/plan.h"
#include "tools/tierd/trend.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr double kMs = 1e-6;               // from ns
constexpr size_t kWarmUpSteps = 16;        // in which caches fill
constexpr uint64_t kLeastTrendSteps = 32;  // fewer say nothing
constexpr double kMeasureSeconds = 0.5;
constexpr uint64_t kMeasureBytes = uint64_t{256} << 20;

std::string size_text(const json& bytes) {
  return format_bytes(bytes.get<double>());
}

double per(double value, uint64_t count) {
  return count == 0 ? 0 : value / static_cast<double>(count);
}

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
          {"flash_bytes", per(static_cast<double>(times.read_bytes), times.steps)},
          {"resident_weight_bytes", per(static_cast<double>(times.resident_bytes), times.steps)},
          {"streamed_weight_bytes", per(static_cast<double>(times.streamed_bytes), times.steps)},
          {"messages", per(static_cast<double>(times.messages), times.steps)}};
}

json budget_json(const Runtime& runtime) {
  json lines = json::object();
  for (const Budget::Line& line : runtime.budget().lines()) lines[line.name] = line.bytes;
  json changes = json::array();
  for (const Runtime::BudgetChange& change : runtime.budget_changes()) {
    changes.push_back({{"step", change.step},
                       {"capacity_bytes", change.to},
                       {"resident_bytes", change.resident},
                       {"raised_to_least", change.raised_to_least}});
  }
  return {{"capacity_bytes", runtime.budget().capacity()},
          {"peak_bytes", runtime.budget().peak()},
          {"used_bytes", runtime.budget().used()},
          {"changes", changes},
          {"least_bytes", runtime.plan().memory.least},
          {"raised_to_least", runtime.plan().memory.raised_to_least},
          {"lines", lines}};
}

json configuration_json(const Runtime& runtime) {
  const RunPlan& plan = runtime.plan();
  const Manifest& manifest = plan.store.manifest();
  return {{"model", manifest.config.name.empty() ? manifest.config.architecture : manifest.config.name},
          {"store", plan.store.directory()},
          {"tensor_bytes", manifest.tensor_bytes},
          {"predictor", plan.config.predictor.name},
          {"cache", plan.config.cache.name},
          {"backend", "host"},
          {"clock", "wall"},
          {"kernels", runtime.compute_backend()},
          {"threads", runtime.threads()},
          {"context", plan.memory.model.context},
          {"prefill_chunk", plan.memory.model.max_rows},
          {"device", runtime.flash_backend()},
          {"seed", plan.config.seed}};
}

// Of one strategy: what it is, and what asking it has cost.
json strategy_json(const StrategyBase& strategy, const StrategyInstance& instance, uint64_t steps) {
  const tierd_plugin& plugin = *instance.choice().plugin;
  json parameters = json::object();
  for (const auto& [name, value] : instance.choice().parameters.values()) {
    std::visit([&, key = name](const auto& v) { parameters[key] = v; }, value);
  }
  return {{"name", plugin.name},
          {"version", plugin.version},
          {"file", instance.choice().origin},
          {"lossy", plugin.lossy != 0 || instance.choice().parameters.lossy()},
          {"parameters", parameters},
          {"metrics", instance.metrics()},
          {"calls", per(static_cast<double>(strategy.calls), steps)},
          {"ms", per(static_cast<double>(strategy.ns) * kMs, steps)}};
}

json strategies_json(Runtime& runtime) {
  const StrategySet& set = runtime.strategies();
  const Strategies& s = set.strategies();
  const uint64_t steps = runtime.engine().prefill_times().steps + runtime.engine().decode_times().steps;
  return {{"predictor", strategy_json(s.predictor, set.instance("predictor"), steps)},
          {"quantizer", strategy_json(s.quantizer, set.instance("quantizer"), steps)},
          {"cache", strategy_json(s.caches.front(), set.instance("cache"), steps)},
          {"balancer", strategy_json(s.balancer, set.instance("balancer"), steps)},
          {"ms", per(static_cast<double>(cost_of(s).ns) * kMs, steps)}};
}

// Of each site whose neurons are predicted: what was used, and where that was measured, how well it was
// foreseen.
json prediction_json(const Runtime& runtime) {
  json list = json::array();
  const SiteTable& sites = runtime.plan().model.sites;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const SiteUse& use = runtime.scheduler().use()[s];
    if (sites[s].chosen()) continue;  // not predicted
    const bool whole = use.used == use.rows * sites[s].n;
    if (whole && use.measured_rows == 0) continue;
    json site = {{"site", sites[s].name},
                 {"neurons", sites[s].n},
                 {"used", per(static_cast<double>(use.used), use.rows)},
                 {"measured_rows", use.measured_rows}};
    if (use.measured_rows != 0) {
      site["active"] = per(static_cast<double>(use.active), use.measured_rows);
      site["recall"] = use.recall();
      site["precision"] = use.precision();
      site["missed_mass"] = use.missed_share();
    }
    list.push_back(std::move(site));
  }
  return list;
}

// For each layer of a mixture: how many experts a token uses, where they were, and how well they were
// foreseen.
json experts_json(const Runtime& runtime) {
  json list = json::array();
  const SiteTable& sites = runtime.plan().model.sites;
  const uint32_t experts = runtime.plan().store.manifest().config.n_experts;
  for (SiteId s = 0; s < sites.size(); ++s) {
    if (!sites[s].chosen()) continue;
    const SiteUse& use = runtime.scheduler().use()[s];
    json site = {{"site", sites[s].name},
                 {"experts", experts},
                 {"used", per(static_cast<double>(use.used), use.rows)},
                 {"hits", use.hits},
                 {"staged", use.staged},
                 {"misses", use.misses}};
    if (use.foreseen != 0) {
      site["foreseen"] = use.foreseen;
      site["precision"] = use.ahead_precision();
      site["recall"] = use.ahead_recall();
    }
    list.push_back(std::move(site));
  }
  return list;
}

// "8 of 64 a token: 61 % were there, 12 % came ahead; foreseen with precision 80 %, recall 79 %".
std::string experts_text(const json& sites) {
  double hits = 0, staged = 0, misses = 0, used = 0, precision = 0, recall = 0;
  size_t foreseen = 0;
  for (const json& site : sites) {
    hits += site["hits"].get<double>();
    staged += site["staged"].get<double>();
    misses += site["misses"].get<double>();
    used += site["used"].get<double>();
    if (!site.contains("foreseen")) continue;
    ++foreseen;
    precision += site["precision"].get<double>();
    recall += site["recall"].get<double>();
  }
  const double all = std::max(1.0, hits + staged + misses);
  std::string text = fmt::format("{:.3g} of {} a token: {:.3g} % were there, {:.3g} % came ahead",
                                 used / static_cast<double>(sites.size()),
                                 sites[0]["experts"].get<uint32_t>(), 100 * hits / all, 100 * staged / all);
  if (foreseen == 0) return text;
  const auto n = static_cast<double>(foreseen);
  return text + fmt::format("; foreseen with precision {:.3g} %, recall {:.3g} %", 100 * precision / n,
                            100 * recall / n);
}

// One line of it: means over the sites, and the worst.
std::string prediction_text(const json& sites) {
  double used = 0, neurons = 0;
  size_t measured = 0;
  double recall = 0, precision = 0, mass = 0, most_mass = -1;
  std::string worst;
  for (const json& site : sites) {
    used += site["used"].get<double>();
    neurons += site["neurons"].get<double>();
    if (site["measured_rows"].get<uint64_t>() == 0) continue;
    ++measured;
    recall += site["recall"].get<double>();
    precision += site["precision"].get<double>();
    const double missed = site["missed_mass"].get<double>();
    mass += missed;
    if (missed > most_mass) most_mass = missed, worst = site["site"].get<std::string>();
  }
  std::string text = fmt::format("{:.3g} % of {} sites' neurons", 100 * used / neurons, sites.size());
  if (measured == 0) return text + "; what was missed was not measured (scheduler.measure_every)";
  const auto n = static_cast<double>(measured);
  return text +
         fmt::format("; recall {:.4g} %, precision {:.3g} %, missed mass {:.3g} % (most {:.3g} % in {})",
                     100 * recall / n, 100 * precision / n, 100 * mass / n, 100 * most_mass, worst);
}

json flash_json(const Runtime& runtime, const ReadCounts& flash) {
  json sizes = json::object();  // "16384": reads of 16 KiB and more, less than the next
  for (size_t i = 0; i < kReadSizes; ++i) {
    if (flash.reads_of_size[i] != 0) sizes[std::to_string(kLeastReadSize << i)] = flash.reads_of_size[i];
  }
  return {{"bytes", flash.bytes},
          {"extents", flash.extents},
          {"asked_bytes", flash.asked_bytes},
          {"read_bytes", flash.read_bytes},
          {"wasted_bytes", flash.wasted_bytes},
          {"reads", flash.reads},
          {"reads_of_size", sizes},
          {"joined", flash.joined},
          {"short_reads", flash.short_reads},
          {"retries", flash.retries},
          {"checksum_ms", static_cast<double>(flash.checksum_ns) * kMs},
          {"busy_ms", static_cast<double>(flash.in_flight_ns) * kMs},
          {"busy_bytes_per_second", flash.in_flight_ns == 0 ? 0.0
                                                            : static_cast<double>(flash.read_bytes) * 1e9 /
                                                                  static_cast<double>(flash.in_flight_ns)},
          {"gap_bytes", runtime.reading().gap_bytes},
          {"gap_from", runtime.reading().gap_from},
          {"bounced", runtime.reading().bounced},
          {"bounced_from", runtime.reading().bounced_from}};
}

// What decode steps have read: per step, and the rate while something was being read.
void add_reads(json& decode, const ReadCounts& before, const ReadCounts& after) {
  const auto steps = decode["steps"].get<uint64_t>();
  const auto since = [&](auto ReadCounts::*field) {
    return static_cast<double>(after.*field - before.*field);
  };
  const double busy_ns = since(&ReadCounts::in_flight_ns);
  const double bytes = since(&ReadCounts::read_bytes);
  decode["io_ms"] = per(busy_ns * kMs, steps);
  decode["checksum_ms"] = per(since(&ReadCounts::checksum_ns) * kMs, steps);
  decode["copy_ms"] = per(since(&ReadCounts::copy_ns) * kMs, steps);
  decode["reads"] = per(since(&ReadCounts::reads), steps);
  decode["read_bytes"] = per(bytes, steps);
  decode["wasted_bytes"] = per(since(&ReadCounts::wasted_bytes), steps);
  decode["busy_bytes_per_second"] = busy_ns == 0 ? 0.0 : bytes * 1e9 / busy_ns;
}

// Whether decode reads more and more, or less and less, once its beginning is over.
json trend_json(const std::vector<uint64_t>& read_bytes) {
  const size_t skipped = std::min<size_t>(kWarmUpSteps, read_bytes.size());
  const Trend trend = trend_of(std::span(read_bytes).subspan(skipped));
  return {{"skipped_steps", skipped},
          {"steps", read_bytes.size() - skipped},
          {"mean_bytes", trend.mean},
          {"bytes_per_step", trend.slope},
          {"error", trend.error}};
}

// "284 MB a step after the first 16, -12 kB (+-9 kB) from step to step".
std::string trend_text(const json& trend) {
  const double slope = trend["bytes_per_step"].get<double>();
  return fmt::format("{} a step after the first {}; {}{} from step to step, give or take {}",
                     size_text(trend["mean_bytes"]), trend["skipped_steps"].get<uint64_t>(),
                     slope < 0 ? "-" : "+", format_bytes(std::abs(slope)), size_text(trend["error"]));
}

// "1200 reads of 26 kB for 4800 extents, 12 % in vain; 1.9 GB/s while busy".
std::string flash_text(const json& flash) {
  const auto reads = flash["reads"].get<uint64_t>();
  const auto read_bytes = flash["read_bytes"].get<double>();
  const double wasted = read_bytes > 0 ? 100 * flash["wasted_bytes"].get<double>() / read_bytes : 0;
  return fmt::format("{} reads of {} for {} extents, {:.2g} % in vain; {} while busy", reads,
                     format_bytes(per(read_bytes, reads)), flash["extents"].get<uint64_t>(), wasted,
                     format_rate(flash["busy_bytes_per_second"].get<double>()));
}

// How well reading hides behind computing, per decode step.
json pipeline_json(const Timeline& timeline) {
  const PipelineTimes times = pipeline_times(timeline);
  const auto ms = [&](uint64_t ns) { return per(static_cast<double>(ns) * kMs, times.steps); };
  const auto each = [&](uint64_t count) { return per(static_cast<double>(count), times.steps); };
  return {{"slices", timeline.size()},
          {"forgotten", timeline.dropped()},
          {"steps", times.steps},
          {"step_ms", ms(times.wall_ns)},
          {"compute_ms", ms(times.compute_ns)},
          {"predictor_ms", ms(times.predictor_ns)},
          {"busy_ms", ms(times.busy_ns)},
          {"flash_ms", ms(times.flash_ns)},
          {"demand_ms", ms(times.demand_ns)},
          {"preload_ms", ms(times.preload_ns)},
          {"overlap_ms", ms(times.overlap_ns)},
          {"hidden_ms", ms(times.hidden_ns)},
          {"hideable_ms", ms(times.hideable_ns)},
          {"hidden_share", times.hidden_share()},
          {"hidden_of_hideable", times.hidden_of_hideable()},
          {"wait_ms", ms(times.waited_ns)},
          {"wait_on_demand_ms", ms(times.waited_on_demand_ns)},
          {"demand_bytes", each(times.demand_bytes)},
          {"demand_reads", each(times.demand_reads)},
          {"preload_bytes", each(times.preload_bytes)},
          {"preload_reads", each(times.preload_reads)}};
}

std::string pipeline_text(const json& p) {
  const auto number = [&](const char* key) { return p[key].get<double>(); };
  if (p["steps"].get<uint64_t>() == 0) return "no decode step was recorded whole";
  std::string text = fmt::format(
      "flash busy {:.3g} ms a step (preload {:.3g}, demand {:.3g}), compute {:.3g}, predictor {:.3g}; "
      "reading "
      "beside computing {:.3g}; waiting for demands {:.3g}",
      number("flash_ms"), number("preload_ms"), number("demand_ms"), number("compute_ms"),
      number("predictor_ms"), number("overlap_ms"), number("wait_on_demand_ms"));
  if (number("preload_ms") > 0) {
    text += fmt::format("; {:.3g} % of preloading hidden, {:.3g} % of what computing can hide",
                        100 * number("hidden_share"), 100 * number("hidden_of_hideable"));
  }
  if (const auto forgotten = p["forgotten"].get<uint64_t>(); forgotten != 0) {
    text += fmt::format("; the last {} steps, {} slices before were forgotten", p["steps"].get<uint64_t>(),
                        forgotten);
  }
  return text;
}

long peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace

json report_json(Runtime& runtime, const RunResult& result) {
  const SchedulerCounters& counters = runtime.scheduler().counters();
  const ReadCounts flash = runtime.flash_counts();
  const ComputeCounts compute = runtime.compute_counts();
  json report = configuration_json(runtime);
  report["load_ms"] = static_cast<double>(result.load_ns) * kMs;
  report["first_token_ms"] = static_cast<double>(result.first_token_ns) * kMs;
  report["prefill"] = times_json(runtime.engine().prefill_times());
  report["decode"] = times_json(runtime.engine().decode_times());
  add_reads(report["decode"], result.flash_before, flash);
  report["decode"]["flash_trend"] = trend_json(result.decode_read_bytes);
  report["neurons"] = {{"hits", counters.hits},       {"staged", counters.staged},
                       {"misses", counters.misses},   {"evictions", counters.evictions},
                       {"wasted", counters.wasted},   {"prefetch_failed", counters.prefetch_failed},
                       {"retries", counters.retries}, {"measured_bytes", counters.measured_bytes}};
  report["prediction"] = prediction_json(runtime);
  if (runtime.plan().store.manifest().config.is_mixture()) report["experts"] = experts_json(runtime);
  report["flash"] = flash_json(runtime, flash);
  if (const Timeline* timeline = runtime.timeline(); timeline != nullptr)
    report["pipeline"] = pipeline_json(*timeline);
  report["strategies"] = strategies_json(runtime);
  report["threads_woken"] = compute.threads_woken;
  report["shared_work"] = compute.shared_work;
  report["activation_error"] = compute.activation_error;
  report["budget"] = budget_json(runtime);
  if (result.pressure)
    report["pressure"] = {{"shrinks", result.pressure->shrinks}, {"grows", result.pressure->grows}};
  report["peak_rss_bytes"] = peak_rss_bytes();
  report["prompt_tokens"] = result.prompt_tokens;
  report["generated_tokens"] = result.generated_tokens;
  report["speculation"] = {{"guessed", result.guessed_tokens}, {"right", result.right_guesses}};
  return report;
}

std::string report_text(const json& r) {
  const json& decode = r["decode"];
  const json& prefill = r["prefill"];
  const json& budget = r["budget"];
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
  if (const json& speculation = r["speculation"]; speculation["guessed"].get<uint64_t>() != 0) {
    const auto steps = decode["steps"].get<double>();
    line("speculation",
         fmt::format("{} of {} guesses were right; {:.2f} tokens a step",
                     speculation["right"].get<uint64_t>(), speculation["guessed"].get<uint64_t>(),
                     steps > 0 ? r["generated_tokens"].get<double>() / steps : 0));
  }
  const double step_seconds = decode["step_ms"].get<double>() / 1e3;
  const json& strategies = r["strategies"];
  std::string lossy;
  for (const char* kind : {"predictor", "quantizer", "cache", "balancer"}) {
    if (strategies[kind]["lossy"].get<bool>()) lossy += fmt::format("{} {}", lossy.empty() ? "" : ", ", kind);
  }
  line("strategies",
       fmt::format("{}, {}, {}, {}: {:.3g} ms a step{}", strategies["predictor"]["name"].get<std::string>(),
                   strategies["quantizer"]["name"].get<std::string>(),
                   strategies["cache"]["name"].get<std::string>(),
                   strategies["balancer"]["name"].get<std::string>(), strategies["ms"].get<double>(),
                   lossy.empty() ? "" : "; LOSSY:" + lossy));
  line("bytes/token",
       fmt::format(
           "flash {} ({}), DRAM {} ({})", size_text(decode["flash_bytes"]),
           format_rate(step_seconds > 0 ? decode["flash_bytes"].get<double>() / step_seconds : 0),
           size_text(decode["resident_weight_bytes"]),
           format_rate(step_seconds > 0 ? decode["resident_weight_bytes"].get<double>() / step_seconds : 0)));
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
  std::string lines;
  for (const auto& [name, bytes] : budget["lines"].items()) {
    lines += fmt::format("{}{} {}", lines.empty() ? "" : ", ", name, size_text(bytes));
  }
  if (!budget["changes"].empty()) {
    std::string changes;
    for (const json& change : budget["changes"]) {
      changes += fmt::format("{}{} from step {}", changes.empty() ? "" : ", ",
                             size_text(change["capacity_bytes"]), change["step"].get<uint64_t>());
    }
    line("budget", fmt::format("{}; at most {} were held", changes, size_text(budget["peak_bytes"])));
  }
  if (r.contains("pressure")) {
    line("pressure", fmt::format("{} steps down, {} up", r["pressure"]["shrinks"].get<uint64_t>(),
                                 r["pressure"]["grows"].get<uint64_t>()));
  }
  line("DRAM", fmt::format("{} of {}{}: {}",
                           size_text(budget[budget["changes"].empty() ? "peak_bytes" : "used_bytes"]),
                           size_text(budget["capacity_bytes"]),
                           budget["raised_to_least"].get<bool>() ? " (raised to the least)" : "", lines));
  line("process", fmt::format("peak {}", size_text(r["peak_rss_bytes"])));
  if (const double error = r["activation_error"].get<double>(); error > 0) {
    line("lossy",
         fmt::format("activations as int8, relative error {:.2g} (--set compute.activations=f32 is exact)",
                     error));
  }
  return text;
}

Result<json> check_json(Runtime& runtime) {
  json check = configuration_json(runtime);
  check["budget"] = budget_json(runtime);
  TIERD_ASSIGN(const Runtime::Traffic traffic, runtime.planned_traffic());
  TIERD_ASSIGN(const double memory, measure_memory_read(runtime.threads(), kMeasureSeconds, kMeasureBytes));
  ReadPattern pattern;
  if (const auto depth = runtime.plan().agents.flash.get<int64_t>("depth")) {
    pattern.depth = static_cast<uint32_t>(*depth);
  }
  pattern.seconds = kMeasureSeconds;
  pattern.parts = traffic.streamed;
  TIERD_ASSIGN(const ReadRate flash, measure_read(runtime.plan().store.data_path(), pattern));
  const double compute_seconds =
      static_cast<double>(traffic.resident_bytes + traffic.streamed_bytes) / memory;
  const double flash_seconds = static_cast<double>(traffic.streamed_bytes) / flash.bytes_per_second;
  check["resident_bytes"] = traffic.resident_bytes;
  check["flash_bytes_per_token"] = traffic.streamed_bytes;
  check["memory_bytes_per_second"] = memory;
  check["flash_bytes_per_second"] = flash.bytes_per_second;
  check["expected_tokens_per_second"] = 1.0 / std::max(compute_seconds, flash_seconds);
  check["bound_by"] = compute_seconds > flash_seconds ? "memory" : "flash";
  return check;
}

std::string check_text(const json& c) {
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", label, value);
  };
  const json& budget = c["budget"];
  text += fmt::format("{}, {} of weights; context {}\n", c["model"].get<std::string>(),
                      size_text(c["tensor_bytes"]), c["context"].get<int>());
  line("store", c["store"].get<std::string>());
  line("budget", fmt::format("{}{}; the least that would do is {}", size_text(budget["capacity_bytes"]),
                             budget["raised_to_least"].get<bool>() ? " (raised to the least)" : "",
                             size_text(budget["least_bytes"])));
  for (const auto& [name, bytes] : budget["lines"].items())
    line("", fmt::format("{:<18} {}", name, size_text(bytes)));
  line("per token", fmt::format("{} from DRAM, {} from flash", size_text(c["resident_bytes"]),
                                size_text(c["flash_bytes_per_token"])));
  line("measured", fmt::format("DRAM {}, flash {}", format_rate(c["memory_bytes_per_second"].get<double>()),
                               format_rate(c["flash_bytes_per_second"].get<double>())));
  line("expected", fmt::format("{:.3g} tokens/s, bound by {}", c["expected_tokens_per_second"].get<double>(),
                               c["bound_by"].get<std::string>()));
  return text;
}

}  // namespace tierd
