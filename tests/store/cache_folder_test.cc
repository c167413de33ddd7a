#include "core/store/cache_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/store/store.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/store/memory_source.h"
#include "tests/store/quiet_options.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class CacheFolder : public testing::Test {
 protected:
  void SetUp() override { setenv("TIERD_CACHE", (folder_ + "/cache").c_str(), 1); }
  void TearDown() override { unsetenv("TIERD_CACHE"); }
  TempFolder temp_;
  std::string folder_ = temp_.path();
};

TEST_F(CacheFolder, IsWhereTheVariablesSay) {
  EXPECT_EQ(*cache_folder(), folder_ + "/cache");
  unsetenv("TIERD_CACHE");
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(*cache_folder(), "/somewhere/tierd");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(*cache_folder(), "/home/someone/.cache/tierd");
  unsetenv("HOME");
  EXPECT_THAT(cache_folder().error().line(), HasSubstr("TIERD_CACHE"));
}

TEST_F(CacheFolder, ConvertsOnce) {
  const MemorySource source(small_llama(), Encoding::f16);
  const auto first = store_for(source, kQuiet);
  ASSERT_TRUE(first.ok()) << first.error().line();
  ASSERT_TRUE(Store::open(*first)->verify_all(true).ok());
  const auto time = std::filesystem::last_write_time(*first + "/weights.bin");
  EXPECT_EQ(*store_for(source, kQuiet), *first);
  EXPECT_EQ(std::filesystem::last_write_time(*first + "/weights.bin"), time);
}

TEST_F(CacheFolder, AChangedSourceGetsAnotherStore) {
  MemorySource source(small_llama(), Encoding::f16, 1);
  const auto first = store_for(source, {.neuron_bytes = 0, .quiet = false});
  ASSERT_TRUE(first.ok());
  const MemorySource changed(small_llama(), Encoding::f16, 2);
  testing::internal::CaptureStderr();
  const auto second = store_for(changed, {.neuron_bytes = 0, .quiet = false});
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_THAT(said, HasSubstr("memory has changed and is converted again; " + *first));
  EXPECT_TRUE(Store::open(*first).ok());  // stays until it is removed
}

TEST_F(CacheFolder, AnotherLayoutGetsAnotherStore) {
  const MemorySource source(small_llama(), Encoding::f16);
  EXPECT_NE(*store_path(source, kQuiet), *store_path(source, {.neuron_bytes = 4096, .quiet = true}));
}

TEST_F(CacheFolder, AStoreIsItself) {
  const MemorySource source(small_llama(), Encoding::f16);
  const std::string store = folder_ + "/store";
  ASSERT_TRUE(write_store(source, store, kQuiet).ok());
  const auto found = find_store(store, {}, kQuiet);
  ASSERT_TRUE(found.ok()) << found.error().line();
  EXPECT_EQ(found->store.directory(), store);
  EXPECT_TRUE(found->store.made());
  EXPECT_EQ(found->source, nullptr);
  EXPECT_FALSE(find_store(folder_ + "/nothing", {}, kQuiet).ok());
}

TEST_F(CacheFolder, AFolderThatCannotBeMadeIsNamed) {
  temp_.write("cache", "a file");
  const MemorySource source(small_llama(), Encoding::f16);
  EXPECT_THAT(store_for(source, kQuiet).error().line(), HasSubstr(folder_ + "/cache"));
}

TEST_F(CacheFolder, IsItsOwnersAlone) {
  using std::filesystem::perms;
  const MemorySource source(small_llama(), Encoding::f16);
  const std::string cache = folder_ + "/cache";
  ASSERT_TRUE(store_for(source, kQuiet).ok());
  EXPECT_EQ(std::filesystem::status(cache).permissions(), perms::owner_all);
  std::filesystem::permissions(cache, perms::all);
  EXPECT_THAT(store_for(source, kQuiet).error().line(),
              HasSubstr(cache + ": is not trusted, because every user can write to it"));
  std::filesystem::permissions(cache, perms::owner_all | perms::group_read | perms::others_read);
  EXPECT_TRUE(store_for(source, kQuiet).ok());
}

TEST_F(CacheFolder, ALinkIsNotFollowed) {
  const MemorySource source(small_llama(), Encoding::f16);
  const std::string store = *store_path(source, kQuiet);
  const std::string precious = temp_.write("precious", "what somebody needs");
  std::filesystem::create_directories(store + ".partial");
  for (const char* name : {"weights.bin", "progress", "manifest.json", "checksums.bin"}) {
    const std::string link = store + ".partial/" + name;
    std::filesystem::create_symlink(precious, link);
    const auto made = store_for(source, kQuiet);
    EXPECT_EQ(file_text(precious), "what somebody needs") << name;
    EXPECT_THAT(made.ok() ? store + ".partial" : made.error().line(), HasSubstr(store + ".partial"));
    std::filesystem::remove_all(store);
    std::filesystem::remove_all(store + ".partial");
    std::filesystem::create_directories(store + ".partial");
  }
  std::filesystem::remove_all(store + ".partial");
  std::filesystem::create_directory_symlink(folder_, store + ".partial");
  EXPECT_FALSE(store_for(source, kQuiet).ok());
}

}  // namespace
}  // namespace tierd
