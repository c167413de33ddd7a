// How the bytes of a whole expert lie: what an arena slot of axis expert holds, and what one read brings.
#pragma once

#include <cstdint>

#include "core/base/align.h"
#include "core/layout/bundle.h"
#include "core/layout/encoding.h"
#include "core/layout/row_group.h"

namespace tierd {

// The rows of gate, those of up and those of down, in row groups as dense operators have them: blocks run
// along the rows, so every encoding stays what it is in the source, and each matrix may have its own. Each
// begins at a multiple of 64 bytes.
struct ExpertMatrices {
  uint32_t width = 0;  // columns of gate and up, rows of down
  uint32_t inner = 0;  // rows of gate and up, columns of down
  Encoding gate = Encoding::f32;
  Encoding up = Encoding::f32;
  Encoding down = Encoding::f32;

  uint32_t inner_groups() const { return static_cast<uint32_t>(divide_up(inner, kGroupRows)); }
  uint32_t outer_groups() const { return static_cast<uint32_t>(divide_up(width, kGroupRows)); }
  uint64_t up_offset() const { return align_up(inner_groups() * group_bytes(gate, width), kPieceAlignment); }
  uint64_t down_offset() const {
    return up_offset() + align_up(inner_groups() * group_bytes(up, width), kPieceAlignment);
  }
  uint64_t bytes() const {
    return down_offset() + align_up(outer_groups() * group_bytes(down, inner), kPieceAlignment);
  }
  // Of the weights alone.
  uint64_t tensor_bytes() const {
    return inner * (encoded_bytes(gate, width) + encoded_bytes(up, width)) +
           width * encoded_bytes(down, inner);
  }
};

}  // namespace tierd
