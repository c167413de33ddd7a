// The report on a run: one screen for people, one JSON object for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/run/run_energy.h"
#include "core/run/runtime.h"
#include "core/watch/energy/energy_ledger.h"
#include "tools/evaluation/used_share.h"
#include "tools/tierd/encoding_report.h"
#include "tools/tierd/energy_report.h"
#include "tools/tierd/known_loss.h"
#include "tools/tierd/pressure_relief.h"
#include "tools/tierd/read_report.h"
#include "tools/tierd/recoding_report.h"
#include "tools/tierd/strategy_report.h"
#include "tools/tierd/tier_report.h"
#include "tools/tierd/unit_report.h"

namespace tierd {

// The decode steps in which caches fill. Means over later steps predict the speed of a long text.
inline constexpr size_t kWarmUpSteps = 16;

struct RunResult {
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t load_ns = 0;
  uint64_t first_token_ns = 0;         // from the start of prefill
  uint64_t decoded_tokens = 0;         // taken after the first token: right guesses count, wrong ones do not
  uint64_t decode_ns = 0;              // wall time of decode, with guessing and sampling
  ReadCounts flash_before;             // before the first decode step
  UsedCounts used_before;              // likewise: a prompt uses more neurons than single tokens
  std::vector<TierLink> links_before;  // likewise; empty where no token was decoded
  std::vector<TierLink> links_warm;    // after kWarmUpSteps decode steps; empty where there were fewer
  std::vector<uint64_t> decode_read_bytes;  // of each decode step
  uint64_t guessed_tokens = 0;
  uint64_t right_guesses = 0;
  uint64_t disk_bytes_before = 0;          // system_read_bytes() before anything was loaded
  std::optional<PressureCounts> pressure;  // where pressure is watched
  std::optional<EnergyTotals> energy;      // RunEnergy::totals() at the end
};

// Returns the progress of the run, for RunEnergy.
RunProgress progress_of(Runtime& runtime, const RunResult& result);

// The part of the configuration that every report contains.
struct ConfigurationFigures {
  std::string model;
  uint64_t tensor_bytes = 0;
  std::string predictor, cache, clock, kernels;
  uint32_t threads = 0, context = 0, prefill_chunk = 0;
  std::string device;
  uint64_t seed = 0;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ConfigurationFigures;
    return std::tuple(Figure{&F::model, "model", text, latest, "its name, else its architecture"},
                      Figure{&F::tensor_bytes, "tensor_bytes", bytes, latest, "of all weights"},
                      Figure{&F::predictor, "predictor", text, latest, "plugin"},
                      Figure{&F::cache, "cache", text, latest, "plugin"},
                      Figure{[](const F&) { return "host"; }, "backend", text, derived, "always host"},
                      Figure{&F::clock, "clock", text, latest, "wall or model: the source of times"},
                      Figure{&F::kernels, "kernels", text, latest, "instruction set of the first unit"},
                      Figure{&F::threads, "threads", count, latest, "that compute"},
                      Figure{&F::context, "context", tokens, latest, "positions of the KV cache"},
                      Figure{&F::prefill_chunk, "prefill_chunk", tokens, latest, "most tokens of a step"},
                      Figure{&F::device, "device", text, latest, "interface by which flash is read"},
                      Figure{&F::seed, "seed", count, latest, "of the run"});
  }
};
ConfigurationFigures configuration_figures(const Runtime& runtime);

// Steps of prefill or decode. Times and bytes are means of a step.
struct StepFigures {
  StepTimes times;
  uint64_t tokens = 0;
  uint64_t tokens_ns = 0;  // the time that they took

  double tokens_per_second() const { return per(static_cast<double>(tokens) * 1e9, tokens_ns); }
  double ms(uint64_t ns) const { return ms_each(ns, times.steps); }
  template <auto M>
  static double step_ms(const StepFigures& of) {
    return of.ms(std::invoke(M, of.times));
  }
  template <auto M>
  static double each(const StepFigures& of) {
    return per(of.times.*M, of.times.steps);
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = StepFigures;
    using T = StepTimes;
    return std::tuple(
        Basis{&F::times}, Basis{&F::tokens_ns},
        Figure{&F::tokens, "tokens", Quantity::tokens, sum, "of the text"},
        Figure{[](const F& f) { return f.times.steps; }, "steps", count, derived, "passes over the layers"},
        Figure{&F::tokens_per_second, "tokens_per_second", Quantity::tokens_per_second, derived, "speed"},
        Figure{&F::step_ms<&T::wall_ns>, "step_ms", ms, derived, "a step"},
        Figure{&F::step_ms<&T::compute_ns>, "compute_ms", ms, derived, "while a unit computed"},
        Figure{&F::step_ms<&T::stall_ns>, "stall_ms", ms, derived, "waiting for bytes, no unit computing"},
        Figure{&F::step_ms<&T::predictor_ns>, "predictor_ms", ms, derived, "in calls of the predictor"},
        Figure{&F::step_ms<&T::reading_ns>, "reading_ms", ms, derived, "in the flash agent on this thread"},
        Figure{&F::step_ms<&T::management_ns>, "management_ms", ms, derived,
               "the rest: kernel and strategies"},
        Figure{&F::each<&T::read_bytes>, "wanted_bytes", bytes, derived, "requested of flash"},
        Figure{&F::each<&T::resident_bytes>, "resident_weight_bytes", bytes, derived, "used from memory"},
        Figure{&F::each<&T::streamed_bytes>, "streamed_weight_bytes", bytes, derived, "used and fetched"},
        Figure{&F::each<&T::messages>, "messages", count, derived, "to agents"});
  }
};

// The steps of decode, with the reads of flash in them.
struct DecodeFigures {
  StepFigures all;
  ReadFigures reads;
  TrendFigures trend;

  template <auto M>
  static double read_ms(const DecodeFigures& of) {
    return of.all.ms(of.reads.*M);
  }
  template <auto M>
  static double each(const DecodeFigures& of) {
    return per(of.reads.*M, of.all.times.steps);
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = DecodeFigures;
    using R = ReadCounts;
    return std::tuple(
        Figure{&F::all, "", parts, sum, ""}, Basis{&F::reads},
        Figure{&F::read_ms<&R::in_flight_ns>, "io_ms", ms, derived, "with a read in the device"},
        Figure{&F::read_ms<&R::checksum_ns>, "checksum_ms", ms, derived, "checking what was read"},
        Figure{&F::read_ms<&R::copy_ns>, "copy_ms", ms, derived, "copying from the bounce buffer"},
        Figure{&F::read_ms<&R::expand_ns>, "expand_ms", ms, derived, "expanding compressed neurons"},
        Figure{&F::each<&R::reads>, "reads", count, derived, "submitted to the device"},
        Figure{&F::each<&R::read_bytes>, "read_bytes", bytes, derived, "delivered by the device"},
        Figure{&F::each<&R::wasted_bytes>, "wasted_bytes", bytes, derived, "read for alignment and gaps"},
        Figure{[](const F& f) { return f.reads.busy_bytes_per_second(); }, "busy_bytes_per_second",
               bytes_per_second, derived, "while a read was in the device"},
        Figure{&F::trend, "flash_trend", parts, latest, "of bytes read, from step to step"});
  }
};

// The cost of continuing without lost agents.
struct LossesFigures : Losses {
  double ms() const { return ms_each(ns, 1); }
  static constexpr auto figures() {
    using enum Adds;
    using F = LossesFigures;
    return std::tuple(
        Figure{&F::agents, "agents", Quantity::count, sum, "lost"},
        Figure{&F::tokens, "tokens_again", Quantity::tokens, sum, "of the KV cache, computed again"},
        Basis{&F::ns}, Figure{&F::ms, "ms", Quantity::ms, derived, "until the steps could be repeated"});
  }
};

struct ComputeFigures : ComputeCounts {
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ComputeFigures;
    return std::tuple(
        Figure{&F::threads_woken, "threads_woken", count, sum, "to share work"},
        Figure{&F::shared_work, "shared_work", count, sum, "pieces done by more than one thread"},
        Figure{&F::activation_error, "activation_error", Quantity::ratio, greatest, "of int8, relative"});
  }
};

struct SpeculationFigures {
  uint64_t guessed = 0, right = 0;

  static constexpr auto figures() {
    using F = SpeculationFigures;
    return std::tuple(Figure{&F::guessed, "guessed", Quantity::tokens, Adds::sum, "that were checked"},
                      Figure{&F::right, "right", Quantity::tokens, Adds::sum, "of them"});
  }
};

// The speed in virtual time, where a run by the wall clock names a machine (run.machine).
struct ForecastFigures {
  std::string machine;
  std::optional<double> tokens_per_second;
  std::optional<std::string> unknown;  // why it cannot be played

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = ForecastFigures;
    return std::tuple(
        Figure{&F::machine, "machine", text, latest, "its description"},
        Figure{&F::tokens_per_second, "tokens_per_second", Quantity::tokens_per_second, latest, "of decode"},
        Figure{&F::unknown, "unknown", text, latest, "the reason without a number"});
  }
};

struct RunFigures {
  ConfigurationFigures configuration;
  std::string store;
  double load_ms = 0, first_token_ms = 0;
  uint64_t prompt_tokens = 0, generated_tokens = 0;
  StepFigures prefill;
  DecodeFigures decode;
  NeuronFigures neurons;
  std::vector<PredictionFigures> prediction;
  std::optional<UsedFigures> used;
  std::optional<std::vector<ExpertFigures>> experts;
  FlashFigures flash;
  std::optional<PipelineFigures> pipeline;
  StrategiesFigures strategies;
  std::vector<EncodedFigures> encoded_anew;
  std::optional<std::vector<RecodingFigures>> recoded;  // measured at the end of a run, not of a chat
  ComputeFigures compute;
  std::vector<TierFigures> tiers;
  std::vector<LinkFigures> links;
  std::optional<UnitsFigures> units;
  std::optional<IdleFigures> idle;
  std::optional<PressureCounts> pressure;
  uint64_t peak_rss_bytes = 0;
  EnergyFigures energy;
  LossesFigures lost;
  SpeculationFigures speculation;
  std::optional<KnownLoss> loss;
  std::optional<ForecastFigures> forecast;

  static constexpr auto run_figures() {
    using enum Quantity;
    using enum Adds;
    using F = RunFigures;
    return std::tuple(
        Figure{&F::configuration, "", parts, latest, ""},
        Figure{&F::store, "store", text, latest, "its folder"},
        Figure{&F::load_ms, "load_ms", ms, latest, "loading resident weights"},
        Figure{&F::first_token_ms, "first_token_ms", ms, latest, "from the start of prefill"},
        Figure{&F::prompt_tokens, "prompt_tokens", tokens, sum, "of the prompt"},
        Figure{&F::generated_tokens, "generated_tokens", tokens, sum, "the first one included"},
        Figure{&F::prefill, "prefill", parts, sum, "steps of the prompt"},
        Figure{&F::decode, "decode", parts, sum, "steps after the first token"},
        Figure{&F::compute, "", parts, sum, ""},
        Figure{&F::peak_rss_bytes, "peak_rss_bytes", bytes, greatest, "of the process"},
        Figure{&F::energy, "energy", parts, sum, "joules and grams of CO2"},
        Figure{&F::lost, "lost", parts, sum, "the cost of continuing without lost agents"},
        Figure{&F::speculation, "speculation", parts, sum, "guesses of tokens"},
        Figure{&F::loss, "loss", parts, latest, "known by tier-compare; null: none", kOrNull},
        Figure{&F::forecast, "forecast", parts, latest, "speed in virtual time, with run.machine"});
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = RunFigures;
    return std::tuple_cat(
        run_figures(),
        std::tuple(
            Figure{&F::neurons, "neurons", parts, sum, "requests of all memories that units compute from"},
            Figure{&F::prediction, "prediction", parts, latest, "sites whose neurons are predicted"},
            Figure{&F::used, "used", parts, latest, "shares of what a predictor may leave out", kOrNull},
            Figure{&F::experts, "experts", parts, latest, "of each layer of a mixture"},
            Figure{&F::flash, "flash", parts, sum, "reads of the store"},
            Figure{&F::pipeline, "pipeline", parts, latest, "overlap in decode, with --timeline"},
            Figure{&F::strategies, "strategies", parts, latest, "plugins that decide"},
            Figure{&F::encoded_anew, "encoded_anew", parts, latest, "weights that the store encodes anew"},
            Figure{&F::recoded, "recoded", parts, latest, "editions made on the way into a tier"},
            Figure{&F::tiers, "tiers", parts, sum, "with memories, from the lowest, then the store's"},
            Figure{&F::links, "links", parts, sum, "between tiers"},
            Figure{&F::units, "units", parts, latest, "that compute; null: there is one", kOrNull},
            Figure{&F::idle, "idle_windows", parts, latest, "in which fetching delays no unit", kOrNull},
            Figure{&F::pressure, "pressure", parts, sum, "steps of the lowest tier's budget"}));
  }
};

RunFigures run_figures(Runtime& runtime, const RunResult& result);
std::string report_text(const RunFigures& run);

// Returns none without a machine or decoded tokens.
std::optional<ForecastFigures> forecast_figures(const Runtime& runtime, const RunFigures& run);

}  // namespace tierd
