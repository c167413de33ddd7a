#include "core/model/text/merge.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/base/random.h"
#include "core/model/text/piece_matcher.h"

namespace tierd {
namespace {

using Ranks = std::map<std::string, uint32_t>;

std::vector<std::string> merge(const std::string& text, const Ranks& ranks) {
  std::vector<MergeSymbol> symbols;
  for (size_t i = 0; i < text.size(); ++i) symbols.push_back({i, 1, kNoToken});
  merge_symbols(symbols, [&](const MergeSymbol& l, const MergeSymbol& r) -> std::optional<Merged> {
    const auto it = ranks.find(text.substr(l.begin, l.bytes + r.bytes));
    if (it == ranks.end()) return std::nullopt;
    return Merged{it->second, it->second};
  });
  std::vector<std::string> parts;
  for (const MergeSymbol& s : symbols) {
    if (s.bytes > 0) parts.push_back(text.substr(s.begin, s.bytes));
  }
  return parts;
}

// The definition: examine all pairs, merge the best one, repeat.
std::vector<std::string> merge_plainly(const std::string& text, const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    size_t best = 0;
    uint32_t best_rank = UINT32_MAX;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = ranks.find(parts[i] + parts[i + 1]);
      if (it != ranks.end() && it->second < best_rank) {
        best_rank = it->second;
        best = i;
      }
    }
    if (best_rank == UINT32_MAX) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merge, LowestRankFirstThenLeftmost) {
  EXPECT_EQ(merge("aaa", {{"aa", 0}}), (std::vector<std::string>{"aa", "a"}));
  EXPECT_EQ(merge("abc", {{"ab", 1}, {"bc", 0}}), (std::vector<std::string>{"a", "bc"}));
  EXPECT_TRUE(merge("", {{"aa", 0}}).empty());
}

TEST(Merge, EqualsThePlainDefinition) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    Ranks ranks;
    for (int i = 0; i < 40; ++i) {
      std::string piece;
      for (uint32_t n = 2 + random.below(5); n > 0; --n)
        piece.push_back(static_cast<char>('a' + random.below(3)));
      ranks[piece] = random.below(20);  // some ranks are equal
    }
    std::string text;
    for (uint32_t n = random.below(60); n > 0; --n) text.push_back(static_cast<char>('a' + random.below(3)));
    ASSERT_EQ(merge(text, ranks), merge_plainly(text, ranks)) << text;
  }
}

TEST(PieceMatcher, FindsTheLongestLeftmost) {
  PieceMatcher matcher;
  EXPECT_TRUE(matcher.empty());
  matcher.add("", 9);
  EXPECT_TRUE(matcher.empty());
  matcher.add("<a>", 1);
  matcher.add("<a><b>", 2);
  matcher.add("\xff", 3);
  std::string seen;
  matcher.split(
      "x<a<a><b><a>y\xff", [&](std::string_view text) { seen += "'" + std::string(text) + "'"; },
      [&](uint32_t token) { seen += std::to_string(token); });
  EXPECT_EQ(seen, "'x<a'21'y'3");
}

}  // namespace
}  // namespace tierd
