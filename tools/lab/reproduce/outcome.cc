#include "tools/lab/reproduce/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

namespace tierd {
namespace {

Result<double> figure_of(const Row& row, const std::string& run, const std::map<std::string, Figures>& runs) {
  const Figures& figures = runs.at(run);
  const auto found = figures.find(row.figure);
  if (found != figures.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : figures) names.push_back(name);
  return Error{
      Code::not_found, row.what,
      fmt::format("run {} has no figure '{}'; there are {}", run, row.figure, fmt::join(names, ", "))};
}

std::string number(const std::optional<double>& value, std::string_view unit = {}) {
  return value ? fmt::format("{:.4g}{}", *value, unit) : std::string();
}

// Returns the values with which the row passes.
std::string bounds(const RowFigures& row) {
  if (row.kind == RowKind::none) return "";
  if (!row.least && !row.most) return fmt::format("±{:.3g} %", row.tolerance_percent);
  if (!row.most) return "≥ " + number(row.least);
  if (!row.least) return "≤ " + number(row.most);
  return number(row.least) + " to " + number(row.most);
}

std::string verdict(const RowFigures& row) {
  return !row.passes ? "not judged" : *row.passes ? "passes" : "**misses**";
}

std::string table(const PaperFigures& paper) {
  std::string text = fmt::format("## {}\n\n", paper.paper);
  text +=
      "| what | of | paper | ours | error | kind | may be | | |\n|---|---|---:|---:|---:|---|---|---|---|\n";
  for (const RowFigures& row : paper.rows) {
    const std::string unit = row.unit.empty() ? "" : " " + row.unit;
    const std::string error = row.error_percent ? fmt::format("{:+.1f} %", *row.error_percent) : "";
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.what, row.source,
                        number(row.paper, unit), number(row.ours, unit), error, name(row.kind), bounds(row),
                        verdict(row), row.why);
  }
  return text + "\n";
}

// Predictions are first and separate: no other kind is evidence.
std::string summary(const ReproducedFigures& report) {
  const auto line = [](const char* name, const CountFigures& count) {
    return fmt::format("- {}, {} {}, ", name, count.rows, count.rows == 1 ? "row" : "rows");
  };
  const auto judged = [&](const char* name, const CountFigures& count) {
    return line(name, count) + fmt::format("{} pass\n", count.passed.value_or(0));
  };
  const auto& [identities, predictions, orders, fits, not_reproducible] = report.counts;
  return fmt::format("{} prediction{}, {} pass.\n\n", predictions.rows, predictions.rows == 1 ? "" : "s",
                     predictions.passed.value_or(0)) +
         judged("O, orders", orders) + judged("F, fits", fits) + judged("I, identities", identities) +
         line("N, not reproducible", not_reproducible) + fmt::format("not judged\n\nSeed {}.\n", report.seed);
}

RowFigures row_figures(const Row& row, const Outcome& outcome) {
  return {.what = row.what,
          .source = row.source,
          .unit = row.unit,
          .paper = row.paper,
          .ours = outcome.ours,
          .error_percent = outcome.error,
          .kind = row.kind,
          .tolerance_percent = row.tolerance,
          .least = row.least,
          .most = row.most,
          .runs = row.runs,
          .figure = row.figure,
          .over = row.over,
          .against = row.against,
          .passes = row.kind != RowKind::none ? std::optional(outcome.passes) : std::nullopt,
          .why = row.why};
}

// Counts a row among those of its kind and, if it is judged, among all.
void count(const RowFigures& row, ReproducedFigures& report) {
  CountFigures& kind = report.counts.of(row.kind);
  ++kind.rows;
  if (!row.passes) return;
  ++report.judged;
  report.passed += *row.passes ? 1 : 0;
  *kind.passed += *row.passes ? 1 : 0;
}

}  // namespace

Result<Outcome> judge(const Row& row, const std::map<std::string, Figures>& runs) {
  Outcome outcome;
  if (row.runs.empty()) return outcome;
  double ours = 0;
  for (size_t i = 0; i < row.runs.size(); ++i) {
    TIERD_ASSIGN(double figure, figure_of(row, row.runs[i], runs));
    if (!row.over.empty()) {
      TIERD_ASSIGN(const double over, figure_of(row, row.over[i], runs));
      figure /= over;
    }
    ours += figure * row.times / static_cast<double>(row.runs.size());
  }
  if (!row.against.empty()) {
    TIERD_ASSIGN(const double figure, figure_of(row, row.against[0], runs));
    TIERD_ASSIGN(const double over, figure_of(row, row.against[1], runs));
    ours /= figure / over;
  }
  outcome.ours = ours;
  if (row.paper && *row.paper != 0) outcome.error = 100 * (ours / *row.paper - 1);
  if (row.kind == RowKind::none) return outcome;
  if (row.tolerance > 0) outcome.passes = std::abs(*outcome.error) <= row.tolerance;
  outcome.passes = outcome.passes && ours >= row.least.value_or(ours) && ours <= row.most.value_or(ours);
  return outcome;
}

CountFigures& KindFigures::of(RowKind kind) {
  constexpr std::array<CountFigures KindFigures::*, kRowKinds> kMembers = {
      &KindFigures::identities, &KindFigures::predictions, &KindFigures::orders, &KindFigures::fits,
      &KindFigures::not_reproducible};
  return this->*kMembers[static_cast<size_t>(kind)];
}

ReproducedFigures reproduced_figures(const std::vector<Reproduced>& papers, uint64_t seed) {
  ReproducedFigures report;
  report.seed = seed;
  for (const Reproduced& of : papers) {
    PaperFigures paper{.paper = of.reproduction.paper, .rows = {}, .runs = of.runs};
    for (size_t i = 0; i < of.outcomes.size(); ++i) {
      paper.rows.push_back(row_figures(of.reproduction.rows[i], of.outcomes[i]));
      count(paper.rows.back(), report);
    }
    report.papers.push_back(std::move(paper));
  }
  return report;
}

std::string reproduced_markdown(const ReproducedFigures& report) {
  std::string text = "# The papers' figures, by kernel and plugins in virtual time\n\n";
  text +=
      "Kind: P, a prediction, to which nothing was fitted; O, an order or a bound that the paper states "
      "without a figure; "
      "F, constants were fitted; I, what is given contains the answer; N, it cannot be reproduced. Only P is "
      "evidence.\n\n";
  for (const PaperFigures& paper : report.papers) text += table(paper);
  return text + summary(report);
}

}  // namespace tierd
