#include "tools/lab/reproduce/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tierd {
namespace {

using nlohmann::json;

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

template <class T>
json known(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

std::string number(const json& value) {
  return value.is_null() ? std::string() : fmt::format("{:.4g}", value.get<double>());
}

// Returns the values with which the row passes.
std::string bounds(const json& row) {
  if (row["kind"] == "N") return "";
  if (row["least"].is_null() && row["most"].is_null())
    return fmt::format("±{:.3g} %", row["tolerance_percent"].get<double>());
  if (row["most"].is_null()) return "≥ " + number(row["least"]);
  if (row["least"].is_null()) return "≤ " + number(row["most"]);
  return number(row["least"]) + " to " + number(row["most"]);
}

std::string verdict(const json& row) {
  if (row["kind"] == "N") return "not judged";
  return row["passes"].get<bool>() ? "passes" : "**misses**";
}

std::string table(const json& paper) {
  std::string text = fmt::format("## {}\n\n", paper["paper"].get<std::string>());
  text +=
      "| what | of | paper | ours | error | kind | may be | | |\n|---|---|---:|---:|---:|---|---|---|---|\n";
  for (const json& row : paper["rows"]) {
    const auto word = [&](const char* key) { return row[key].get<std::string>(); };
    const std::string unit = word("unit").empty() ? "" : " " + word("unit");
    const std::string error =
        row["error_percent"].is_null() ? "" : fmt::format("{:+.1f} %", row["error_percent"].get<double>());
    const auto with_unit = [&](const char* key) {
      return row[key].is_null() ? std::string() : number(row[key]) + unit;
    };
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", word("what"), word("source"),
                        with_unit("paper"), with_unit("ours"), error, word("kind"), bounds(row), verdict(row),
                        word("why"));
  }
  return text + "\n";
}

struct Count {
  uint64_t rows = 0;
  uint64_t passed = 0;
};

// The name of a kind's counts in the report, [RowKind].
constexpr std::array<const char*, kRowKinds> kCountNames = {"identities", "predictions", "orders", "fits",
                                                            "not_reproducible"};

// Counts the rows of each kind, and all judged ones.
void add_counts(const std::array<Count, kRowKinds>& counts, json& report) {
  Count judged;
  for (size_t kind = 0; kind < kRowKinds; ++kind) {
    json& count = report["counts"][kCountNames[kind]];
    count["rows"] = counts[kind].rows;
    if (static_cast<RowKind>(kind) == RowKind::none) continue;
    count["passed"] = counts[kind].passed;
    judged.rows += counts[kind].rows;
    judged.passed += counts[kind].passed;
  }
  report["judged"] = judged.rows;
  report["passed"] = judged.passed;
}

// Predictions are first and separate: no other kind is evidence.
std::string summary(const json& report) {
  const auto count = [&](const char* kind, const char* of) {
    return report["counts"][kind][of].get<uint64_t>();
  };
  const auto line = [&](const char* name, const char* kind) {
    const uint64_t rows = count(kind, "rows");
    return fmt::format("- {}, {} {}, ", name, rows, rows == 1 ? "row" : "rows");
  };
  const auto judged = [&](const char* name, const char* kind) {
    return line(name, kind) + fmt::format("{} pass\n", count(kind, "passed"));
  };
  const uint64_t predictions = count("predictions", "rows");
  return fmt::format("{} prediction{}, {} pass.\n\n", predictions, predictions == 1 ? "" : "s",
                     count("predictions", "passed")) +
         judged("O, orders", "orders") + judged("F, fits", "fits") + judged("I, identities", "identities") +
         line("N, not reproducible", "not_reproducible") +
         fmt::format("not judged\n\nSeed {}.\n", report["seed"].get<uint64_t>());
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

json reproduced_json(const std::vector<Reproduced>& papers, uint64_t seed) {
  json report = {{"clock", "model"}, {"seed", seed}, {"papers", json::array()}};
  std::array<Count, kRowKinds> counts = {};
  for (const Reproduced& of : papers) {
    json rows = json::array();
    for (size_t i = 0; i < of.outcomes.size(); ++i) {
      const Row& row = of.reproduction.rows[i];
      const Outcome& outcome = of.outcomes[i];
      const bool judged = row.kind != RowKind::none;
      Count& count = counts[static_cast<size_t>(row.kind)];
      ++count.rows;
      count.passed += judged && outcome.passes ? 1 : 0;
      rows.push_back({{"what", row.what},
                      {"source", row.source},
                      {"unit", row.unit},
                      {"paper", known(row.paper)},
                      {"ours", known(outcome.ours)},
                      {"error_percent", known(outcome.error)},
                      {"kind", name(row.kind)},
                      {"tolerance_percent", row.tolerance},
                      {"least", known(row.least)},
                      {"most", known(row.most)},
                      {"runs", row.runs},
                      {"figure", row.figure},
                      {"over", row.over},
                      {"against", row.against},
                      {"passes", judged ? json(outcome.passes) : json()},
                      {"why", row.why}});
    }
    report["papers"].push_back(
        {{"paper", of.reproduction.paper}, {"rows", std::move(rows)}, {"runs", of.runs}});
  }
  add_counts(counts, report);
  return report;
}

std::string reproduced_markdown(const json& report) {
  std::string text = "# The papers' figures, by kernel and plugins in virtual time\n\n";
  text +=
      "Kind: P, a prediction, to which nothing was fitted; O, an order or a bound that the paper states "
      "without a figure; "
      "F, constants were fitted; I, what is given contains the answer; N, it cannot be reproduced. Only P is "
      "evidence.\n\n";
  for (const json& paper : report["papers"]) text += table(paper);
  return text + summary(report);
}

}  // namespace tierd
