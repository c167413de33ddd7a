// Runs tier-bench and tier-sweep as a user does and checks their output, not the times.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Bench : public ProgramTest {
 protected:
  static Ended measure(const std::string& program, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"-q", "-m", kDemo, "-n", "4", "-r", "1", "-t", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(program, arguments);
  }
  static Ended bench(std::vector<std::string> more) { return measure(TIERD_BIN_BENCH, std::move(more)); }
  static Ended sweep(std::vector<std::string> more) { return measure(TIERD_BIN_SWEEP, std::move(more)); }
  static std::string refused(std::vector<std::string> more) {
    const Ended run = sweep(std::move(more));
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    return run.err;
  }
  std::string path(const char* name) const { return folder().path() + "/" + name; }
};

TEST_F(Bench, ASweepOfATextIsATableAndAScript) {
  const std::string text = folder().write("sea.txt", "The sea was calm and the");
  const Ended run = sweep({"-f", text, "--sweep", "tiers.dram.capacity=1000,all", "--plot", path("a.gp")});
  EXPECT_EQ(run.status, 1) << run.err;  // a thousand bytes hold no model
  EXPECT_THAT(run.out, StartsWith("| tiers.dram.capacity | test | DRAM peak |"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("\n| 1000 | tiers.dram.capacity"), HasSubstr("\n| all | tg4 |")));
  EXPECT_THAT(run.out, HasSubstr("- text " + text));
  EXPECT_THAT(file_text(path("a.gp")), AllOf(HasSubstr("set label 'all'"), HasSubstr("unset multiplot\n")));
}

TEST_F(Bench, WarningsLeaveTheReportReadable) {
  const Ended run = bench({"-p", "0", "-o", "json", "--set", "balancer.name=hot-cold"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the last unit is the hot one"));
  EXPECT_TRUE(json::accept(run.out)) << run.out;
}

TEST_F(Bench, ASweepIsDrawn) {
  if (std::system("command -v gnuplot >/dev/null") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const Ended run =
      sweep({"-p", "0", "-o", "json", "--sweep", "cache.name=pinned,static", "--plot", path("it's.svg")});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  const json report = json::parse(run.out);
  ASSERT_EQ(report["points"].size(), 2u);
  EXPECT_EQ(report["points"][1]["run"]["cache"], "static");
  EXPECT_GT(report["points"][1]["tests"][0]["tokens_per_second"]["median"].get<double>(), 0);
  EXPECT_THAT(file_text(path("it's.svg")),
              AllOf(HasSubstr("<svg"), HasSubstr("static"), HasSubstr("</svg>")));
}

TEST_F(Bench, WhatCannotBeSweptIsRefusedBeforeItIsMeasured) {
  EXPECT_THAT(refused({"--sweep", "cache.nam=lru,lfu"}), HasSubstr("did you mean 'name'?"));
  EXPECT_THAT(refused({"--set", "cache.name=residency-window", "--sweep", "cache.kk=1,2"}),
              HasSubstr("did you mean 'k'?"));
  EXPECT_THAT(refused({"--sweep", "run.seed=1,2", "--plot", path("none/a.svg")}), HasSubstr("none/a.svg"));
  setenv("TIERD_CACHE", "/dev/null/none", 1);
  EXPECT_THAT(refused({"--sweep", "run.seed=1,2"}), HasSubstr("/dev/null/none"));
}

}  // namespace
}  // namespace tierd
