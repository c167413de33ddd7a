#include "tools/lab/reproduce/reproduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/named_toml.h"
#include "core/base/toml_fields.h"
#include "core/model/shape_file.h"

namespace tierd {
namespace {

constexpr uint32_t kMostTokens = 1 << 20;

std::filesystem::path folder() {
  return shapes_folder().parent_path() / "reproduction";
}

constexpr double kMostFigure = 1e300;

void read_number(TomlFields& fields, std::string_view key, std::optional<double>& field) {
  if (fields.has(key)) field = fields.number(key, -kMostFigure, kMostFigure);
}

void read_range(TomlFields& fields, std::string_view key, std::optional<std::pair<double, double>>& field) {
  if (!fields.has(key)) return;
  const std::vector<double> range = fields.numbers(key, -kMostFigure, kMostFigure);
  if (range.size() != 2 || range[0] >= range[1])
    return fields.fail(key, "is no range; two numbers, the lower one first, are expected");
  field = {range[0], range[1]};
}

// Reads one string, or several.
std::vector<std::string> read_names(TomlFields& fields, std::string_view key) {
  if (fields.is_text(key)) return {fields.text(key)};
  return fields.texts(key);
}

DescribedRun read_run(const std::string& name, TomlFields fields) {
  DescribedRun run;
  run.name = name;
  run.configuration = fields.text("configuration");
  run.model = fields.text("model");
  run.machine = fields.text("machine");
  fields.read("activity", run.activity);
  if (fields.has("draws")) run.drawn = fields.one_of<Drawn>("draws");
  fields.read("partition", run.partition, 1, kMostTokens);
  fields.read("sequences", run.sequences, 1, kMostTokens);
  fields.read("prompt", run.prompt, 0, kMostTokens);
  fields.read("warming", run.warming, 0, kMostTokens);
  fields.read("tokens", run.tokens, 1, kMostTokens);
  fields.read("text", run.text, 0, kMostTokens);
  if (fields.has("set")) run.settings = fields.texts("set");
  if (fields.has("draws") && run.activity.empty())
    fields.fail("draws", "is of the activity, which is missing");
  fields.end();
  return run;
}

bool same_figure(const Row& a, const Row& b) {
  return std::tie(a.runs, a.figure, a.over, a.against) == std::tie(b.runs, b.figure, b.over, b.against);
}

// Returns the range of the row's figure in any run. No figure is negative.
std::pair<double, double> possible_of(const Row& row) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (row.possible) return *row.possible;
  const bool share = row.over.empty() && row.figure.ends_with("_percent");
  return {0, share ? 100 * row.times : kInfinity};
}

// Returns the range of our figure with which a judged row passes.
std::pair<double, double> accepted_of(const Row& row) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!row.paper) return {row.least.value_or(-kInfinity), row.most.value_or(kInfinity)};
  const double half = std::abs(*row.paper) * row.tolerance / 100;
  return {*row.paper - half, *row.paper + half};
}

// Returns the error in the row's criteria; empty if there is none.
std::string judging_error(const Row& row) {
  const bool bounded = row.least || row.most;
  if (row.kind == RowKind::none) {
    return bounded || row.tolerance != 0 ? "kind N is not judged: it has neither tolerance nor least and most"
                                         : "";
  }
  if (row.kind == RowKind::order) {
    if (!bounded || row.paper || row.tolerance != 0)
      return "kind O is judged by least or most alone, without paper and tolerance";
  } else if (bounded ? row.paper || row.tolerance != 0 || !row.least || !row.most
                     : !row.paper || !(row.tolerance > 0)) {
    return fmt::format(
        "kind {} is judged either by the paper's figure (paper) and a tolerance of it, or by the paper's "
        "range (least "
        "and most); one bound alone is an order, kind O",
        name(row.kind));
  }
  const auto [possible_least, possible_most] = possible_of(row);
  const auto [least, most] = accepted_of(row);
  if (least > possible_least || most < possible_most) return "";
  return fmt::format(
      "the row cannot miss: all values that it can take, {} to {}, pass; give a figure or a bound of the "
      "paper that it can "
      "miss, or make it kind N",
      possible_least, possible_most);
}

Row read_row(TomlFields& fields, const Reproduction& of) {
  Row row;
  row.what = fields.text("what");
  row.source = fields.text("source");
  fields.read("unit", row.unit);
  read_number(fields, "paper", row.paper);
  read_number(fields, "least", row.least);
  read_number(fields, "most", row.most);
  read_range(fields, "possible", row.possible);
  row.kind = fields.one_of<RowKind>("kind");
  fields.read("tolerance", row.tolerance, -kMostFigure, kMostFigure);
  const bool judged = row.kind != RowKind::none;
  if (judged || fields.has("run")) row.runs = read_names(fields, "run");
  if (judged || !row.runs.empty()) row.figure = fields.text("figure");
  fields.read("figure", row.figure);
  if (fields.has("over")) row.over = read_names(fields, "over");
  if (fields.has("against")) row.against = read_names(fields, "against");
  fields.read("times", row.times, -kMostFigure, kMostFigure);
  if (!judged) row.why = fields.text("why");
  fields.read("why", row.why);
  for (const auto* names : {&row.runs, &row.over, &row.against}) {
    for (const std::string& name : *names) {
      if (std::ranges::find(of.runs, name, &DescribedRun::name) != of.runs.end()) continue;
      fields.fail("", fmt::format("there is no [runs.{}]", name));
    }
  }
  if (!row.over.empty() && row.over.size() != row.runs.size())
    fields.fail("", fmt::format("over names {} runs, and run {}", row.over.size(), row.runs.size()));
  if (!row.against.empty() && (row.against.size() != 2 || row.over.empty()))
    fields.fail("", "against names two runs, by whose quotient that of run and over is divided");
  if (const std::string error = judging_error(row); !error.empty()) fields.fail("", error);
  for (const Row& other : of.rows) {
    if (row.kind != RowKind::prediction || other.kind != row.kind || !same_figure(row, other)) continue;
    fields.fail("", fmt::format("'{}' is predicted by the same figure of the same run; one of the two can be "
                                "kind P",
                                other.what));
  }
  fields.end();
  return row;
}

}  // namespace

bool Row::names(std::string_view run) const {
  return std::ranges::any_of(std::array{&runs, &over, &against},
                             [&](const auto* all) { return std::ranges::find(*all, run) != all->end(); });
}

std::vector<std::string> known_reproductions() {
  return toml_names(folder());
}

Result<Reproduction> read_reproduction(const std::string& name) {
  TIERD_ASSIGN(const NamedToml named, read_named_toml(folder(), name, "reproduction"));
  TomlFields fields(named.table, named.path.string());
  Reproduction reproduction;
  reproduction.paper = fields.text("paper");
  TomlFields runs = fields.table("runs");
  for (const std::string& run : runs.keys()) reproduction.runs.push_back(read_run(run, runs.table(run)));
  for (TomlFields& row : fields.tables("rows")) {
    reproduction.rows.push_back(read_row(row, reproduction));
    TIERD_TRY(fields.status());
  }
  fields.end();
  TIERD_TRY(fields.status());
  return reproduction;
}

}  // namespace tierd
