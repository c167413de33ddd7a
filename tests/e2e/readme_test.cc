// Runs the commands of README.md, of the pages of docs and of --help as printed, and checks the links of all
// pages. The embedded model replaces the reader's, and a budget too small for it is raised.
//
// A command is a line of a page that is indented by four spaces. A block of commands that a test cannot run
// has a comment before it that says why, <!-- not run: REASON -->: its flags must be those of the programs. A
// fenced block whose first line names a file, ```cpp fifo.cc, becomes that file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/e2e/program.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

const std::string kSource = TIERD_SOURCE_DIR;
const std::string kModel = "llama-2-7b.Q4_0.gguf";
const std::string kServer = "http://127.0.0.1:8080";
constexpr size_t kIndent = 4;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream words(command);
  return {std::istream_iterator<std::string>(words), {}};
}

// Consecutive commands, or the content of a file.
struct Block {
  std::vector<std::string> lines;
  std::string file = {};     // its name; empty: commands
  std::string not_run = {};  // the reason; empty: they are run
};

// Adds a line of a block of commands: without its comment, and joined with the line before if that ends with
// a backslash.
void add_command(std::string line, Block& to) {
  line = line.substr(line.find_first_not_of(' '));
  line = line.substr(0, line.find("  #"));
  line = line.substr(0, line.find(" # "));
  const bool continued = !to.lines.empty() && to.lines.back().ends_with('\\');
  if (continued) to.lines.back().pop_back();
  if (continued) {
    to.lines.back() += line;
  } else {
    to.lines.push_back(line);
  }
}

// Returns the blocks of a page, in order. Lines of commands are indented by at least `depth` spaces.
std::vector<Block> blocks_of(const std::string& page, size_t depth) {
  constexpr std::string_view kFence = "```", kNotRun = "<!-- not run: ";
  std::vector<Block> blocks;
  std::string not_run;
  bool fenced = false, in_commands = false, in_file = false, after_empty = true;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kFence)) {
      const std::vector<std::string> words = words_of(line);
      in_file = !fenced && words.size() == 2;
      if (in_file) blocks.push_back({.lines = {}, .file = words[1]});
      fenced = !fenced;
      in_commands = false;
    } else if (fenced) {
      if (in_file) blocks.back().lines.push_back(line);
    } else if (line.find_first_not_of(' ') != std::string::npos && line.find_first_not_of(' ') >= depth &&
               (in_commands || after_empty)) {
      if (!in_commands) blocks.push_back({.lines = {}, .not_run = not_run});
      in_commands = true;
      add_command(line, blocks.back());
    } else {
      in_commands = false;
      if (!line.empty()) not_run.clear();
      if (line.starts_with(kNotRun)) not_run = line.substr(kNotRun.size());
    }
    after_empty = line.empty();
  }
  return blocks;
}

bool is_tierd(const std::string& command) {
  return command.starts_with("tierd ");
}
bool serves(const std::string& command) {
  return is_tierd(command) && !has(command, " -p ") && !has(command, " -f ") && !has(command, " --check") &&
         !has(command, " --plugin");
}

std::string script_of(const std::vector<std::string>& commands) {
  std::string script = "set -euo pipefail\n";
  for (std::string command : commands) {
    if (command.starts_with("ci/")) {
      // The scripts of ci/ install, build and test everything; only their presence is checked.
      script += "test -x " + command.substr(0, command.find(' ')) + "\n";
      continue;
    }
    // The embedded model has a shorter context.
    command = replaced(command, " -c 4096", " -c 256");
    if (is_tierd(command)) command += " --fit";
    if (serves(command)) {
      // Emptied by the shell that reads it: the server's own shell may open it after the first grep has seen
      // the line of the server before it.
      script += ": >server.log\n" + command + " --port 0 2>>server.log &\n" +
                "trap 'kill $!' EXIT\n"
                "until grep -q '^serving on ' server.log; do kill -0 $!; sleep 0.1; done\n"
                "url=$(sed -n 's/^serving on //p' server.log)\n";
      continue;
    }
    script += replaced(command, "curl " + kServer, "curl -sS --fail-with-body $url") + "\n";
  }
  return script;
}

// Returns README.md and the pages of docs.
std::vector<std::string> pages() {
  std::vector<std::string> names = {"README.md"};
  for (const char* folder : {"docs", "docs/papers"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(kSource) / folder)) {
      if (entry.path().extension() == ".md")
        names.push_back(std::string(folder) + "/" + entry.path().filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

class Shown : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    constexpr unsigned kMinutesOfCommands = 900;
    alarm(kMinutesOfCommands);
    const fs::path at = folder().path(), bin = fs::path(TIERD_BIN_TIERD).parent_path();
    fs::create_directories(at / "build");
    fs::create_symlink(bin.parent_path(), at / "build/release");
    for (const char* name : {"ci", "configs"}) fs::create_symlink(fs::path(kSource) / name, at / name);
    for (const std::string& name : {kModel, std::string("model")}) fs::create_symlink(kDemo, at / name);
    setenv("PATH", (bin.string() + ":/usr/local/bin:/usr/bin:/bin").c_str(), 1);
    setenv("HOME", at.c_str(), 1);
  }

  void run(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      if (!block.file.empty()) {
        std::ofstream file(folder().path() + "/" + block.file);
        for (const std::string& line : block.lines) file << line << "\n";
      } else if (!block.not_run.empty()) {
        for (const std::string& command : block.lines) check_flags(command);
      } else {
        const std::string script = "cd " + folder().path() + "\n" + script_of(block.lines);
        const Ended ended = run_program("/bin/bash", {"-c", script});
        EXPECT_EQ(ended.status, 0) << script << ended.out << ended.err;
      }
    }
  }

  // Checks that the help of the command's program has each of its flags, and that its configuration exists.
  static void check_flags(const std::string& command) {
    const std::vector<std::string> words = words_of(command);
    for (const std::string& word : words) {
      if (word.starts_with("configs/")) {
        EXPECT_TRUE(fs::exists(fs::path(kSource) / word)) << command;
      }
    }
    if (words[0] != "tierd" && words[0] != "tier") return;
    const auto flag = [](const std::string& word) { return word.starts_with('-'); };
    std::string program;
    for (const std::string& word : std::vector(words.begin(), std::ranges::find_if(words, flag)))
      program += word + " ";
    const Ended help =
        run_program("/bin/bash", {"-c", words[0] == "tierd" ? "tierd --help all" : program + "--help"});
    EXPECT_EQ(help.status, 0) << command << "\n" << help.err;
    for (const std::string& word : words) {
      if (!flag(word)) continue;
      const std::string name = word.substr(0, word.find('='));
      EXPECT_TRUE(std::regex_search(help.out, std::regex("(^|[\\s,])" + name + "($|[\\s,=\\[:])")))
          << command << ": no flag " << name;
    }
  }
};

class ShownOn : public Shown, public testing::WithParamInterface<std::string> {};

TEST_P(ShownOn, ThePage) {
  if (kSanitized) GTEST_SKIP() << "minutes of benchmarks; what they run has tests of its own";
  const std::vector<Block> blocks = blocks_of(file_text(kSource + "/" + GetParam()), kIndent);
  // The commands may not contain a placeholder.
  for (const Block& block : blocks) {
    for (const std::string& line : block.lines) EXPECT_TRUE(!block.file.empty() || !has(line, "…")) << line;
  }
  run(blocks);
}

INSTANTIATE_TEST_SUITE_P(All, ShownOn, testing::ValuesIn(pages()),
                         [](const testing::TestParamInfo<std::string>& page) {
                           std::string name = page.param;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST_F(Shown, InTheHelp) {
  if (kSanitized) GTEST_SKIP() << "as on the pages";
  const std::string help = run_tierd({"--help", "all"}).out;
  std::vector<Block> shown;
  for (const Block& block : blocks_of(help.substr(0, help.find("MODEL is")), 2)) {
    for (const std::string& command : block.lines) {
      if (command.starts_with("tierd --")) shown.push_back({.lines = {command}});
    }
  }
  ASSERT_GE(shown.size(), 3u) << help;
  run(shown);
}

TEST(Pages, LinksLeadToFiles) {
  const std::regex link(R"(\[[^\]]+\]\(([^)#:\s]+)[^):]*\))");
  for (const char* root : {".", "docs", "core", "tiers", "plugins", "tools", "tests", "configs"}) {
    const fs::path folder = fs::path(kSource) / root;
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator();
         ++entry) {
      if (std::string_view(root) == ".") entry.disable_recursion_pending();
      if (entry->path().extension() != ".md") continue;
      const std::string page = file_text(entry->path().string());
      for (std::sregex_iterator found(page.begin(), page.end(), link), end; found != end; ++found) {
        EXPECT_TRUE(fs::exists(entry->path().parent_path() / (*found)[1].str()))
            << entry->path() << " links to " << (*found)[1];
      }
    }
  }
}

}  // namespace
}  // namespace tierd
