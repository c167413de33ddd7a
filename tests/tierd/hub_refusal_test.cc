// Tests refusals by a hub, refusals of a hub's answers, and the environment variables.
#include "tests/tierd/hub_download.h"
#include "tools/tierd/hub/environment.h"
#include "tools/tierd/hub/web_client.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;

TEST_F(HubDownload, RefusalsSayWhatToDo) {
  const auto answered = [&](const char* part, unsigned status, const std::string& code) {
    hub_.hook = [=](const Seen& seen) -> std::optional<Answer> {
      if (seen.path.find(part) == std::string::npos) return std::nullopt;
      Answer answer{.status = status, .body = "no"};
      if (!code.empty()) answer.headers["X-Error-Code"] = code;
      return answer;
    };
    return refused();
  };
  const std::string page = hub_.url() + "/owner/repo";
  EXPECT_THAT(answered("/resolve/", 403, "GatedRepo"),
              AllOf(HasSubstr("requires that you accept its licence"), HasSubstr(page), HasSubstr("HF_TOKEN"),
                    HasSubstr("(403)")));
  EXPECT_THAT(answered("/api/", 401, ""),
              AllOf(HasSubstr("owner/repo does not exist or is not public"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(answered("/api/", 404, ""), HasSubstr("owner/repo does not exist (404)"));
  EXPECT_THAT(answered("/resolve/", 404, ""), HasSubstr(std::string(kModel) + " does not exist (404)"));
  EXPECT_THAT(answered("/api/", 400, ""), HasSubstr("the server refuses owner/repo (400)"));
  settings_.token = kToken;
  EXPECT_THAT(answered("/resolve/", 401, ""), HasSubstr("the access token that was sent does not allow it"));
  EXPECT_THAT(waits_, IsEmpty());
  EXPECT_THAT(blobs(), Each(HasSubstr(".incomplete")));
}

TEST_F(HubDownload, TheTokenStaysWithItsHost) {
  settings_.token = kToken;
  FakeHub cdn;
  cdn.hook = [&](const Seen& seen) -> std::optional<Answer> {
    Seen as_asked = seen;
    as_asked.path = "/owner/repo/resolve/" + hub_.commit + "/" + kModel;
    return hub_.serve(as_asked);
  };
  // Redirects to another port, to another name, and back.
  for (const std::string& elsewhere : {cdn.url() + "/x?Signature=s", cdn.url("localhost") + "/x"}) {
    fs::remove_all(repository());
    answer_first(1, [&](const Seen&) { return Answer{.status = 302, .headers = {{"Location", elsewhere}}}; });
    EXPECT_TRUE(is_model(fetched()));
    EXPECT_THAT(cdn.seen().back().headers, Not(Contains(Key("authorization"))));
  }
  EXPECT_THAT(
      hub_.seen(),
      Each(testing::Field(&Seen::headers, Contains(testing::Pair("authorization", "Bearer " + kToken)))));
  fs::remove_all(repository());
  hub_.hook = [&](const Seen& seen) -> std::optional<Answer> {
    if (seen.path.starts_with("/api/models/owner/")) {
      Seen renamed = seen;
      return Answer{.status = 307, .headers = {{"Location", "/moved"}}};
    }
    if (seen.path == "/moved") return Answer{.body = hub_.listing().dump()};
    return std::nullopt;
  };
  EXPECT_TRUE(is_model(fetched())) << "a repository that was renamed";
  EXPECT_THAT(hub_.seen("/moved").back().headers, Contains(Key("authorization")));
}

TEST_F(HubDownload, RedirectsAreBounded) {
  const auto redirected = [&](const std::string& to) {
    hub_.hook = [=](const Seen&) { return Answer{.status = 302, .headers = {{"Location", to}}}; };
    return refused();
  };
  EXPECT_THAT(redirected("/again"), HasSubstr("redirects more than 8 times"));
  EXPECT_THAT(redirected("file:///etc/passwd"),
              HasSubstr("redirects to file:///etc/passwd, expected http or https"));
  EXPECT_THAT(redirected("ftp://127.0.0.1/x"), HasSubstr("redirects to ftp:"));
  EXPECT_THAT(redirected(""), HasSubstr("the server refuses"));
}

TEST(HubRedirects, NeverLeadFromHttpsToHttp) {
  EXPECT_TRUE(may_lead("http", "http"));
  EXPECT_TRUE(may_lead("http", "https"));
  EXPECT_TRUE(may_lead("https", "https"));
  for (const char* const to : {"http", "ftp", "file", ""}) EXPECT_FALSE(may_lead("https", to)) << to;
}

TEST_F(HubDownload, AHostileHubWritesNothing) {
  for (const char* const name :
       {"../../../evil-Q4_K_M.gguf", "/tmp/evil-Q4_K_M.gguf", "a/../../x-Q4_K_M.gguf"}) {
    nlohmann::json listing = hub_.listing();
    listing["siblings"][0]["rfilename"] = name;
    hub_.hook = [=](const Seen&) { return Answer{.body = listing.dump()}; };
    EXPECT_THAT(refused(), HasSubstr("is not a path inside the repository"));
  }
  hub_.hook = [](const Seen&) { return Answer{.body = std::string(kLongestListing + 1, ' ')}; };
  EXPECT_THAT(refused(), HasSubstr("the answer is longer than"));
  hub_.hook = [](const Seen&) { return Answer{.body = "{\"sha\": " + std::string(1'000'000, '[')}; };
  EXPECT_THAT(refused(), HasSubstr("deeper"));
  hub_.hook = [](const Seen&) {
    Answer answer;
    for (int i = 0; i < 10'000; ++i) answer.headers["X-" + std::to_string(i)] = std::string(100, 'x');
    return answer;
  };
  EXPECT_THAT(refused(), HasSubstr("the headers are longer than"));
  EXPECT_FALSE(fs::exists(settings_.cache));
}

TEST_F(HubDownload, ALinkInThePlaceOfADownloadIsNotFollowed) {
  fs::create_directories(repository() + "/blobs");
  const std::string victim = folder_.write("victim", "mine");
  fs::create_symlink(victim, incomplete());
  EXPECT_THAT(refused(), HasSubstr(".incomplete"));
  EXPECT_EQ(file_text(victim), "mine");
}

TEST(HubEnvironment, IsHuggingFacesOwn) {
  const TempFolder folder;
  const std::vector<const char*> all = {
      "LLAMA_CACHE",    "HF_HUB_CACHE",   "HUGGINGFACE_HUB_CACHE",  "HF_HOME",
      "XDG_CACHE_HOME", "HF_TOKEN",       "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
      "HF_ENDPOINT",    "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"};
  for (const char* const name : all) unsetenv(name);
  setenv("HOME", folder.path().c_str(), 1);
  EXPECT_EQ(*hub_cache_folder(), folder.path() + "/.cache/huggingface/hub");
  EXPECT_EQ(*hub_endpoint(), "https://huggingface.co");
  EXPECT_EQ(*hub_token(""), "");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(*hub_cache_folder(), "/x/huggingface/hub");
  setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(*hub_cache_folder(), folder.path() + "/hf/hub");
  fs::create_directories(folder.path() + "/hf");
  folder.write("hf/token", kToken + "\n");
  EXPECT_EQ(*hub_token(""), kToken);
  setenv("HF_HUB_CACHE", "/c", 1);
  EXPECT_EQ(*hub_cache_folder(), "/c");
  setenv("LLAMA_CACHE", "/l", 1);
  EXPECT_EQ(*hub_cache_folder(), "/l");
  setenv("HF_TOKEN", "hf_other", 1);
  EXPECT_EQ(*hub_token(""), "hf_other");
  EXPECT_EQ(*hub_token("hf_third"), "hf_third");
  for (const std::string& bad : {kToken + "\r\nX-Evil: 1", kToken + " x", kToken + "\x01"}) {
    const auto refused = hub_token(bad);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().line(), AllOf(HasSubstr("--hf-token"), Not(HasSubstr(kToken))));
  }
  setenv("HF_ENDPOINT", "https://mirror.example/hf/", 1);
  EXPECT_EQ(*hub_endpoint(), "https://mirror.example/hf");
  for (const char* const bad : {"ftp://x", "mirror.example", "https://u:p@x", "https://x/?y"}) {
    setenv("HF_ENDPOINT", bad, 1);
    EXPECT_FALSE(hub_endpoint().ok()) << bad;
  }
  EXPECT_FALSE(hub_offline());
  setenv("HF_HUB_OFFLINE", "true", 1);
  EXPECT_TRUE(hub_offline());
  for (const char* const name : all) unsetenv(name);
}

}  // namespace
}  // namespace tierd
