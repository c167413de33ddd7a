// Runs tools that plan no memory in cgroups from less than the program needs to plenty. Each tool exits by
// itself, with one line where the memory is too little.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/program.h"
#include "tests/formats/safetensors_builder.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class ToolMemory : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    if (kSanitized) GTEST_SKIP() << "sanitizers take memory that no plan knows of";
    if (::geteuid() != 0 || run_program(kInGroup, {"max", "/bin/true"}).status != 0)
      GTEST_SKIP() << "no group can be made here";
  }
  // Expects an error line in every cgroup but the last, in which the command succeeds.
  void expect_line_or_work(const std::vector<std::string>& command, const std::vector<std::string>& limits) {
    for (const std::string& limit : limits) {
      std::vector<std::string> arguments = {limit};
      arguments.insert(arguments.end(), command.begin(), command.end());
      std::filesystem::remove_all(out());
      const Ended ended = run_program(kInGroup, arguments);
      SCOPED_TRACE(command.front() + " in " + limit + ": " + ended.err);
      EXPECT_TRUE(ended.status == 0 || ended.status == 2) << ended.status;
      if (ended.status != 0) {
        EXPECT_THAT(ended.err, HasSubstr(" leaves "));
        EXPECT_FALSE(std::filesystem::exists(out()));
      }
      if (limit == limits.back()) {
        EXPECT_EQ(ended.status, 0);
      }
    }
  }
  std::string out() const { return folder().path() + "/out"; }

  const std::string kInGroup = TIERD_SOURCE_DIR "/tests/bench/cgroup_run";
};

TEST_F(ToolMemory, OfConformance) {
  expect_line_or_work({TIERD_BIN_CONFORM, TIERD_PLUGIN_DIR "/agent-flash.so", "--worlds", "2"},
                      {"8M", "16M", "32M", "64M"});
}

TEST_F(ToolMemory, OfADrawnTrace) {
  expect_line_or_work({TIERD_BIN_ACTIVITY, "draw", "--profile", "llm-in-a-flash", "--shape", "opt-66b",
                       "--tokens", "2", "-o", out()},
                      {"8M", "16M", "32M", "64M"});
}

// Two runs, each planned as if it were the only one.
TEST_F(ToolMemory, OfAComparison) {
  const std::string text = folder().write("text", "To be, or not to be, that is the question.\n");
  expect_line_or_work({TIERD_BIN_COMPARE, "-m", kDemo, "--config", config_file("hybrid"), "-t", "1", text},
                      {"8M", "16M", "20M", "24M", "28M", "96M"});
}

TEST_F(ToolMemory, OfCalibration) {
  for (const char* limit : {"8M", "64M", "256M"}) {
    const Ended ended = run_program(kInGroup, {limit, TIERD_BIN_CALIBRATE, "--quick", "-o", out()});
    EXPECT_EQ(ended.status, 1) << limit << ": " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("tier-calibrate: measuring: about 277 MB of memory are needed, "));
  }
}

TEST_F(ToolMemory, OfTraining) {
  SafetensorsBuilder activations;  // of the embedded model
  for (int layer = 0; layer < 6; ++layer) {
    activations.add_f32("layers." + std::to_string(layer) + ".ffn.x", {40, 256}, 1);
    activations.add_f32("layers." + std::to_string(layer) + ".ffn.contribution", {40, 1024}, 1);
  }
  const std::string recorded = folder().write("activations", activations.bytes());
  expect_line_or_work({TIERD_BIN_TRAIN, "predictor", kDemo, recorded, "-o", out(), "-t", "1", "-q"},
                      {"8M", "16M", "24M", "32M", "64M"});
}

}  // namespace
}  // namespace tierd
