// Reports the weights that a store encodes differently from the model's file, also before the store is made.
#pragma once

#include <string>
#include <vector>

#include "core/report/figure.h"
#include "core/run/run_plan.h"

namespace tierd {

// The sites with a pair of encodings.
struct EncodedFigures {
  std::vector<std::string> sites;  // groups of operators, in the order in which a step computes them
  std::string from;                // encodings of the model's file; empty for a store that exists
  std::string to;
  float error = 0;
  bool sampled = false;

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = EncodedFigures;
    return std::tuple(
        Figure{&F::sites, "sites", text, latest, "groups of operators"},
        Figure{&F::from, "from", text, latest, "encodings of the model's file", kOrNull},
        Figure{&F::to, "to", text, latest, "encodings of the store"},
        Figure{&F::error, "error", Quantity::ratio, greatest, "relative, the largest of the layers"},
        Figure{&F::sampled, "sampled", flag, latest, "error is that of some rows of one layer"});
  }
};

// Errors: those of the source.
Result<std::vector<EncodedFigures>> encoding_figures(const RunPlan& plan);

// Returns the same figures for a store that exists.
std::vector<EncodedFigures> stored_anew(const Store& store);

// Returns "qkv, up from q4_k to q4_0, relative error 0.05", or an empty text for an empty list.
std::string encodings_text(const std::vector<EncodedFigures>& encodings);

}  // namespace tierd
