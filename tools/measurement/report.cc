#include "tools/measurement/report.h"

#include <functional>
#include <map>
#include <type_traits>

#include "core/system/host_facts.h"
#include "tools/measurement/summary.h"
#include "tools/measurement/version.h"

namespace tierd {
namespace {

constexpr double kMs = 1e-6;  // from ns

ShapeFigures shape_of(const Manifest& manifest) {
  const ModelConfig& model = manifest.config;
  const std::string_view encoding =
      manifest.sites.empty() ? "" : name(manifest.sites.back().encodings.front());
  return {.architecture = model.architecture,
          .encoding = std::string(encoding),
          .layers = model.n_layers,
          .d_model = model.d_model,
          .d_ff = model.d_ff,
          .heads = model.n_heads,
          .kv_heads = model.n_kv_heads,
          .vocab = model.vocab_size};
}

// The sum over all tiers.
BenchBudgetFigures budget_of(const Runtime& runtime) {
  BenchBudgetFigures sum{.capacity_bytes = 0, .peak_bytes = 0, .raised_to_least = false, .lines = {}};
  for (size_t tier = 0; tier < runtime.plan().memory.tiers.size(); ++tier) {
    const Budget& budget = runtime.budget(tier);
    for (const Budget::Line& line : budget.lines()) {
      std::optional<uint64_t>& bytes = sum.lines[line.name];
      bytes = bytes.value_or(0) + line.bytes;
    }
    *sum.capacity_bytes += budget.capacity();
    *sum.peak_bytes += budget.peak();
    sum.raised_to_least = *sum.raised_to_least || runtime.plan().memory.tiers[tier].raised_to_least;
  }
  return sum;
}

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

// Returns the value of each block, in order.
std::vector<double> each(const Measurement& result, const std::function<double(const Block&)>& value) {
  std::vector<double> values;
  for (const Round& round : result.rounds) values.push_back(value(round.ours));
  return values;
}

double sum(const Measurement& result, const std::function<double(const Block&)>& value) {
  double total = 0;
  for (const double one : each(result, value)) total += one;
  return total;
}

using Gauges = std::map<std::string, double>;

double median_of(std::vector<double> values) {
  return summarize(std::move(values)).median;
}
// A gauge that a block has not set is 0 there.
Gauges median_of(const std::vector<Gauges>& blocks) {
  Gauges medians;
  for (const Gauges& block : blocks) medians.insert(block.begin(), block.end());
  for (auto& [name, median] : medians) {
    std::vector<double> values;
    for (const Gauges& block : blocks) values.push_back(block.contains(name) ? block.at(name) : 0);
    median = median_of(std::move(values));
  }
  return medians;
}

template <class Of>
auto of_blocks(const Measurement& result, const Of& of_block) {
  std::vector<std::decay_t<std::invoke_result_t<Of, const Block&>>> values;
  for (const Round& round : result.rounds) values.push_back(std::invoke(of_block, round.ours));
  return values;
}

// Returns the medians of the numbers and gauges that `of_block` returns; the rest is of the first block.
template <class Of>
auto medians(const Measurement& result, const Of& of_block) {
  const auto blocks = of_blocks(result, of_block);
  auto median = blocks.front();
  for_each_figure<decltype(median)>([&](const auto& figure) {
    using Value = std::decay_t<decltype(median.*figure.member)>;
    const auto values = [&](auto as) {
      std::vector<decltype(as)> all;
      for (const auto& block : blocks) all.push_back(block.*figure.member);
      return all;
    };
    if constexpr (std::same_as<Value, bool>) {
      median.*figure.member = median_of(values(0.0)) > 0.5;
    } else if constexpr (std::same_as<Value, double>) {
      median.*figure.member = median_of(values(0.0));
    } else if constexpr (std::same_as<Value, Gauges>) {
      median.*figure.member = median_of(values(Gauges()));
    }
  });
  return median;
}

TokenFigures token_of(const Measurement& result, uint32_t layers) {
  const auto sum_of_times = [&](auto StepTimes::*part) {
    return sum(result, [&](const Block& b) { return static_cast<double>(std::invoke(part, b.times)); });
  };
  const double tokens = sum_of_times(&StepTimes::tokens), steps = sum_of_times(&StepTimes::steps);
  const auto per_token = [&](auto StepTimes::*part) { return ratio(sum_of_times(part), tokens); };
  const auto sum_of = [&](uint64_t Block::*field) {
    return sum(result, [&](const Block& b) { return static_cast<double>(b.*field); });
  };
  // Counted over one step more than the other figures, see Block.
  const auto flash_per_token = [&](uint64_t Block::*field) {
    return ratio(ratio(sum_of(field), sum_of(&Block::flash_steps)) * steps, tokens);
  };
  return {.step_ms = per_token(&StepTimes::wall_ns) * kMs,
          .compute_ms = per_token(&StepTimes::compute_ns) * kMs,
          .stall_ms = per_token(&StepTimes::stall_ns) * kMs,
          .predictor_ms = per_token(&StepTimes::predictor_ns) * kMs,
          .reading_ms = per_token(&StepTimes::reading_ns) * kMs,
          .management_ms = per_token(&StepTimes::management_ns) * kMs,
          .checksum_ms = flash_per_token(&Block::checksum_ns) * kMs,
          .io_ms = flash_per_token(&Block::flash_ns) * kMs,
          .wanted_bytes = per_token(&StepTimes::read_bytes),
          .read_bytes = flash_per_token(&Block::device_bytes),
          .reads = flash_per_token(&Block::reads),
          .bytes_per_read = ratio(sum_of(&Block::device_bytes), sum_of(&Block::reads)),
          .dram_bytes = per_token(&StepTimes::resident_bytes),
          .messages = per_token(&StepTimes::messages),
          .handovers_per_layer = ratio(sum_of(&Block::wake_ups), steps * layers),
          .kernel_overhead_percent =
              100 * ratio(sum_of_times(&StepTimes::other_ns), sum_of_times(&StepTimes::wall_ns))};
}

// Only decoding has a limit: a prompt's tokens share their weights, so arithmetic limits them, not bandwidth.
std::optional<BenchLimitFigures> limit_figures(const Measurement& result) {
  if (result.test.kind != Workload::Kind::decode) return std::nullopt;
  BenchLimitFigures figures = medians(result, [](const Block& b) {
    const Limit limit = limit_of(b.traffic, b.bandwidths);
    return BenchLimitFigures{
        .tokens_per_second = limit.rate(),
        .flash_ms = limit.flash_seconds * 1e3,
        .memory_ms = limit.memory_seconds * 1e3,
        .must_read_bytes = b.traffic.must_read,
        .weight_bytes = b.traffic.weights,
        .share_of_memory_bandwidth = ratio(b.traffic.weights * b.rate(), b.bandwidths.memory),
        .terms_within_20_percent = limit.close(),
        .ratio = {},
    };
  });
  figures.ratio = summarize(
      each(result, [](const Block& b) { return b.rate() * limit_of(b.traffic, b.bandwidths).seconds(); }));
  return figures;
}

// Empty if the machine's power is not known.
std::optional<BenchEnergyFigures> energy_of(const Measurement& result) {
  if (!result.rounds.front().ours.energy) return std::nullopt;
  return medians(result, [](const Block& b) {
    const EnergyTotals& totals = b.energy.value();
    BenchEnergyFigures figures{.described_by = totals.described_by,
                               .not_counted = {},
                               .joules_per_token = totals.run.joules_per_token(),
                               .grams_per_token = totals.run.grams_per_token(),
                               .embodied_grams_per_token = totals.run.embodied_grams_per_token(),
                               .watts = {},
                               .sources = {}};
    for (const EnergyTotals::Part& part : totals.parts) {
      figures.watts.emplace(name(part.part), ratio(part.run_joules, totals.run.seconds));
      figures.sources.emplace(name(part.part), part.meter.empty() ? "modelled" : part.meter);
    }
    for (const EnergyTotals::NotCounted& one : totals.not_counted)
      figures.not_counted.push_back(std::string(name(one.part)) + " (" + one.why + ")");
    return figures;
  });
}

// Means over the sites whose neurons are predicted; empty if there are none.
std::optional<BenchPredictionFigures> prediction_of(const Measurement& result) {
  double used = 0, neurons = 0;
  MissedFigures sums;
  uint64_t measured = 0;
  for (const Round& round : result.rounds) {
    for (const SiteForesight& site : round.ours.foreseen) {
      used += ratio(static_cast<double>(site.use.used), static_cast<double>(site.use.rows));
      neurons += site.neurons;
      if (site.use.measured_rows == 0) continue;
      ++measured;
      sums.recall += site.use.recall();
      sums.precision += site.use.precision();
      sums.missed_mass += site.use.missed_share();
    }
  }
  if (neurons == 0) return std::nullopt;
  BenchPredictionFigures prediction{.used_share = used / neurons, .loss = {}};
  const auto n = static_cast<double>(measured);
  if (measured != 0) prediction.loss = {sums.recall / n, sums.precision / n, sums.missed_mass / n};
  return prediction;
}

SampleFigures sample_of(const Round& round) {
  SampleFigures sample{.tokens = round.ours.tokens,
                       .seconds = round.ours.seconds,
                       .tokens_per_second = round.ours.rate(),
                       .flash_bytes_per_second = round.ours.bandwidths.flash,
                       .memory_bytes_per_second = round.ours.bandwidths.memory,
                       .peer_tokens_per_second = {},
                       .peer_seconds = {},
                       .peer_flash_bytes_per_second = {}};
  if (round.peer) {
    sample.peer_tokens_per_second = round.peer->rate;
    sample.peer_seconds = round.peer->seconds;
    if (round.disk.size() > 1) sample.peer_flash_bytes_per_second = round.disk[1];
  }
  return sample;
}

}  // namespace

BenchRunFigures run_figures(const Arguments& arguments, Subject& subject) {
  const Runtime& runtime = subject.runtime();
  const RunPlan& plan = runtime.plan();
  const Manifest& manifest = plan.store.manifest();
  const Config& config = plan.config;
  const HostFacts host = read_host_facts();
  BenchRunFigures run;
  run.date = date_and_time();
  run.commit = kCommit;
  run.host = host.name;
  run.cpu = host.cpu;
  run.cores = host.cores;
  run.memory_bytes = host.memory_bytes;
  run.model = manifest.config.name.empty() ? manifest.config.architecture : manifest.config.name;
  run.shape = shape_of(manifest);
  run.store = plan.store.directory();
  run.tensor_bytes = manifest.tensor_bytes;
  run.config = arguments.config_file;
  run.set = arguments.overrides;
  run.capacity = plan.tiers.memories.front().config.capacity;
  run.predictor = config.predictor.name;
  run.quantizer = config.quantizer.name;
  run.cache = config.cache.name;
  run.balancer = config.balancer.name;
  run.prefetch = config.prefetch;
  run.activations = plan.memory.model.int8_activations ? "int8" : "f32";
  run.kv = config.kv;
  run.backend = "host";
  run.clock = config.clock;
  run.gap_bytes = runtime.reading().gap_bytes;
  run.gap_from = runtime.reading().gap_from;
  run.kernels = runtime.compute_backend();
  run.threads = runtime.threads();
  run.context = plan.memory.model.context;
  run.prefill_chunk = plan.memory.model.max_rows;
  run.device = runtime.flash_backend();
  run.cache_state = plan.tiers.store.agent.get<bool>("direct").value_or(true)
                        ? "direct I/O; page cache not used"
                        : "through the page cache";
  if (arguments.text) run.text = {arguments.text->file, subject.prompt_tokens()};
  run.uncounted_tokens = subject.uncounted(Workload::Kind::decode);
  run.seed = config.seed;
  run.block_seconds = arguments.block_seconds;
  run.warmup_seconds = arguments.warmup_seconds;
  run.budget = budget_of(runtime);
  return run;
}

TestFigures test_figures(const Measurement& result, uint32_t layers) {
  TestFigures test{
      .test = result.test.name(),
      .tokens_per_second = summarize(each(result, &Block::rate)),
      .flash_bytes_per_second = summarize(each(result, [](const Block& b) { return b.bandwidths.flash; })),
      .memory_bytes_per_second = summarize(each(result, [](const Block& b) { return b.bandwidths.memory; })),
      .blocks = result.rounds.size(),
      .repeated = result.repeated,
      .strays_kept = result.strays,
      .limit = limit_figures(result),
      .per_token = token_of(result, layers),
      .memory = medians(result, &Block::memory),
      .cache = median_of(of_blocks(result, &Block::cache)),
      .energy = energy_of(result),
      .prediction = prediction_of(result),
      .samples = {}};
  for (const Round& round : result.rounds) test.samples.push_back(sample_of(round));
  return test;
}

PeerFigures peer_figures(const Arguments& arguments, const Measurement& result, uint64_t bytes_beside_peer) {
  std::vector<double> rates;
  for (const Round& round : result.rounds) {
    if (round.peer) rates.push_back(round.peer->rate);
  }
  const Summary peer = summarize(rates);
  const Summary ours = summarize(each(result, &Block::rate));
  return {.command = arguments.peer->command,
          .test = result.test.name(),
          .rounds = result.rounds.size(),
          .our_bytes_beside_it = bytes_beside_peer,
          .ours_tokens_per_second = ours.median,
          .ratio = ratio(ours.median, peer.median),
          .tokens_per_second = peer,
          .kept_in_memory = arguments.peer->keep};
}

}  // namespace tierd
