#include "core/watch/timeline/chrome.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/watch/timeline/slices.h"

namespace tierd {
namespace {

using nlohmann::json;

class Chrome : public testing::Test {
 protected:
  Chrome() {
    for (const char* name : {"layers.0.ffn", "odd \"name\"\n\xff"}) {
      Site& site = sites_.all.emplace_back();
      site.name = name;
      site.layer_group = 3;
    }
    names_.facts = {{"model", "small \"one\""}};
    names_.sites = &sites_;
    names_.agents = {"dram", "flash"};
    names_.start_ns = 1'000;
  }
  json written(const Timeline& timeline) const {
    char* text = nullptr;
    size_t size = 0;
    std::FILE* const file = open_memstream(&text, &size);
    EXPECT_TRUE(write_chrome_trace(timeline, names_, file, "memory").ok());
    std::fclose(file);
    json object = json::parse(text, text + size);
    std::free(text);
    return object;
  }
  static std::vector<json> of_phase(const json& object, const char* phase) {
    std::vector<json> events;
    for (const json& event : object["traceEvents"]) {
      if (event["ph"] == phase) events.push_back(event);
    }
    return events;
  }
  // Returns the row names by number.
  static std::map<int, std::string> rows(const json& object) {
    std::map<int, std::string> rows;
    for (const json& event : of_phase(object, "M")) {
      if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
    }
    return rows;
  }

  SiteTable sites_;
  TimelineNames names_;
};

TEST_F(Chrome, OfNothingThereAreEmptyRows) {
  const json object = written(Timeline());
  EXPECT_TRUE(of_phase(object, "X").empty());
  EXPECT_TRUE(of_phase(object, "C").empty());
  EXPECT_EQ(rows(object).size(), 4u);
  EXPECT_EQ(object["otherData"]["model"], "small \"one\"");
  EXPECT_EQ(object["otherData"]["slices forgotten"], 0);
}

TEST_F(Chrome, ASliceHasItsRowItsTimesAndItsArguments) {
  Timeline timeline;
  Slice read = read_slice(Priority::prefetch, 3'500, 5'750, 8192);
  read.queued_ns = 3'000;
  read.raised = true;
  timeline.add(read);
  Slice compute = compute_slice(4'000, 4'001, Op::run);
  compute.site = 1;
  compute.flags = kRunBefore | kRunAfter;
  timeline.add(compute);
  const json object = written(timeline);
  const auto slices = of_phase(object, "X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["name"], "layers.0.ffn");
  EXPECT_EQ(rows(object)[slices[0]["tid"]], "flash preload");
  EXPECT_DOUBLE_EQ(slices[0]["ts"].get<double>(), 2.5);
  EXPECT_DOUBLE_EQ(slices[0]["dur"].get<double>(), 2.25);
  const json& args = slices[0]["args"];
  EXPECT_EQ(args["bytes"], 8192);
  EXPECT_EQ(args["extents"], 3);
  EXPECT_EQ(args["reads"], 2);
  EXPECT_EQ(args["layer_group"], 3);
  EXPECT_EQ(args["waited_for"], true);
  EXPECT_DOUBLE_EQ(args["queued_us"].get<double>(), 0.5);
  EXPECT_EQ(rows(object)[slices[1]["tid"]], "dram compute");
  EXPECT_EQ(slices[1]["name"], "dense: odd \"name\"\n\ufffd");
  EXPECT_EQ(slices[1]["args"]["dense"], "before, after");
}

// Overlapping slices are in different rows, each row in order. The curve is the reads in flight.
TEST_F(Chrome, RowsDoNotOverlap) {
  Timeline timeline;
  timeline.add(read_slice(Priority::demand, 2'000, 6'000, 10));
  timeline.add(read_slice(Priority::demand, 1'000, 3'000, 5));
  timeline.add(read_slice(Priority::demand, 3'000, 4'000, 1));
  timeline.add(read_slice(Priority::prefetch, 3'000, 3'000, 7));
  const json object = written(timeline);
  std::map<std::string, int> slices;
  for (const json& slice : of_phase(object, "X")) ++slices[rows(object)[slice["tid"]]];
  EXPECT_EQ(slices["flash demand"], 2);
  EXPECT_EQ(slices["flash demand (2)"], 1);
  EXPECT_EQ(slices["flash preload"], 1);
  const std::vector<std::pair<double, int>> expected = {{0, 5}, {1, 15}, {2, 11}, {3, 10}, {5, 0}};
  const auto curve = of_phase(object, "C");
  ASSERT_EQ(curve.size(), expected.size());
  for (size_t i = 0; i < curve.size(); ++i) {
    EXPECT_DOUBLE_EQ(curve[i]["ts"].get<double>(), expected[i].first);
    EXPECT_EQ(curve[i]["args"]["demand"], expected[i].second);
    EXPECT_EQ(curve[i]["args"]["preload"], 0);
  }
}

TEST_F(Chrome, AFullDiskIsTold) {
  std::FILE* const file = std::fopen("/dev/full", "wb");
  ASSERT_NE(file, nullptr);
  const Status written = write_chrome_trace(Timeline(), names_, file, "the file");
  std::fclose(file);
  EXPECT_EQ(written.code(), Code::io_error);
  EXPECT_EQ(written.error().line(), "the file: cannot be written: No space left on device");
}

}  // namespace
}  // namespace tierd
