// Builds the agent of docs/writing-an-agent.md in an empty folder with an installed tierd, as that page
// describes.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

#ifdef NDEBUG
constexpr const char* kOtherBuildType = "-DCMAKE_BUILD_TYPE=Debug";
constexpr const char* kOtherFlag = "-UNDEBUG";
#else
constexpr const char* kOtherBuildType = "-DCMAKE_BUILD_TYPE=Release";
constexpr const char* kOtherFlag = "-DNDEBUG";
#endif

// Returns the file that a fenced block of the page shows.
std::string shown(const std::string& name) {
  const std::string page = file_text(TIERD_SOURCE_DIR "/docs/writing-an-agent.md");
  const std::string head = " " + name + "\n";
  const size_t begin = page.find(head) + head.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class AgentAuthor : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    prefix_ = fs::path(testing::TempDir()) / ("tierd-for-agents-" + std::to_string(getpid()));
    const Ended installed =
        run_program(TIERD_CMAKE, {"--install", TIERD_BUILD_DIR, "--prefix", prefix_.string()});
    ASSERT_EQ(installed.status, 0) << installed.err;
  }
  static void TearDownTestSuite() { fs::remove_all(prefix_); }

  static std::string installed(const std::string& file) { return (prefix_ / file).string(); }
  std::string built() const { return folder().path() + "/build"; }
  std::string agent() const { return built() + "/agent-simple.so"; }

  void build(const std::string& source, const std::string& project,
             const std::string& build_type = "") const {
    std::ofstream(folder().path() + "/simple.cc") << source;
    std::ofstream(folder().path() + "/CMakeLists.txt") << project;
    std::vector<std::string> arguments = {"-G",
                                          "Ninja",
                                          "-S",
                                          folder().path(),
                                          "-B",
                                          built(),
                                          "-DCMAKE_CXX_COMPILER=" TIERD_CXX,
                                          "-DCMAKE_PREFIX_PATH=" + prefix_.string()};
    if (!build_type.empty()) arguments.push_back(build_type);
    const Ended configured = run_program(TIERD_CMAKE, arguments);
    ASSERT_EQ(configured.status, 0) << configured.out << configured.err;
    const Ended made = run_program(TIERD_CMAKE, {"--build", built()});
    ASSERT_EQ(made.status, 0) << made.out << made.err;
  }
  void expect_it_keeps_the_rules() const {
    const Ended tried = run_program(installed("bin/tier-conform"), {agent()});
    EXPECT_EQ(tried.status, 0) << tried.out << tried.err;
    EXPECT_THAT(tried.out, HasSubstr("agent 'simple' keeps all "));
  }
  static Ended generate(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"-m",    installed("share/tierd/configs/models/demo"),
                                          "--set", "tiers.dram.capacity=70%",
                                          "--fit", "-p",
                                          "First", "-n",
                                          "8",     "--temp",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(installed("bin/tierd"), arguments);
  }

 private:
  static inline fs::path prefix_;
};

TEST_F(AgentAuthor, BuildsOneThatIsFoundKeepsTheRulesAndRuns) {
  ASSERT_NO_FATAL_FAILURE(build(shown("simple.cc"), shown("CMakeLists.txt")));
  expect_it_keeps_the_rules();
  const Ended manual = run_program(installed("bin/tierd"), {"--plugin-path", built(), "--plugin", "simple"});
  EXPECT_EQ(manual.status, 0) << manual.err;
  EXPECT_THAT(manual.out, testing::StartsWith("agent simple: reads extents one after the other\n"));
  const Ended list = run_program(installed("bin/tierd"), {"--plugin-path", built(), "--plugins"});
  EXPECT_THAT(list.out, HasSubstr("agent      simple           " + agent() + "\n"));
  const Ended ours = generate({});
  EXPECT_EQ(ours.status, 0) << ours.err;
  const Ended run = generate({"--plugin-path", built(), "--set", "tiers.flash.kind=simple"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, ours.out);
  EXPECT_THAT(run.err, HasSubstr(", pread\n"));
}

TEST_F(AgentAuthor, ChoosesTheBuildType) {
  ASSERT_NO_FATAL_FAILURE(build(shown("simple.cc"), shown("CMakeLists.txt"), kOtherBuildType));
  expect_it_keeps_the_rules();
}

TEST_F(AgentAuthor, MayUseEveryInstalledHeaderAndLibrary) {
  const fs::path headers = installed("include/tierd-agent");
  std::string source;
  for (const auto& entry : fs::recursive_directory_iterator(headers)) {
    if (entry.is_regular_file())
      source += "#include \"" + entry.path().lexically_relative(headers).string() + "\"\n";
  }
  const std::string make = "Result<MadeAgent> make(const AgentContext& context) {\n";
  const std::string calls =
      "  if (checksum_text(0).empty() || available_cores() == 0 || "
      "buffer_offsets(ComputePlan{}).empty())\n"
      "    decode_column(Encoding::f32, {}, {});\n";
  ASSERT_NO_FATAL_FAILURE(
      build(source + replaced(shown("simple.cc"), make, make + calls), shown("CMakeLists.txt")));
  expect_it_keeps_the_rules();
}

TEST_F(AgentAuthor, OneOfOtherFlagsIsRefusedWithOneLine) {
  ASSERT_NO_FATAL_FAILURE(
      build(shown("simple.cc"),
            shown("CMakeLists.txt") + "target_compile_options(agent-simple PRIVATE " + kOtherFlag + ")\n"));
  const Ended tried = run_program(installed("bin/tier-conform"), {agent()});
  EXPECT_EQ(tried.status, 2);
  EXPECT_THAT(tried.err, AllOf(testing::StartsWith(agent() + ": was built for [tierd "),
                               HasSubstr("build it again against this tierd\n")));
  EXPECT_EQ(std::count(tried.err.begin(), tried.err.end(), '\n'), 1);
}

TEST_F(AgentAuthor, OneThatServesNothingDoesNotReplaceFlash) {
  ASSERT_NO_FATAL_FAILURE(
      build(replaced(shown("simple.cc"), "tierd::serves(tierd::Op::read)", "0"), shown("CMakeLists.txt")));
  const Ended run = generate({"--plugin-path", built(), "--set", "tiers.flash.kind=simple"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err.substr(std::min(run.err.size(), run.err.find("tiers: "))),
            "tiers: no tier's agent serves 'read' ('simple' of tiers.flash, 'dram' of tiers.dram); set the "
            "agent of one tier to one that does, such as 'flash' (tiers.NAME.kind)\n");
}

TEST_F(AgentAuthor, TriesOursAndWhatIsNotThere) {
  const Ended ours =
      run_program(installed("bin/tier-conform"), {"--verbose", installed("lib/tierd/agent-flash.so")});
  EXPECT_EQ(ours.status, 0) << ours.out << ours.err;
  EXPECT_THAT(ours.out, AllOf(HasSubstr("ok      no call waits"), HasSubstr("agent 'flash' keeps all ")));
  const Ended none = run_program(installed("bin/tier-conform"), {agent()});
  EXPECT_EQ(none.status, 2);
  EXPECT_EQ(none.err, agent() + ": there is no such file\n");
}

}  // namespace
}  // namespace tierd
