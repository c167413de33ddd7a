#include "core/base/checksum.h"

#include <gtest/gtest.h>

// The naive twin: the library's own code, compiled here for every x86-64.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <vector>

#include "core/base/random.h"

namespace tierd {
namespace {

TEST(Checksum, IsThePublishedHash) {
  EXPECT_EQ(checksum_text(checksum(std::string_view())), "2d06800538d394c2");
  EXPECT_EQ(checksum_text(7), "0000000000000007");
}

TEST(Checksum, IsTheSameByEveryInstructionSet) {
  Random random(1);
  std::vector<std::byte> bytes(70'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 5) {
    const size_t offset = random.below(64);
    const std::span<const std::byte> part =
        std::span(bytes).subspan(offset, std::min(size, bytes.size() - offset));
    EXPECT_EQ(checksum(part), XXH3_64bits(part.data(), part.size())) << size;
  }
}

}  // namespace
}  // namespace tierd
