// The verdict of a comparison, as figures and as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "core/run/runtime.h"
#include "tools/evaluation/used_share.h"
#include "tools/tier/compare/comparison.h"
#include "tools/tier/compare/kept_verdict.h"
#include "tools/tier/compare/site_uses.h"

namespace tierd {

// How the comparison was made, beside the properties of `subject`.
struct ComparisonFacts {
  uint32_t step_tokens = 1;           // of the subject
  std::string published;              // the path of the file as published; empty: it was not run
  std::string why_without_published;  // if it was not run
  KeptVerdict kept = {};
};

struct DivergenceFigures {
  double mean = 0, p99 = 0, most = 0;

  static constexpr auto figures() {
    using F = DivergenceFigures;
    return std::tuple(Figure{&F::mean, "mean", Quantity::nats, Adds::latest, "of all tokens"},
                      Figure{&F::p99, "p99", Quantity::nats, Adds::latest, "99 % of the tokens have less"},
                      Figure{&F::most, "most", Quantity::nats, Adds::latest, "of any token"});
  }
};

// The figures of one run against another.
struct LossFigures {
  double reference_perplexity = 0, perplexity = 0, perplexity_change = 0;
  DivergenceFigures divergence;
  float largest_logit_difference = 0;

  static constexpr auto figures() {
    using F = LossFigures;
    return std::tuple(
        Figure{&F::reference_perplexity, "reference_perplexity", Quantity::ratio, Adds::latest,
               "of the other run"},
        Figure{&F::perplexity, "perplexity", Quantity::ratio, Adds::latest, "of the run"},
        Figure{&F::perplexity_change, "perplexity_change", Quantity::share, Adds::latest, "of the other's"},
        Figure{&F::divergence, "divergence", Quantity::parts, Adds::latest,
               "of the next token's distribution"},
        Figure{&F::largest_logit_difference, "largest_logit_difference", Quantity::ratio, Adds::latest,
               "0: the same bits"});
  }
};

// The configured run against the file as published.
struct PublishedFigures : LossFigures {
  std::string path;
  LossFigures store;

  static constexpr auto figures() {
    using F = PublishedFigures;
    return std::tuple_cat(
        LossFigures::figures(),
        std::tuple(Figure{&F::path, "path", Quantity::text, Adds::latest, "of the file"},
                   Figure{&F::store, "store", Quantity::parts, Adds::latest, "the store against the file"}));
  }
};

// The configured run against its store.
struct ComparisonFigures : LossFigures {
  std::string model, predictor, quantizer, kernels, why_without_published, why_not_kept;
  uint64_t dram_bytes = 0, tensor_bytes = 0, context = 0, tokens = 0, step_tokens = 0;
  std::optional<UsedFigures> used;
  std::optional<PublishedFigures> published;
  std::optional<std::string> kept;
  std::vector<SiteFigures> sites, operators;

  static constexpr auto figures() {
    using F = ComparisonFigures;
    return std::tuple_cat(
        LossFigures::figures(),
        std::tuple(
            Figure{&F::model, "model", Quantity::text, Adds::latest, "its name"},
            Figure{&F::predictor, "predictor", Quantity::text, Adds::latest, "name of the strategy"},
            Figure{&F::quantizer, "quantizer", Quantity::text, Adds::latest, "name of the strategy"},
            Figure{&F::dram_bytes, "dram_bytes", Quantity::bytes, Adds::latest, "of the run's budget"},
            Figure{&F::tensor_bytes, "tensor_bytes", Quantity::bytes, Adds::latest, "of all weights"},
            Figure{&F::kernels, "kernels", Quantity::text, Adds::latest, "of the processor"},
            Figure{&F::context, "context", Quantity::tokens, Adds::latest, "of a window"},
            Figure{&F::tokens, "tokens", Quantity::tokens, Adds::latest, "that were compared"},
            Figure{&F::step_tokens, "step_tokens", Quantity::tokens, Adds::latest, "of a step of the run"},
            Figure{&F::used, "used", Quantity::parts, Adds::latest, "null: no neuron may be left out", true},
            Figure{&F::published, "published", Quantity::parts, Adds::latest, "null: it was not run", true},
            Figure{&F::why_without_published, "why_without_published", Quantity::text, Adds::latest,
                   "if it was not run"},
            Figure{&F::kept, "kept", Quantity::text, Adds::latest, "file of the verdict", true},
            Figure{&F::why_not_kept, "why_not_kept", Quantity::text, Adds::latest, "if it was not kept"},
            Figure{&F::sites, "sites", Quantity::parts, Adds::latest, "that were measured, and all"},
            Figure{&F::operators, "operators", Quantity::parts, Adds::latest, "sites by kind, and all"}));
  }
};

ComparisonFigures comparison_figures(const Runtime& subject, const Verdict& verdict,
                                     const ComparisonFacts& facts);
std::string comparison_text(const ComparisonFigures& comparison);

}  // namespace tierd
