// Sends signals to programs at drawn moments. They exit soon and say so, the text printed so far is right,
// and the next run is undisturbed.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "core/base/random.h"
#include "core/base/time.h"
#include "tests/e2e/program.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// The moments of each run that are tried for each signal.
constexpr int kMoments = kSanitized ? 4 : 12;

// The programs promise to exit within one second. A loaded machine and sanitizers are given more.
constexpr uint64_t kEndsWithinNs = 5'000'000'000;

void sleep_ns(uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

class Interruption : public ProgramTest, public testing::WithParamInterface<int> {
 protected:
  static int number() { return GetParam(); }

  static std::vector<std::string> run_of(const std::string& config, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "--config", config_file(config), "-m", kDemo, "-c", "256", "-t", "1", "--temp", "0", "--fit", "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  Ended tell_to_end(StartedProgram& program) const {
    program.kill(number());
    const uint64_t begin = now_ns();
    Ended ended = program.wait();
    EXPECT_LT(now_ns() - begin, kEndsWithinNs);
    return ended;
  }
  // A program may finish before the signal arrives.
  void expect_ended(const Ended& ended, const std::string& whole) const {
    if (ended.status == 0) {
      EXPECT_EQ(ended.out, whole);
    } else {
      EXPECT_EQ(ended.status, 128 + number());
      EXPECT_THAT(whole, StartsWith(ended.out));
    }
    EXPECT_THAT(ended.err, IsEmpty());
  }
  static void expect_undisturbed(const std::vector<std::string>& arguments, const std::string& whole) {
    const Ended run = run_tierd(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, whole);
    EXPECT_THAT(run.err, IsEmpty());
  }
};

// The signal hits converting, planning, loading, the prompt or generating.
TEST_P(Interruption, OfAFirstRun) {
  const std::vector<std::string> arguments = run_of("hybrid", {"-p", "First Citizen:", "-n", "24"});
  const uint64_t begin = now_ns();
  const Ended whole = run_tierd(arguments);
  const uint64_t lasts_ns = now_ns() - begin;
  ASSERT_EQ(whole.status, 0) << whole.err;
  Random random(static_cast<uint64_t>(number()));
  for (int round = 0; round < kMoments; ++round) {
    SCOPED_TRACE(round);
    std::filesystem::remove_all(cache());
    StartedProgram program(TIERD_BIN_TIERD, arguments);
    sleep_ns(static_cast<uint64_t>(random.uniform() * static_cast<double>(lasts_ns)));
    expect_ended(tell_to_end(program), whole.out);
    expect_undisturbed(arguments, whole.out);
    EXPECT_THAT(cached(), SizeIs(1));
  }
}

TEST_P(Interruption, OfLoadingAndALongPrompt) {
  std::string prompt;
  while (prompt.size() < 500) prompt += "First Citizen: Before we proceed any further, hear me speak. ";
  Random random(static_cast<uint64_t>(number()));
  for (const char* config : {"resident", "hybrid", "naive"}) {
    const std::vector<std::string> arguments = run_of(config, {"-p", prompt, "-ub", "32", "-n", "4"});
    const Ended whole = run_tierd(arguments);  // the first run makes the store
    ASSERT_EQ(whole.status, 0) << whole.err;
    const uint64_t begin = now_ns();
    expect_undisturbed(arguments, whole.out);
    const uint64_t lasts_ns = now_ns() - begin;
    for (int round = 0; round < kMoments / 2; ++round) {
      SCOPED_TRACE(std::string(config) + " " + std::to_string(round));
      StartedProgram program(TIERD_BIN_TIERD, arguments);
      sleep_ns(static_cast<uint64_t>(random.uniform() * static_cast<double>(lasts_ns)));
      expect_ended(tell_to_end(program), whole.out);
    }
    expect_undisturbed(arguments, whole.out);
  }
}

TEST_P(Interruption, OfGenerating) {
  Random random(static_cast<uint64_t>(number()));
  for (const char* config : {"resident", "hybrid", "naive"}) {
    const std::vector<std::string> arguments =
        run_of(config, {"-p", "First Citizen:", "-n", "200", "--ignore-eos"});
    const Ended whole = run_tierd(arguments);
    ASSERT_EQ(whole.status, 0) << whole.err;
    for (int round = 0; round < 4; ++round) {
      SCOPED_TRACE(std::string(config) + " " + std::to_string(round));
      StartedProgram program(TIERD_BIN_TIERD, arguments);
      const uint32_t enough = 1 + random.below(static_cast<uint32_t>(whole.out.size() / 2));
      while (program.out().size() < enough) sleep_ns(500'000);
      const Ended ended = tell_to_end(program);
      expect_ended(ended, whole.out);
      EXPECT_GE(ended.out.size(), enough);
    }
  }
}

// The reader of the text has stopped reading, so the pipe is full.
TEST_P(Interruption, OfARunThatNobodyReads) {
  const std::vector<std::string> arguments = run_of("resident", {"-p", "First Citizen:", "-n", "24"});
  const Ended made = run_tierd(arguments);
  ASSERT_EQ(made.status, 0) << made.err;
  const uint64_t begin = now_ns();
  expect_undisturbed(arguments, made.out);
  const uint64_t lasts_ns = now_ns() - begin;

  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  while (write(ends[1], "full", 4) == 4) continue;
  ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);  // write() blocks from here on
  StartedProgram program(TIERD_BIN_TIERD, arguments, {.out = ends[1]});
  sleep_ns(2 * lasts_ns);
  const Ended ended = tell_to_end(program);
  EXPECT_EQ(ended.status, 128 + number());
  EXPECT_THAT(ended.err, IsEmpty());
  close(ends[0]);
  close(ends[1]);
}

TEST_P(Interruption, ASecondSignalEndsItToo) {
  const std::vector<std::string> arguments = run_of("naive", {"-p", "The", "-n", "200", "--ignore-eos"});
  ASSERT_EQ(run_tierd(arguments).status, 0);
  for (int round = 0; round < 3; ++round) {
    StartedProgram program(TIERD_BIN_TIERD, arguments);
    while (program.out().empty()) sleep_ns(500'000);
    program.kill(number());
    EXPECT_EQ(tell_to_end(program).status, 128 + number());
  }
}

TEST_P(Interruption, OfAConversion) {
  const std::string whole = folder().path() + "/whole";
  const uint64_t begin = now_ns();
  ASSERT_EQ(run_program(TIERD_BIN_CONVERT, {kDemo, whole, "-q"}).status, 0);
  const uint64_t lasts_ns = now_ns() - begin;
  const std::string store = folder().path() + "/store";
  Random random(static_cast<uint64_t>(number()));
  for (int round = 0; round < kMoments; ++round) {
    SCOPED_TRACE(round);
    std::filesystem::remove_all(store);
    StartedProgram program(TIERD_BIN_CONVERT, {kDemo, store, "-q"});
    sleep_ns(static_cast<uint64_t>(random.uniform() * static_cast<double>(lasts_ns)));
    expect_ended(tell_to_end(program), "");
    const Ended again = run_program(TIERD_BIN_CONVERT, {kDemo, store, "-q", "--verify"});
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_TRUE(file_text(store + "/manifest.json") == file_text(whole + "/manifest.json"));
    EXPECT_TRUE(file_text(store + "/checksums.bin") == file_text(whole + "/checksums.bin"));
    EXPECT_TRUE(file_text(store + "/weights.bin") == file_text(whole + "/weights.bin"));
    EXPECT_FALSE(std::filesystem::exists(store + ".partial"));
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, Interruption, testing::Values(SIGTERM, SIGINT),
                         [](const auto& test) { return test.param == SIGTERM ? "SIGTERM" : "SIGINT"; });

}  // namespace
}  // namespace tierd
