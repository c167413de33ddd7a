// Refusals before a plugin runs: by its file, its descriptor, its declarations.
#include "core/strategy/plugin_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/strategy/plugin_path.h"
#include "core/strategy/strategy_set.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string bad_cache(const std::string& name) {
  return TIERD_BAD_PLUGIN_DIR "/cache-" + name + ".so";
}

TEST(PluginFile, ASoundOneIsLoaded) {
  const auto plugin = load_plugin(bad_cache("sound"), "cache", "sound");
  ASSERT_TRUE(plugin.ok()) << plugin.error().line();
  EXPECT_STREQ((*plugin)->name, "sound");
  EXPECT_EQ(*load_plugin(bad_cache("sound"), "cache", "sound"), *plugin);  // the library stays loaded
  tierd_cache_1 table;
  EXPECT_TRUE(read_table(**plugin, "", table).ok());
}

TEST(PluginFile, OneThatOthersCouldHaveWrittenIsNotRun) {
  const std::string folder = testing::TempDir() + "plugin_trust_" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const std::string file = folder + "/cache-sound.so";
  std::filesystem::copy_file(bad_cache("sound"), file);
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::owner_all | perms::others_write);
  EXPECT_THAT(load_plugin(file, "cache", "sound").error().line(),
              HasSubstr(file + ": is not trusted, because every user can write to it"));
  std::filesystem::permissions(file, perms::owner_all);
  std::filesystem::permissions(folder, perms::all);
  EXPECT_THAT(load_plugin(file, "cache", "sound").error().line(),
              HasSubstr(folder + ": is not trusted, because every user can write to it"));
  std::filesystem::permissions(folder, perms::all | perms::sticky_bit);
  EXPECT_TRUE(load_plugin(file, "cache", "sound").ok()) << "where nobody replaces it";
  std::filesystem::remove_all(folder);
}

TEST(PluginFile, WhatIsNoWholeFileIsRefused) {
  const std::string folder = testing::TempDir() + "plugin_parts_" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const std::string file = folder + "/cache-sound.so", pipe = folder + "/cache-pipe.so";
  const uint64_t whole = std::filesystem::file_size(bad_cache("sound"));
  for (const uint64_t bytes : {whole / 2, whole / 4, uint64_t{70}, uint64_t{0}}) {
    std::filesystem::remove(file);
    std::filesystem::copy_file(bad_cache("sound"), file);
    std::filesystem::resize_file(file, bytes);
    EXPECT_EQ(load_plugin(file, "cache", "sound").code(), Code::plugin_fault) << bytes;
  }
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(load_plugin(pipe, "cache", "pipe").error().line(), HasSubstr("is not a file"));
  EXPECT_THAT(load_plugin(folder, "cache", "sound").error().line(), HasSubstr("is not a file"));
  std::filesystem::remove_all(folder);
}

struct RefusedPluginCase {
  const char* name;
  std::string line;
};

class RefusedPlugin : public testing::TestWithParam<RefusedPluginCase> {};

TEST_P(RefusedPlugin, IsOneLineThatNamesTheFileAndWhatWasExpected) {
  const auto plugin = load_plugin(bad_cache(GetParam().name), "cache", GetParam().name);
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.code(), Code::plugin_fault);
  const std::string line = plugin.error().line();
  EXPECT_THAT(line, StartsWith(bad_cache(GetParam().name) + ": "));
  EXPECT_THAT(line, HasSubstr(GetParam().line));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedPlugin,
    testing::Values(
        RefusedPluginCase{
            "wrong_major",
            fmt::format(
                "was built for version 99.{0} of the plugin interface, expected {1}.{0}; build it again",
                TIERD_ABI_MINOR, TIERD_ABI_MAJOR)},
        RefusedPluginCase{"no_symbol", "does not export 'tierd_plugin_entry'"},
        RefusedPluginCase{"unresolved", "undefined symbol: nobody_has_this"},
        RefusedPluginCase{"short_descriptor", "its descriptor has 24 B, at least 104 B were expected"},
        RefusedPluginCase{"wrong_kind",
                          "its name is predictor 'wrong_kind', expected cache 'wrong_kind' by its file name"},
        RefusedPluginCase{"wrong_name",
                          "its name is cache 'another', expected cache 'wrong_name' by its file name"},
        RefusedPluginCase{"no_summary", "its descriptor has no summary"},
        RefusedPluginCase{"no_create", "its descriptor has no function 'create'"},
        RefusedPluginCase{"no_destroy", "its descriptor has no function 'destroy'"},
        RefusedPluginCase{"no_extension_function", "its descriptor has no function 'extension'"},
        RefusedPluginCase{"no_params", "declares parameters, but has no list of them"},
        RefusedPluginCase{"short_params",
                          "its parameter declarations have 16 B each, at least 56 B were expected"},
        RefusedPluginCase{"param_twice", "its parameter other is declared twice"},
        RefusedPluginCase{"param_without_name", "its parameter 1 has an invalid name"},
        RefusedPluginCase{"param_type", "its parameter size has the unknown type 9"},
        RefusedPluginCase{"param_default",
                          "has the default '65', a whole number within 0 and 64 was expected"}),
    [](const testing::TestParamInfo<RefusedPluginCase>& refused) { return refused.param.name; });

TEST(PluginFile, WhatIsNoSharedObject) {
  const std::string path = testing::TempDir() + "cache-text.so";
  std::ofstream(path) << "not an ELF file";
  const auto plugin = load_plugin(path, "cache", "text");
  ASSERT_FALSE(plugin.ok());
  EXPECT_THAT(plugin.error().line(), StartsWith(path + ": cannot be loaded as a plugin: "));
  const auto missing = load_plugin(testing::TempDir() + "cache-nothing.so", "cache", "nothing");
  EXPECT_EQ(missing.code(), Code::not_found);
  // A name without a slash is a file in this folder, not a library of the system.
  EXPECT_EQ(load_plugin("libc.so.6", "cache", "c").code(), Code::not_found);
}

TEST(PluginFile, TablesThatAreTooShortOrLackAFunction) {
  const auto read = [](const char* name) {
    const auto plugin = load_plugin(bad_cache(name), "cache", name);
    EXPECT_TRUE(plugin.ok()) << plugin.error().line();
    tierd_cache_1 table;
    return read_table(**plugin, bad_cache(name), table);
  };
  EXPECT_EQ(read("offers_nothing").error().line(),
            bad_cache("offers_nothing") + ": does not offer tierd.cache/1");
  EXPECT_EQ(read("short_table").error().line(),
            bad_cache("short_table") + ": its table tierd.cache/1 has 16 B, at least 128 B were expected");
  EXPECT_EQ(read("no_admit").error().line(),
            bad_cache("no_admit") + ": its table tierd.cache/1 has no function 'admit'");
}

// A plugin of a later minor version has a longer table.
TEST(PluginFile, ALongerTableIsReadAsFarAsItIsKnown) {
  struct Longer {
    tierd_balancer_1 known;
    int (*unknown)(void*);
  };
  static const Longer table = {{sizeof(Longer), [](void*, uint32_t, uint8_t*) { return 4; },
                                [](void*, const tierd_set_view*, uint8_t*) { return 5; }, nullptr, nullptr},
                               [](void*) { return 6; }};
  tierd_plugin plugin{};
  plugin.extension = [](const char*) -> const void* { return &table; };
  tierd_balancer_1 read{};
  ASSERT_TRUE(read_table(plugin, "", read).ok());
  EXPECT_EQ(read.size, sizeof read);
  EXPECT_EQ(read.assign(nullptr, nullptr, nullptr), 5);
}

}  // namespace
}  // namespace tierd
