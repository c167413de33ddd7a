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
#include "core/model/shape_file.h"

namespace tierd {
namespace {

constexpr std::array<std::string_view, kRowKinds> kKindLetters = {"I", "P", "O", "F", "N"};
constexpr int64_t kMostTokens = 1 << 20;

std::filesystem::path folder() {
  return shapes_folder().parent_path() / "reproduction";
}

// The keys of one table. Only the first error is kept.
class Fields {
 public:
  Fields(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {}

  void text(std::string_view key, std::string& field, bool required = false) {
    const toml::node* const node = find(key, required);
    if (node == nullptr) return;
    if (const auto* string = node->as_string()) {
      field = string->get();
    } else {
      fail(node, fmt::format("{} must be a string", key));
    }
  }
  void number(std::string_view key, std::optional<double>& field) {
    const toml::node* const node = find(key, false);
    if (node == nullptr) return;
    field = node->value<double>();
    if (!node->is_number() || !std::isfinite(*field)) fail(node, fmt::format("{} must be a number", key));
  }
  void number(std::string_view key, double& field) {
    std::optional<double> read = field;
    number(key, read);
    field = read.value_or(field);
  }
  void range(std::string_view key, std::optional<std::pair<double, double>>& field) {
    const toml::node* const node = find(key, false);
    if (node == nullptr) return;
    const toml::array* const array = node->as_array();
    std::optional<double> least, most;
    if (array != nullptr && array->size() == 2) {
      least = array->get(0)->value<double>();
      most = array->get(1)->value<double>();
    }
    if (!least || !most || !(*least < *most))
      return fail(node, fmt::format("{} must be two numbers, the lower one first", key));
    field = {*least, *most};
  }
  void count(std::string_view key, uint32_t& field, int64_t least) {
    const toml::node* const node = find(key, false);
    if (node == nullptr) return;
    const int64_t value = node->is_integer() ? node->as_integer()->get() : -1;
    if (value < least || value > kMostTokens)
      return fail(node, fmt::format("{} must be a whole number from {} to {}", key, least, kMostTokens));
    field = static_cast<uint32_t>(value);
  }
  void texts(std::string_view key, std::vector<std::string>& field) {
    const toml::node* const node = find(key, false);
    if (node == nullptr) return;
    const toml::array* const array = node->as_array();
    if (array == nullptr || !array->is_homogeneous<std::string>())
      return fail(node, fmt::format("{} must be an array of strings", key));
    for (const toml::node& element : *array) field.push_back(element.as_string()->get());
  }
  // Reads one string, or several.
  void names(std::string_view key, std::vector<std::string>& field, bool required) {
    const toml::node* const node = find(key, required);
    if (node == nullptr) return;
    if (const auto* string = node->as_string()) {
      field.push_back(string->get());
    } else {
      texts(key, field);
    }
  }
  void kind(RowKind& field) {
    std::string letter;
    text("kind", letter, true);
    const auto* const found = std::ranges::find(kKindLetters, letter);
    if (found == kKindLetters.end()) {
      fail(table_.get("kind"), fmt::format("kind must be one of {}", fmt::join(kKindLetters, ", ")));
    } else {
      field = static_cast<RowKind>(found - kKindLetters.begin());
    }
  }
  void fail(const toml::node* node, std::string detail) {
    if (!status_.ok()) return;
    const toml::node& at = node != nullptr ? *node : static_cast<const toml::node&>(table_);
    status_ =
        Error{Code::invalid_argument, fmt::format("{}:{}", file_, at.source().begin.line), std::move(detail)};
  }
  // Call after the last key: reports unknown keys.
  Status end() {
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(known_, key.str()) != known_.end()) continue;
      fail(&node, fmt::format("unknown key '{}'; there are {}", key.str(), fmt::join(known_, ", ")));
    }
    return status_;
  }

 private:
  const toml::node* find(std::string_view key, bool required) {
    known_.push_back(key);
    const toml::node* const node = table_.get(key);
    if (node == nullptr && required) fail(nullptr, fmt::format("{} is missing", key));
    return status_.ok() ? node : nullptr;
  }

  const toml::table& table_;
  std::string file_;
  std::vector<std::string_view> known_;
  Status status_;
};

Result<DescribedRun> read_run(const std::string& name, const toml::table& table, const std::string& file) {
  DescribedRun run;
  run.name = name;
  Fields fields(table, file);
  fields.text("configuration", run.configuration, true);
  fields.text("model", run.model, true);
  fields.text("machine", run.machine, true);
  fields.text("activity", run.activity);
  std::string drawn = "sets";
  fields.text("draws", drawn);
  fields.count("partition", run.partition, 1);
  fields.count("sequences", run.sequences, 1);
  fields.count("prompt", run.prompt, 0);
  fields.count("warming", run.warming, 0);
  fields.count("tokens", run.tokens, 1);
  fields.count("text", run.text, 0);
  fields.texts("set", run.settings);
  TIERD_TRY(fields.end());
  if (drawn != "sets" && drawn != "states")
    return Error{Code::invalid_argument, file,
                 fmt::format("runs.{}.draws is '{}'; expected sets or states", name, drawn)};
  if (drawn == "states") run.drawn = Drawn::states;
  if (drawn == "states" && run.activity.empty())
    return Error{Code::invalid_argument, file,
                 fmt::format("runs.{}.draws is of its activity, which is missing", name)};
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
        letter(row.kind));
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

Result<Row> read_row(const toml::table& table, const Reproduction& of, const std::string& file) {
  Row row;
  Fields fields(table, file);
  fields.text("what", row.what, true);
  fields.text("source", row.source, true);
  fields.text("unit", row.unit);
  fields.number("paper", row.paper);
  fields.number("least", row.least);
  fields.number("most", row.most);
  fields.range("possible", row.possible);
  fields.kind(row.kind);
  fields.number("tolerance", row.tolerance);
  const bool runs = row.kind != RowKind::none;
  fields.names("run", row.runs, runs);
  fields.text("figure", row.figure, runs || !row.runs.empty());
  fields.names("over", row.over, false);
  fields.names("against", row.against, false);
  fields.number("times", row.times);
  fields.text("why", row.why, !runs);
  for (const auto* names : {&row.runs, &row.over, &row.against}) {
    for (const std::string& name : *names) {
      if (std::ranges::find(of.runs, name, &DescribedRun::name) != of.runs.end()) continue;
      fields.fail(nullptr, fmt::format("there is no [runs.{}]", name));
    }
  }
  if (!row.over.empty() && row.over.size() != row.runs.size())
    fields.fail(nullptr, fmt::format("over names {} runs, and run {}", row.over.size(), row.runs.size()));
  if (!row.against.empty() && (row.against.size() != 2 || row.over.empty()))
    fields.fail(nullptr, "against names two runs, by whose quotient that of run and over is divided");
  if (const std::string error = judging_error(row); !error.empty()) fields.fail(nullptr, error);
  for (const Row& other : of.rows) {
    if (row.kind != RowKind::prediction || other.kind != row.kind || !same_figure(row, other)) continue;
    fields.fail(nullptr,
                fmt::format("'{}' is predicted by the same figure of the same run; one of the two can be "
                            "kind P",
                            other.what));
  }
  TIERD_TRY(fields.end());
  return row;
}

}  // namespace

bool Row::names(std::string_view run) const {
  return std::ranges::any_of(std::array{&runs, &over, &against},
                             [&](const auto* all) { return std::ranges::find(*all, run) != all->end(); });
}

char letter(RowKind kind) {
  return kKindLetters[static_cast<size_t>(kind)].front();
}

std::vector<std::string> known_reproductions() {
  return toml_names(folder());
}

Result<Reproduction> read_reproduction(const std::string& name) {
  TIERD_ASSIGN(const NamedToml named, read_named_toml(folder(), name, "reproduction"));
  const std::string file = named.path.string();
  Reproduction reproduction;
  const auto fail = [&](const std::string& detail) { return Error{Code::invalid_argument, file, detail}; };
  for (const auto& [key, node] : named.table) {
    if (key.str() == "paper" && node.is_string()) {
      reproduction.paper = node.as_string()->get();
    } else if (key.str() == "runs" && node.is_table()) {
      for (const auto& [run, of] : *node.as_table()) {
        if (!of.is_table()) return fail(fmt::format("runs.{} must be a table", run.str()));
        TIERD_ASSIGN(reproduction.runs.emplace_back(),
                     read_run(std::string(run.str()), *of.as_table(), file));
      }
    } else if (key.str() != "rows" || !node.is_array_of_tables()) {
      return fail(
          fmt::format("'{}' is unknown or of the wrong type; expected the string paper, tables "
                      "[runs.NAME] and tables [[rows]]",
                      key.str()));
    }
  }
  if (reproduction.paper.empty()) return fail("paper is missing");
  const toml::array* const rows = named.table["rows"].as_array();
  if (rows == nullptr) return fail("there are no [[rows]]");
  for (const toml::node& row : *rows) {
    TIERD_ASSIGN(reproduction.rows.emplace_back(), read_row(*row.as_table(), reproduction, file));
  }
  return reproduction;
}

}  // namespace tierd
