// Tests requests to a hub, its listings, and the choice of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/tierd/hub/choice.h"
#include "tools/tierd/hub/digest.h"
#include "tools/tierd/hub/repository.h"
#include "tools/tierd/hub/web_client.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HubRequests, AreNamesAndNothingElse) {
  const auto asked = parse_hub_request("ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", "");
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->repository, "ggml-org/gemma-3-1b-it-GGUF");
  EXPECT_EQ(asked->quant, "Q4_K_M");
  EXPECT_TRUE(parse_hub_request("a/b", "sub/model.gguf").ok());
  for (const char* const bad :
       {"",      "gemma",   "/b",      "a/",       "a/b/c",  "../b",   "a/..",
        "a/.b",  "a/b:",    "a/b:Q 4", "a/b:../x", "a--b/c", "a/b--c", "https://huggingface.co/a/b",
        "a\n/b", "a/b\x7f", "-a/b",    "a/b?x=1",  "a/b#c",  "a@b/c"}) {
    const auto refused = parse_hub_request(bad, "");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_THAT(refused.error().line(), HasSubstr("OWNER/REPO[:QUANT]"));
  }
  for (const char* const bad : {"/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "a\\b", "a\nb"})
    EXPECT_FALSE(parse_hub_request("a/b", bad).ok()) << bad;
}

json good_listing() {
  return {{"sha", std::string(40, 'a')},
          {"siblings",
           {{{"rfilename", "model.gguf"},
             {"size", 7},
             {"blobId", std::string(40, 'b')},
             {"lfs", {{"sha256", std::string(64, 'c')}, {"size", 5}}}},
            {{"rfilename", "config.json"}, {"size", 3}, {"blobId", std::string(40, 'd')}},
            {{"rfilename", "no-blobs"}}}}};
}

TEST(HubListings, TellNamesSizesAndHashes) {
  const auto listing = parse_listing(good_listing().dump(), "hub");
  ASSERT_TRUE(listing.ok()) << listing.error().line();
  EXPECT_EQ(listing->commit, std::string(40, 'a'));
  ASSERT_EQ(listing->files.size(), 3u);
  EXPECT_EQ(listing->files[0].bytes, 5u);
  EXPECT_EQ(listing->files[0].hash, std::string(64, 'c'));
  EXPECT_EQ(listing->files[1].hash, std::string(40, 'd'));
  EXPECT_EQ(listing->files[2].hash, "");
}

TEST(HubListings, HostileOnesAreRefused) {
  const auto refused = [](const json& listing) {
    const auto parsed = parse_listing(listing.dump(), "hub");
    EXPECT_FALSE(parsed.ok()) << listing.dump();
    return parsed.ok() ? "" : parsed.error().line();
  };
  for (const char* const name : {"../../.ssh/authorized_keys", "/etc/passwd", "a/../../b", "..", ".", "",
                                 "a//b", "a/", "a\nb", "\x1b[2J", "a\\b"}) {
    json listing = good_listing();
    listing["siblings"][1]["rfilename"] = name;
    EXPECT_THAT(refused(listing),
                AllOf(HasSubstr("hub: siblings[1].rfilename"), testing::Not(HasSubstr("\n"))));
  }
  const auto with = [](const char* key, const json& value) {
    json listing = good_listing();
    listing[key] = value;
    return listing;
  };
  EXPECT_THAT(refused(with("sha", "../../x")), HasSubstr("hub: sha: "));
  EXPECT_THAT(refused(with("sha", 3)), HasSubstr("hub: sha: "));
  EXPECT_THAT(refused(with("siblings", "x")), HasSubstr("hub: siblings: "));
  EXPECT_THAT(refused(with("siblings", json::array({1}))), HasSubstr("siblings[0]"));
  json listing = good_listing();
  listing["siblings"][0]["lfs"]["sha256"] = "../" + std::string(61, 'a');
  EXPECT_THAT(refused(listing), HasSubstr("siblings[0].lfs.sha256"));
  listing = good_listing();
  listing["siblings"][1]["size"] = -1;
  EXPECT_THAT(refused(listing), HasSubstr("siblings[1].size"));
  listing["siblings"][1]["size"] = 1e300;
  EXPECT_THAT(refused(listing), HasSubstr("siblings[1].size"));
  EXPECT_FALSE(parse_listing("<html>", "hub").ok());
  EXPECT_THAT(parse_listing("[0" + std::string(2'000'000, ',') + "]", "hub").error().line(),
              HasSubstr("values"));
  EXPECT_FALSE(parse_listing("[]", "hub").ok());
  EXPECT_THAT(parse_listing(std::string(100'000, '['), "hub").error().line(), HasSubstr("deeper"));
}

const std::vector<std::string> kQuants = {"README.md",
                                          "mmproj-model-Q4_K_M.gguf",
                                          "m-IQ4_XS.gguf",
                                          "m-Q8_0.gguf",
                                          "m-Q4_K_M.gguf",
                                          "m-f16-00002-of-00002.gguf",
                                          "m-f16-00001-of-00002.gguf",
                                          "config.json",
                                          "model.safetensors",
                                          "Q2_K/m-00001-of-00001.gguf"};
HubChoice chosen(const std::vector<std::string>& names, const std::string& quant,
                 const std::string& file = {}) {
  const auto choice = choose_files(names, {"a/b", quant, file}, "hub");
  EXPECT_TRUE(choice.ok()) << choice.error().line();
  return choice.ok() ? *choice : HubChoice();
}
std::string not_chosen(const std::vector<std::string>& names, const std::string& quant,
                       const std::string& file = {}) {
  const auto choice = choose_files(names, {"a/b", quant, file}, "hub");
  EXPECT_FALSE(choice.ok());
  return choice.ok() ? "" : choice.error().line();
}

TEST(HubChoices, AreLlamaCpps) {
  EXPECT_EQ(chosen(kQuants, "").model, "m-Q4_K_M.gguf");
  EXPECT_TRUE(chosen(kQuants, "").certain);
  EXPECT_EQ(chosen(kQuants, "q8_0").model, "m-Q8_0.gguf");
  EXPECT_EQ(chosen(kQuants, "Q2_K").model, "Q2_K/m-00001-of-00001.gguf");
  EXPECT_EQ(chosen(kQuants, "Q4_XS").model, "m-IQ4_XS.gguf") << "where no other is, as llama.cpp";
  EXPECT_EQ(chosen({"a-IQ4_NL.gguf", "b-Q4_NL.gguf"}, "Q4_NL").model, "b-Q4_NL.gguf");
  const HubChoice usual = chosen({"m-Q5_0.gguf", "m-Q8_0.gguf"}, "");
  EXPECT_EQ(usual.model, "m-Q8_0.gguf");
  EXPECT_FALSE(usual.certain) << "the hub may have Q4_K_M";
  EXPECT_EQ(chosen({"m-Q6_K.gguf", "m-Q5_0.gguf"}, "").model, "m-Q5_0.gguf");
  EXPECT_EQ(chosen(kQuants, "", "m-Q8_0.gguf").model, "m-Q8_0.gguf");
  EXPECT_THAT(not_chosen(kQuants, "Q3_K"),
              AllOf(HasSubstr("no GGUF file of quant 'Q3_K'"), HasSubstr("m-Q8_0.gguf")));
  EXPECT_THAT(not_chosen(kQuants, "", "x.gguf"), HasSubstr("there is no file 'x.gguf'"));
}

TEST(HubChoices, BringAllShards) {
  const HubChoice choice = chosen(kQuants, "F16");
  EXPECT_EQ(choice.model, "m-f16-00001-of-00002.gguf");
  EXPECT_THAT(choice.files, ElementsAre("m-f16-00002-of-00002.gguf", "m-f16-00001-of-00002.gguf"))
      << "the one that is opened comes last";
  EXPECT_EQ(chosen(kQuants, "", "m-f16-00002-of-00002.gguf").model, "m-f16-00001-of-00002.gguf");
  EXPECT_THAT(not_chosen({"m-f16-00001-of-00002.gguf"}, ""),
              HasSubstr("there is no m-f16-00002-of-00002.gguf"));
}

TEST(HubChoices, TakeAFolderWhereThereIsNoGguf) {
  const HubChoice whole = chosen(
      {"model.safetensors", "config.json", "tokenizer.json", "README.md", "consolidated.safetensors"}, "");
  EXPECT_EQ(whole.model, "");
  EXPECT_THAT(whole.files, ElementsAre("config.json", "tokenizer.json", "model.safetensors"));
  EXPECT_TRUE(whole.certain);
  const HubChoice parts = chosen({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                  "config.json", "model.safetensors.index.json"},
                                 "");
  EXPECT_EQ(parts.files.size(), 4u);
  EXPECT_FALSE(parts.certain) << "without a tokenizer";
  EXPECT_THAT(
      not_chosen({"model-00001-of-00002.safetensors", "config.json", "model.safetensors.index.json"}, ""),
      HasSubstr("1 of the 2 shards"));
  EXPECT_THAT(not_chosen({"model.safetensors", "config.json"}, "Q4_0"),
              HasSubstr("no GGUF file, so no quant 'Q4_0'"));
  EXPECT_THAT(not_chosen({"pytorch_model.bin"}, ""), HasSubstr("expected a GGUF file, or config.json with"));
  EXPECT_THAT(not_chosen({}, ""), HasSubstr("found nothing"));
}

// The expected digests are those that sha256sum and git hash-object print.
TEST(HubDigests, AreTheHubs) {
  const auto digest = [](size_t digits, std::string_view text) {
    Digest of(digits, text.size());
    for (const char& c : text) of.add(std::as_bytes(std::span(&c, 1)));
    return of.finish();
  };
  EXPECT_EQ(digest(64, "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest(40, "hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(digest(40, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(HubUrls, AreShownWithoutSecrets) {
  EXPECT_EQ(shown_url("https://user:pass@cdn.example/a/b?Signature=x#y"), "https://cdn.example/a/b");
  EXPECT_EQ(shown_url("https://cdn.example/a@b"), "https://cdn.example/a@b");
  EXPECT_EQ(url_path("a b/ü#?%.gguf"), "a%20b/%C3%BC%23%3F%25.gguf");
}

}  // namespace
}  // namespace tierd
