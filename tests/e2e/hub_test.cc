// Runs `tierd -hf OWNER/REPO`, as a user types it, against a hub on the loopback interface.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/e2e/server.h"
#include "tests/tierd/fake_hub.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kGolden = TIERD_SOURCE_DIR "/tests/golden/models/";
const std::string kToken = "hf_secretsecretsecret";

class HubProgram : public Server {
 protected:
  void SetUp() override {
    Server::SetUp();
    for (const char* const name : {"LLAMA_CACHE", "HF_HOME", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE",
                                   "TRANSFORMERS_OFFLINE", "HUGGING_FACE_HUB_TOKEN"})
      unsetenv(name);
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("HF_ENDPOINT", hub_.url().c_str(), 1);
    setenv("HF_HUB_CACHE", models().c_str(), 1);
    setenv("HF_TOKEN", kToken.c_str(), 1);
    hub_.files["m-Q8_0.gguf"] = {file_text(kGolden + "gguf-qwen2-q8_0/model.gguf")};
  }
  std::string models() const { return folder().path() + "/models"; }
  static std::vector<std::string> text_of(std::vector<std::string> model) {
    model.insert(model.end(), {"-p", "The", "-n", "8", "--temp", "0", "-t", "1"});
    return model;
  }
  // Returns the generated text. Neither output may contain the token.
  static std::string text(std::vector<std::string> model) {
    const Ended run = run_tierd(text_of(std::move(model)));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err + run.out, Not(HasSubstr(kToken)));
    EXPECT_THAT(run.out, Not(IsEmpty()));
    return run.out;
  }
  static std::string refused(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "-q");
    const Ended run = run_tierd(std::move(arguments));
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr(kToken)));
    return run.err;
  }
  size_t downloads() const { return hub_.seen("/resolve/").size(); }

  FakeHub hub_;
};

TEST_F(HubProgram, WritesWhatTheFileWrites) {
  const std::string expected = text({"-m", kGolden + "gguf-qwen2-q8_0/model.gguf"});
  EXPECT_EQ(text({"-hf", "owner/repo"}), expected);
  EXPECT_EQ(text({"-hfr", "owner/repo:q8_0"}), expected);
  EXPECT_EQ(text({"--hf-repo", "owner/repo", "-hff", "m-Q8_0.gguf"}), expected);
  EXPECT_EQ(downloads(), 1u);
  // From here on the hub is unreachable.
  setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1);
  EXPECT_EQ(text({"-hf", "owner/repo", "--offline"}), expected);
  EXPECT_EQ(text({"-hf", "owner/repo"}), expected);
  unsetenv("HF_ENDPOINT");
  setenv("HF_HUB_OFFLINE", "1", 1);
  EXPECT_EQ(text({"-hf", "owner/repo:Q8_0"}), expected);
  unsetenv("HF_HUB_OFFLINE");
}

TEST_F(HubProgram, TakesADraftByItsName) {
  const std::string model = kGolden + "gguf-qwen2-q8_0/model.gguf";
  EXPECT_EQ(text({"-m", model, "-hfd", "owner/repo"}), text({"-m", model}));
  EXPECT_EQ(downloads(), 1u);
}

TEST_F(HubProgram, TakesShardsAndFolders) {
  hub_.files.clear();
  for (const char* const name : {"model-00001-of-00002.gguf", "model-00002-of-00002.gguf"})
    hub_.files[name] = {file_text(kGolden + "gguf-llama-q8_0/" + name)};
  EXPECT_EQ(text({"-hf", "owner/repo"}), text({kGolden + "gguf-llama-q8_0/model-00001-of-00002.gguf"}));
  fs::remove_all(models());
  hub_.files.clear();
  for (const char* const name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
    hub_.files[name] = {file_text(kDemo + "/" + name), false};
  hub_.files["model.safetensors"] = {file_text(kDemo + "/model.safetensors")};
  EXPECT_EQ(text({"-hf", "owner/repo"}), text({kDemo}));
  EXPECT_THAT(run_tierd({"-hf", "owner/repo", "--check"}).out, testing::StartsWith("repo, "))
      << "and not its commit";
}

TEST_F(HubProgram, ChecksWithoutDownloading) {
  const Ended plain = run_tierd({"-hf", "owner/repo", "--check"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_THAT(plain.out, AllOf(HasSubstr("owner/repo is not in the cache"), HasSubstr("m-Q8_0.gguf"),
                               HasSubstr(models()), HasSubstr("left")));
  const Ended object = run_tierd({"-hf", "owner/repo", "--check", "--json"});
  const auto json = nlohmann::json::parse(object.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << object.out;
  EXPECT_EQ(json["download"]["to_download_bytes"], hub_.files["m-Q8_0.gguf"].bytes.size());
  EXPECT_EQ(json["download"]["files"][0]["name"], "m-Q8_0.gguf");
  EXPECT_EQ(downloads(), 0u);
  EXPECT_FALSE(fs::exists(models()));
  EXPECT_THAT(refused({"-hf", "owner/repo", "--check", "--offline"}), HasSubstr("is not in the cache"));
  hub_.hook = [&](const Seen&) {
    nlohmann::json listing = hub_.listing();
    listing["siblings"][0]["lfs"]["size"] = uint64_t{1} << 52;
    return Answer{.body = listing.dump()};
  };
  EXPECT_THAT(refused({"-hf", "owner/repo", "--check"}), HasSubstr("4504 TB are to be downloaded"));
  hub_.hook = nullptr;
  (void)text({"-hf", "owner/repo"});
  const Ended cached = run_tierd({"-hf", "owner/repo", "--check"});
  EXPECT_EQ(cached.status, 0) << cached.err;
  EXPECT_THAT(cached.out, HasSubstr("expected"));
}

TEST_F(HubProgram, InterruptedItGoesOn) {
  hub_.hook = [&](const Seen& seen) -> std::optional<Answer> {
    if (seen.path.find("/resolve/") == std::string::npos) return std::nullopt;
    Answer answer = hub_.serve(seen);
    answer.cut_body = 20'000;
    answer.stalls = true;
    return answer;
  };
  const std::string part =
      models() + "/models--owner--repo/blobs/" + hub_.hash("m-Q8_0.gguf") + ".incomplete";
  StartedProgram program(TIERD_BIN_TIERD, text_of({"-hf", "owner/repo"}));
  std::error_code none;
  for (int i = 0; i < 60'000 && (!fs::exists(part, none) || fs::file_size(part, none) < 20'000); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.kill(SIGINT);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.status, 128 + SIGINT) << ended.err;
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_EQ(fs::file_size(part, none), 20'000u);
  EXPECT_FALSE(fs::exists(models() + "/models--owner--repo/snapshots"));
  hub_.hook = nullptr;
  EXPECT_EQ(text({"-hf", "owner/repo"}), text({kGolden + "gguf-qwen2-q8_0/model.gguf"}));
  EXPECT_EQ(hub_.seen("/resolve/").back().headers.at("range"), "bytes=20000-");
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(HubProgram, TwoAtOnceDownloadOnce) {
  StartedProgram first(TIERD_BIN_TIERD, text_of({"-hf", "owner/repo"}));
  StartedProgram second(TIERD_BIN_TIERD, text_of({"-hf", "owner/repo"}));
  const Ended one = first.wait(), other = second.wait();
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(one.out, other.out);
  EXPECT_EQ(downloads(), 1u);
}

TEST_F(HubProgram, BrokenConnectionsAreTold) {
  int times = 0;
  hub_.hook = [&](const Seen& seen) -> std::optional<Answer> {
    if (seen.path.find("/resolve/") == std::string::npos || ++times > 1) return std::nullopt;
    Answer answer = hub_.serve(seen);
    answer.cut_body = 20'000;
    return answer;
  };
  const Ended run = run_tierd(text_of({"-hf", "owner/repo"}));
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("owner/repo: 1 file (36.4 kB) is downloaded into " + models()),
                    HasSubstr("trying again in 1 s"), HasSubstr("downloading 100 %  36.4 kB of 36.4 kB")));
  EXPECT_THAT(run.err, Not(HasSubstr(kToken)));
}

TEST_F(HubProgram, SaysInOneLineWhyNot) {
  EXPECT_THAT(refused({"-hf", "nonsense"}), HasSubstr("'nonsense' is not OWNER/REPO[:QUANT]"));
  EXPECT_THAT(refused({"-hf", "owner/repo", "-m", kDemo}), HasSubstr("expected one model"));
  EXPECT_THAT(refused({"-hff", "x.gguf"}), HasSubstr("--hf-repo"));
  EXPECT_THAT(refused({"-hf", "owner/repo:Q4_K_M"}),
              AllOf(HasSubstr("quant 'Q4_K_M'"), HasSubstr("m-Q8_0.gguf")));
  EXPECT_THAT(refused({"-hf", "owner/none"}), HasSubstr("owner/none does not exist (404)"));
  EXPECT_THAT(refused({"-hf", "owner/repo", "-hft", kToken + " x"}), HasSubstr("--hf-token"));
  hub_.hook = [](const Seen&) { return Answer{.status = 401, .body = "Invalid credentials"}; };
  EXPECT_THAT(refused({"-hf", "owner/repo"}), HasSubstr("the access token that was sent does not allow it"));
  unsetenv("HF_TOKEN");
  setenv("HF_HOME", folder().path().c_str(), 1);
  EXPECT_THAT(refused({"-hf", "owner/repo"}), HasSubstr("set HF_TOKEN"));
  EXPECT_THAT(hub_.seen().back().headers, Not(testing::Contains(testing::Key("authorization"))));
  unsetenv("HF_HOME");
}

TEST_F(HubProgram, ServesUnderItsName) {
  start_program({"serve", "-hf", "owner/repo:Q8_0", "--port", "0", "-t", "1"});
  const auto models = nlohmann::json::parse(get("/v1/models").body, nullptr, false);
  EXPECT_EQ(models["data"][0]["id"], "owner/repo:Q8_0") << models;
  EXPECT_EQ(end().status, 0);
}

}  // namespace
}  // namespace tierd
