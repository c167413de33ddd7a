#include <gtest/gtest.h>

#include "core/report/figure_json.h"

namespace tierd {
namespace {

struct Link {
  uint64_t bytes = 0;
  uint64_t depth = 0;
  std::optional<double> joules = {};
  static constexpr auto figures() {
    return std::tuple(
        Figure{&Link::bytes, "bytes", Quantity::bytes, Adds::sum, "payload"},
        Figure{&Link::depth, "depth", Quantity::count, Adds::greatest, "messages under way at once"},
        Figure{&Link::joules, "joules", Quantity::joules, Adds::sum, "energy", true});
  }
};

struct Report {
  std::string model;
  std::map<std::string, Link> links;
  std::vector<uint64_t> steps;
  std::optional<uint64_t> seed = {};
  static constexpr auto figures() {
    return std::tuple(Figure{&Report::model, "model", Quantity::text, Adds::latest, "its name"},
                      Figure{&Report::links, "links", Quantity::parts, Adds::sum, "by the tier above"},
                      Figure{&Report::steps, "steps", Quantity::count, Adds::sum, "by their number of rows"},
                      Figure{&Report::seed, "seed", Quantity::count, Adds::latest, "of the sampler"});
  }
};

const Report kBegin = {
    .model = "a", .links = {{"dram", {.bytes = 10, .depth = 7, .joules = 1.5}}}, .steps = {1, 2}};
const Report kEnd = {
    .model = "a",
    .links = {{"dram", {.bytes = 25, .depth = 4, .joules = 2}}, {"gpu", {.bytes = 3, .depth = 1}}},
    .steps = {4, 2, 9},
    .seed = 3};

TEST(Figures, AreAnObjectWithoutWhatHasNoValue) {
  EXPECT_EQ(figures_json(kBegin), nlohmann::json::parse(R"({"model": "a",
      "links": {"dram": {"bytes": 10, "depth": 7, "joules": 1.5}}, "steps": [1, 2]})"));
  EXPECT_EQ(figures_json(kEnd)["links"]["gpu"],
            nlohmann::json::parse(R"({"bytes": 3, "depth": 1, "joules": null})"));
}

TEST(Figures, OfAPeriodAreThoseAtItsEndLessThoseAtItsBegin) {
  const Report between = figures_between(kBegin, kEnd);
  EXPECT_EQ(figures_json(between), nlohmann::json::parse(R"({"model": "a", "seed": 3, "steps": [3, 0, 9],
      "links": {"dram": {"bytes": 15, "depth": 4, "joules": 0.5}, "gpu": {"bytes": 3, "depth": 1, "joules": null}}})"));
}

TEST(Figures, OfTwoPartsAddUp) {
  Report sum = kBegin;
  add_figures(sum, kEnd);
  EXPECT_EQ(figures_json(sum), nlohmann::json::parse(R"({"model": "a", "seed": 3, "steps": [5, 4, 9],
      "links": {"dram": {"bytes": 35, "depth": 7, "joules": 3.5}, "gpu": {"bytes": 3, "depth": 1, "joules": null}}})"));
}

TEST(Figures, SumsOfPeriodsAreTheTotal) {
  Report sum = figures_between({}, kBegin);
  add_figures(sum, figures_between(kBegin, kEnd));
  EXPECT_EQ(sum.links.at("dram").bytes, kEnd.links.at("dram").bytes);
  EXPECT_EQ(sum.steps, kEnd.steps);
}

TEST(Figures, AreListedByTheirPaths) {
  std::vector<DeclaredFigure> list;
  list_figures<Report>("", list);
  std::vector<std::string> paths;
  for (const DeclaredFigure& each : list) paths.push_back(each.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"model", "links", "links.NAME.bytes", "links.NAME.depth",
                                             "links.NAME.joules", "steps", "seed"}));
}

// Means of a step that follow from sums.
struct Steps {
  uint64_t steps = 0;
  uint64_t ns[2] = {};
  std::optional<Link> link = {};
  std::string reason = {};

  double step_ns() const { return static_cast<double>(ns[0] + ns[1]) / static_cast<double>(steps); }
  static constexpr auto figures() {
    return std::tuple(
        Basis{&Steps::steps}, Basis{&Steps::ns},
        Figure{&Steps::step_ns, "step_ns", Quantity::ns, Adds::derived, "a step"},
        Figure{[](const Steps& s) { return s.ns[1]; }, "second_ns", Quantity::ns, Adds::derived, "of it"},
        Figure{&Steps::link, "", Quantity::parts, Adds::sum, ""},
        Figure{&Steps::reason, "reason", Quantity::text, Adds::latest, "of an error", kOrNull});
  }
};

TEST(Figures, AreDerivedFromMembersThatAddUp) {
  const Steps begin{.steps = 2, .ns = {3, 5}}, end{.steps = 4, .ns = {11, 7}};
  EXPECT_EQ(figures_json(begin), nlohmann::json::parse(R"({"step_ns": 4, "second_ns": 5, "reason": null})"));
  EXPECT_EQ(figures_json(figures_between(begin, end)),
            nlohmann::json::parse(R"({"step_ns": 5, "second_ns": 2, "reason": null})"));
}

TEST(Figures, OfAPartWithoutANameBelongToTheWhole) {
  const Steps of{.steps = 1, .link = Link{.bytes = 8}, .reason = "none"};
  EXPECT_EQ(figures_json(of), nlohmann::json::parse(R"({"step_ns": 0, "second_ns": 0, "reason": "none",
      "bytes": 8, "depth": 0, "joules": null})"));
  std::vector<DeclaredFigure> list;
  list_figures<Steps>("run.", list);
  std::vector<std::string> paths;
  for (const DeclaredFigure& each : list) paths.push_back(each.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"run.step_ns", "run.second_ns", "run.bytes", "run.depth",
                                             "run.joules", "run.reason"}));
}

}  // namespace
}  // namespace tierd
