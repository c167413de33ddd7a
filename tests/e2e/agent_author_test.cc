// Builds an agent in a folder outside this tree against the built tree, as tiers/README.md describes.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AgentAuthor : public ProgramTest {
 protected:
  // Writes the null agent under another name, as tiers/README.md describes.
  void SetUp() override {
    ProgramTest::SetUp();
    std::string entry = file_text(TIERD_SOURCE_DIR "/tiers/null/null_entry.cc");
    const size_t name = entry.find("TIERD_AGENT(\"null\"");
    ASSERT_NE(name, std::string::npos);
    std::ofstream(at("mine.cc")) << entry.replace(name, 18, "TIERD_AGENT(\"mine\"");
  }
  std::string at(const std::string& name) const { return folder().path() + "/" + name; }
  Ended build(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"-std=c++20",
                                          "-O2",
                                          "-fPIC",
                                          "-shared",
                                          "-fvisibility=hidden",
                                          "-I" TIERD_SOURCE_DIR,
                                          "-I" TIERD_SOURCE_DIR "/core/include",
                                          "-I" TIERD_BUILD_DIR "/include",
                                          "-Wl,--version-script=" TIERD_SOURCE_DIR "/cmake/agent.map"};
    if (std::string_view(TIERD_SANITIZERS) != "") arguments.push_back("-fsanitize=" TIERD_SANITIZERS);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::vector<std::string> files = {"-o",
                                            at("agent-mine.so"),
                                            at("mine.cc"),
                                            TIERD_SOURCE_DIR "/tiers/null/null_agent.cc",
                                            TIERD_BUILD_DIR "/lib/libtierd_base.a",
                                            "-lfmt"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    return run_program(TIERD_CXX, arguments);
  }
#ifdef NDEBUG
  static constexpr const char* kAsTheBuild = "-DNDEBUG";
  static constexpr const char* kOtherwise = "-UNDEBUG";
#else
  static constexpr const char* kAsTheBuild = "-UNDEBUG";
  static constexpr const char* kOtherwise = "-DNDEBUG";
#endif
};

TEST_F(AgentAuthor, BuildsOneThatIsFoundAndKeepsTheRules) {
  const Ended built = build({kAsTheBuild});
  ASSERT_EQ(built.status, 0) << built.err;
  const Ended tried = run_program(TIERD_BIN_CONFORM, {at("agent-mine.so")});
  EXPECT_EQ(tried.status, 0) << tried.out << tried.err;
  EXPECT_THAT(tried.out, HasSubstr("agent 'mine' keeps all "));
  const Ended manual = run_tierd({"--plugin-path", folder().path(), "--plugin", "mine"});
  EXPECT_EQ(manual.status, 0) << manual.err;
  EXPECT_THAT(manual.out, testing::StartsWith("agent mine: completes everything, having done nothing\n"));
  const Ended list = run_tierd({"--plugin-path", folder().path(), "--plugins"});
  EXPECT_THAT(list.out, HasSubstr("agent      mine             " + at("agent-mine.so") + "\n"));
  // The agent serves no operation that a tier needs.
  const Ended run =
      run_tierd({"--plugin-path", folder().path(), "-m", kDemo, "--set", "tiers.flash.kind=mine"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(
      run.err.substr(run.err.find("tiers: ")),
      "tiers: no tier's agent serves 'read' ('mine' of tiers.flash, 'dram' of tiers.dram); one must, as "
      "the agent 'flash' does (tiers.NAME.kind)\n");
}

TEST_F(AgentAuthor, OneOfOtherFlagsIsRefusedWithOneLine) {
  const Ended built = build({kOtherwise});
  ASSERT_EQ(built.status, 0) << built.err;
  const Ended tried = run_program(TIERD_BIN_CONFORM, {at("agent-mine.so")});
  EXPECT_EQ(tried.status, 2);
  EXPECT_THAT(tried.err, AllOf(testing::StartsWith(at("agent-mine.so") + ": was built for [tierd "),
                               HasSubstr("]: build it anew against this tierd\n")));
  EXPECT_EQ(std::count(tried.err.begin(), tried.err.end(), '\n'), 1);
}

TEST_F(AgentAuthor, TriesOursAndWhatIsNotThere) {
  const Ended ours = run_program(TIERD_BIN_CONFORM, {"--verbose", TIERD_PLUGIN_DIR "/agent-flash.so"});
  EXPECT_EQ(ours.status, 0) << ours.out << ours.err;
  EXPECT_THAT(ours.out, AllOf(HasSubstr("ok      no call waits"), HasSubstr("agent 'flash' keeps all ")));
  const Ended none = run_program(TIERD_BIN_CONFORM, {at("agent-nothing.so")});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.err, at("agent-nothing.so") + ": there is no such file\n");
}

}  // namespace
}  // namespace tierd
