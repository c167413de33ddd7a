#include "tools/lab/train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tierd {
namespace {

// Returns the counts of 100 pairs: 10 are active, 20 predicted, and `missed` active but not predicted.
Quality quality(double threshold, uint64_t missed) {
  Quality quality{.threshold = threshold};
  quality.pairs = 100;
  quality.active = 10;
  quality.predicted = 20;
  quality.missed = missed;
  quality.spurious = 10 + missed;
  quality.mass = 8;
  quality.missed_mass = static_cast<double>(missed);
  return quality;
}

const std::vector<LayerReport>& two_layers() {
  static const std::vector<LayerReport> layers = {{0, 16, {quality(0.3, 0), quality(0.5, 1)}},
                                                  {2, 8, {quality(0.3, 2), quality(0.5, 4)}}};
  return layers;
}

TEST(TrainReport, ABlockForEachThresholdARowForEachLayer) {
  EXPECT_EQ(to_table(two_layers()),
            "threshold 0.3\n"
            "layer   rank       active %    predicted %   false neg. %   false pos. %  missed mass %\n"
            "0         16          10.00          20.00           0.00          11.11           0.00\n"
            "2          8          10.00          20.00          20.00          13.33          25.00\n"
            "mean                  10.00          20.00          10.00          12.22          12.50\n"
            "threshold 0.5\n"
            "layer   rank       active %    predicted %   false neg. %   false pos. %  missed mass %\n"
            "0         16          10.00          20.00          10.00          12.22          12.50\n"
            "2          8          10.00          20.00          40.00          15.56          50.00\n"
            "mean                  10.00          20.00          25.00          13.89          31.25\n");
}

TEST(TrainReport, JsonHasTheCountsToo) {
  const nlohmann::json object = to_json(two_layers());
  ASSERT_EQ(object["layers"].size(), 2U);
  const nlohmann::json& row = object["layers"][1]["thresholds"][1];
  EXPECT_EQ(object["layers"][1]["layer"], 2);
  EXPECT_EQ(object["layers"][1]["rank"], 8);
  EXPECT_EQ(row["threshold"], 0.5);
  EXPECT_EQ(row["active"], 10);
  EXPECT_EQ(row["false_negatives"], 4);
  EXPECT_EQ(row["false_negatives_percent"], 40.0);
  EXPECT_EQ(row["missed_mass_percent"], 50.0);
  EXPECT_EQ(object["mean"][1]["false_negatives_percent"], 25.0);
}

}  // namespace
}  // namespace tierd
