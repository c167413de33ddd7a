// Runs the program as users do, and tests its output and exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace tierd {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kTokenizer = std::string(TIERD_SOURCE_DIR) + "/tests/golden/tokenizer/plain.model";
const std::string kModel = std::string(TIERD_SOURCE_DIR) + "/tests/golden/models/gguf-llama-f32/model.gguf";

struct Finished {
  std::string output;
  int status = -1;
};

// Runs a shell command, in which $T is the program with a tokenizer.
Finished shell(const std::string& command) {
  const std::string line = "T='" TIERD_TOKENIZE " -m " + kTokenizer + "'; " + command;
  Finished run;
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  for (size_t bytes = 0; (bytes = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    run.output.append(buffer, bytes);
  const int status = pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

TEST(TierTokenize, PrintsIdsOrLines) {
  const Finished ids = shell("$T --ids -p 'the the'");
  EXPECT_EQ(ids.status, 0);
  EXPECT_THAT(ids.output, StartsWith("[1, "));
  EXPECT_THAT(ids.output, EndsWith("]\n"));
  EXPECT_THAT(shell("$T -p 'the'").output, HasSubstr("     1 -> '<s>'\n"));
  EXPECT_EQ(shell("printf 'the the' | $T --ids").output, ids.output);
  EXPECT_EQ(shell("$T --no-bos --ids -p ''").output, "[]\n");
  EXPECT_EQ(shell("$T --special --ids -p '</s>'").output, "[1, 2]\n");
}

TEST(TierTokenize, BytesGoThereAndBack) {
  EXPECT_EQ(shell("printf 'a b\\n\\377\\000x ' | $T --ids | $T --decode -").output,
            std::string("a b\n\xff\0x ", 8));
  EXPECT_EQ(shell("$T --decode '[1, 2]'").output, "");
  EXPECT_EQ(shell("$T --special --decode 1,2").output, "<s></s>");
}

TEST(TierTokenize, OpensModels) {
  const Finished run = shell(TIERD_TOKENIZE " -m " + kModel + " --ids -p x");
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, StartsWith("["));
}

TEST(TierTokenize, BadInputIsOneLineAndStatusTwo) {
  for (const char* command :
       {"$T --ids --nope", "$T -p a -f b", "$T -f /there/is/none", "$T -f /", "$T --decode 'x'",
        "$T --decode 99999999", "$T --decode 99999999999999999999", "$T --decode 1 --ids",
        TIERD_TOKENIZE " -p x", TIERD_TOKENIZE " -m /there/is/none -p x", TIERD_TOKENIZE " -m / -p x"}) {
    const Finished run = shell(std::string(command) + " 2>&1 >/dev/null </dev/null");
    EXPECT_EQ(run.status, 2) << command;
    EXPECT_THAT(run.output, StartsWith("tier-tokenize: ")) << command;
    EXPECT_EQ(run.output.find('\n'), run.output.size() - 1) << command << ": " << run.output;
  }
}

TEST(TierTokenize, HelpTeaches) {
  const Finished run = shell(TIERD_TOKENIZE " --help");
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, HasSubstr("Examples:"));
}

TEST(TierTokenize, SaysWhenTheOutputIsLost) {
  const Finished run = shell("$T --ids -p x 2>&1 >/dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, StartsWith("tier-tokenize: standard output: "));
}

}  // namespace
}  // namespace tierd
