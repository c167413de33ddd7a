// The host's calls of codecs: bytes survive the round trip, and a fault gives one line with the codec's name.
#include "core/strategy/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "core/base/random.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Bytes = std::vector<std::byte>;

Result<std::unique_ptr<Codec>> load(const std::string& name, const std::vector<Setting>& settings = {}) {
  return Codec::load(PluginPath({TIERD_PLUGIN_DIR}), name, settings, "model.compression");
}
Result<std::unique_ptr<Codec>> load_bad(const std::string& name) {
  return Codec::load(PluginPath({TIERD_BAD_PLUGIN_DIR}), name, {}, "model.compression");
}

Bytes zeros(uint64_t n) {
  return Bytes(n);
}
Bytes noise(uint64_t n) {
  Random random(n);
  Bytes bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}
// Returns bytes of which every other 16-bit value is zero.
Bytes pruned(uint64_t n) {
  Bytes bytes = noise(n);
  for (uint64_t i = 0; i < n; ++i) bytes[i] = i / 2 % 2 == 0 ? std::byte{0} : bytes[i];
  return bytes;
}

TEST(Codec, ZstdGivesBackWhatItWasGiven) {
  for (const int64_t level : {1, 3, 19}) {
    const auto codec = load("zstd", {{"level", level, "test"}});
    ASSERT_TRUE(codec.ok()) << codec.error().line();
    EXPECT_EQ((*codec)->name(), "zstd");
    EXPECT_EQ((*codec)->settings(), "level=" + std::to_string(level));
    for (const uint64_t n : {0u, 1u, 2u, 63u, 4095u, 4096u, 4097u, 100'001u, 1u << 20}) {
      if (level == 19 && n > 4097) continue;  // slow
      for (const auto& make : {zeros, noise, pruned}) {
        const Bytes dense = make(n);
        Bytes kept, again;
        ASSERT_TRUE((*codec)->compress(dense, kept).ok());
        ASSERT_TRUE((*codec)->compress(dense, again).ok());
        EXPECT_EQ(kept, again) << n;
        EXPECT_LE(kept.size(), n + n / 256 + 64);
        Bytes found(n, std::byte{0xee});
        ASSERT_TRUE((*codec)->expand(kept, found).ok());
        EXPECT_EQ(found, dense) << n;
        kept.resize(kept.size() + 4096);
        std::ranges::fill(found, std::byte{0xee});
        ASSERT_TRUE((*codec)->expand(kept, found).ok()) << "padded";
        EXPECT_EQ(found, dense) << n;
      }
    }
  }
}

TEST(Codec, ZstdRefusesWhatIsNotWhole) {
  const auto codec = load("zstd");
  ASSERT_TRUE(codec.ok());
  const Bytes dense = pruned(10'000);
  Bytes kept;
  ASSERT_TRUE((*codec)->compress(dense, kept).ok());
  Bytes out(dense.size() + 1);
  const auto refused = [&](std::span<const std::byte> in, uint64_t n_out) {
    const Status expanded = (*codec)->expand(in, std::span(out).first(n_out));
    EXPECT_EQ(expanded.code(), Code::corrupt) << in.size() << " into " << n_out;
    if (!expanded.ok()) {
      EXPECT_THAT(expanded.error().line(), StartsWith("codec 'zstd': expand: returned -1: "));
    }
  };
  for (uint64_t n = 0; n < kept.size(); n += n < 40 ? 1 : 97) refused(std::span(kept).first(n), dense.size());
  refused(std::span(kept).first(kept.size() - 1), dense.size());
  refused(kept, dense.size() - 1);
  refused(kept, dense.size() + 1);
  refused(noise(10'000), dense.size());
  refused(zeros(10'000), dense.size());
  // A frame without content, one of the library's first versions, and one without its size.
  const auto bytes = [](std::initializer_list<int> all) {
    Bytes made;
    for (const int byte : all) made.push_back(static_cast<std::byte>(byte));
    return made;
  };
  refused(bytes({0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}), 0);
  refused(bytes({0x27, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0}), 0);
  refused(bytes({0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00, 0x01, 0x00, 0x00}), 0);
  // A frame that claims to be larger than any memory.
  refused(bytes({0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 0, 0}), 10);
  // The codec still works afterwards.
  ASSERT_TRUE((*codec)->expand(kept, std::span(out).first(dense.size())).ok());
  EXPECT_TRUE(std::equal(dense.begin(), dense.end(), out.begin()));
}

TEST(Codec, FlippedBitsDoNoHarm) {
  const auto codec = load("zstd");
  ASSERT_TRUE(codec.ok());
  const Bytes dense = pruned(3000);
  Bytes kept;
  ASSERT_TRUE((*codec)->compress(dense, kept).ok());
  for (size_t i = 0; i < kept.size(); ++i) {
    Bytes spoilt = kept;
    spoilt[i] ^= static_cast<std::byte>(1 << i % 8);
    Bytes out(dense.size());
    const Status expanded = (*codec)->expand(spoilt, out);
    if (!expanded.ok()) {
      EXPECT_EQ(expanded.code(), Code::corrupt) << expanded.error().line();
    }
  }
}

TEST(Codec, SeveralThreadsCallItAtOnce) {
  const auto codec = load("zstd");
  ASSERT_TRUE(codec.ok());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& of_thread : wrong) {
    threads.emplace_back([&codec, &of_thread] {
      for (uint64_t n = 1000; n < 1040; ++n) {
        const Bytes dense = pruned(n);
        Bytes kept, found(n);
        const bool well = (*codec)->compress(dense, kept).ok() && (*codec)->expand(kept, found).ok();
        of_thread += well && found == dense ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(Codec, IsFoundByItsName) {
  const auto unknown = load("zip");
  EXPECT_EQ(unknown.code(), Code::not_found);
  EXPECT_THAT(unknown.error().line(), StartsWith("model.compression: there is no codec 'zip' in "));
  EXPECT_THAT(unknown.error().line(), HasSubstr("; there are zstd"));
  EXPECT_THAT(load("../zstd").error().line(), HasSubstr("'../zstd' is not a plugin's name"));
  EXPECT_THAT(load("zstd", {{"level", int64_t{20}, "a.toml:3"}}).error().line(),
              StartsWith("a.toml:3: 'codec.level' is 20, a whole number within 1 and 19 was expected"));
  EXPECT_THAT(load("zstd", {{"lvl", int64_t{2}, "a.toml:3"}}).error().line(),
              HasSubstr("did you mean 'level'?"));
}

TEST(Codec, OneThatIsWrongIsRefusedWhenItIsLoaded) {
  ASSERT_TRUE(load_bad("sound").ok());
  EXPECT_THAT(load_bad("lossy").error().line(), HasSubstr("codec-lossy.so: is lossy"));
  EXPECT_THAT(load_bad("short_table").error().line(),
              HasSubstr("its table tierd.codec/1 has 16 B, at least 32 B were expected"));
  EXPECT_THAT(load_bad("no_expand").error().line(),
              HasSubstr("its table tierd.codec/1 has no function 'expand'"));
  EXPECT_THAT(load_bad("create_throws").error().line(),
              HasSubstr("codec 'create_throws': could not be created: create threw an exception: no such"));
}

TEST(Codec, WhateverItDoesWrongIsALineThatNamesIt) {
  const auto error = [](const char* name, bool expands) {
    const auto codec = load_bad(name);
    EXPECT_TRUE(codec.ok()) << codec.error().line();
    const Bytes dense = noise(100);
    Bytes kept(200), found(100);
    std::string line;
    // The second call is made to another instance, which fails as well.
    for (int i = 0; i < 2; ++i) {
      const Status done = expands ? (*codec)->expand(kept, found) : (*codec)->compress(dense, kept);
      EXPECT_EQ(done.code(), Code::plugin_fault) << name;
      line = done.ok() ? "" : done.error().line();
    }
    return line;
  };
  EXPECT_EQ(error("no_bound", false), "codec 'no_bound': bound: 0 for 100 bytes, expected 1 to 65736");
  EXPECT_EQ(error("huge_bound", false),
            "codec 'huge_bound': bound: 18446744073709551615 for 100 bytes, expected 1 to 65736");
  EXPECT_EQ(error("writes_too_much", false),
            "codec 'writes_too_much': compress: wrote 109 bytes, expected 1 to 108");
  EXPECT_EQ(error("writes_nothing", false),
            "codec 'writes_nothing': compress: wrote 0 bytes, expected 1 to 108");
  EXPECT_EQ(error("compress_fails", false),
            "codec 'compress_fails': compress: returned -4: it is not my day");
  EXPECT_EQ(error("compress_throws", false),
            "codec 'compress_throws': compress: threw an exception: no such thing as a neuron");
  EXPECT_EQ(error("expand_fails", true), "codec 'expand_fails': expand: returned -4: it is not my day");
  EXPECT_EQ(error("expand_throws", true), "codec 'expand_throws': expand: threw an exception");
}

}  // namespace
}  // namespace tierd
