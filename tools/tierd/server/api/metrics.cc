#include "tools/tierd/server/api/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace tierd {
namespace {

double seconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

double rate(uint64_t tokens, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(tokens) / seconds(ns);
}

}  // namespace

struct Metrics::Series {
  prometheus::Registry registry;

  // Raises the library's counter to `value`, which is counted elsewhere.
  void count(const char* name, const char* help, double value, const prometheus::Labels& labels = {}) {
    prometheus::Counter& counter =
        prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
    counter.Increment(std::max(0.0, value - counter.Value()));
  }
  void gauge(const char* name, const char* help, double value, const prometheus::Labels& labels = {}) {
    prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels).Set(value);
  }
};

Metrics::Metrics(std::vector<WatchedSite> sites)
    : sites_(std::move(sites)), series_(std::make_unique<Series>()) {}
Metrics::~Metrics() = default;

std::string Metrics::text(const ServiceState& state) {
  Series& out = *series_;
  const auto count = [&](const char* name, const char* help, auto value,
                         const prometheus::Labels& labels = {}) {
    out.count(name, help, static_cast<double>(value), labels);
  };
  const auto gauge = [&](const char* name, const char* help, auto value,
                         const prometheus::Labels& labels = {}) {
    out.gauge(name, help, static_cast<double>(value), labels);
  };
  size_t processing = 0;
  for (const Batcher::SequenceState& sequence : state.sequences) processing += sequence.text ? 1 : 0;

  const Batcher::Counters& texts = state.texts;
  count("llamacpp:prompt_tokens_total", "Tokens of prompts that were computed.", texts.prompt_tokens);
  count("llamacpp:prompt_seconds_total", "Time in steps of prompts.", seconds(state.prefill.wall_ns));
  count("llamacpp:tokens_predicted_total", "Tokens that were generated.", texts.generated_tokens);
  count("llamacpp:tokens_predicted_seconds_total", "Time in steps of generation.",
        seconds(state.decode.wall_ns));
  count("llamacpp:n_decode_total", "Steps of the engine.", texts.steps);
  gauge("llamacpp:prompt_tokens_seconds", "Average tokens of prompts a second.",
        rate(state.prefill.tokens, state.prefill.wall_ns));
  gauge("llamacpp:predicted_tokens_seconds", "Average tokens generated a second.",
        rate(state.decode.tokens, state.decode.wall_ns));
  gauge("llamacpp:requests_processing", "Texts that are continued.", processing);
  gauge("llamacpp:requests_deferred", "Texts that wait for their turn.", state.waiting);

  count("tierd_prompt_tokens_cached_total", "Tokens of prompts that the KV cache had already.",
        texts.cached_tokens);
  count("tierd_guessed_tokens_total", "Tokens that were guessed and checked.", texts.guesses);
  count("tierd_right_guesses_total", "Guesses that were right.", texts.right_guesses);
  count("tierd_texts_total", "Texts that ended.", texts.texts);
  count("tierd_agents_lost_total", "Agents that the run has gone on without.", state.losses.agents);
  count("tierd_tokens_again_total", "Tokens whose part of the KV cache was computed again for that.",
        state.losses.tokens);
  for (const TierLink& link : state.links) {
    const prometheus::Labels ends = {{"from", link.from}, {"to", link.to}};
    count("tierd_link_bytes_total", "Bytes that crossed a link, padding included.", link.counters.bytes,
          ends);
    count("tierd_link_payload_bytes_total", "Of those, bytes of weights; the others are padding.",
          link.counters.payload_bytes, ends);
    count("tierd_link_neurons_total", "Neurons that crossed a link.", link.counters.neurons, ends);
    count("tierd_link_messages_total", "Messages that fetched them.", link.counters.messages, ends);
  }
  count("tierd_device_bytes_total", "Bytes that the store's device read.", state.flash.read_bytes);
  count("tierd_device_wasted_bytes_total", "Of those, alignment and gaps.", state.flash.wasted_bytes);
  count("tierd_device_reads_total", "Reads given to the store's device.", state.flash.reads);
  count("tierd_device_busy_seconds_total", "Time with a read in it.", seconds(state.flash.in_flight_ns));
  for (const ServiceState::Tier& tier : state.tiers) {
    const prometheus::Labels of = {{"tier", tier.name}};
    const UseCounters asked = tier.counters.asked();
    const auto weights = [&](const char* where, uint64_t bytes) {
      count("tierd_weight_bytes_total", "Weights that were asked for, by where they were.", bytes,
            {{"tier", tier.name}, {"from", where}});
    };
    weights("arena", asked.resident_bytes);
    weights("link", asked.streamed_bytes);
    count("tierd_cache_hits_total", "Neurons that were resident when they were asked for.", asked.hits, of);
    count("tierd_cache_staged_total", "Neurons that had been asked for ahead of time.", asked.staged, of);
    count("tierd_cache_misses_total", "Neurons that were neither.", asked.misses, of);
    count("tierd_cache_evictions_total", "Neurons that were dropped.", tier.counters.evictions, of);
    gauge("tierd_budget_bytes", "Capacity of a tier.", tier.budget_bytes, of);
    gauge("tierd_used_bytes", "What is held of it.", tier.used_bytes, of);
  }
  count("tierd_prefetch_wasted_total", "Neurons read ahead and never used.", state.scheduler.wasted);
  count("tierd_prefetch_failed_total", "Reads ahead that failed.", state.scheduler.prefetch_failed);
  count("tierd_read_retries_total", "Reads that were tried again.", state.scheduler.retries);
  count("tierd_stall_seconds_total", "Time with nothing to compute, waiting for bytes.",
        seconds(state.prefill.stall_ns + state.decode.stall_ns));
  count("tierd_compute_seconds_total", "Time in which at least one unit computed.",
        seconds(state.scheduler.compute_ns));
  gauge("tierd_queue_depth", "Requests that wait for a credit of the agent that reads the store.",
        state.requests);
  gauge("tierd_credits", "Credits of that agent that are left.", state.credits);
  if (state.energy) {
    const EnergyTotals& energy = *state.energy;
    for (const EnergyTotals::Part& part : energy.parts) {
      const prometheus::Labels of = {{"part", std::string(name(part.part))}};
      count("tierd_energy_joules_total", "Energy that the run has taken, loading and waiting included.",
            part.run_joules, of);
      count("tierd_energy_decode_joules_total", "Of it, in steps of decoding.", part.decode_joules, of);
      gauge("tierd_energy_measured", "1: RAPL or NVML measures it; 0: it is modelled.",
            part.meter.empty() ? 0 : 1, of);
    }
    const auto carbon = [&](const char* kind, double grams) {
      count("tierd_carbon_grams_total", "CO2 of the run: of its energy, and its share of making the devices.",
            grams, {{"kind", kind}});
    };
    carbon("operational", energy.run.operational_grams);
    carbon("embodied", energy.run.embodied_grams);
    gauge("tierd_energy_joules_per_token", "Energy of a decoded token.", energy.decode.joules_per_token());
    gauge("tierd_carbon_grams_per_token", "CO2 of a decoded token.", energy.decode.grams_per_token());
    gauge("tierd_carbon_embodied_grams_per_token", "Of it, the share of making the devices.",
          energy.decode.embodied_grams_per_token());
  }
  const prometheus::Labels lowest = {{"tier", state.tiers.empty() ? "" : state.tiers.front().name}};
  count("tierd_pressure_shrinks_total", "Steps down of the lowest tier's capacity, because memory was short.",
        state.pressure_shrinks, lowest);
  count("tierd_pressure_grows_total", "Steps up again, when it was not any more.", state.pressure_grows,
        lowest);
  gauge("tierd_store_changed", "1: the store on disk is no longer the one that is served.",
        state.store_changed ? 1 : 0);
  for (size_t s = 0; s < sites_.size() && s < state.use.size(); ++s) {
    const SiteUse& use = state.use[s];
    if (use.rows == 0 || sites_[s].neurons == 0) continue;
    const double all = static_cast<double>(use.rows) * sites_[s].neurons;
    gauge("tierd_site_active_share", "Neurons used, of a site's.", static_cast<double>(use.used) / all,
          {{"site", sites_[s].name}});
  }
  return prometheus::TextSerializer().Serialize(out.registry.Collect());
}

}  // namespace tierd
