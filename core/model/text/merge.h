// The merging of both tokenizers: the pair of neighbours with the lowest rank, the leftmost of equals,
// becomes one symbol, until no pair has a rank. O(n log n) for n symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "core/model/text/vocab.h"

namespace tierd {

struct MergeSymbol {
  size_t begin = 0;  // into the text
  size_t bytes = 0;  // 0: merged into the symbol on its left
  uint32_t token = kNoToken;
};

struct Merged {
  uint32_t rank = 0;
  uint32_t token = kNoToken;
};

// Merges neighbours in `symbols`, which must be contiguous in the text; the remaining symbols have bytes > 0.
// `find(left, right)` returns the std::optional<Merged> of two symbols.
template <class Find>
void merge_symbols(std::vector<MergeSymbol>& symbols, const Find& find) {
  struct Candidate {
    uint32_t rank;
    uint32_t token;
    size_t left;
    size_t right;
    size_t bytes;
    // std::priority_queue returns the greatest first.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  const size_t n = symbols.size();
  std::vector<size_t> next(n);
  std::vector<size_t> previous(n);
  for (size_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // never read for the first, which has no predecessor
  }

  std::vector<Candidate> storage;
  storage.reserve(n);
  std::priority_queue<Candidate> queue(std::less<Candidate>{}, std::move(storage));
  const auto consider = [&](size_t left, size_t right) {
    const MergeSymbol& l = symbols[left];
    const MergeSymbol& r = symbols[right];
    if (const std::optional<Merged> merged = find(l, r)) {
      queue.push({merged->rank, merged->token, left, right, l.bytes + r.bytes});
    }
  };
  for (size_t i = 1; i < n; ++i) consider(i - 1, i);

  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    MergeSymbol& left = symbols[top.left];
    MergeSymbol& right = symbols[top.right];
    // Symbols only grow or vanish, so an unchanged sum means that neither has changed.
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != top.bytes) continue;
    left.bytes = top.bytes;
    left.token = top.token;
    right.bytes = 0;
    next[top.left] = next[top.right];
    if (next[top.left] < n) previous[next[top.left]] = top.left;
    if (top.left > 0) consider(previous[top.left], top.left);
    if (next[top.left] < n) consider(top.left, next[top.left]);
  }
}

}  // namespace tierd
