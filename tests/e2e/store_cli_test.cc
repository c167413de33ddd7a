// Runs tier-store as a user does, with a cache folder of its own.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"
#include "tests/formats/files.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class StoreCli : public ProgramTest {
 protected:
  static Ended stores(std::vector<std::string> arguments) {
    return run_program(TIERD_BIN_STORE, std::move(arguments));
  }
  static json listed() {
    const Ended run = stores({"list", "--json"});
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out)["stores"];
  }
  static void use(const std::string& model, const std::string& config) {
    const Ended run = run_tierd({"-m", model, "-p", "The", "-n", "1", "--config", config_file(config), "-q"});
    ASSERT_EQ(run.status, 0) << run.err;
  }
  // Sets the store's last use back in time.
  static void age(const std::string& store, std::chrono::hours by) {
    std::filesystem::last_write_time(store, std::filesystem::file_time_type::clock::now() - by);
  }
};

// The GGUF file has the same weights and tokenizer, so it gives the same text.
TEST_F(StoreCli, AModelBecomesAGgufFile) {
  const std::string model = TIERD_SOURCE_DIR "/tests/golden/models/gguf-llama-f16/model.gguf";
  const std::string gguf = folder().path() + "/model.gguf";
  const auto convert = [&] { return run_program(TIERD_BIN_CONVERT, {model, gguf, "-q"}); };
  const Ended made = convert();
  ASSERT_EQ(made.status, 0) << made.err;
  const auto text = [](const std::string& of) {
    const Ended run = run_tierd({"-m", of, "-p", "The", "-n", "12", "--temp", "0", "--ignore-eos", "-q"});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(text(gguf), text(model));
  const Ended again = convert();
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("model.gguf: exists, and a GGUF file does not overwrite files"));
  const Ended verified = run_program(TIERD_BIN_CONVERT, {model, folder().path() + "/other.gguf", "--verify"});
  EXPECT_EQ(verified.status, 2);
  EXPECT_THAT(verified.err, HasSubstr("--verify apply to stores, but OUT is a GGUF file"));
}

TEST_F(StoreCli, AnEmptyFolderHasNoStores) {
  EXPECT_THAT(listed(), IsEmpty());
  const Ended run = stores({"list"});
  EXPECT_THAT(run.out, HasSubstr("0 stores in " + cache()));
  EXPECT_EQ(stores({"prune", "--keep", "0"}).status, 0);
  EXPECT_EQ(stores({"verify"}).status, 0);
}

TEST_F(StoreCli, ListsWhatThereIsTheLeastRecentlyUsedFirst) {
  use(kDemo, "hybrid");
  use(kDemo, "activeflow");
  json list = listed();
  ASSERT_EQ(list.size(), 2u);
  for (const json& store : list) {
    EXPECT_EQ(store["state"], "whole");
    EXPECT_EQ(store["source"], kDemo);
    EXPECT_EQ(store["in_use"], false);
    EXPECT_GT(store["bytes"], 10'000'000);
    EXPECT_EQ(store["encodings"], json::array({"f16"}));
  }
  for (const json& store : list) age(store["path"], std::chrono::hours(store["layout"] == "row" ? 9 : 5));
  list = listed();
  EXPECT_EQ(list[0]["layout"], "row");
  EXPECT_EQ(list[1]["layout"], "channel-group");
  use(kDemo, "hybrid");
  EXPECT_EQ(listed()[1]["layout"], "row");
  EXPECT_THAT(stores({"list"}).out,
              AllOf(HasSubstr("channel-group"), HasSubstr("2 stores in"), HasSubstr(kDemo)));
}

TEST_F(StoreCli, PrunesToASizeAndSparesWhatIsUsedOrCouldNotBeMadeAgain) {
  use(kDemo, "hybrid");
  use(kDemo, "activeflow");
  const std::string copy = folder().path() + "/copy";
  std::filesystem::copy(kDemo, copy);
  use(copy, "hybrid");
  std::filesystem::remove_all(copy);
  for (const json& store : listed())
    age(store["path"], std::chrono::hours(store["source"] == copy ? 9 : store["layout"] == "row" ? 5 : 1));

  const Ended dry = stores({"prune", "--keep", "12MB", "--dry-run"});
  EXPECT_EQ(dry.status, 0);
  EXPECT_THAT(dry.out, AllOf(HasSubstr("would remove"), HasSubstr("would be left")));
  EXPECT_EQ(listed().size(), 3u);

  const Ended pruned = stores({"prune", "--keep", "22MB"});
  EXPECT_EQ(pruned.status, 0) << pruned.err;
  EXPECT_THAT(pruned.err, HasSubstr("its model " + copy + " no longer exists"));
  json list = listed();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["source_gone"], true);
  EXPECT_EQ(list[1]["layout"], "channel-group");

  StartedProgram server(TIERD_BIN_TIERD,
                        {"serve", "-m", kDemo, "--config", config_file("activeflow"), "--port", "0"});
  while (!listed()[1]["in_use"].get<bool>()) usleep(20'000);
  EXPECT_THAT(stores({"prune", "--keep", "0"}).err, HasSubstr("it is in use"));
  EXPECT_EQ(listed().size(), 2u);
  server.kill(SIGKILL);
  (void)server.wait();
  EXPECT_EQ(stores({"prune", "--keep", "0"}).status, 0);
  EXPECT_EQ(listed().size(), 1u);
  EXPECT_EQ(cached().size(), 1u);  // nothing half removed is left
}

TEST_F(StoreCli, VerifiesEveryStoreAndNamesTheDamagedOnes) {
  use(kDemo, "hybrid");
  use(kDemo, "activeflow");
  Ended run = stores({"verify", "-q"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr(": sound\n"), HasSubstr(cache())));
  const std::string first = listed()[0]["path"], second = listed()[1]["path"];
  flip_bit(first + "/weights.bin", 5000, 1);
  run = stores({"verify", "-q"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr(first), HasSubstr("the store is damaged")));
  EXPECT_EQ(run.out, second + ": sound\n");
  run = stores({"verify", "-q", std::filesystem::path(second).filename().string()});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(stores({"verify", "-q", "no-such-store"}).status, 1);
}

TEST_F(StoreCli, WhatIsBegunOrUnreadableIsListedAndRemoved) {
  use(kDemo, "hybrid");
  const std::string store = listed()[0]["path"];
  std::filesystem::create_directory(store + "x.partial");
  std::ofstream(store + "x.partial/weights.bin") << "abc";
  std::filesystem::create_directory(cache() + "/hardware");
  std::ofstream(store + "/manifest.json") << "{";
  for (const json& kept : listed()) {
    EXPECT_EQ(kept["state"], kept["path"] == store ? "unreadable" : "unfinished");
    EXPECT_EQ(kept["why"].get<std::string>().empty(), kept["path"] != store);
  }
  EXPECT_EQ(stores({"prune", "--keep", "0"}).status, 0);
  EXPECT_THAT(listed(), IsEmpty());
  EXPECT_THAT(cached(), testing::ElementsAre("hardware"));
}

TEST_F(StoreCli, AStoreByACodecIsMadeAndVerifiedWhereItsCodecIs) {
  const std::string store = folder().path() + "/by-zstd";
  const auto convert = [](std::vector<std::string> arguments) {
    return run_program(TIERD_BIN_CONVERT, std::move(arguments));
  };
  const Ended made =
      convert({kDemo, store, "--compression", "zstd", "--codec", "level=1", "--neuron-bytes", "256KiB"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("zstd: "));
  EXPECT_THAT(made.out, HasSubstr("(level=1)"));
  EXPECT_THAT(json::parse(file_text(store + "/manifest.json"))["compression"], "zstd");
  EXPECT_EQ(convert({"--verify", store, "-q"}).status, 0);
  EXPECT_EQ(stores({"verify", "-q", store}).out, store + ": sound\n");
  // A program without its plugins beside it does not find the codec unless given the plugin path.
  const std::string alone = folder().path() + "/alone/bin/";
  std::filesystem::create_directories(alone);
  std::filesystem::copy(TIERD_BIN_STORE, alone + "tier-store");
  const Ended missing = run_program(alone + "tier-store", {"verify", "-q", store});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr(store + ": its neurons are compressed by codec 'zstd': there is no "
                                             "codec 'zstd' in "));
  EXPECT_EQ(
      run_program(alone + "tier-store", {"verify", "-q", store, "--plugin-path", TIERD_PLUGIN_DIR}).status,
      0);

  const Ended unknown = convert({kDemo, store + "2", "--compression", "zip"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(
      unknown.err,
      HasSubstr("--compression: expected none, bitmap or the name of a codec: there is no codec 'zip'"));
  EXPECT_THAT(convert({kDemo, store + "2", "--compression", "zstd", "--codec", "level=20"}).err,
              HasSubstr("--codec: 'codec.level' is 20, a whole number within 1 and 19 was expected"));
  EXPECT_THAT(convert({kDemo, store + "2", "--compression", "zstd", "--codec", "level"}).err,
              HasSubstr("--codec: is 'level', expected KEY=VALUE"));
  EXPECT_THAT(convert({kDemo, store + "2", "--codec", "level=2"}).err,
              HasSubstr("--codec: 'level' is a parameter of a codec, but --compression is 'none'"));
}

TEST_F(StoreCli, WrongArgumentsAreALine) {
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {}, {"prune"}, {"prune", "--keep", "much"}, {"list", "x"}, {"remove"}}) {
    const Ended run = stores(wrong);
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

}  // namespace
}  // namespace tierd
