// Runs the commands of README.md and --help as printed. The embedded model replaces the reader's, and a
// budget too small for it is raised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/e2e/program.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

const std::string kSource = TIERD_SOURCE_DIR;
const std::string kBin = "build/release/bin/";
const std::string kModel = "llama-2-7b.Q4_0.gguf";
const std::string kServer = "http://127.0.0.1:8080";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

using Commands = std::vector<std::string>;

// Returns the blocks of lines that are indented by at least `depth` spaces. Joins continued lines and removes
// comments.
std::vector<Commands> commands_in(const std::string& text, size_t depth) {
  std::vector<Commands> blocks;
  bool inside = false, continued = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(' ') < depth || line.empty()) {
      inside = false;
      continue;
    }
    if (!inside) blocks.emplace_back();
    inside = true;
    line = line.substr(line.find_first_not_of(' '));
    line = line.substr(0, line.find("  #"));
    if (const size_t comment = line.find(" # "); comment != std::string::npos) line.resize(comment);
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    if (continued) {
      blocks.back().back() += line;
    } else {
      blocks.back().push_back(line);
    }
    continued = goes_on;
  }
  return blocks;
}

bool serves(const std::string& command) {
  return has(command, kBin + "tierd ") && !has(command, " -p ") && !has(command, " -f ") &&
         !has(command, " --check") && !has(command, " --plugin");
}

std::string script_of(const Commands& commands) {
  std::string script = "set -euo pipefail\n";
  for (std::string command : commands) {
    if (command.starts_with("ci/")) {
      // The scripts of ci/ install, build and test everything; only their presence is checked.
      script += "test -x " + command.substr(0, command.find(' ')) + "\n";
      continue;
    }
    // The embedded model has a shorter context.
    command = replaced(command, " -c 4096", " -c 256");
    if (has(command, kBin + "tierd ")) command += " --fit";
    if (serves(command)) {
      script += command + " --port 0 2>server.log &\n" +
                "trap 'kill $!' EXIT\n"
                "until grep -q '^serving on ' server.log; do kill -0 $! && sleep 0.1; done\n"
                "url=$(sed -n 's/^serving on //p' server.log)\n";
      continue;
    }
    script += replaced(command, "curl " + kServer, "curl -sS --fail-with-body $url") + "\n";
  }
  return script;
}

class Shown : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    namespace fs = std::filesystem;
    const fs::path at = folder().path();
    fs::create_directories(at / "build/release");
    fs::create_symlink(fs::path(TIERD_BIN_TIERD).parent_path(), at / kBin.substr(0, kBin.size() - 1));
    for (const char* name : {"configs", "ci"}) fs::create_symlink(fs::path(kSource) / name, at / name);
    for (const std::string& name : {kModel, std::string("model")}) fs::create_symlink(kDemo, at / name);
  }
  void run(const std::vector<Commands>& blocks) {
    ASSERT_FALSE(blocks.empty());
    for (const Commands& commands : blocks) {
      const std::string script = "cd " + folder().path() + "\n" + script_of(commands);
      const Ended ended = run_program("/bin/bash", {"-c", script});
      EXPECT_EQ(ended.status, 0) << script << ended.out << ended.err;
    }
  }
};

TEST_F(Shown, InTheReadme) {
  if (kSanitized) GTEST_SKIP() << "minutes of benchmarks; what they run has tests of its own";
  std::vector<Commands> blocks = commands_in(file_text(kSource + "/README.md"), 4);
  // The README's commands may not contain a placeholder.
  for (const Commands& commands : blocks) {
    for (const std::string& command : commands) EXPECT_FALSE(has(command, "…")) << command;
  }
  run(blocks);
}

TEST_F(Shown, InTheHelp) {
  if (kSanitized) GTEST_SKIP() << "as in the README";
  const std::string help = run_tierd({"--help", "all"}).out;
  std::vector<Commands> blocks = commands_in(help.substr(0, help.find("MODEL is")), 2);
  std::vector<Commands> shown;
  for (const Commands& commands : blocks) {
    for (const std::string& command : commands) {
      if (command.starts_with("tierd ")) shown.push_back({replaced(command, "tierd --", kBin + "tierd --")});
    }
  }
  ASSERT_GE(shown.size(), 3u) << help;
  run(shown);
}

}  // namespace
}  // namespace tierd
