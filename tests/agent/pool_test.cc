#include "core/agent/pool.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tierd {
namespace {

struct alignas(64) Bytes {
  std::array<std::byte, 256> bytes{};
};

TEST(PoolTable, PlacesCountUnitsOf64Bytes) {
  Bytes a, b, c;
  PoolTable pools;
  pools.add_memory(3, a.bytes);
  pools.add_memory(1, b.bytes);
  pools.add_activations(1, c.bytes);
  EXPECT_EQ(pools.at(3, 2, 128), a.bytes.data() + 128);
  EXPECT_EQ(pools.at(1, 3, 64), b.bytes.data() + 192);
  EXPECT_EQ(pools.at(1, 4, 0), b.bytes.data() + 256) << "nothing, at the very end";
  EXPECT_EQ(pools.memory(3).size(), 256u);
  EXPECT_EQ(pools.activations(1).data(), c.bytes.data());
  EXPECT_EQ(pools.activations(1, 1, 64).data(), c.bytes.data() + 64);
  EXPECT_TRUE(pools.memory(kStore).empty());
  EXPECT_TRUE(pools.memory(2).empty());
  EXPECT_TRUE(pools.activations(7).empty());
}

class Listener final : public PageListener {
 public:
  void pages_kept(std::span<const std::byte> memory, std::span<const PageRange> kept) override {
    heard.push_back({memory.data(), kept.size(), kept.empty() ? 0 : kept.back().end});
  }
  struct Heard {
    const std::byte* memory;
    size_t ranges;
    uint64_t end;
    bool operator==(const Heard&) const = default;
  };
  std::vector<Heard> heard;
};

TEST(PoolTable, ListenersHearWhichPagesStay) {
  Bytes a, b;
  PoolTable pools;
  pools.add_memory(1, a.bytes);
  pools.add_memory(2, b.bytes);
  Listener early, late;
  pools.listen(early);
  EXPECT_TRUE(early.heard.empty());
  pools.keep_pages(1, {{0, 64}, {128, 192}});
  EXPECT_EQ(early.heard, (std::vector<Listener::Heard>{{a.bytes.data(), 2, 192}}));
  pools.listen(late);
  EXPECT_EQ(late.heard.back(), early.heard.back()) << "what was said before";
  pools.keep_pages(2, {{64, 256}});
  EXPECT_EQ(early.heard.back(), (Listener::Heard{b.bytes.data(), 1, 256}));
  EXPECT_EQ(late.heard.back(), early.heard.back());
  pools.listen_no_more(early);
  pools.keep_pages(1, {});
  EXPECT_EQ(early.heard.size(), 2U);
  EXPECT_EQ(late.heard.back(), (Listener::Heard{a.bytes.data(), 0, 0}));
}

TEST(PoolTableDeathTest, PlacesOutsideAreBrokenInvariants) {
  Bytes a;
  PoolTable pools;
  pools.add_memory(1, a.bytes);
  EXPECT_DEATH((void)pools.at(1, 4, 1), "begin \\+ bytes");
  EXPECT_DEATH((void)pools.at(1, 0xffffffff, 0xffffffff), "begin \\+ bytes");
  EXPECT_DEATH((void)pools.at(1, 0, 257), "begin \\+ bytes");
  EXPECT_DEATH((void)pools.at(7, 0, 1), "begin \\+ bytes");
  EXPECT_DEATH((void)pools.activations(1, 0, 1), "begin \\+ bytes");
  EXPECT_DEATH(pools.add_memory(1, std::span(a.bytes).subspan(1)), "kPlaceUnit");
}

}  // namespace
}  // namespace tierd
