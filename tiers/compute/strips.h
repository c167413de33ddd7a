// The loops around the many-token kernels. Private to tiers/compute.
//
// Work is divided into strips of kStripGroups row groups and kStripTokens tokens, whose sums are in one
// buffer on the stack; a strip into panels of columns, so that the panel of x stays in the L2 cache for all
// groups; a panel into pairs of groups, whose weights stay in L1 for all tiles of tokens. Panels are whole
// blocks in order, so the order of reduction is that of a single pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/model/layout/row_group.h"

namespace tierd {

inline constexpr uint32_t kStripGroups = 8;
inline constexpr uint32_t kStripTokens = 144;

// Cuts `whole` into the fewest parts of at most `most`, all of nearly the same size.
struct EvenParts {
  EvenParts(uint32_t whole_, uint32_t most) : whole(whole_), parts((whole_ + most - 1) / most) {}
  uint32_t begin(uint32_t i) const { return static_cast<uint32_t>(uint64_t{whole} * i / parts); }
  uint32_t size(uint32_t i) const { return begin(i + 1) - begin(i); }
  uint32_t whole, parts;
};

// Prefetches the i-th of `parts` shares of `bytes`, so that the next panel arrives during the tiles of this
// one.
inline void prefetch_share(std::span<const uint8_t> bytes, uint32_t i, uint32_t parts) {
  constexpr size_t kLine = 64;
  const size_t lines = (bytes.size() + kLine - 1) / kLine;
  for (size_t line = lines * i / parts; line < lines * (i + 1) / parts; ++line) {
    __builtin_prefetch(bytes.data() + line * kLine);
  }
}

// A Kernel has:
//   kPanelCols, kTileTokens, kGroupsAtOnce (1 or 2)
//   open_panel(group, count, col, cols): the next tiles use these groups and columns
//   bytes(group, col, cols): returns the bytes of those columns of a group, to prefetch them
//   tile(token, count, sums, group_stride): adds the panel's products to sums[g*group_stride + t*16 + r]
template <class Kernel>
void matmul_by_strips(Kernel& kernel, uint32_t groups, uint32_t cols, uint32_t tokens, float* y, size_t ldy) {
  alignas(64) float sums[kStripGroups * kStripTokens * kGroupRows];
  const EvenParts strips(tokens, kStripTokens);
  for (uint32_t s = 0; s < strips.parts; ++s) {
    const uint32_t first = strips.begin(s), count = strips.size(s);
    const size_t group_stride = size_t{count} * kGroupRows;
    const EvenParts tiles(count, Kernel::kTileTokens);
    for (uint32_t g0 = 0; g0 < groups; g0 += kStripGroups) {
      const uint32_t strip_groups = std::min(kStripGroups, groups - g0);
      std::memset(sums, 0, strip_groups * group_stride * sizeof(float));
      for (uint32_t c = 0; c < cols; c += Kernel::kPanelCols) {
        for (uint32_t g = 0; g < strip_groups; g += Kernel::kGroupsAtOnce) {
          const uint32_t at_once = std::min(Kernel::kGroupsAtOnce, strip_groups - g);
          kernel.open_panel(g0 + g, at_once, c, std::min(Kernel::kPanelCols, cols - c));
          const bool last_pair = g + Kernel::kGroupsAtOnce >= strip_groups;
          const uint32_t next_group = last_pair ? 0 : g + Kernel::kGroupsAtOnce;
          const uint32_t next_col = last_pair ? c + Kernel::kPanelCols : c;
          const uint32_t next_count =
              next_col < cols ? std::min(Kernel::kGroupsAtOnce, strip_groups - next_group) : 0;
          for (uint32_t i = 0; i < tiles.parts; ++i) {
            for (uint32_t n = 0; n < next_count; ++n) {
              const uint32_t next_cols = std::min(Kernel::kPanelCols, cols - next_col);
              prefetch_share(kernel.bytes(g0 + next_group + n, next_col, next_cols), i, tiles.parts);
            }
            kernel.tile(first + tiles.begin(i), tiles.size(i),
                        sums + g * group_stride + tiles.begin(i) * kGroupRows, group_stride);
          }
        }
      }
      for (uint32_t t = 0; t < count; ++t) {
        float* to = y + (first + t) * ldy + g0 * kGroupRows;
        for (uint32_t g = 0; g < strip_groups; ++g) {
          std::memcpy(to + g * kGroupRows, sums + g * group_stride + t * kGroupRows,
                      kGroupRows * sizeof(float));
        }
      }
    }
  }
}

}  // namespace tierd
