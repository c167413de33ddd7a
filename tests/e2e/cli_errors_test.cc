// Any invalid input gives one clear line on standard error, exit status 2 and nothing on standard output.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/e2e/program.h"

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class CliErrors : public ProgramTest {
 protected:
  // Returns the error line that tierd prints for these arguments.
  std::string refused(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "-q");
    const std::string shown = testing::PrintToString(arguments);
    const Ended run = run_tierd(std::move(arguments));
    EXPECT_EQ(run.status, 2) << shown << run.err;
    EXPECT_THAT(run.out, IsEmpty()) << shown;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << shown << run.err;
    return run.err;
  }
  std::string refused_config(const std::string& text) {
    return refused({"--config", folder().write("run.toml", text), "-m", kDemo});
  }
  std::string refused_key(const std::string& pair) { return refused({"-m", kDemo, "--set", pair}); }
};

TEST_F(CliErrors, KeysOfTheConfiguration) {
  EXPECT_THAT(
      refused_config("[tiers.dram]\n\ncapcity = \"50%\"\n"),
      HasSubstr("run.toml:3: tiers.dram 'dram' has no parameter 'capcity'; did you mean 'capacity'?"));
  EXPECT_THAT(
      refused_config("[tiers.flash]\ndevice = \"ssd\"\n"),
      HasSubstr("run.toml:2: 'tiers.flash.device' is \"ssd\", one of auto, io_uring, pread was expected"));
  EXPECT_THAT(refused_config("[run]\nthreads = \"two\"\n"), HasSubstr("run.toml:2: 'run.threads' must be"));
  EXPECT_THAT(refused_config("[run]\nthreads = -1\n"), HasSubstr("run.toml:2: 'run.threads' must be"));
  EXPECT_THAT(refused_config("[run]\nkv = \"f64\"\n"), HasSubstr("expected one of f16|f32"));
  EXPECT_THAT(refused_config("[scheduler]\nprefetch = 1\n"), HasSubstr("must be true or false"));
  EXPECT_THAT(refused_config("[run\nthreads = 1\n"), HasSubstr("run.toml:1"));
  EXPECT_THAT(refused_config("run = 3\n"), HasSubstr("run.toml:1: unknown key 'run'"));
  EXPECT_THAT(refused({"--config", folder().path(), "-m", kDemo}), HasSubstr("is a folder"));
  EXPECT_THAT(refused({"--config", folder().path() + "/none.toml", "-m", kDemo}), HasSubstr("none.toml"));
}

TEST_F(CliErrors, OverridesOfTheConfiguration) {
  EXPECT_THAT(refused_key("run.thread=1"),
              AllOf(HasSubstr("--set: unknown key 'run.thread'"), HasSubstr("'run.threads'")));
  EXPECT_THAT(refused_key("run.threads=many"), HasSubstr("'run.threads' must be a whole number"));
  EXPECT_THAT(refused_key("run.threads"), HasSubstr("expected key=value"));
  EXPECT_THAT(refused_key("=1"), HasSubstr("--set"));
  EXPECT_THAT(refused_key("tiers.dram.capacity=plenty"), HasSubstr("tiers.dram.capacity"));
  EXPECT_THAT(refused_key("tiers.dram.capacity=-5%"), HasSubstr("tiers.dram.capacity"));
  EXPECT_THAT(refused_key("tiers.dram.staging=0.5 parsec"), HasSubstr("tiers.dram.staging"));
  EXPECT_THAT(refused_key("tiers.dram.staging=all"),
              HasSubstr("tiers.dram.staging: 'all' is neither a size nor a share"));
  EXPECT_THAT(refused_key("cache.name=lfru"), HasSubstr("lfru"));
  EXPECT_THAT(refused_key("scheduler.shuffle=x"), HasSubstr("scheduler.shuffle"));
  EXPECT_THAT(refused_key("tiers.flash.depth=1000000"), HasSubstr("1000000"));
  EXPECT_THAT(refused_key("run.threads=1000000"), HasSubstr("1000000"));
}

TEST_F(CliErrors, Models) {
  EXPECT_THAT(refused({}), HasSubstr("-m"));
  EXPECT_THAT(refused({"-m", "/nowhere/model.gguf"}), HasSubstr("/nowhere/model.gguf"));
  EXPECT_THAT(refused({"-m", folder().write("model.gguf", "not a model at all\n")}),
              HasSubstr("is neither GGUF, nor safetensors, nor a llama2.c checkpoint"));
  EXPECT_THAT(refused({"-m", folder().write("empty.gguf", "")}), HasSubstr("empty.gguf"));
  EXPECT_THAT(refused({"-m", folder().write("short.gguf", "GGUF\3")}), HasSubstr("short.gguf"));
  EXPECT_THAT(refused({"-m", TIERD_SOURCE_DIR "/docs-that-are-not-here"}),
              HasSubstr("docs-that-are-not-here"));
  EXPECT_THAT(refused({"-m", TIERD_SOURCE_DIR "/tests"}), HasSubstr("config.json"));
  EXPECT_THAT(refused({"-m", "/dev/null"}), HasSubstr("/dev/null"));
  EXPECT_THAT(refused({"-m", TIERD_SOURCE_DIR "/tests/golden/models/llama2"}), HasSubstr("--tokenizer"));
  EXPECT_THAT(refused({"-m", kDemo, "--tokenizer", "/nowhere/tokenizer.json"}),
              HasSubstr("/nowhere/tokenizer.json"));
}

TEST_F(CliErrors, Stores) {
  const std::string store = folder().path() + "/store";
  ASSERT_EQ(run_program(TIERD_BIN_CONVERT, {kDemo, store, "-q"}).status, 0);
  const std::string manifest = file_text(store + "/manifest.json");
  flip_bit(store + "/manifest.json", manifest.size() / 2, 1);
  EXPECT_THAT(refused({"-m", store}), HasSubstr("manifest.json"));
  folder().write("store/manifest.json", manifest.substr(0, manifest.size() / 3));
  EXPECT_THAT(refused({"-m", store}), HasSubstr("manifest.json"));
  folder().write("store/manifest.json", manifest);
  std::filesystem::resize_file(store + "/weights.bin", 4096);
  EXPECT_THAT(refused({"-m", store}), HasSubstr("weights.bin: 4096 bytes"));
  std::filesystem::remove(store + "/weights.bin");
  EXPECT_THAT(refused({"-m", store}), HasSubstr("weights.bin"));
  std::filesystem::remove(store + "/manifest.json");
  EXPECT_THAT(refused({"-m", store}), HasSubstr(store));
}

TEST_F(CliErrors, Numbers) {
  EXPECT_THAT(refused({"-m", kDemo, "-c", "257"}), AllOf(HasSubstr("257"), HasSubstr("256")));
  EXPECT_THAT(refused({"-m", kDemo, "-c", "-1"}), HasSubstr("--ctx-size"));
  EXPECT_THAT(refused({"-m", kDemo, "-n", "ten"}), HasSubstr("--predict"));
  EXPECT_THAT(refused({"-m", kDemo, "-ub", "0"}), HasSubstr("ubatch"));
  EXPECT_THAT(refused({"-m", kDemo, "--temp", "-1"}), HasSubstr("temp"));
  EXPECT_THAT(refused({"-m", kDemo, "--temp", "nan"}), HasSubstr("temp"));
  EXPECT_THAT(refused({"-m", kDemo, "--top-p", "-0.5"}), HasSubstr("top"));
  EXPECT_THAT(refused({"-m", kDemo, "-p", "a", "-f", "b"}), HasSubstr("--file"));
}

TEST_F(CliErrors, Prompts) {
  std::string words;
  for (int i = 0; i < 400; ++i) words += "a word ";
  EXPECT_THAT(refused({"-m", kDemo, "-p", words, "-ub", "16"}), HasSubstr("do not fit in a context of 256"));
  EXPECT_THAT(refused({"-m", kDemo, "-f", folder().path()}), HasSubstr(folder().path()));
  EXPECT_THAT(refused({"-m", kDemo, "-f", "/nowhere/prompt"}), HasSubstr("/nowhere/prompt"));
}

}  // namespace
}  // namespace tierd
