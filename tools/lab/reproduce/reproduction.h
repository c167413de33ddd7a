// What a paper has published, and which run says what comes out here: configs/reproduction/*.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace tierd {

// A run in virtual time, of a model that is only a shape.
struct DescribedRun {
  std::string name;
  std::string configuration;  // its name in configs/, or a file
  std::string model;          // a shape's name in configs/models, or a file
  std::string machine;        // a description's name in configs/hardware, or a file
  std::string activity;       // a profile's name in configs/activity, or a file; empty: predictors say it
  // Texts by whose activity neurons are divided between GPU and DIMMs; 0: they are not.
  uint32_t partition = 0;
  uint32_t sequences = 1;  // that are continued at once
  uint32_t prompt = 0;     // tokens of each
  uint32_t warming = 0;    // tokens that are decoded and do not count
  uint32_t tokens = 1;     // of each sequence that count
  uint32_t text = 0;  // of each that a text has behind its prompt, of which those that count are a sample
  std::vector<std::string> settings;  // as --set takes them
};

// What a row proves that agrees. Only a prediction says that kernel, plugins and description are right.
enum class RowKind : uint8_t {
  identity,    // what is given contains the answer
  prediction,  // a figure to which nothing was fitted, and which nothing was chosen by
  order,       // a bound or an order that the paper states without a figure
  fitted,      // constants were fitted, to this figure or to another one of the same run
  none,        // it cannot be reproduced, for the reason that the row has
};
constexpr size_t kRowKinds = 5;

// The letter by which files and reports name a kind: I, P, O, F, N.
char letter(RowKind kind);

// One figure of a paper.
struct Row {
  std::string what;
  std::string source;  // section or table
  std::string unit;
  std::optional<double> paper;
  // The paper's range or bound, where it states no figure.
  std::optional<double> least, most;
  // The values that the row can take whatever the kernel does; NULL: those of its figure.
  std::optional<std::pair<double, double>> possible;
  RowKind kind = RowKind::none;
  double tolerance = 0;  // of the paper's, per cent
  // Whose figure is ours, or the mean of several; none for `none`.
  std::vector<std::string> runs;
  std::string figure;
  std::vector<std::string> over;     // as many, by whose same figures they are divided; none: they are not
  std::vector<std::string> against;  // two more, by whose quotient ours is divided; none: it is not
  double times = 1;                  // it is multiplied by this: units
  std::string why;                   // it cannot be reproduced, or misses

  // Whether the row's figure comes from the run of this name.
  bool names(std::string_view run) const;
};

struct Reproduction {
  std::string paper;
  std::vector<DescribedRun> runs;
  std::vector<Row> rows;
};

// `name`: of a file in configs/reproduction, or a path that ends in .toml. Errors: not_found with the names
// there are; invalid_argument naming file, line and key, also where a row's bounds admit every value that it
// can take, and where two predictions are one figure of one run.
Result<Reproduction> read_reproduction(const std::string& name);

// The names that read_reproduction knows, sorted.
std::vector<std::string> known_reproductions();

}  // namespace tierd
