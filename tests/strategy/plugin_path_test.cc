#include "core/strategy/plugin_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tierd {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class PluginPathTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("plugin-path-" + std::to_string(getpid()));
    fs::remove_all(root_);
    for (const char* folder : {"a", "b"}) fs::create_directories(root_ / folder);
    touch("a/cache-lru.so");
    touch("a/cache-lfu.so");
    touch("a/predictor-low-rank.so");
    touch("a/cache-.so");
    touch("a/cache-x.txt");
    touch("a/sound.so");
    touch("a/engine-lru.so");
    touch("b/cache-mine.so");
  }
  void TearDown() override { fs::remove_all(root_); }
  void touch(const std::string& name) { std::ofstream(root_ / name) << "never executed"; }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  fs::path root_;
};

TEST_F(PluginPathTest, FindsByNameInAnyFolder) {
  const PluginPath path({at("a"), at("missing"), at("b")});
  EXPECT_EQ(*path.find("cache", "lru"), at("a/cache-lru.so"));
  EXPECT_EQ(*path.find("cache", "mine"), at("b/cache-mine.so"));
  EXPECT_EQ(*path.find("predictor", "low-rank"), at("a/predictor-low-rank.so"));
}

TEST_F(PluginPathTest, WhatIsNotThereIsSaidWithWhatIs) {
  const PluginPath path({at("a"), at("b")});
  const auto lru = path.find("cache", "lruu");
  EXPECT_EQ(lru.code(), Code::not_found);
  EXPECT_EQ(lru.error().line(), "cache.name: there is no cache 'lruu' in " + at("a") + ", " + at("b") +
                                    "; there are lfu, lru, mine; did you mean 'lru'?");
  EXPECT_THAT(path.find("balancer", "x").error().line(), testing::EndsWith("in " + at("a") + ", " + at("b")));
  EXPECT_EQ(PluginPath({}).find("cache", "lru").code(), Code::not_found);
}

TEST_F(PluginPathTest, ANameIsNoPath) {
  const PluginPath path({at("a")});
  for (const char* name : {"", "../a/cache-lru", "lru/x", ".", "a b", "l\nru", "lr\xc3\xbc"}) {
    const auto found = path.find("cache", name);
    EXPECT_EQ(found.code(), Code::invalid_argument) << name;
    EXPECT_EQ(found.error().line().find('\n'), std::string::npos);
  }
}

TEST_F(PluginPathTest, TwoOfOneNameAreRefusedWithBoth) {
  touch("b/cache-lru.so");
  const auto found = PluginPath({at("a"), at("b")}).find("cache", "lru");
  EXPECT_EQ(found.code(), Code::invalid_argument);
  EXPECT_THAT(found.error().line(), HasSubstr(at("a/cache-lru.so") + ", " + at("b/cache-lru.so")));
  // The same folder named twice counts once.
  fs::create_directory_symlink(root_ / "a", root_ / "link");
  EXPECT_TRUE(PluginPath({at("a"), at("a"), at("a/../a"), at("link")}).find("cache", "lru").ok());
}

TEST_F(PluginPathTest, ListsByFileNames) {
  const auto all = PluginPath({at("a"), at("b")}).list();
  std::vector<std::string> names;
  for (const PluginPath::Found& found : all) names.push_back(found.kind + "-" + found.name);
  EXPECT_THAT(names, testing::ElementsAre("cache-lfu", "cache-lru", "cache-mine", "predictor-low-rank"));
}

TEST(PluginPath, Splits) {
  EXPECT_THAT(PluginPath::split("a:b"), testing::ElementsAre("a", "b"));
  EXPECT_THAT(PluginPath::split(":a::b:"), testing::ElementsAre("a", "b"));
  EXPECT_THAT(PluginPath::split(""), testing::IsEmpty());
  EXPECT_THAT(PluginPath::installed(), testing::EndsWith("/lib/tierd"));
}

}  // namespace
}  // namespace tierd
