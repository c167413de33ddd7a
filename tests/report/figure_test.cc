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

}  // namespace
}  // namespace tierd
