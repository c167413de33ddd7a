#include "tools/tierd/server/api/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

namespace tierd {
namespace {

using S = const ServiceState&;

double seconds_of(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

double rate(const StepTimes& times) {
  return times.wall_ns == 0 ? 0 : static_cast<double>(times.tokens) / seconds_of(times.wall_ns);
}

// The metrics follow from declarations. A figure that adds up is a counter, with "_total" after its name; any
// other is a gauge. The name of a struct precedes the names of its figures, and its texts are their labels.

struct WeightMetrics {
  std::string from;
  uint64_t bytes = 0;

  static constexpr auto figures() {
    using F = WeightMetrics;
    return std::tuple(Figure{&F::from, "from", Quantity::text, Adds::latest, "arena or link"},
                      Figure{&F::bytes, "bytes", Quantity::bytes, Adds::sum, ""});
  }
};

struct TierMetrics {
  ServedTier of;

  UseCounters asked() const { return of.counters.value_or(MemoryCounters{}).asked(); }
  NeuronFigures neurons() const {
    const UseCounters use = asked();
    return {use.hits, use.staged, use.misses, of.counters.value_or(MemoryCounters{}).evictions};
  }
  std::vector<WeightMetrics> weights() const {
    return {{"arena", asked().resident_bytes}, {"link", asked().streamed_bytes}};
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = TierMetrics;
    return std::tuple(
        Figure{[](const F& f) { return f.of.name; }, "tier", text, latest, ""},
        Figure{&F::weights, "tierd_weight", parts, sum, "Weights that were requested, by their place."},
        Figure{&F::neurons, "tierd_cache", parts, sum, "Neurons"},
        Figure{[](const F& f) { return f.of.capacity_bytes.value_or(0); }, "tierd_budget_bytes", bytes,
               latest, "Capacity of a tier."},
        Figure{[](const F& f) { return f.of.used_bytes; }, "tierd_used_bytes", bytes, latest,
               "Bytes that are held of it."});
  }
};

struct EnergyPartMetrics {
  explicit EnergyPartMetrics(const EnergyTotals::Part& part) : of(part) {}

  EnergyTotals::Part of;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = const EnergyPartMetrics&;
    return std::tuple(Figure{[](F f) { return name(f.of.part); }, "part", text, latest, ""},
                      Figure{[](F f) { return f.of.run_joules; }, "energy_joules", joules, sum,
                             "Energy that the run has taken, loading and waiting included."},
                      Figure{[](F f) { return f.of.decode_joules; }, "energy_decode_joules", joules, sum,
                             "Energy of steps of decoding."},
                      Figure{[](F f) { return f.of.measured(); }, "energy_measured", flag, latest,
                             "1: RAPL or NVML measures it; 0: it is modelled."});
  }
};

struct CarbonMetrics {
  std::string kind;
  double grams = 0;

  static constexpr auto figures() {
    using F = CarbonMetrics;
    return std::tuple(Figure{&F::kind, "kind", Quantity::text, Adds::latest, "operational or embodied"},
                      Figure{&F::grams, "carbon_grams", Quantity::grams, Adds::sum,
                             "CO2 of the run: of its energy, and its share of making the devices."});
  }
};

struct EnergyMetrics {
  EnergyTotals of;

  std::vector<EnergyPartMetrics> parts() const { return {of.parts.begin(), of.parts.end()}; }
  std::vector<CarbonMetrics> carbon() const {
    return {{"operational", of.run.operational_grams}, {"embodied", of.run.embodied_grams}};
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = EnergyMetrics;
    return std::tuple(
        Figure{&F::parts, "", Quantity::parts, sum, ""}, Figure{&F::carbon, "", Quantity::parts, sum, ""},
        Figure{[](const F& f) { return f.of.decode.joules_per_token(); }, "energy_joules_per_token", joules,
               latest, "Energy of a decoded token."},
        Figure{[](const F& f) { return f.of.decode.grams_per_token(); }, "carbon_grams_per_token", grams,
               latest, "CO2 of a decoded token."},
        Figure{[](const F& f) { return f.of.decode.embodied_grams_per_token(); },
               "carbon_embodied_grams_per_token", grams, latest, "Its share of making the devices."});
  }
};

struct PressureMetrics {
  std::string tier;
  uint64_t shrinks = 0, grows = 0;

  static constexpr auto figures() {
    using F = PressureMetrics;
    return std::tuple(
        Figure{&F::tier, "tier", Quantity::text, Adds::latest, "the lowest one"},
        Figure{&F::shrinks, "shrinks", Quantity::count, Adds::sum,
               "Steps down of the lowest tier's capacity, because memory was short."},
        Figure{&F::grows, "grows", Quantity::count, Adds::sum, "Steps up again, when it was not any more."});
  }
};

struct SiteMetrics {
  std::string site;
  double active_share = 0;

  static constexpr auto figures() {
    using F = SiteMetrics;
    return std::tuple(Figure{&F::site, "site", Quantity::text, Adds::latest, "its name"},
                      Figure{&F::active_share, "active_share", Quantity::share, Adds::latest,
                             "Neurons used, of a site's."});
  }
};

struct ServiceMetrics {
  const ServiceState& state;
  const std::vector<WatchedSite>& watched;

  // NOLINTNEXTLINE(google-explicit-constructor): the figures are functions of the state
  operator S() const { return state; }
  std::vector<TierMetrics> tiers() const {
    std::vector<TierMetrics> tiers;
    for (const ServedTier& tier : state.tiers) {
      if (tier.capacity_bytes) tiers.push_back({tier});
    }
    return tiers;
  }
  const std::vector<TierLink>& links() const { return state.links; }
  std::optional<EnergyMetrics> energy() const {
    return state.energy ? std::optional(EnergyMetrics{*state.energy}) : std::nullopt;
  }
  PressureMetrics pressure() const {
    return {state.tiers.empty() ? "" : state.tiers.front().name, state.pressure_shrinks,
            state.pressure_grows};
  }
  std::vector<SiteMetrics> sites() const {
    std::vector<SiteMetrics> sites;
    for (size_t s = 0; s < watched.size() && s < state.use.size(); ++s) {
      const double all = static_cast<double>(state.use[s].rows) * watched[s].neurons;
      if (all > 0) sites.push_back({watched[s].name, static_cast<double>(state.use[s].used) / all});
    }
    return sites;
  }

  // llama-server's names.
  static constexpr auto llama_figures() {
    using enum Quantity;
    using enum Adds;
    return std::tuple(
        Figure{[](S s) { return s.texts.prompt_tokens; }, "llamacpp:prompt_tokens", tokens, sum,
               "Tokens of prompts that were computed."},
        Figure{[](S s) { return seconds_of(s.prefill.wall_ns); }, "llamacpp:prompt_seconds", seconds, sum,
               "Time in steps of prompts."},
        Figure{[](S s) { return s.texts.generated_tokens; }, "llamacpp:tokens_predicted", tokens, sum,
               "Tokens that were generated."},
        Figure{[](S s) { return seconds_of(s.decode.wall_ns); }, "llamacpp:tokens_predicted_seconds", seconds,
               sum, "Time in steps of generation."},
        Figure{[](S s) { return s.texts.steps; }, "llamacpp:n_decode", count, sum, "Steps of the engine."},
        Figure{[](S s) { return rate(s.prefill); }, "llamacpp:prompt_tokens_seconds", tokens_per_second,
               latest, "Average tokens of prompts a second."},
        Figure{[](S s) { return rate(s.decode); }, "llamacpp:predicted_tokens_seconds", tokens_per_second,
               latest, "Average tokens generated a second."},
        Figure{[](S s) {
                 return std::ranges::count_if(s.sequences,
                                              [](const auto& of) { return of.text.has_value(); });
               },
               "llamacpp:requests_processing", count, latest, "Texts that are continued."},
        Figure{[](S s) { return s.waiting; }, "llamacpp:requests_deferred", count, latest,
               "Texts that wait for their turn."});
  }
  static constexpr auto text_figures() {
    using enum Quantity;
    using enum Adds;
    using F = ServiceMetrics;
    return std::tuple(
        Figure{[](S s) { return s.texts.cached_tokens; }, "tierd_prompt_tokens_cached", tokens, sum,
               "Tokens of prompts that the KV cache had already."},
        Figure{[](S s) { return s.texts.guesses; }, "tierd_guessed_tokens", tokens, sum,
               "Tokens that were guessed and checked."},
        Figure{[](S s) { return s.texts.right_guesses; }, "tierd_right_guesses", tokens, sum,
               "Guesses that were right."},
        Figure{[](S s) { return s.texts.texts; }, "tierd_texts", count, sum, "Texts that ended."},
        Figure{[](S s) { return s.losses.agents; }, "tierd_agents_lost", count, sum,
               "Agents that the run has gone on without."},
        Figure{[](S s) { return s.losses.tokens; }, "tierd_tokens_again", tokens, sum,
               "Tokens whose part of the KV cache was computed again for that."},
        Figure{&F::links, "tierd_link", parts, sum, ""},
        Figure{[](S s) { return s.flash.read_bytes; }, "tierd_device_bytes", bytes, sum,
               "Bytes that the store's device read."},
        Figure{[](S s) { return s.flash.wasted_bytes; }, "tierd_device_wasted_bytes", bytes, sum,
               "Bytes of alignment and gaps among them."},
        Figure{[](S s) { return s.flash.reads; }, "tierd_device_reads", count, sum,
               "Reads given to the store's device."},
        Figure{[](S s) { return seconds_of(s.flash.in_flight_ns); }, "tierd_device_busy_seconds", seconds,
               sum, "Time with a read in the store's device."});
  }
  static constexpr auto run_figures() {
    using enum Quantity;
    using enum Adds;
    using F = ServiceMetrics;
    return std::tuple(
        Figure{&F::tiers, "", parts, sum, ""},
        Figure{[](S s) { return s.scheduler.wasted; }, "tierd_prefetch_wasted", count, sum,
               "Neurons read ahead and never used."},
        Figure{[](S s) { return s.scheduler.prefetch_failed; }, "tierd_prefetch_failed", count, sum,
               "Reads ahead that failed."},
        Figure{[](S s) { return s.scheduler.retries; }, "tierd_read_retries", count, sum,
               "Reads that were tried again."},
        Figure{[](S s) { return seconds_of(s.prefill.stall_ns + s.decode.stall_ns); }, "tierd_stall_seconds",
               seconds, sum, "Time with nothing to compute, waiting for bytes."},
        Figure{[](S s) { return seconds_of(s.scheduler.compute_ns); }, "tierd_compute_seconds", seconds, sum,
               "Time in which at least one unit computed."},
        Figure{[](S s) { return s.requests; }, "tierd_queue_depth", count, latest,
               "Requests that wait for a credit of the agent that reads the store."},
        Figure{[](S s) { return s.credits; }, "tierd_credits", count, latest,
               "Credits of that agent that are left."},
        Figure{&F::energy, "tierd", parts, sum, ""}, Figure{&F::pressure, "tierd_pressure", parts, sum, ""},
        Figure{[](S s) { return s.store_changed; }, "tierd_store_changed", flag, latest,
               "1: the store on disk is no longer the one that is served."},
        Figure{&F::sites, "tierd_site", parts, latest, ""});
  }
  static constexpr auto figures() { return std::tuple_cat(llama_figures(), text_figures(), run_figures()); }
};

std::string joined(const std::string& prefix, std::string_view name, const char* between) {
  return fmt::format("{}{}{}", prefix, prefix.empty() || name.empty() ? "" : between, name);
}

std::string metric_name(const std::string& prefix, std::string_view name, Adds adds) {
  return joined(prefix, name, "_") + (adds == Adds::sum ? "_total" : "");
}

template <HasFigures T>
void list_metrics(const std::string& prefix, const std::string& help, std::vector<DeclaredMetric>& list);

template <typename V>
void list_value(const std::string& prefix, const std::string& help, std::vector<DeclaredMetric>& list) {
  if constexpr (HasFigures<V>)
    list_metrics<V>(prefix, help, list);
  else if constexpr (figures::is_vector<V> || figures::is_optional<V>)
    list_value<typename V::value_type>(prefix, help, list);
}

// Appends the names of the series that Metrics::Series::show_all shows.
template <HasFigures T>
void list_metrics(const std::string& prefix, const std::string& help, std::vector<DeclaredMetric>& list) {
  for_each_figure<T>([&](const auto& figure) {
    using V = FigureValue<T, std::decay_t<decltype(figure)>>;
    if constexpr (std::is_arithmetic_v<V>) {
      if (figure.adds == Adds::derived) return;
      list.push_back({metric_name(prefix, figure.name, figure.adds), figure.unit, figure.adds,
                      joined(help, figure.help, " ")});
    } else if constexpr (!std::is_convertible_v<V, std::string_view>) {
      list_value<V>(joined(prefix, figure.name, "_"), joined(help, figure.help, " "), list);
    }
  });
}

}  // namespace

std::vector<DeclaredMetric> declared_metrics() {
  std::vector<DeclaredMetric> list;
  list_metrics<ServiceMetrics>("", "", list);
  return list;
}

struct Metrics::Series {
  prometheus::Registry registry;

  // Raises the library's counter to a value that is counted elsewhere, or sets a gauge.
  void show(const std::string& name, Adds adds, const std::string& help, const prometheus::Labels& labels,
            double value) {
    if (adds == Adds::sum) {
      auto& counter = prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
      counter.Increment(std::max(0.0, value - counter.Value()));
    } else {
      prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels).Set(value);
    }
  }

  template <typename V>
  void show_value(const V& value, const std::string& prefix, const std::string& help,
                  const prometheus::Labels& labels) {
    if constexpr (HasFigures<V>) {
      show_all(value, prefix, help, labels);
    } else if constexpr (figures::is_vector<V>) {
      for (const auto& each : value) show_value(each, prefix, help, labels);
    } else if constexpr (figures::is_optional<V>) {
      if (value) show_value(*value, prefix, help, labels);
    }
  }

  template <HasFigures T>
  void show_all(const T& of, const std::string& prefix, const std::string& help, prometheus::Labels labels) {
    for_each_figure<T>([&](const auto& figure) {
      const auto& value = std::invoke(figure.member, of);
      using V = std::decay_t<decltype(value)>;
      if constexpr (std::is_convertible_v<V, std::string_view>) {
        labels[std::string(figure.name)] = value;
      } else if constexpr (std::is_arithmetic_v<V>) {
        if (figure.adds == Adds::derived) return;
        show(metric_name(prefix, figure.name, figure.adds), figure.adds, joined(help, figure.help, " "),
             labels, static_cast<double>(value));
      } else {
        show_value(value, joined(prefix, figure.name, "_"), joined(help, figure.help, " "), labels);
      }
    });
  }
};

Metrics::Metrics(std::vector<WatchedSite> sites)
    : sites_(std::move(sites)), series_(std::make_unique<Series>()) {}
Metrics::~Metrics() = default;

std::string Metrics::text(const ServiceState& state) {
  series_->show_all(ServiceMetrics{state, sites_}, "", "", {});
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace tierd
