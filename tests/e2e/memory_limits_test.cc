// Runs under memory limits use the memory that the limits leave, or print one line that it is too little. No
// run is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/program.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class MemoryLimitsOfPrograms : public ProgramTest {
 protected:
  // Generates with the demo model. `before` is shell code that sets the limit.
  static Ended limited(const std::string& before, const std::string& more = "") {
    return run_program("/bin/bash",
                       {"-c", before + " && exec " TIERD_BIN_TIERD " --config " + config_file("hybrid") +
                                  " -m " + kDemo + " -p 'To be' -n 8 -t 1 --temp 0 " + more});
  }
};

TEST_F(MemoryLimitsOfPrograms, UlimitLeavesWhatItLeaves) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take terabytes of addresses";
  const Ended free = limited("true");
  ASSERT_EQ(free.status, 0) << free.err;
  EXPECT_THAT(free.err, HasSubstr(" (auto: "));
  for (const char* flag : {"-v", "-d"}) {
    uint32_t refused = 0, written = 0;
    for (const uint32_t mib : {30u, 60u, 70u, 80u, 100u, 400u, 450u, 500u, 2000u}) {
      const std::string limit = std::string("ulimit ") + flag + " " + std::to_string(mib * 1024);
      const Ended ended = limited(limit);
      SCOPED_TRACE(limit + ": " + ended.err);
      if (ended.status == 0) {
        EXPECT_EQ(ended.out, free.out);
        ++written;
      } else {
        EXPECT_EQ(ended.status, 2);
        ++refused;
      }
    }
    EXPECT_GT(written, 0u);
    EXPECT_GT(refused, 0u);
  }
}

// A program exits by itself under any limit into which it can be mapped itself. Status 127 comes from the
// loader, before main().
TEST_F(MemoryLimitsOfPrograms, NoneAborts) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take terabytes of addresses";
  const std::string out = folder().path() + "/converted";
  const std::vector<std::string> programs = {
      TIERD_BIN_TIERD " --config " + config_file("hybrid") + " -m " + kDemo + " -p 'To be' -n 2 -t 1",
      TIERD_BIN_TIERD " --config " + config_file("hybrid") + " -m " + kDemo + " --check",
      TIERD_BIN_CONVERT " -q " + kDemo + " " + out, TIERD_BIN_TIERD " --version"};
  std::vector<std::string> limits;
  for (int files = 3; files <= 12; ++files) limits.push_back("ulimit -n " + std::to_string(files));
  for (int mib = 12; mib <= 48; mib += 4) limits.push_back("ulimit -v " + std::to_string(mib << 10));
  for (const std::string& limit : limits) {
    for (const std::string& program : programs) {
      std::filesystem::remove_all(out);
      const Ended ended = run_program("/bin/bash", {"-c", limit + " && exec " + program});
      EXPECT_TRUE(ended.status <= 2 || ended.status == 127) << limit << ": " << program << "\n" << ended.err;
    }
  }
}

TEST_F(MemoryLimitsOfPrograms, ACapacityBeyondThemIsRefusedUnlessForced) {
  const Ended refused = limited("true", "--set tiers.dram.capacity=900TB");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("tiers.dram.capacity: 900 TB (900000000000000 bytes) is more than the "));
  const Ended forced = limited("true", "--set tiers.dram.capacity=900TB --force");
  EXPECT_EQ(forced.status, 0) << forced.err;
}

// Returns the file of the configuration's predictor, or "".
std::string tables_of(const std::string& config) {
  return config == "llm-in-a-flash" ? kDemo + "/predictor-r32.safetensors" : "";
}

// Tries cgroups from less memory than the program itself needs to plenty.
TEST_F(MemoryLimitsOfPrograms, ACgroupNeverKills) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory that no plan knows of";
  const std::string in_group = TIERD_SOURCE_DIR "/tests/bench/cgroup_run";
  if (::geteuid() != 0 || run_program(in_group, {"max", "/bin/true"}).status != 0)
    GTEST_SKIP() << "no group can be made here";
  uint32_t written = 0;
  for (const char* config : {"hybrid", "activeflow", "llm-in-a-flash"}) {
    for (const char* limit : {"8M", "12M", "16M", "24M", "48M", "256M"}) {
      const Ended ended = run_program(
          in_group, {limit, TIERD_BIN_TIERD, "--config", config_file(config), "-m", kDemo, "-p", "To be",
                     "-n", "4", "-t", "1", "-q", "--set", "predictor.tensors=" + tables_of(config)});
      SCOPED_TRACE(std::string(config) + " in " + limit + ": " + ended.err);
      EXPECT_TRUE(ended.status == 0 || ended.status == 2) << ended.status;
      if (ended.status == 2) {
        EXPECT_THAT(ended.err, HasSubstr(" needs at least "));
      }
      written += ended.status == 0 ? 1 : 0;
    }
  }
  EXPECT_GE(written, 9u);
}

// --check needs no more memory than the run: it measures rates in a part of the memory that is left.
TEST_F(MemoryLimitsOfPrograms, ACheckIsNotKilledWhereARunIsNot) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory that no plan knows of";
  const std::string in_group = TIERD_SOURCE_DIR "/tests/bench/cgroup_run";
  if (::geteuid() != 0 || run_program(in_group, {"max", "/bin/true"}).status != 0)
    GTEST_SKIP() << "no group can be made here";
  for (const char* limit : {"8M", "12M", "14M", "16M", "18M", "20M", "24M", "27M", "32M"}) {
    const Ended ended = run_program(
        in_group, {limit, TIERD_BIN_TIERD, "--config", config_file("hybrid"), "-m", kDemo, "--check"});
    SCOPED_TRACE(std::string(limit) + ": " + ended.err);
    EXPECT_TRUE(ended.status == 0 || ended.status == 2) << ended.status;
    if (ended.status == 2) {
      EXPECT_THAT(ended.err, HasSubstr(" leaves "));
    }
    if (limit == std::string("18M")) {
      EXPECT_EQ(ended.status, 0);
    }
  }
}

}  // namespace
}  // namespace tierd
