// Sends SIGHUP with a changed TOML during generation. The text equals that of an undisturbed run.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// A pipe that holds one piece of text, so the writer is at most one piece ahead of the reader.
class Piecewise {
 public:
  Piecewise() {
    EXPECT_EQ(pipe2(ends_, O_DIRECT | O_CLOEXEC), 0);
    EXPECT_NE(fcntl(ends_[1], F_SETPIPE_SZ, 4096), -1);
  }
  ~Piecewise() {
    close(ends_[0]);
    stop_writing();
  }
  int writer() const { return ends_[1]; }
  void stop_writing() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  // Reads one piece; returns "" at the end.
  std::string read() {
    char bytes[4096];
    const ssize_t n = ::read(ends_[0], bytes, sizeof bytes);
    return n <= 0 ? std::string() : std::string(bytes, static_cast<size_t>(n));
  }

 private:
  int ends_[2] = {-1, -1};
};

class Reload : public ProgramTest {
 protected:
  std::string toml() const { return folder().path() + "/run.toml"; }
  // Replaces the file atomically, as careful editors do.
  void write(const std::string& text) const {
    std::ofstream(toml() + ".new") << text;
    std::filesystem::rename(toml() + ".new", toml());
  }
  void budget(const std::string& capacity, const std::string& rest = "") const {
    write("[tiers.dram]\ncapacity = \"" + capacity + "\"\nstaging = \"256 KiB\"\n[cache]\nname = \"lru\"\n" +
          rest);
  }
  std::vector<std::string> run_of(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "--config", toml(), "-m", kDemo, "-p",  "First Citizen:", "-n", "80", "--temp",
        "0",        "-t",   "1",  "-c",  "128", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(Reload, TheBudgetHalvesAndDoublesAndTheTextIsTheSame) {
  budget("60%");
  const Ended whole = run_tierd(run_of());
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.err, Not(HasSubstr("tiers.dram.capacity:")));

  Piecewise pipe;
  Streams streams;
  streams.out = pipe.writer();
  StartedProgram program(TIERD_BIN_TIERD, run_of(), streams);
  pipe.stop_writing();
  std::string text;
  const auto take = [&](int pieces) {
    while (pieces-- > 0) text += pipe.read();
  };
  // After four pieces, the first step after the signal has taken place.
  const auto hang_up = [&] {
    program.kill(SIGHUP);
    take(4);
  };
  take(5);
  budget("30%");
  hang_up();
  budget("60%");
  hang_up();
  budget("all");
  hang_up();
  write("[tiers.dram]\ncapacity = ");
  hang_up();
  budget("1000");
  hang_up();
  budget("30%", "[run]\nseed = 3\n");
  hang_up();
  hang_up();  // nothing new besides run.seed, which was reported already
  budget("60%");
  hang_up();
  for (std::string piece = pipe.read(); !piece.empty(); piece = pipe.read()) text += piece;
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(text, whole.out);
  const auto lines = [&](const std::string& part) {
    size_t n = 0;
    for (size_t at = ended.err.find(part); at != std::string::npos; at = ended.err.find(part, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(lines("tiers.dram.capacity: "), 6u) << ended.err;
  EXPECT_EQ(lines(" -> "), 5u) << ended.err;
  EXPECT_EQ(lines("the configuration is not applied: " + toml() + ":2: "), 1u) << ended.err;
  EXPECT_EQ(lines("tiers.dram.capacity: 1.00 kB is too little: "), 1u) << ended.err;
  EXPECT_EQ(lines(toml() + ": run.seed: takes effect after a restart"), 2u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("; at most "));
}

// A change during the prompt is reported as well. This change arrives before the prompt's first chunk.
TEST_F(Reload, TheReportTellsOfTheChanges) {
  budget("60%");
  Piecewise pipe;
  const std::vector<std::string> arguments = run_of({"--json"});
  const json whole = json::parse(run_tierd(arguments).out);
  EXPECT_TRUE(whole["report"]["tiers"][0]["budget"]["changes"].empty());
  // tierd reads its configuration from a pipe: the signal is sent after that and before the text.
  const std::string fifo = folder().path() + "/fifo.toml";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::vector<std::string> from_pipe = arguments;
  from_pipe[1] = fifo;
  const auto feed = [&](const std::string& text) { std::ofstream(fifo) << text; };
  StartedProgram program(TIERD_BIN_TIERD, from_pipe);
  feed("[tiers.dram]\ncapacity = \"60%\"\nstaging = \"256 KiB\"\n[cache]\nname = \"lru\"\n");
  const std::string status = "/proc/" + std::to_string(program.pid()) + "/status";
  // Waits until tierd catches the signal.
  while ((std::stoull(file_text(status).substr(file_text(status).find("SigCgt:") + 8, 16), nullptr, 16) &
          1) == 0)
    usleep(1000);
  program.kill(SIGHUP);
  feed("[tiers.dram]\ncapacity = \"30%\"\nstaging = \"256 KiB\"\n[cache]\nname = \"lru\"\n");
  const Ended ended = program.wait();
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json changed = json::parse(ended.out);
  EXPECT_EQ(changed["text"], whole["text"]);
  const json& budget = changed["report"]["tiers"][0]["budget"];
  ASSERT_EQ(budget["changes"].size(), 1u) << budget;
  EXPECT_EQ(budget["changes"][0]["step"], 0);
  EXPECT_EQ(budget["changes"][0]["capacity_bytes"], budget["capacity_bytes"]);
  EXPECT_LT(budget["capacity_bytes"].get<uint64_t>(),
            whole["report"]["tiers"][0]["budget"]["capacity_bytes"].get<uint64_t>());
  EXPECT_GT(budget["peak_bytes"].get<uint64_t>(), budget["capacity_bytes"].get<uint64_t>());
  EXPECT_LE(budget["used_bytes"].get<uint64_t>(), budget["capacity_bytes"].get<uint64_t>());
}

TEST_F(Reload, PressureThatNobodyCanTellOfIsRefusedAtTheStart) {
  budget("60%", "[pressure]\nsource = \"psi\"\nwindow_ms = 100\n");
  const Ended ended = run_tierd(run_of({"-q"}));
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.err, "pressure.window_ms: 100, expected 500 to 10000\n");
  EXPECT_EQ(ended.out, "");
}

// A reload refuses a strategy whose measured loss is too large, as a start does.
TEST_F(Reload, AStrategyThatLosesTooMuchIsNotTakenOver) {
  const std::string layout = "[model]\nlayout = \"neuron\"\n";
  const std::string gate = layout + "[predictor]\nname = \"state-table\"\nrule = \"reaches\"\n";
  budget("80%", gate);
  const Ended compared = run_program(TIERD_BIN_COMPARE, {"--config", toml(), "-m", kDemo, "-t", "1", "-q",
                                                         "--tokens", "60", kDemo + "/held-out.txt"});
  ASSERT_EQ(compared.status, 0) << compared.err;
  ASSERT_EQ(run_tierd(run_of()).status, 2);
  budget("80%", layout);
  const Ended whole = run_tierd(run_of());
  ASSERT_EQ(whole.status, 0) << whole.err;
  for (const char* force : {"", "--force"}) {
    budget("80%", layout);
    Piecewise pipe;
    Streams streams;
    streams.out = pipe.writer();
    std::vector<std::string> arguments = run_of();
    if (*force != '\0') arguments.emplace_back(force);
    StartedProgram program(TIERD_BIN_TIERD, arguments, streams);
    pipe.stop_writing();
    std::string text;
    for (int pieces = 0; pieces < 5; ++pieces) text += pipe.read();
    budget("80%", gate);
    program.kill(SIGHUP);
    for (std::string piece = pipe.read(); !piece.empty(); piece = pipe.read()) text += piece;
    const Ended ended = program.wait();
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("measured loss: KL "));
    if (*force == '\0') {
      EXPECT_EQ(text, whole.out);
      EXPECT_THAT(ended.err, Not(HasSubstr("is now used")));
    } else {
      EXPECT_THAT(ended.err, HasSubstr("predictor 'state-table' is now used"));
    }
  }
}

TEST_F(Reload, WithoutAFileASighupEndsTheRun) {
  Piecewise pipe;
  Streams streams;
  streams.out = pipe.writer();
  StartedProgram program(TIERD_BIN_TIERD,
                         {"-m", kDemo, "-p", "", "-n", "60", "-t", "1", "-c", "128", "-q", "--ignore-eos"},
                         streams);
  pipe.stop_writing();
  (void)pipe.read();
  program.kill(SIGHUP);
  EXPECT_EQ(program.wait().status, 128 + SIGHUP);
}

}  // namespace
}  // namespace tierd
