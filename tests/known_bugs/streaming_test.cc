// Disks, budgets, plugins and flags of kinds that made other programs give wrong tokens or none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/kernel/post/clocks.h"
#include "core/strategy/plugin_file.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/program.h"
#include "tests/flash/flash_world.h"
#include "tests/flash/manual_device.h"
#include "tests/formats/gguf_builder.h"
#include "tests/sanitized.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

using testing::HasSubstr;

// A disk returns less than was requested; the rest must not be used as weights.
TEST(KnownBugs, ShortReads_18504) {
  FlashWorld world({{.offset = 0, .bytes = 8 * kBlock}}, 8 * kBlock);
  auto device = std::make_unique<ManualDevice>(world.content(), 4);
  ManualDevice* const disk = device.get();
  const WallClock clock;
  FlashAgent agent(FlashWorld::kAgent, world.pools(), clock, std::move(device), world.table(), {});
  const Message message = world.read({0});
  ASSERT_EQ(agent.submit(message, world.payload(message)), Submit::ok);
  const auto drive = [&] {
    while (agent.drive() == Drive::busy) {
    }
  };
  drive();
  for (const int32_t given : {512, 4096, 5000, 0}) {
    ASSERT_EQ(disk->started.size(), 1u);
    if (given == 0) {
      disk->finish(0);
    } else {
      disk->finish(0, given);
    }
    drive();
  }
  Done done;
  ASSERT_EQ(agent.poll({&done, 1}), 1u);
  EXPECT_EQ(done.status, DoneStatus::ok);
  world.expect_landed(message, 1);
}

// A file system without direct I/O answers EINVAL.
TEST(KnownBugs, NoDirectIo_18766) {
  const std::string path = "/dev/shm/tierd-known-bugs-" + std::to_string(getpid());
  const std::string bytes(2 * kBlock, 'x');
  std::ofstream(path) << bytes;
  auto device = open_device(path, {.kind = DeviceKind::pread});
  std::filesystem::remove(path);
  ASSERT_TRUE(device.ok()) << device.error().line();
  const AlignedMemory memory = aligned_memory(kBlock);
  ASSERT_TRUE((*device)->push({.token = 1, .offset = kBlock, .into = {memory.get(), kBlock}}));
  (*device)->flush();
  DeviceDone done;
  while ((*device)->poll({&done, 1}) == 0) {
  }
  EXPECT_EQ(done.result, static_cast<int32_t>(kBlock));
  EXPECT_EQ(static_cast<char>(memory[17]), 'x');
}

class KnownBugsOfPrograms : public ProgramTest {
 protected:
  static std::vector<std::string> with(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "--config", config_file("hybrid"), "-m", kDemo, "-p", "To be", "-n", "4", "-t", "1", "-c", "64"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

// A key that no code reads would be believed to have an effect.
TEST_F(KnownBugsOfPrograms, FlagsThatDoNothing_ds4_639) {
  for (const std::string key : {"tiers.dram.capasity", "cache.no_such_key", "nothing"}) {
    const Ended ended = run_tierd(with({"--set", key + "=1"}));
    EXPECT_EQ(ended.status, 2) << key;
    EXPECT_THAT(ended.err, HasSubstr(key.substr(key.rfind('.') + 1)));
  }
  EXPECT_EQ(run_tierd({"-m", kDemo, "--json", "--port", "0"}).status, 2);
  EXPECT_EQ(run_tierd({"-m", kDemo, "--prompt-lookup", "-cnv"}).status, 2);
  EXPECT_EQ(run_tierd({"-m", kDemo, "--set", "speculation.lookup=true", "-cnv"}).status, 2);
}

// The model gives only control tokens. They have no text, but a stop string may name them.
TEST_F(KnownBugsOfPrograms, StopsThatNameControlTokens_tinker_feedback_90) {
  GgufBuilder model = tiny_gguf_llama();
  model.set_text("tokenizer.ggml.model", "llama");
  model.set_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab", "c", "▁"});
  model.set_numbers<float>("tokenizer.ggml.scores", GgufType::f32, {0, 0, 0, -1, -2, -3, -4, -5});
  model.set_numbers<int32_t>("tokenizer.ggml.token_type", GgufType::i32, {2, 3, 3, 1, 1, 1, 1, 1});
  const TempFolder folder;
  const std::string path = folder.write("m.gguf", model.bytes());
  const auto said = [&](const std::string& stop) {
    const Ended ended = run_tierd(
        {"-m", path, "-p", "a", "-n", "3", "-l", "1+1000", "--json", "-q", "-t", "1", "--fit", "-r", stop});
    EXPECT_EQ(ended.status, 0) << ended.err;
    return nlohmann::json::parse(ended.out)["report"]["generated_tokens"].get<int>();
  };
  EXPECT_EQ(said("<s>"), 1);
  EXPECT_EQ(said("<s><s>"), 2);
  EXPECT_EQ(said("<s>a"), 3);
}

// A request that cannot be met is an error; nothing else takes its place.
TEST_F(KnownBugsOfPrograms, OverriddenInSilence_unsloth_169) {
  const Ended small = run_tierd(with({"--set", "tiers.dram.capacity=100KB"}));
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.err, HasSubstr("--fit"));
  const Ended strategy = run_tierd(with({"--set", "cache.name=best"}));
  EXPECT_EQ(strategy.status, 2);
  EXPECT_THAT(strategy.err, HasSubstr("best"));
}

// Memory that the allocator uses beside the budget counts as well.
TEST_F(KnownBugsOfPrograms, MemoryBeyondTheBudget_22629) {
  const std::string budget = "24MB";
  const Ended ended = run_tierd(with({"--set", "tiers.dram.capacity=" + budget, "--fit", "--json"}));
  ASSERT_EQ(ended.status, 0) << ended.err;
  const nlohmann::json report = nlohmann::json::parse(ended.out)["report"];
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  constexpr uint64_t kBeside = 64u << 20;  // as README.md promises
  if (!kSanitized) {
    EXPECT_LE(static_cast<uint64_t>(children.ru_maxrss) << 10,
              report["tiers"][0]["budget"]["capacity_bytes"].get<uint64_t>() + kBeside);
  }
}

TEST(KnownBugs, PluginsOfAnotherInterface_localai_11379) {
  const auto plugin = load_plugin(TIERD_BAD_PLUGIN_DIR "/cache-wrong_major.so", "cache", "wrong_major");
  ASSERT_FALSE(plugin.ok());
  EXPECT_THAT(plugin.error().line(), HasSubstr("was built for version 99."));
}

// A plugin that ends the process when loaded, by an illegal instruction. Plugins that are not named are not
// loaded.
TEST_F(KnownBugsOfPrograms, PluginsThatEndTheProcess_14286) {
  const std::vector<std::string> path = {"--plugin-path", folder().path()};
  std::filesystem::copy_file(TIERD_BAD_PLUGIN_DIR "/cache-illegal_instruction.so",
                             folder().path() + "/cache-illegal_instruction.so");
  std::vector<std::string> listing = path;
  listing.insert(listing.end(), {"--config", config_file("hybrid"), "--plugins"});
  const Ended listed = run_tierd(listing);
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.out, HasSubstr("illegal_instruction"));
  EXPECT_EQ(run_tierd(with(path)).status, 0);
  std::vector<std::string> named = with(path);
  named.insert(named.end(), {"--set", "cache.name=illegal_instruction"});
  EXPECT_EQ(run_tierd(named).status, 128 + SIGILL);
}

}  // namespace
}  // namespace tierd
