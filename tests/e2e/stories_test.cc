// A trained model in its published files generates its published story from the command line, with any part
// of its weights resident. Skipped where the model is not beside the project.
#include "tests/e2e/program.h"
#include "tests/model/text/shared_files.h"

namespace tierd {
namespace {

constexpr const char* kStory =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, "
    "she "
    "saw a big, red ball. She wanted to play with it, but it was too high.\n"
    "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. She said, \"I "
    "want to play with your ball, but I can't find it.\"\n"
    "Lily was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\n"
    "Lily didn't want to help her mom, so she";

class Stories : public ProgramTest, public testing::WithParamInterface<const char*> {};

TEST_P(Stories, TellsItsStory) {
  const std::string folder = "data/models/stories260K/";
  const std::string model = shared_file(folder + GetParam());
  const std::string tokenizer = shared_file(folder + "tok512.bin");
  if (model.empty() || tokenizer.empty()) GTEST_SKIP() << folder << GetParam() << " is not here";
  const std::vector<std::string> story = {"-m",  model, "--tokenizer", tokenizer, "-p", "",  "-n",
                                          "200", "-c",  "208",         "--temp",  "0",  "-q"};
  const auto tell = [&](std::vector<std::string> how) {
    how.insert(how.end(), story.begin(), story.end());
    return run_tierd(how);
  };
  const Ended resident = tell({"--config", config_file("resident")});
  ASSERT_EQ(resident.status, 0) << resident.err;
  EXPECT_EQ(resident.out, kStory);
  for (const char* config : {"naive", "hybrid"}) {
    for (const char* share : {"25%", "50%", "75%"}) {
      const std::vector<std::string> how = {"--config", config_file(config), "--set",
                                            std::string("tiers.dram.capacity=") + share};
      Ended run = tell(how);
      if (run.status == 2) {
        EXPECT_NE(run.err.find("needs at least"), std::string::npos) << run.err;
        std::vector<std::string> fitted = how;
        fitted.push_back("--fit");
        run = tell(fitted);
      }
      EXPECT_EQ(run.status, 0) << config << " " << share << ": " << run.err;
      EXPECT_EQ(run.out, kStory) << config << " " << share;
    }
  }
  EXPECT_EQ(cached().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Containers, Stories, testing::Values("stories260K.bin", "stories260K_v1.bin", "hf"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace tierd
