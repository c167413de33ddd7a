// A seed gives the same bits on every machine and in every order of drawing.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "core/base/checksum.h"
#include "tests/lab/activity/measured.h"
#include "tools/lab/activity/hidden_activity.h"
#include "tools/lab/activity/normal.h"
#include "tools/lab/activity/random_bits.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

std::string hash_of(const Text& text) {
  Bits all;
  for (const auto& layer : text) {
    for (const Bits& bits : layer) all.insert(all.end(), bits.begin(), bits.end());
  }
  return checksum_text(checksum(std::as_bytes(std::span(all))));
}

StickyActivity draw(const std::string& name, uint32_t sequences = 1, uint32_t first_text = 0) {
  const auto profile = read_activity_profile(name);
  EXPECT_TRUE(profile.ok()) << name;
  auto activity = StickyActivity::create(
      *profile, {.neurons = {1000, 900, 64}, .seed = 7, .sequences = sequences, .first_text = first_text});
  EXPECT_TRUE(activity.ok());
  return std::move(*activity);
}

// A profile that is changed on purpose gets another hash here. Machines and compilers never change one.
TEST(PortableBits, AreThoseOfTheSeed) {
  const std::map<std::string, std::string> golden = {{"activeflow", "7c0a9821a63893e1"},
                                                     {"hermes-falcon-40b", "f1d754c30b43a99e"},
                                                     {"hermes-llama-13b", "751f769ca1757c41"},
                                                     {"llm-in-a-flash", "8d32bc033b822593"},
                                                     {"m2cache", "662db76a3b7f2dba"}};
  for (const auto& [name, hash] : golden) {
    StickyActivity activity = draw(name, 2);
    EXPECT_EQ(hash_of(draw_text(activity, 1, 50)), hash) << name;
  }
  HiddenActivity hidden({.layers = 3, .channels = 1000, .cosine = 0.95});
  EXPECT_EQ(hash_of(draw_text(hidden, 0, 20)), "8c488bc9e466126e");
}

TEST(PortableBits, SequencesDoNotDependOnEachOther) {
  for (const char* name : {"hermes-llama-13b", "m2cache"}) {
    StickyActivity apart = draw(name, 3);
    std::vector<std::string> hashes;
    for (uint32_t s = 0; s < 3; ++s) hashes.push_back(hash_of(draw_text(apart, s, 20)));
    EXPECT_NE(hashes[0], hashes[1]);
    EXPECT_NE(hashes[1], hashes[2]);
    StickyActivity together = draw(name, 3);
    std::vector<std::thread> threads;
    std::vector<std::string> others(3);
    for (uint32_t s = 0; s < 3; ++s)
      threads.emplace_back([&, s] { others[s] = hash_of(draw_text(together, s, 20)); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(others, hashes);
    // Sequence 2 equals the first sequence of a source that begins with it.
    StickyActivity third = draw(name, 1, 2);
    EXPECT_EQ(hash_of(draw_text(third, 0, 20)), hashes[2]);
  }
}

TEST(PortableBits, NothingBehindTheLastNeuron) {
  StickyActivity activity = draw("activeflow");
  const Text text = draw_text(activity, 0, 10);
  for (const Bits& bits : text[0]) EXPECT_EQ(bits.back() >> 1000 % 64, 0u);
}

// Each coin is binomial. The tolerance is four standard deviations.
TEST(PortableBits, CoinsFallAsOftenAsTheyShould) {
  constexpr uint32_t kWords = 4000;
  for (const double probability : {0.0, 0.01, 0.16, 0.3125, 0.5, 0.9, 1.0}) {
    const RandomBits random(1, DrawnFor::renewal, 2, 3);
    uint64_t heads = 0;
    std::vector<uint64_t> by_place(64, 0);
    for (uint32_t w = 0; w < kWords; ++w) {
      const uint64_t coins = random.coins(w, chance_of(probability));
      for (uint32_t b = 0; b < 64; ++b) by_place[b] += coins >> b & 1;
      heads += static_cast<uint64_t>(std::popcount(coins));
    }
    const double n = kWords * 64.0;
    const double variance = probability * (1 - probability);
    EXPECT_NEAR(static_cast<double>(heads) / n, probability, 4 * std::sqrt(variance / n));
    // Among 64 places, one in 16,000 is farther than four standard deviations, so five are allowed.
    for (const uint64_t count : by_place)
      EXPECT_NEAR(static_cast<double>(count) / kWords, probability, 5 * std::sqrt(variance / kWords));
  }
}

TEST(PortableBits, NormalNumbersAreThoseOfTheLibrary) {
  const RandomBits random(1, DrawnFor::rate, 0, 0);
  for (uint32_t i = 0; i < 20000; ++i) {
    // Shifts reach the ends of the range as well.
    const uint32_t uniform = random.half(i) >> i % 32;
    for (const uint32_t u : {uniform, ~uniform}) {
      const double z = normal_quantile((u + 0.5) * 0x1p-32);
      EXPECT_NEAR(normal_of(u), z, 1e-5) << u;
      EXPECT_LT(std::abs(z), kMostNormal);
    }
  }
}

}  // namespace
}  // namespace tierd
