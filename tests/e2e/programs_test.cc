// Checks options and behaviour that all programs share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Programs : public ProgramTest {};

TEST_F(Programs, ExplainThemselves) {
  const std::filesystem::path folder = std::filesystem::path(TIERD_BIN_TIERD).parent_path();
  for (const char* name :
       {"tierd", "tier", "tier-activity", "tier-bench", "tier-calibrate", "tier-compare", "tier-conform",
        "tier-convert", "tier-partition", "tier-plan", "tier-profile", "tier-prune", "tier-reproduce",
        "tier-store", "tier-synth", "tier-tokenize", "tier-trace", "tier-train"}) {
    const std::string program = folder / name;
    const Ended help = run_program(program, {"--help"});
    EXPECT_EQ(help.status, 0) << program;
    EXPECT_THAT(help.out, HasSubstr("Usage")) << program;
    EXPECT_THAT(help.out, HasSubstr("Exit")) << program;
    EXPECT_THAT(help.err, IsEmpty()) << program;
    const Ended version = run_program(program, {"--version"});
    EXPECT_EQ(version.status, 0) << program;
    EXPECT_THAT(version.out, StartsWith(std::string(name) + " 0."));
    const Ended unknown = run_program(program, {"--no-such-flag"});
    EXPECT_EQ(unknown.status, 2) << program;
    EXPECT_THAT(unknown.out, IsEmpty()) << program;
    EXPECT_THAT(unknown.err, StartsWith(std::string(name) + ": "));
    EXPECT_THAT(unknown.err, EndsWith(" (see " + std::string(name) + " --help)\n"));
  }
}

}  // namespace
}  // namespace tierd
