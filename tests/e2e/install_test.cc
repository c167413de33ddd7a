// Builds plugins with an installed tierd and a compiler, without this source tree.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The output of pkg-config, cmake and the compilers becomes part of the failure message.
Ended run(const std::string& path, std::vector<std::string> arguments) {
  return StartedProgram(path, std::move(arguments)).wait();
}

class Installed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    prefix_ = fs::path(testing::TempDir()) / ("tierd-installed-" + std::to_string(getpid()));
    fs::remove_all(prefix_);
    const Ended installed = run(TIERD_CMAKE, {"--install", TIERD_BUILD_DIR, "--prefix", prefix_.string()});
    ASSERT_EQ(installed.status, 0) << installed.err;
    setenv("TIERD_CACHE", (prefix_ / "cache").c_str(), 1);
    const Ended plain = generate({});
    ASSERT_EQ(plain.status, 0) << plain.err;
    text_ = plain.out;
    ASSERT_FALSE(text_.empty());
  }
  static void TearDownTestSuite() { fs::remove_all(prefix_); }

  static std::string at(const std::string& file) { return (prefix_ / file).string(); }

  // Generates with the installed program and the demo model, whose capacity is 70 %.
  static Ended generate(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"--config", at("share/tierd/configs/hybrid.toml"),
                                          "-m",       at("share/tierd/configs/models/demo"),
                                          "--set",    "tiers.dram.capacity=70%",
                                          "--fit",    "-p",
                                          "First",    "-n",
                                          "8",        "--temp",
                                          "0",        "-t",
                                          "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(at("bin/tierd"), arguments);
  }
  // The plugin template keeps the neurons that were read first. `folder` has nothing but the built plugin.
  static void expect_it_runs(const std::string& folder) {
    const Ended ended =
        generate({"--plugin-path", folder, "--set", "cache.name=first", "--set", "cache.most=40"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, text_);
    EXPECT_THAT(ended.err, HasSubstr("first"));
    const Ended wrong =
        generate({"--plugin-path", folder, "--set", "cache.name=first", "--set", "cache.mots=40"});
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(wrong.err, "--set: cache 'first' has no parameter 'mots'; did you mean 'most'?\n");
  }

  static inline fs::path prefix_;
  static inline std::string text_;
};

struct Compiler {
  const char* name;
  std::string path;
  std::string standard;
  std::string source;
};

class InstalledCompilers : public Installed, public testing::WithParamInterface<Compiler> {};

TEST_P(InstalledCompilers, TheTemplateIsBuiltAndRuns) {
  const Compiler& compiler = GetParam();
  const std::string folder = at(std::string("author-") + compiler.name);
  fs::create_directories(folder);
  // The flags printed by pkg-config are used as they are.
  setenv("PKG_CONFIG_PATH", at("lib/pkgconfig").c_str(), 1);
  const Ended flags = run(TIERD_PKG_CONFIG, {"--cflags", "tierd"});
  ASSERT_EQ(flags.status, 0) << flags.err;
  const std::string include = flags.out.substr(0, flags.out.find_last_not_of(" \n") + 1);
  const Ended built =
      run(compiler.path, {"-std=" + compiler.standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2",
                          "-fPIC", "-shared", "-fvisibility=hidden", include, "-o",
                          folder + "/cache-first.so", at("share/tierd/template/" + compiler.source)});
  ASSERT_EQ(built.status, 0) << built.err;
  expect_it_runs(folder);
}

INSTANTIATE_TEST_SUITE_P(All, InstalledCompilers,
                         testing::Values(Compiler{"gcc_c11", TIERD_GCC, "c11", "cache_c.c"},
                                         Compiler{"gcc_cpp17", TIERD_GXX, "c++17", "cache_cpp.cc"},
                                         Compiler{"clang_c11", TIERD_CLANG, "c11", "cache_c.c"},
                                         Compiler{"clang_cpp17", TIERD_CLANGXX, "c++17", "cache_cpp.cc"}),
                         [](const testing::TestParamInfo<Compiler>& compiler) {
                           return compiler.param.name;
                         });

TEST_F(Installed, TheCMakePackageBuildsOne) {
  const std::string source = at("author-cmake");
  fs::create_directories(source);
  fs::copy_file(at("share/tierd/template/cache_cpp.cc"), source + "/first.cc");
  std::ofstream(source + "/CMakeLists.txt") << "cmake_minimum_required(VERSION 3.23)\n"
                                               "project(author CXX)\n"
                                               "set(CMAKE_CXX_STANDARD 17)\n"
                                               "find_package(tierd 0.1 REQUIRED)\n"
                                               "tierd_add_plugin(cache first SOURCES first.cc)\n";
  const Ended configured = run(
      TIERD_CMAKE, {"-G", "Ninja", "-S", source, "-B", source + "/build", "-DCMAKE_PREFIX_PATH=" + at("")});
  ASSERT_EQ(configured.status, 0) << configured.err << configured.out;
  const Ended built = run(TIERD_CMAKE, {"--build", source + "/build"});
  ASSERT_EQ(built.status, 0) << built.err << built.out;
  expect_it_runs(source + "/build");
}

TEST_F(Installed, ListsAndManuals) {
  const Ended list = run(at("bin/tierd"), {"--plugins"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("cache      lru              " + at("lib/tierd/cache-lru.so") + "\n"));
  EXPECT_THAT(list.out, HasSubstr("agent      flash            " + at("lib/tierd/agent-flash.so") + "\n"));
  const Ended agent = run(at("bin/tierd"), {"--plugin", "flash"});
  EXPECT_EQ(agent.status, 0) << agent.err;
  EXPECT_THAT(agent.out,
              testing::StartsWith("agent flash: reads extents of a store's file without the page cache\n"));
  EXPECT_THAT(agent.out, HasSubstr("serves read"));
  const Ended manual = run(at("bin/tierd"), {"--plugin", "dense"});
  EXPECT_EQ(manual.status, 0) << manual.err;
  EXPECT_THAT(manual.out, testing::StartsWith("predictor dense 1.0: every neuron is active\n"));
  EXPECT_THAT(manual.out, HasSubstr("sites_ahead"));
  EXPECT_THAT(manual.out, HasSubstr("(a whole number within 0 and 63)"));
  EXPECT_THAT(run(at("bin/tierd"), {"--plugin", "predictor-random"}).out,
              HasSubstr("; lossy: it may change"));
  const Ended unknown = run(at("bin/tierd"), {"--plugin", "denes"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err,
            "--plugin: there is no plugin 'denes'; did you mean 'dense'?; list the plugins with --plugins\n");
}

TEST_F(Installed, TheAgentsKeepTheRules) {
  for (const char* agent : {"null", "dram", "flash"}) {
    const Ended tried = run(at("bin/tier-conform"), {at(std::string("lib/tierd/agent-") + agent + ".so")});
    EXPECT_EQ(tried.status, 0) << tried.out << tried.err;
    EXPECT_THAT(tried.out, HasSubstr(std::string("agent '") + agent + "' keeps all "));
  }
}

}  // namespace
}  // namespace tierd
