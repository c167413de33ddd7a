#include "tools/measurement/report.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/system/host_facts.h"
#include "tools/measurement/summary.h"
#include "tools/measurement/version.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr double kMs = 1e-6;  // from ns

json summary_json(const Summary& summary) {
  return {{"median", summary.median}, {"least", summary.least}, {"most", summary.most}};
}

json shape_json(const Manifest& manifest) {
  const ModelConfig& model = manifest.config;
  return {
      {"architecture", model.architecture},
      {"layers", model.n_layers},
      {"d_model", model.d_model},
      {"d_ff", model.d_ff},
      {"heads", model.n_heads},
      {"kv_heads", model.n_kv_heads},
      {"vocab", model.vocab_size},
      {"encoding", manifest.sites.empty() ? "" : std::string(name(manifest.sites.back().encodings.front()))}};
}

// The sum over all tiers.
json budget_json(const Runtime& runtime) {
  std::map<std::string, uint64_t> lines;
  uint64_t capacity = 0, peak = 0;
  bool raised = false;
  for (size_t tier = 0; tier < runtime.plan().memory.tiers.size(); ++tier) {
    const Budget& budget = runtime.budget(tier);
    for (const Budget::Line& line : budget.lines()) lines[line.name] += line.bytes;
    capacity += budget.capacity();
    peak += budget.peak();
    raised = raised || runtime.plan().memory.tiers[tier].raised_to_least;
  }
  return {{"capacity_bytes", capacity}, {"peak_bytes", peak}, {"raised_to_least", raised}, {"lines", lines}};
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

double mean_read_bytes(const Measurement& result) {
  return ratio(sum(result, [](const Block& b) { return static_cast<double>(b.device_bytes); }),
               sum(result, [](const Block& b) { return static_cast<double>(b.reads); }));
}

json breakdown_json(const Measurement& result, uint32_t layers) {
  const double tokens = sum(result, [](const Block& b) { return static_cast<double>(b.times.tokens); });
  const double steps = sum(result, [](const Block& b) { return static_cast<double>(b.times.steps); });
  const auto per_token = [&](auto StepTimes::*field) {
    return ratio(sum(result, [&](const Block& b) { return static_cast<double>(b.times.*field); }), tokens);
  };
  const double management_ns =
      sum(result, [](const Block& b) { return static_cast<double>(b.times.management_ns()); });
  const double other_ns = sum(result, [](const Block& b) { return static_cast<double>(b.times.other_ns()); });
  const double wall_ns = sum(result, [](const Block& b) { return static_cast<double>(b.times.wall_ns); });
  const double wake_ups = sum(result, [](const Block& b) { return static_cast<double>(b.wake_ups); });
  // Counted over one step more than the other figures, see Block.
  const auto flash_per_token = [&](uint64_t Block::*field) {
    const double flash_steps = sum(result, [](const Block& b) { return static_cast<double>(b.flash_steps); });
    const double per_step =
        ratio(sum(result, [&](const Block& b) { return static_cast<double>(b.*field); }), flash_steps);
    return ratio(per_step * steps, tokens);
  };
  return {{"step_ms", ratio(wall_ns, tokens) * kMs},
          {"compute_ms", per_token(&StepTimes::compute_ns) * kMs},
          {"stall_ms", per_token(&StepTimes::stall_ns) * kMs},
          {"predictor_ms", per_token(&StepTimes::predictor_ns) * kMs},
          {"reading_ms", per_token(&StepTimes::reading_ns) * kMs},
          {"management_ms", ratio(management_ns, tokens) * kMs},
          {"checksum_ms", flash_per_token(&Block::checksum_ns) * kMs},
          {"io_ms", flash_per_token(&Block::flash_ns) * kMs},
          {"wanted_bytes", per_token(&StepTimes::read_bytes)},
          {"read_bytes", flash_per_token(&Block::device_bytes)},
          {"reads", flash_per_token(&Block::reads)},
          {"bytes_per_read", mean_read_bytes(result)},
          {"dram_bytes", per_token(&StepTimes::resident_bytes)},
          {"messages", per_token(&StepTimes::messages)},
          {"handovers_per_layer", ratio(wake_ups, steps * layers)},
          {"kernel_overhead_percent", 100 * ratio(other_ns, wall_ns)}};
}

// Only decoding has a limit: a prompt's tokens share their weights, so arithmetic limits them, not bandwidth.
json limit_json(const Measurement& result) {
  if (result.test.kind != Workload::Kind::decode) return nullptr;
  const auto limit = [](const Block& b) { return limit_of(b.traffic, b.bandwidths); };
  const auto median = [&](const std::function<double(const Block&)>& value) {
    return summarize(each(result, value)).median;
  };
  return {
      {"tokens_per_second", median([&](const Block& b) { return limit(b).rate(); })},
      {"ratio",
       summary_json(summarize(each(result, [&](const Block& b) { return b.rate() * limit(b).seconds(); })))},
      {"flash_ms", median([&](const Block& b) { return limit(b).flash_seconds * 1e3; })},
      {"memory_ms", median([&](const Block& b) { return limit(b).memory_seconds * 1e3; })},
      {"terms_within_20_percent", median([&](const Block& b) { return limit(b).close() ? 1.0 : 0.0; }) > 0.5},
      {"must_read_bytes", median([](const Block& b) { return b.traffic.must_read; })},
      {"weight_bytes", median([](const Block& b) { return b.traffic.weights; })},
      {"share_of_memory_bandwidth",
       median([](const Block& b) { return ratio(b.traffic.weights * b.rate(), b.bandwidths.memory); })}};
}

// At the end of a block.
json memory_held_json(const Measurement& result) {
  const auto median = [&](uint64_t MemoryHeld::*field) {
    return summarize(each(result, [&](const Block& b) { return static_cast<double>(b.memory.*field); }))
        .median;
  };
  return {{"bytes", median(&MemoryHeld::bytes)}, {"weight_bytes", median(&MemoryHeld::weights)}};
}

json cache_json(const Measurement& result) {
  json gauges = json::object();
  for (const Round& round : result.rounds) {
    for (const auto& [name, value] : round.ours.cache) gauges[name] = nullptr;
  }
  for (const auto& [name, unset] : gauges.items()) {
    gauges[name] = summarize(each(result, [&, key = name](const Block& b) {
                     const auto gauge = b.cache.find(key);
                     return gauge == b.cache.end() ? 0 : gauge->second;
                   })).median;
  }
  return gauges;
}

// Medians over the blocks; null if the machine's power is not known.
json energy_json(const Measurement& result) {
  const auto& first = result.rounds.front().ours.energy;
  if (!first) return nullptr;
  const auto median = [&](const std::function<double(const EnergyTotals&)>& value) {
    return summarize(each(result, [&](const Block& b) { return value(b.energy.value()); })).median;
  };
  json watts = json::object(), sources = json::object();
  for (size_t i = 0; i < first->parts.size(); ++i) {
    const EnergyTotals::Part& part = first->parts[i];
    const std::string of(name(part.part));
    watts[of] = median([&](const EnergyTotals& t) { return ratio(t.parts[i].run_joules, t.run.seconds); });
    sources[of] = part.meter.empty() ? "modelled" : part.meter;
  }
  json not_counted = json::array();
  for (const EnergyTotals::NotCounted& one : first->not_counted)
    not_counted.push_back(std::string(name(one.part)) + " (" + one.why + ")");
  return {{"described_by", first->described_by},
          {"not_counted", std::move(not_counted)},
          {"joules_per_token", median([](const EnergyTotals& t) { return t.run.joules_per_token(); })},
          {"grams_per_token", median([](const EnergyTotals& t) { return t.run.grams_per_token(); })},
          {"embodied_grams_per_token",
           median([](const EnergyTotals& t) { return t.run.embodied_grams_per_token(); })},
          {"watts", std::move(watts)},
          {"sources", std::move(sources)}};
}

// Means over the sites whose neurons are predicted; null if there are none.
json prediction_json(const Measurement& result) {
  double used = 0, neurons = 0;
  double recall = 0, precision = 0, missed_mass = 0;
  uint64_t measured = 0;
  for (const Round& round : result.rounds) {
    for (const SiteForesight& site : round.ours.foreseen) {
      used += ratio(static_cast<double>(site.use.used), static_cast<double>(site.use.rows));
      neurons += site.neurons;
      if (site.use.measured_rows == 0) continue;
      ++measured;
      recall += site.use.recall();
      precision += site.use.precision();
      missed_mass += site.use.missed_share();
    }
  }
  if (neurons == 0) return nullptr;
  json prediction = {{"used_share", used / neurons}, {"loss", nullptr}};
  if (measured == 0) return prediction;
  const auto n = static_cast<double>(measured);
  prediction["loss"] = {
      {"recall", recall / n}, {"precision", precision / n}, {"missed_mass", missed_mass / n}};
  return prediction;
}

json text_json(const Arguments& arguments, const Subject& subject) {
  if (!arguments.text) return nullptr;
  return {{"file", arguments.text->file}, {"tokens", subject.prompt_tokens()}};
}

json sample_json(const Round& round) {
  json sample = {{"tokens", round.ours.tokens},
                 {"seconds", round.ours.seconds},
                 {"tokens_per_second", round.ours.rate()},
                 {"flash_bytes_per_second", round.ours.bandwidths.flash},
                 {"memory_bytes_per_second", round.ours.bandwidths.memory}};
  if (round.peer) {
    sample["peer_tokens_per_second"] = round.peer->rate;
    sample["peer_seconds"] = round.peer->seconds;
    if (round.disk.size() > 1) sample["peer_flash_bytes_per_second"] = round.disk[1];
  }
  return sample;
}

}  // namespace

json run_json(const Arguments& arguments, Subject& subject) {
  const Runtime& runtime = subject.runtime();
  const RunPlan& plan = runtime.plan();
  const Manifest& manifest = plan.store.manifest();
  const Config& config = plan.config;
  const HostFacts host = read_host_facts();
  return {{"date", date_and_time()},
          {"commit", kCommit},
          {"host", host.name},
          {"cpu", host.cpu},
          {"cores", host.cores},
          {"memory_bytes", host.memory_bytes},
          {"model", manifest.config.name.empty() ? manifest.config.architecture : manifest.config.name},
          {"shape", shape_json(manifest)},
          {"store", plan.store.directory()},
          {"tensor_bytes", manifest.tensor_bytes},
          {"config", arguments.config_file},
          {"set", arguments.overrides},
          {"capacity", plan.tiers.memories.front().config.capacity},
          {"predictor", config.predictor.name},
          {"quantizer", config.quantizer.name},
          {"cache", config.cache.name},
          {"balancer", config.balancer.name},
          {"prefetch", config.prefetch},
          {"activations", plan.memory.model.int8_activations ? "int8" : "f32"},
          {"kv", config.kv},
          {"backend", "host"},
          {"clock", config.clock},
          {"gap_bytes", runtime.reading().gap_bytes},
          {"gap_from", runtime.reading().gap_from},
          {"kernels", runtime.compute_backend()},
          {"threads", runtime.threads()},
          {"context", plan.memory.model.context},
          {"prefill_chunk", plan.memory.model.max_rows},
          {"device", runtime.flash_backend()},
          {"cache_state", plan.tiers.store.agent.get<bool>("direct").value_or(true)
                              ? "direct I/O; page cache not used"
                              : "through the page cache"},
          {"text", text_json(arguments, subject)},
          {"uncounted_tokens", subject.uncounted(Workload::Kind::decode)},
          {"seed", config.seed},
          {"block_seconds", arguments.block_seconds},
          {"warmup_seconds", arguments.warmup_seconds},
          {"budget", budget_json(runtime)}};
}

json memory_json(const MemoryUse& use) {
  json memory = {{"peak_rss_bytes", use.peak_rss_bytes}, {"group", nullptr}};
  if (use.group) {
    memory["group"] = {{"limit_bytes", nullptr}, {"peak_bytes", use.group->peak_bytes}};
    if (use.group->limit_bytes) memory["group"]["limit_bytes"] = *use.group->limit_bytes;
  }
  return memory;
}

json test_json(const Measurement& result, uint32_t layers) {
  json test = {{"test", result.test.name()},
               {"tokens_per_second", summary_json(summarize(each(result, &Block::rate)))},
               {"blocks", result.rounds.size()},
               {"repeated", result.repeated},
               {"strays_kept", result.strays},
               {"flash_bytes_per_second",
                summary_json(summarize(each(result, [](const Block& b) { return b.bandwidths.flash; })))},
               {"memory_bytes_per_second",
                summary_json(summarize(each(result, [](const Block& b) { return b.bandwidths.memory; })))},
               {"limit", limit_json(result)},
               {"per_token", breakdown_json(result, layers)},
               {"memory", memory_held_json(result)},
               {"cache", cache_json(result)},
               {"energy", energy_json(result)},
               {"prediction", prediction_json(result)},
               {"samples", json::array()}};
  for (const Round& round : result.rounds) test["samples"].push_back(sample_json(round));
  return test;
}

json peer_json(const Arguments& arguments, const Measurement& result, uint64_t bytes_beside_peer) {
  std::vector<double> rates;
  for (const Round& round : result.rounds) {
    if (round.peer) rates.push_back(round.peer->rate);
  }
  const Summary peer = summarize(rates);
  const Summary ours = summarize(each(result, &Block::rate));
  return {{"command", arguments.peer->command},      {"test", result.test.name()},
          {"rounds", result.rounds.size()},          {"ours_tokens_per_second", ours.median},
          {"tokens_per_second", summary_json(peer)}, {"ratio", ratio(ours.median, peer.median)},
          {"kept_in_memory", arguments.peer->keep},  {"our_bytes_beside_it", bytes_beside_peer}};
}

}  // namespace tierd
