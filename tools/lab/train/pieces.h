// Work on several threads whose result does not depend on their number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "tiers/compute/team.h"

namespace tierd {

// Calls work(begin, length) for the pieces of [0, n), each `piece` long but the last. The borders depend on n
// alone, so every piece has the same bits with any number of threads. `products`: multiplications in all,
// which decide whether waking threads is worth it.
inline void in_pieces(Team& team, uint64_t n, uint64_t piece, double products,
                      const std::function<void(int64_t begin, int64_t length)>& work) {
  constexpr double kProductsInNs = 16;  // of one thread
  team.run((n + piece - 1) / piece, 1, static_cast<uint64_t>(products / kProductsInNs),
           [&](uint64_t first, uint64_t last, uint32_t) {
             for (uint64_t begin = first * piece; begin < std::min(n, last * piece); begin += piece)
               work(static_cast<int64_t>(begin), static_cast<int64_t>(std::min(piece, n - begin)));
           });
}

}  // namespace tierd
