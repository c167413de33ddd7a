// Downloads a model from a hub that may fail into the shared cache.
#include "tests/tierd/hub_download.h"

#include <sys/resource.h>

#include <csignal>
#include <thread>

namespace tierd {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;

TEST_F(HubDownload, LiesAsHuggingFacesOwnLibraryPutsIt) {
  const std::string path = fetched();
  EXPECT_EQ(path, repository() + "/snapshots/" + hub_.commit + "/" + kModel);
  EXPECT_TRUE(is_model(path));
  EXPECT_EQ(fs::read_symlink(path), "../../blobs/" + hub_.hash(kModel));
  EXPECT_EQ(file_text(repository() + "/refs/main"), hub_.commit);
  EXPECT_THAT(blobs(), ElementsAre(hub_.hash(kModel))) << "what is no model stays where it is";
  EXPECT_TRUE(fs::exists(settings_.cache + "/.locks/models--owner--repo/" + hub_.hash(kModel) + ".lock"));
  EXPECT_THAT(waits_, IsEmpty());
}

TEST_F(HubDownload, LinksInFoldersLeadBackToo) {
  hub_.files["sub/dir/x-Q8_0.gguf"] = {noise(1000, 2)};
  const std::string path = fetched("owner/repo:Q8_0");
  EXPECT_EQ(fs::read_symlink(path), "../../../../blobs/" + hub_.hash("sub/dir/x-Q8_0.gguf"));
  EXPECT_EQ(file_text(path), hub_.files["sub/dir/x-Q8_0.gguf"].bytes);
}

TEST_F(HubDownload, WhatIsInTheCacheNeedsNoNetwork) {
  const std::string path = fetched();
  const size_t asked = hub_.seen().size();
  EXPECT_EQ(fetched(), path);
  EXPECT_EQ(fetched("owner/repo:q4_k_m"), path);
  EXPECT_EQ(fetched("owner/repo", kModel), path);
  EXPECT_EQ(hub_.seen().size(), asked);
  settings_.endpoint = "http://127.0.0.1:1";
  EXPECT_EQ(fetched(), path);
  settings_.offline = true;
  EXPECT_EQ(fetched(), path);
  EXPECT_THAT(refused("owner/repo:Q8_0"),
              AllOf(HasSubstr("owner/repo:Q8_0 is not in the cache"), HasSubstr("--offline")));
  EXPECT_THAT(refused("other/repo"), HasSubstr("other/repo is not in the cache"));
  EXPECT_THAT(waits_, IsEmpty());
}

TEST_F(HubDownload, AnotherQuantInTheCacheIsNotTakenForTheUsualOne) {
  hub_.files["m-Q8_0.gguf"] = {noise(1000, 2)};
  const std::string eight = fetched("owner/repo:Q8_0");
  EXPECT_THAT(fetched(), HasSubstr(kModel));
  fs::remove_all(repository());
  (void)fetched("owner/repo:Q8_0");
  settings_.endpoint = "http://127.0.0.1:1";
  EXPECT_EQ(fetched(), eight) << "but it is better than nothing where the hub cannot be reached";
  EXPECT_THAT(refused("owner/repo:Q4_K_M"), HasSubstr("the server cannot be reached"));
  EXPECT_THAT(waits_, IsEmpty()) << "who has no network is told so at once";
}

TEST_F(HubDownload, ANewCommitSharesItsBlobs) {
  const std::string before = fetched();
  hub_.commit = std::string(40, 'd');
  hub_.files["m-Q8_0.gguf"] = {noise(1000, 2)};
  (void)fetched("owner/repo:Q8_0");
  EXPECT_EQ(file_text(repository() + "/refs/main"), hub_.commit);
  const size_t asked = gets().size();
  const std::string after = fetched();
  EXPECT_NE(after, before);
  EXPECT_TRUE(is_model(after));
  EXPECT_EQ(gets().size(), asked) << "linked, not downloaded";
}

TEST_F(HubDownload, ShardsAndFoldersComeWhole) {
  hub_.files = {{"m-00001-of-00003.gguf", {noise(1000, 1)}},
                {"m-00002-of-00003.gguf", {noise(2000, 2)}},
                {"m-00003-of-00003.gguf", {noise(0, 3)}}};
  const std::string path = fetched();
  for (const auto& [name, file] : hub_.files)
    EXPECT_EQ(file_text(fs::path(path).parent_path() / name), file.bytes) << name;
  fs::remove_all(repository());
  hub_.files = {{"config.json", {"{}", false}},
                {"tokenizer.json", {"{\"a\": 1}", false}},
                {"model.safetensors", {noise(5000, 4)}},
                {"flax_model.msgpack", {noise(5000, 5)}}};
  const std::string folder = fetched();
  EXPECT_EQ(folder, repository() + "/snapshots/" + hub_.commit);
  EXPECT_EQ(file_text(folder + "/config.json"), "{}");
  EXPECT_EQ(file_text(folder + "/model.safetensors"), hub_.files["model.safetensors"].bytes);
  EXPECT_FALSE(fs::exists(folder + "/flax_model.msgpack"));
  EXPECT_EQ(fs::read_symlink(folder + "/config.json").filename(), FakeHub::hash_of("{}", false));
}

// Cuts in the status line, in the headers, at the first byte, in the middle, and before the last byte.
TEST_F(HubDownload, BrokenOffAnywhereItGoesOn) {
  for (const size_t cut : {0u, 1u, 9u, 15u, 40u, 80u}) {
    fs::remove_all(repository());
    const size_t before = gets().size();
    answer_first(2, [&](const Seen& seen) {
      Answer answer = hub_.serve(seen);
      answer.cut = cut;
      return answer;
    });
    EXPECT_TRUE(is_model(fetched())) << cut;
    EXPECT_EQ(gets().size(), before + 3) << cut;
  }
  for (const size_t cut : {0u, 1u, 4096u, 65'536u, 123'457u, 299'999u}) {
    fs::remove_all(repository());
    const size_t before = gets().size();
    answer_first(1, [&](const Seen& seen) {
      Answer answer = hub_.serve(seen);
      answer.cut_body = cut;
      return answer;
    });
    EXPECT_TRUE(is_model(fetched())) << cut;
    ASSERT_EQ(gets().size(), before + 2) << cut;
    const Seen again = gets().back();
    if (cut > 0) {
      EXPECT_EQ(again.headers.at("range"), "bytes=" + std::to_string(cut) + "-");
      EXPECT_EQ(again.headers.at("if-range"), '"' + hub_.hash(kModel) + '"');
    } else {
      EXPECT_THAT(again.headers, Not(Contains(Key("range"))));
    }
  }
  EXPECT_THAT(blobs(), ElementsAre(hub_.hash(kModel)));
}

TEST_F(HubDownload, AThousandBreaksAreNoneAsLongAsSomethingComes) {
  hub_.files[kModel].bytes = noise(10'000, 1);
  hub_.hook = [&](const Seen& seen) -> std::optional<Answer> {
    Answer answer = hub_.serve(seen);
    if (seen.path.find("/resolve/") != std::string::npos) answer.cut_body = 100;
    return answer;
  };
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_EQ(gets().size(), 100u);
  EXPECT_THAT(waits_, Each(1)) << "and the pause does not grow";
}

TEST_F(HubDownload, WithoutALengthAnEndIsABreak) {
  answer_first(3, [&](const Seen& seen) {
    Answer answer = hub_.serve(seen);
    answer.length = false;
    answer.cut_body = 50'000;
    return answer;
  });
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_EQ(gets().size(), 4u);
}

TEST_F(HubDownload, AnotherRunGoesOn) {
  leave(bytes().substr(0, 200'000));
  EXPECT_TRUE(is_model(fetched()));
  ASSERT_EQ(gets().size(), 1u);
  EXPECT_EQ(gets()[0].headers.at("range"), "bytes=200000-");
  fs::remove_all(repository());
  leave(bytes());
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_EQ(gets().size(), 1u) << "it was whole but for its name";
  fs::remove_all(repository());
  leave(bytes() + "x");
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_THAT(gets().back().headers, Not(Contains(Key("range")))) << "more than there is: anew";
}

TEST_F(HubDownload, AServerThatKnowsNoRangesBeginsAgain) {
  leave(bytes().substr(0, 200'000));
  answer_first(99, [&](const Seen&) { return Answer{.body = bytes()}; });
  EXPECT_TRUE(is_model(fetched()));
  fs::remove_all(repository());
  int times = 0;
  answer_first(99, [&](const Seen&) {
    return Answer{.body = bytes(),
                  .cut_body = ++times < 3 ? 100'000u * static_cast<unsigned>(times) : bytes().size()};
  });
  EXPECT_TRUE(is_model(fetched()));
  fs::remove_all(repository());
  answer_first(99, [&](const Seen&) { return Answer{.body = bytes(), .cut_body = 100'000}; });
  EXPECT_THAT(refused(), HasSubstr("tries without a further byte")) << "it never comes further";
}

TEST_F(HubDownload, WrongRangesAreNotSewnTogether) {
  leave(bytes().substr(0, 200'000));
  answer_first(1, [&](const Seen&) {
    return Answer{.status = 206,
                  .headers = {{"Content-Range", "bytes 100000-299999/300000"}},
                  .body = bytes().substr(100'000)};
  });
  EXPECT_TRUE(is_model(fetched()));
  fs::remove_all(repository());
  leave(bytes().substr(0, 200'000));
  answer_first(1, [&](const Seen&) { return Answer{.status = 206, .body = bytes().substr(200'000)}; });
  EXPECT_TRUE(is_model(fetched()));
  fs::remove_all(repository());
  leave(bytes().substr(0, 200'000));
  answer_first(1, [&](const Seen&) { return Answer{.status = 416}; });
  EXPECT_TRUE(is_model(fetched()));
}

TEST_F(HubDownload, AFileThatChangesInBetweenBeginsAgain) {
  const std::string other = noise(300'000, 99);
  int times = 0;
  // First another file, whose connection breaks; then the answer of a server that ignores If-Range.
  answer_first(2, [&](const Seen& seen) {
    if (++times == 1) return Answer{.headers = {{"ETag", "\"other\""}}, .body = other, .cut_body = 150'000};
    Seen without = seen;
    without.headers.erase("if-range");
    return hub_.serve(without);
  });
  EXPECT_TRUE(is_model(fetched()));
  ASSERT_EQ(gets().size(), 3u);
  EXPECT_EQ(gets()[1].headers.at("if-range"), "\"other\"");
  EXPECT_THAT(gets()[2].headers, Not(Contains(Key("range"))));
}

TEST_F(HubDownload, AWrongChecksumIsRemoved) {
  const std::string other = noise(300'000, 99);
  answer_first(1, [&](const Seen&) { return Answer{.body = other}; });
  EXPECT_THAT(refused(), AllOf(HasSubstr("has the checksum " + FakeHub::hash_of(other, true)),
                               HasSubstr("expected " + hub_.hash(kModel)), HasSubstr("removed")));
  EXPECT_THAT(blobs(), IsEmpty());
  EXPECT_FALSE(fs::exists(repository() + "/snapshots")) << "nothing that could be taken for a model";
  EXPECT_TRUE(is_model(fetched()));
}

TEST_F(HubDownload, AnotherLengthIsRefused) {
  answer_first(1, [&](const Seen&) { return Answer{.body = "<html>log in first</html>"}; });
  EXPECT_THAT(refused(), HasSubstr("the file has 25 bytes, expected 300000 bytes"));
  answer_first(1, [&](const Seen&) { return Answer{.body = bytes() + "x", .length = false}; });
  EXPECT_THAT(refused(),
              HasSubstr("the server sent more than the expected 300000 bytes; the file was removed"));
  EXPECT_THAT(blobs(), IsEmpty());
}

TEST_F(HubDownload, WhatPassesIsWaitedFor) {
  for (const unsigned status : {500u, 502u, 503u, 504u, 408u, 429u}) {
    fs::remove_all(repository());
    waits_.clear();
    answer_first(3, [&](const Seen&) { return Answer{.status = status}; });
    EXPECT_TRUE(is_model(fetched())) << status;
    EXPECT_THAT(waits_, ElementsAre(1, 2, 4)) << status;
  }
  fs::remove_all(repository());
  waits_.clear();
  answer_first(2, [&](const Seen&) { return Answer{.status = 429, .headers = {{"Retry-After", "17"}}}; });
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_THAT(waits_, ElementsAre(17, 17));
  fs::remove_all(repository());
  waits_.clear();
  answer_first(99, [&](const Seen&) { return Answer{.status = 503}; });
  EXPECT_THAT(refused(), AllOf(HasSubstr("the answer is 503"), HasSubstr("6 tries")));
  EXPECT_THAT(waits_, ElementsAre(1, 2, 4, 8, 16));
  answer_first(1, [&](const Seen&) { return Answer{.status = 429, .headers = {{"Retry-After", "7200"}}}; });
  EXPECT_THAT(refused(), HasSubstr("asks to try again in"));
}

TEST_F(HubDownload, ASilentServerIsLeft) {
  answer_first(1, [&](const Seen& seen) {
    Answer answer = hub_.serve(seen);
    answer.cut_body = 100'000;
    answer.stalls = true;
    return answer;
  });
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_EQ(gets().back().headers.at("range"), "bytes=100000-");
}

TEST_F(HubDownload, WithoutRoomNothingIsBegun) {
  nlohmann::json listing = hub_.listing();
  for (nlohmann::json& one : listing["siblings"]) {
    if (one["rfilename"] == kModel) one["lfs"]["size"] = uint64_t{1} << 52;
  }
  hub_.hook = [=](const Seen&) { return Answer{.body = listing.dump()}; };
  EXPECT_THAT(refused(), AllOf(HasSubstr(settings_.cache), HasSubstr("4504 TB are to be downloaded"),
                               HasSubstr("left")));
  EXPECT_FALSE(fs::exists(settings_.cache));
}

TEST_F(HubDownload, AFullDiskKeepsWhatHasCome) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{100'000, before.rlim_max};
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::string line = refused();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_THAT(line, AllOf(HasSubstr(incomplete()), HasSubstr("are still to be downloaded, but the disk has"),
                          HasSubstr("kept")));
  EXPECT_EQ(fs::file_size(incomplete()), 100'000u);
  EXPECT_TRUE(is_model(fetched()));
  EXPECT_EQ(gets().back().headers.at("range"), "bytes=100000-");
}

TEST_F(HubDownload, OneOfManyDownloads) {
  hub_.hook = [&](const Seen& seen) -> std::optional<Answer> {
    Answer answer = hub_.serve(seen);
    // Gives the waiting threads time to find the lock taken.
    if (seen.path.find("/resolve/") != std::string::npos && !seen.headers.contains("range"))
      answer.cut_body = 200'000;
    return answer;
  };
  settings_.patience.wait = [](std::chrono::seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  std::vector<std::thread> threads;
  std::vector<std::string> paths(4);
  for (std::string& path : paths) threads.emplace_back([&] { path = fetched(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& path : paths) EXPECT_TRUE(is_model(path));
  EXPECT_EQ(gets().size(), 2u) << "one download, which broke off once";
}

}  // namespace
}  // namespace tierd
