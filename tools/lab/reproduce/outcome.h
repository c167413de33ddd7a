// The outcome of a row.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/figure.h"
#include "tools/lab/reproduce/played_run.h"
#include "tools/lab/reproduce/reproduction.h"

namespace tierd {

struct Outcome {
  std::optional<double> ours;
  std::optional<double> error;  // relative to the paper's figure, per cent
  bool passes = true;           // also true for rows that are not judged
};

// `runs`: the figures of the runs that the row names. Error: not_found, naming the known figures.
Result<Outcome> judge(const Row& row, const std::map<std::string, Figures>& runs);

// A reproduction with the outcomes, row by row.
struct Reproduced {
  Reproduction reproduction;
  std::vector<Outcome> outcomes;  // [rows]
  std::map<std::string, Figures> runs;
};

struct RowFigures {
  std::string what, source, unit;
  std::optional<double> paper, ours, error_percent;
  RowKind kind = RowKind::none;
  double tolerance_percent = 0;
  std::optional<double> least, most;
  std::vector<std::string> runs;
  std::string figure;
  std::vector<std::string> over, against;
  std::optional<bool> passes;
  std::string why;

  static constexpr auto figures() {
    using F = RowFigures;
    return std::tuple(
        Figure{&F::what, "what", Quantity::text, Adds::latest, "the figure"},
        Figure{&F::source, "source", Quantity::text, Adds::latest, "section or table"},
        Figure{&F::unit, "unit", Quantity::text, Adds::latest, "of the figure"},
        Figure{&F::paper, "paper", Quantity::ratio, Adds::latest, "the paper's", true},
        Figure{&F::ours, "ours", Quantity::ratio, Adds::latest, "of the runs", true},
        Figure{&F::error_percent, "error_percent", Quantity::percent, Adds::latest, "of ours", true},
        Figure{&F::kind, "kind", Quantity::text, Adds::latest, "of evidence"},
        Figure{&F::tolerance_percent, "tolerance_percent", Quantity::percent, Adds::latest, "of the error"},
        Figure{&F::least, "least", Quantity::ratio, Adds::latest, "with which it passes", true},
        Figure{&F::most, "most", Quantity::ratio, Adds::latest, "with which it passes", true},
        Figure{&F::runs, "runs", Quantity::text, Adds::latest, "the runs whose mean is ours"},
        Figure{&F::figure, "figure", Quantity::text, Adds::latest, "its name in a run"},
        Figure{&F::over, "over", Quantity::text, Adds::latest, "runs that ours are divided by"},
        Figure{&F::against, "against", Quantity::text, Adds::latest, "two runs, by whose quotient as well"},
        Figure{&F::passes, "passes", Quantity::flag, Adds::latest, "null: it is not judged", true},
        Figure{&F::why, "why", Quantity::text, Adds::latest, "it misses, or cannot be reproduced"});
  }
};

struct PaperFigures {
  std::string paper;
  std::vector<RowFigures> rows;
  std::map<std::string, Figures> runs;

  static constexpr auto figures() {
    using F = PaperFigures;
    return std::tuple(Figure{&F::paper, "paper", Quantity::text, Adds::latest, "its name"},
                      Figure{&F::rows, "rows", Quantity::parts, Adds::latest, "its figures"},
                      Figure{&F::runs, "runs", Quantity::parts, Adds::latest, "all figures, by run"});
  }
};

struct CountFigures {
  uint64_t rows = 0;
  std::optional<uint64_t> passed;  // empty: the kind is not judged

  static constexpr auto figures() {
    using F = CountFigures;
    return std::tuple(Figure{&F::rows, "rows", Quantity::count, Adds::latest, "of the kind"},
                      Figure{&F::passed, "passed", Quantity::count, Adds::latest, "of these"});
  }
};

struct KindFigures {
  CountFigures identities{.rows = 0, .passed = 0}, predictions{.rows = 0, .passed = 0};
  CountFigures orders{.rows = 0, .passed = 0}, fits{.rows = 0, .passed = 0}, not_reproducible;

  CountFigures& of(RowKind kind);

  static constexpr auto figures() {
    using F = KindFigures;
    return std::tuple(
        Figure{&F::identities, "identities", Quantity::parts, Adds::latest, "kind I"},
        Figure{&F::predictions, "predictions", Quantity::parts, Adds::latest, "kind P"},
        Figure{&F::orders, "orders", Quantity::parts, Adds::latest, "kind O"},
        Figure{&F::fits, "fits", Quantity::parts, Adds::latest, "kind F"},
        Figure{&F::not_reproducible, "not_reproducible", Quantity::parts, Adds::latest, "kind N"});
  }
};

struct ReproducedFigures {
  std::string clock = "model";
  uint64_t seed = 0, judged = 0, passed = 0;
  std::vector<PaperFigures> papers;
  KindFigures counts;

  static constexpr auto figures() {
    using F = ReproducedFigures;
    return std::tuple(
        Figure{&F::clock, "clock", Quantity::text, Adds::latest, "virtual time"},
        Figure{&F::seed, "seed", Quantity::count, Adds::latest, "of all runs"},
        Figure{&F::papers, "papers", Quantity::parts, Adds::latest, "in the order of the command line"},
        Figure{&F::counts, "counts", Quantity::parts, Adds::latest, "rows by kind"},
        Figure{&F::judged, "judged", Quantity::count, Adds::latest, "rows of all kinds but N"},
        Figure{&F::passed, "passed", Quantity::count, Adds::latest, "of these"});
  }
};

ReproducedFigures reproduced_figures(const std::vector<Reproduced>& papers, uint64_t seed);
// Returns a table for each paper.
std::string reproduced_markdown(const ReproducedFigures& report);

}  // namespace tierd
