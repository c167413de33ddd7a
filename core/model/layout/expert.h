// The experts of a mixture's layer, each of them whole.
#pragma once

#include <cstdint>

#include "core/base/align.h"
#include "core/model/layout/bundle.h"
#include "core/model/layout/encodings.h"
#include "core/model/layout/row_group.h"

namespace tierd {

// The layout of an expert's bytes in an arena slot and in its extent: the rows of gate, of up and of down, in
// row groups as in dense operators. Blocks run along the rows, so every encoding is that of the source, and
// each matrix may have its own. Each matrix begins at a multiple of 64 bytes.
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
  // The bytes of the weights alone, without padding.
  uint64_t tensor_bytes() const {
    return inner * (encoded_bytes(gate, width) + encoded_bytes(up, width)) +
           width * encoded_bytes(down, inner);
  }
};

// Neuron e is the network of expert e, times the router's weight. Results are added, one after the other.
struct Experts {
  uint32_t width = 0;
  uint32_t inner = 0;
  uint32_t experts = 0;

  static constexpr bool kAdded = true;
  static constexpr uint32_t kRun = 1;

  uint32_t inputs() const { return width; }
  uint32_t outputs() const { return width; }
  uint32_t neurons() const { return experts; }

  ExpertMatrices matrices(const Encodings& encodings) const {
    return {width, inner, encodings[0], encodings[1], encodings[2]};
  }
  uint64_t bytes(const Encodings& encodings, uint32_t /*neuron*/) const {
    return matrices(encodings).bytes();
  }
  uint64_t tensor_bytes(const Encodings& encodings) const {
    return experts * matrices(encodings).tensor_bytes();
  }
};

}  // namespace tierd
