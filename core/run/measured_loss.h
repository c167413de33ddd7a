// The loss of a configuration on a text, as measured by tier-compare. It is kept in the measured model's
// store: STORE/losses/KEY.json, one file per verdict; KEY is made of the settings that change results.
// Removing a store removes its verdicts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/report/figure.h"

namespace tierd {

// The settings that identify the verdict of a run.
struct LossSettings {
  // All settings that change results, with their defaults, one a line, and with checksums in place of file
  // names. Threads, ports, prompts and settings that only change the order of additions are left out.
  std::string text;
  // The share of all tensor bytes that each tier has for weights, if results depend on the content of
  // memories; else empty.
  std::map<std::string, double> resident;
};

// The used shares of the neurons and bytes that a predictor may leave out.
struct UsedShares {
  double neurons = 0, bytes = 0;

  static constexpr auto figures() {
    using F = UsedShares;
    return std::tuple(Figure{&F::neurons, "neurons", Quantity::share, Adds::latest, "that were used"},
                      Figure{&F::bytes, "bytes", Quantity::share, Adds::latest, "of used neurons"});
  }
};

struct MeasuredLoss {
  double divergence = 0;            // Kullback-Leibler, in nats a token
  double reference_perplexity = 0;  // of the file as published
  double perplexity = 0;            // of the configuration
  uint64_t tokens = 0;
  std::string text;           // the name of its file
  std::string text_checksum;  // of its content
  // The used shares of the neurons and bytes that a predictor may leave out; both or none.
  std::optional<double> used_neurons, used_bytes;
  std::string date;            // "2026-11-30", UTC
  bool against_store = false;  // compared with the store (encoded anew) instead of the published file

  double perplexity_change() const { return perplexity / reference_perplexity - 1; }
  std::string_view against() const { return against_store ? "store" : "file"; }
  std::optional<UsedShares> used() const {
    if (!used_neurons || !used_bytes) return std::nullopt;
    return UsedShares{*used_neurons, *used_bytes};
  }
  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = MeasuredLoss;
    return std::tuple(
        Figure{&F::divergence, "divergence", nats, latest, "Kullback-Leibler"},
        Figure{&F::perplexity, "perplexity", Quantity::ratio, latest, "of the configuration"},
        Figure{&F::reference_perplexity, "reference_perplexity", Quantity::ratio, latest, "of the file"},
        Figure{&F::perplexity_change, "perplexity_change", Quantity::ratio, derived, "of the reference"},
        Figure{&F::against, "against", Quantity::text, derived, "file as published, or store"},
        Figure{&F::tokens, "tokens", Quantity::tokens, latest, "of the text that were compared"},
        Figure{&F::text, "text", Quantity::text, latest, "the name of its file"},
        Figure{&F::text_checksum, "text_checksum", Quantity::text, latest, "of its content"},
        Figure{&F::date, "date", Quantity::text, latest, "UTC"},
        Figure{&F::used, "used", parts, derived, "shares of what a predictor may leave out", kOrNull});
  }
};

// Finds the verdict on a run with these settings in the store's folder. If results depend on the content of
// memories, it is the verdict measured with the most similar memories, if each tier's share of the weights
// differs by at most a twentieth of the model. Returns none if there is no verdict. Errors, naming the file:
// corrupt, io_error.
Result<std::optional<MeasuredLoss>> find_loss(const std::string& store, const LossSettings& settings);

// Writes the verdict, replaces any earlier one on the same settings and memories, and returns the path of its
// file. The file is never visible half-written. Errors: io_error, no_space.
Result<std::string> keep_loss(const std::string& store, const LossSettings& settings,
                              const MeasuredLoss& loss);

}  // namespace tierd
