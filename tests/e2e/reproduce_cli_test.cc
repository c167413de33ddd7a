// Runs tier-reproduce and models without weights as a user does.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kShape = TIERD_SOURCE_DIR "/configs/models/opt-125m.toml";

class ReproduceCli : public ProgramTest {
 protected:
  // Reading 0.25 GB at 6.1 GB/s takes 41 ms; the first read waits 2 ms more.
  std::string paper(const std::string& published, const std::string& figure = "flash>dram_ms") const {
    return folder().write("paper.toml", R"(paper = "A paper"
[runs.naive]
configuration = "ablation/flash-1"
model = "opt-125m"
machine = "m1-max"
set = ["tiers.dram.capacity=60 MB"]
[[rows]]
what = "reading"
source = "table 1"
paper = )" + published + R"(
unit = "ms"
kind = "P"
tolerance = 5
run = "naive"
figure = ")" + figure + "\"\n");
  }
};

TEST_F(ReproduceCli, SaysWhatComesOut) {
  const std::string report = folder().path() + "/report.json", script = folder().path() + "/picture.gp";
  const Ended ended =
      run_program(TIERD_BIN_REPRODUCE, {paper("43"), "--json", report, "--plot", script, "-s", "3"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("## A paper"), HasSubstr("| reading | table 1 | 43 ms | 43."),
                    HasSubstr("passes"), HasSubstr("\n1 prediction, 1 pass.\n"), EndsWith("Seed 3.\n")));
  const json read = json::parse(file_text(report), nullptr, false);
  EXPECT_EQ(read["passed"], 1);
  EXPECT_EQ(read["counts"]["predictions"]["passed"], 1);
  EXPECT_EQ(read["papers"][0]["rows"][0]["kind"], "P");
  EXPECT_GT(read["papers"][0]["runs"]["naive"]["flash>dram_gb"], 0.2);
  EXPECT_THAT(file_text(script), AllOf(HasSubstr("set terminal svg"), HasSubstr("\"reading\"")));
  EXPECT_THAT(ended.err, HasSubstr("tier-reproduce: 1 run in "));
  const std::string once_more = folder().path() + "/again.json";
  const Ended again = run_program(TIERD_BIN_REPRODUCE, {paper("43"), "-s", "3", "-q", "--json", once_more});
  EXPECT_EQ(again.out, ended.out) << "the same seed, the same bytes";
  EXPECT_EQ(file_text(once_more), file_text(report));
  EXPECT_THAT(again.err, IsEmpty());
}

TEST_F(ReproduceCli, PlaysOnlyTheRowsThatAreWanted) {
  const Ended some = run_program(TIERD_BIN_REPRODUCE, {"endor", paper("43"), "--row", "reading", "-q"});
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_THAT(some.out, AllOf(HasSubstr("| reading |"), Not(HasSubstr("Endor"))));
  const Ended none = run_program(TIERD_BIN_REPRODUCE, {paper("43"), "--row", "walking"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--row: no row has 'walking' in its first column"));
}

TEST_F(ReproduceCli, EndsWithOneWhereARowMisses) {
  const Ended ended = run_program(TIERD_BIN_REPRODUCE, {paper("80"), "-q"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out, HasSubstr("**misses**"));
  EXPECT_THAT(ended.err, IsEmpty());
}

TEST_F(ReproduceCli, RefusesInOneLine) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const Ended ended = run_program(TIERD_BIN_REPRODUCE, arguments);
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.out, IsEmpty());
    return ended.err;
  };
  EXPECT_THAT(refused({"atlantis"}), AllOf(StartsWith("tier-reproduce: "), HasSubstr("llm-in-a-flash")));
  EXPECT_THAT(refused({paper("43", "speed")}), HasSubstr("run naive has no figure 'speed'; there are "));
  EXPECT_THAT(refused({paper("43"), "--plot", folder().path() + "/x.jpg"}), HasSubstr(".svg"));
  EXPECT_THAT(refused({paper("\"forty\"")}), HasSubstr("paper.toml:10: 'rows.paper' is 'forty'; a number"));
}

TEST_F(ReproduceCli, AShapeIsPlayedAndNotComputed) {
  const Ended refused = run_program(TIERD_BIN_TIERD, {"-m", kShape, "-p", "Once", "-n", "2"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("opt-125m.toml"));
  const std::vector<std::string> virtual_time = {"--set", "run.clock=model",   "--set", "run.execute=trace",
                                                 "--set", "run.machine=m1-max"};
  std::vector<std::string> arguments = {"--config", TIERD_SOURCE_DIR "/configs/llm-in-a-flash.toml",
                                        "-m",       kShape,
                                        "-p",       "0",
                                        "-n",       "8",
                                        "--set",    "predictor.name=dense",
                                        "-o",       "json"};
  arguments.insert(arguments.end(), virtual_time.begin(), virtual_time.end());
  const Ended played = run_program(TIERD_BIN_BENCH, arguments);
  EXPECT_EQ(played.status, 0) << played.err;
  const json report = json::parse(played.out, nullptr, false);
  EXPECT_GT(report["tests"][0]["tokens_per_second"]["median"], 0);
  arguments.insert(arguments.end(), {"--set", "run.execute=real"});
  EXPECT_EQ(run_program(TIERD_BIN_BENCH, arguments).status, 2);
}

}  // namespace
}  // namespace tierd
