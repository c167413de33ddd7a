// Runs tierd --timeline as a user does. The timeline and the report of one run agree.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TimelineCli : public ProgramTest {
 protected:
  static std::vector<std::string> run_of(const std::string& timeline, std::vector<std::string> more = {},
                                         const char* tokens = "24") {
    std::vector<std::string> arguments = {"--config", config_file("ablation/activeflow-n4"),
                                          "-m",       kDemo,
                                          "-p",       "First Citizen:",
                                          "-n",       tokens,
                                          "--temp",   "0",
                                          "-t",       "1",
                                          "--fit",    "--timeline",
                                          timeline};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::string file() const { return folder().path() + "/run.json"; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder().path()))
      if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    return names;
  }
};

struct Interval {
  double begin, end;
};
// Returns the length of the union of `intervals` inside `within`.
double united(std::vector<Interval> intervals, const std::vector<Interval>& within) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  double sum = 0;
  for (const Interval& bounds : within) {
    double reached = bounds.begin;
    for (const Interval& interval : intervals) {
      const double begin = std::max(reached, interval.begin), end = std::min(bounds.end, interval.end);
      if (end <= begin) continue;
      sum += end - begin;
      reached = end;
    }
  }
  return sum;
}

TEST_F(TimelineCli, SaysWhatTheReportSays) {
  const Ended run = run_tierd(run_of(file(), {"--json", "-q"}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(files(), std::vector<std::string>{"run.json"});
  const json report = json::parse(run.out)["report"];
  const json timeline = json::parse(file_text(file()), nullptr, false);
  ASSERT_FALSE(timeline.is_discarded());

  std::map<int, std::string> rows;
  for (const json& event : timeline["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
  }
  std::map<int, double> ends;
  std::map<std::string, std::vector<Interval>> intervals;  // by row, without the number of its lane
  std::vector<Interval> decode;
  double bytes = 0, reads = 0, curve_ts = 0;
  std::set<int> groups;
  for (const json& event : timeline["traceEvents"]) {
    if (event["ph"] == "C") {
      EXPECT_GE(event["ts"].get<double>(), curve_ts);
      curve_ts = event["ts"];
      EXPECT_GE(event["args"]["demand"].get<int64_t>(), 0);
      EXPECT_GE(event["args"]["preload"].get<int64_t>(), 0);
    }
    if (event["ph"] != "X") continue;
    const int tid = event["tid"];
    const double begin = event["ts"], length = event["dur"];
    EXPECT_GE(length, 0) << event;
    EXPECT_GE(begin + 1e-3, ends[tid]) << rows[tid] << event;  // slices of a row do not overlap
    ends[tid] = begin + length;
    const std::string row = rows[tid].substr(0, rows[tid].find(" ("));
    intervals[row].push_back({begin, begin + length});
    if (row == "steps" && event["name"].get<std::string>().starts_with("step"))
      decode.push_back({begin, begin + length});
    if (!event["args"].contains("reads")) continue;
    bytes += event["args"]["bytes"].get<double>();
    reads += event["args"]["reads"].get<double>();
    groups.insert(event["args"]["layer_group"].get<int>());
  }
  EXPECT_EQ(timeline["otherData"]["slices forgotten"], 0);
  EXPECT_EQ(decode.size(), 23u);
  EXPECT_EQ(report["decode"]["steps"], 23);
  EXPECT_EQ(report["pipeline"]["steps"], 23);
  EXPECT_GT(groups.size(), 1u);
  EXPECT_FALSE(intervals["flash preload"].empty());
  EXPECT_FALSE(intervals["flash demand"].empty());

  // The slices have all reads, each once.
  EXPECT_EQ(bytes, report["flash"]["bytes"].get<double>());
  EXPECT_EQ(reads, report["flash"]["reads"].get<double>());

  // Each figure of the report follows from the slices that a viewer shows.
  const auto ms_a_step = [&](const char* row) { return united(intervals[row], decode) / 1e3 / 23; };
  const json& pipeline = report["pipeline"];
  const auto near = [&](const char* key, double value) {
    EXPECT_NEAR(pipeline[key].get<double>(), value, 1e-3 + value * 1e-3) << key;
  };
  near("compute_ms", ms_a_step("dram compute"));
  near("predictor_ms", ms_a_step("kernel: predictor"));
  near("demand_ms", ms_a_step("flash demand"));
  near("preload_ms", ms_a_step("flash preload"));
  near("wait_ms", ms_a_step("kernel: waits"));
  std::vector<Interval> flash = intervals["flash demand"];
  flash.insert(flash.end(), intervals["flash preload"].begin(), intervals["flash preload"].end());
  near("flash_ms", united(flash, decode) / 1e3 / 23);

  // The same figures as counted without a timeline.
  const json& counted = report["decode"];
  near("compute_ms", counted["compute_ms"]);
  near("wait_ms", counted["stall_ms"]);
  EXPECT_GE(pipeline["predictor_ms"].get<double>(), 0.9 * counted["predictor_ms"].get<double>());
  EXPECT_LE(pipeline["step_ms"].get<double>(), counted["step_ms"].get<double>());
  EXPECT_GE(pipeline["wait_ms"].get<double>(), pipeline["wait_on_demand_ms"].get<double>());

  // Relations that always hold.
  const auto number = [&](const char* key) { return pipeline[key].get<double>(); };
  EXPECT_LE(number("hidden_ms"), number("hideable_ms"));
  EXPECT_LE(number("hideable_ms"), std::min(number("preload_ms"), number("busy_ms")) + 1e-9);
  EXPECT_LE(number("hidden_ms"), number("overlap_ms"));
  EXPECT_LE(number("overlap_ms"), std::min(number("flash_ms"), number("busy_ms")));
  EXPECT_NEAR(number("hidden_share"), number("hidden_ms") / number("preload_ms"), 1e-6);
}

TEST_F(TimelineCli, TheReportHasALineOfIt) {
  const Ended run = run_tierd(run_of(file()));
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("  pipeline     flash busy "));
  EXPECT_THAT(run.err, HasSubstr(" % of preloading hidden, "));
  const Ended without = run_tierd({"--config", config_file("ablation/activeflow-n4"), "-m", kDemo, "-p", "x",
                                   "-n", "2", "-t", "1", "--fit"});
  EXPECT_THAT(without.err, testing::Not(HasSubstr("pipeline")));
}

// Copies over the link of a GPU that the host emulates.
TEST_F(TimelineCli, CopiesToAGpuAreInIt) {
  const Ended run = run_tierd({"--config",
                               config_file("endor"),
                               "-m",
                               kDemo,
                               "--set",
                               "model.compression=none",
                               "-p",
                               "First",
                               "-n",
                               "6",
                               "-t",
                               "1",
                               "--fit",
                               "--set",
                               "tiers.gpu.backend=host",
                               "--set",
                               "tiers.gpu.capacity=40%",
                               "--timeline",
                               file(),
                               "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json report = json::parse(run.out)["report"];
  const auto number = [&](const char* key) { return report["pipeline"][key].get<double>(); };
  EXPECT_GT(number("copied_bytes"), 0);
  EXPECT_NEAR(number("copied_bytes"), report["links"][1]["decode_bytes"].get<double>(), 1);
  EXPECT_GT(number("copy_ms"), 0);
  EXPECT_LE(number("copy_overlap_ms"), std::min(number("copy_ms"), number("busy_ms")));
}

// A file that cannot be written is refused before the run and left unchanged.
TEST_F(TimelineCli, WhatCannotBeIsSaidInOneLine) {
  const Ended nowhere = run_tierd(run_of("/no/such/place"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("/no/such/place.unfinished: cannot be written: No such file"));
  const Ended both = run_tierd(run_of(file(), {"--trace", file() + ".trace", "-q"}));
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("run.timeline: run.trace is set as well, expected one of them; convert a "
                                  "trace into a timeline with tier trace export"));
  std::filesystem::create_directory(file());
  const Ended taken = run_tierd(run_of(file(), {"-q"}));
  EXPECT_EQ(taken.status, 1);
  EXPECT_THAT(taken.err, HasSubstr("run.json: cannot be written: Is a directory"));
  EXPECT_EQ(files(), std::vector<std::string>{});
}

// An interrupted run has a timeline up to the interruption; a killed run leaves none.
TEST_F(TimelineCli, AnInterruptedRunHasATimeline) {
  StartedProgram program(TIERD_BIN_TIERD, run_of(file(), {"-c", "256", "--ignore-eos"}, "250"));
  while (program.out().size() < 20 && program.err().find("tierd:") == std::string::npos) usleep(1000);
  EXPECT_TRUE(files() == std::vector<std::string>{"run.json.unfinished"});
  program.kill(SIGINT);
  EXPECT_EQ(program.wait().status, 130);
  EXPECT_EQ(files(), std::vector<std::string>{"run.json"});
  EXPECT_FALSE(json::parse(file_text(file()), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace tierd
