// Reads one number of a row group, for kernels that do not read whole steps.
#pragma once

#include "core/model/layout/row_group.h"
#include "tiers/gpu/cuda/device_values.cuh"
#include "tiers/gpu/cuda/rows_kernel.cuh"

namespace tierd::cuda {

// Returns the value of column c of a row in a group.
template <Encoding E>
__device__ float value_in_group(const std::byte* group, uint32_t row, uint32_t c) {
  if constexpr (E == Encoding::f32) {
    return reinterpret_cast<const float*>(group)[c * kGroupRows + row];
  } else if constexpr (E == Encoding::f16) {
    return f16_value(load_u16(group + (uint64_t{c} * kGroupRows + row) * 2));
  } else if constexpr (E == Encoding::bf16) {
    return bf16_value(load_u16(group + (uint64_t{c} * kGroupRows + row) * 2));
  } else if constexpr (E == Encoding::q8_0 || E == Encoding::q4_0) {
    const std::byte* const block = group + c / kQuantBlock * uint64_t{kGroupRows * block_bytes(E)};
    const uint32_t j = c % kQuantBlock, byte = E == Encoding::q8_0 ? j : j % 16;
    const auto stored = static_cast<uint32_t>(block[32 + (byte / 4 * kGroupRows + row) * 4 + byte % 4]);
    const float scale = f16_value(load_u16(block + row * 2));
    if constexpr (E == Encoding::q8_0) return scale * byte_value(stored, 0, 128);
    return scale * byte_value(j < 16 ? stored & 15 : stored >> 4, 0, 8);
  } else {
    // Reads the packet of the lane that has this column; a packet has four rows.
    using Reader = StepReader<E>;
    const uint32_t in_block = c % kSuperBlock, run = in_block / 32, lane = in_block % 32 / 4 * 4 + row / 4;
    const auto packet = Reader::load(group, c / kSuperBlock, lane, 0);
    float d[4];
    unpack_f16_pairs(packet.d.x, packet.d.y, d);
    float q[4];
    Reader::quants(packet, static_cast<int>(run), static_cast<int>(row % 4), q);
    if constexpr (Reader::kHasMin) {
      float dmin[4], scale, min;
      unpack_f16_pairs(packet.dmin.x, packet.dmin.y, dmin);
      Reader::block_scale(packet, static_cast<int>(run), static_cast<int>(row % 4), scale, min);
      return d[row % 4] * scale * q[c % 4] - dmin[row % 4] * min;
    } else {
      return d[row % 4] * Reader::block_step(packet, static_cast<int>(run), static_cast<int>(row % 4), lane) *
             q[c % 4];
    }
  }
}

}  // namespace tierd::cuda
