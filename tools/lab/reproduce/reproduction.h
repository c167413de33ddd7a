// A paper's published figures and the runs that reproduce them: configs/reproduction/*.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// A run in virtual time, of a model of which only the shape is needed.
struct DescribedRun {
  std::string name;
  std::string configuration;  // its name in configs/, or a file
  std::string model;          // a shape's name in configs/models, or a file
  std::string machine;        // a description's name in configs/hardware, or a file
  std::string activity;       // a profile's name in configs/activity, or a file; empty: predictors decide
  // Texts whose activity divides the neurons between GPU and DIMMs; 0: no partition.
  uint32_t partition = 0;
  uint32_t sequences = 1;  // decoded at once
  uint32_t prompt = 0;     // tokens of each
  uint32_t warming = 0;    // decoded tokens that do not count
  uint32_t tokens = 1;     // counted tokens of each sequence
  uint32_t text = 0;  // tokens of each that follow the prompt in a text; the counted ones are a sample of
                      // them
  std::vector<std::string> settings;  // in the syntax of --set
};

// The evidence of an agreeing row. Only a prediction shows that kernel, plugins and description are right.
enum class RowKind : uint8_t {
  identity,    // the given values contain the answer
  prediction,  // no constant was fitted to the figure, or chosen by it
  order,       // a bound or an order that the paper states without a figure
  fitted,      // constants were fitted to this figure or to another one of the same run
  none,        // not reproducible, for the row's reason
};
constexpr size_t kRowKinds = 5;

// Returns the letter of a kind in files and reports: I, P, O, F, N.
char letter(RowKind kind);
inline std::string name(RowKind kind) {
  return {letter(kind)};
}

// One figure of a paper.
struct Row {
  std::string what;
  std::string source;  // section or table
  std::string unit;
  std::optional<double> paper;
  // The paper's range or bound, if it states no figure.
  std::optional<double> least, most;
  // The range of the row's figure in any run; empty: the range of its kind of figure.
  std::optional<std::pair<double, double>> possible;
  RowKind kind = RowKind::none;
  double tolerance = 0;  // of the paper's, per cent
  // The runs whose figure, or mean figure, is ours; empty for kind `none`.
  std::vector<std::string> runs;
  std::string figure;
  std::vector<std::string> over;     // as many runs, by whose figures ours are divided; or empty
  std::vector<std::string> against;  // two more runs, by whose quotient ours is divided; or empty
  double times = 1;                  // factor for units
  std::string why;                   // the reason why it is not reproducible, or misses

  // Returns whether the row uses the run of this name.
  bool names(std::string_view run) const;
};

struct Reproduction {
  std::string paper;
  std::vector<DescribedRun> runs;
  std::vector<Row> rows;
};

// `name`: a file in configs/reproduction, or a path that ends in .toml. Errors: not_found with the known
// names; invalid_argument naming file, line and key, also if a row's bounds admit every value that it can
// take, or if two predictions are one figure of one run.
Result<Reproduction> read_reproduction(const std::string& name);

// Returns the names that read_reproduction accepts, sorted.
std::vector<std::string> known_reproductions();

}  // namespace tierd
