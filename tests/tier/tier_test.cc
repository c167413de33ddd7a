// Runs a copy of `tier` in a folder of its own, beside scripts that stand for its verbs.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class Tier : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(beside_);
    fs::create_directories(elsewhere_);
    fs::copy_file(TIERD_BIN_TIER, beside_ + "/tier");
    setenv("PATH", ("/none::" + elsewhere_ + ":/usr/bin:/bin").c_str(), 1);
  }
  // Writes a program that prints its name and arguments, and exits with 7.
  void add(const std::string& path, bool executable = true) const {
    folder_.write(fs::relative(path, folder_.path()),
                  "#!/bin/sh\necho \"$0\"\nprintf '<%s>\\n' \"$@\"\nexit 7\n");
    if (executable) fs::permissions(path, fs::perms::owner_all);
  }
  Ended tier(std::vector<std::string> words) const {
    return run_program(beside_ + "/tier", std::move(words));
  }
  std::string refused(std::vector<std::string> words) const {
    const Ended ended = tier(std::move(words));
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  }

  TempFolder folder_;
  const std::string beside_ = folder_.path() + "/bin";
  const std::string elsewhere_ = folder_.path() + "/more";
};

TEST_F(Tier, ExecutesTheProgramOfAVerb) {
  add(beside_ + "/tier-bench");
  const Ended ended = tier({"bench", "a b", "", "--json", "--help"});
  EXPECT_EQ(ended.status, 7);
  EXPECT_EQ(ended.out, beside_ + "/tier-bench\n<a b>\n<>\n<--json>\n<--help>\n");
  EXPECT_THAT(ended.err, IsEmpty());
}

TEST_F(Tier, SearchesBesideItselfBeforePath) {
  add(elsewhere_ + "/tier-bench");
  EXPECT_THAT(tier({"bench"}).out, StartsWith(elsewhere_ + "/tier-bench\n"));
  add(beside_ + "/tier-bench", false);
  EXPECT_THAT(tier({"bench"}).out, StartsWith(elsewhere_ + "/tier-bench\n"));
  add(beside_ + "/tier-bench");
  EXPECT_THAT(tier({"bench"}).out, StartsWith(beside_ + "/tier-bench\n"));
}

TEST_F(Tier, IsFoundThroughALink) {
  add(beside_ + "/tier-bench");
  fs::create_symlink(beside_ + "/tier", folder_.path() + "/link");
  EXPECT_EQ(run_program(folder_.path() + "/link", {"bench"}).status, 7);
}

TEST_F(Tier, ListsTheVerbsThatThereAre) {
  add(beside_ + "/tier-bench");
  add(beside_ + "/tier-prune");
  add(elsewhere_ + "/tier-mine");
  add(elsewhere_ + "/tier-no-program", false);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"help"}, {"--help"}, {"-h"}, {"help", "help"}}) {
    const Ended ended = tier(words);
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, StartsWith("Usage: tier VERB"));
    EXPECT_THAT(ended.out, HasSubstr("\nProduct\n  bench       measures prefill"));
    EXPECT_THAT(ended.out, HasSubstr("\nLaboratory\n  prune       sets "));
    EXPECT_THAT(ended.out, HasSubstr("\nOthers\n  mine\n"));
    EXPECT_THAT(ended.out, Not(testing::AnyOf(HasSubstr("  trace "), HasSubstr("no-program"))));
    EXPECT_THAT(ended.err, IsEmpty());
  }
}

TEST_F(Tier, HelpOfAVerbIsThatOfItsProgram) {
  add(beside_ + "/tier-bench");
  for (const char* help : {"help", "--help"}) {
    const Ended ended = tier({help, "bench"});
    EXPECT_EQ(ended.status, 7);
    EXPECT_THAT(ended.out, HasSubstr("\n<--help>\n"));
  }
  EXPECT_THAT(refused({"help", "benhc"}), HasSubstr("did you mean 'bench'?"));
}

TEST_F(Tier, UnknownVerbsAreRefusedWithTheNearest) {
  add(beside_ + "/tier-bench");
  add(elsewhere_ + "/tier-mine");
  EXPECT_EQ(refused({"benhc"}), "tier: there is no verb 'benhc'; did you mean 'bench'? (see tier --help)\n");
  EXPECT_THAT(refused({"mind"}), HasSubstr("did you mean 'mine'?"));
  EXPECT_EQ(refused({"something"}), "tier: there is no verb 'something' (see tier --help)\n");
  EXPECT_THAT(refused({""}), HasSubstr("there is no verb ''"));
  EXPECT_THAT(refused({"../bin/tier-bench"}), HasSubstr("no verb"));
  EXPECT_EQ(refused({"--verison"}), "tier: --verison is not an option of tier (see tier --help)\n");
}

TEST_F(Tier, AVerbOfTheLaboratoryThatIsNotBuiltNamesTheOption) {
  EXPECT_THAT(refused({"prune", "a", "b"}), AllOf(HasSubstr("tier-prune"), HasSubstr("-D TIERD_LAB=ON")));
}

TEST_F(Tier, AProgramThatCannotBeExecutedFails) {
  folder_.write("bin/tier-bench", "#!/no/such/shell\n");
  fs::permissions(beside_ + "/tier-bench", fs::perms::owner_all);
  const Ended ended = tier({"bench"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr(beside_ + "/tier-bench"), HasSubstr("cannot be executed")));
}

}  // namespace
}  // namespace tierd
