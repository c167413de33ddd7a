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
    using Reader = BlockReader<E>;
    const uint32_t in_block = c % block_values(E), run = in_block / kQuantBlock;
    const uint32_t lane = in_block % kQuantBlock / 4 * 4 + row / 4;
    const auto packet = Reader::load(group, c / block_values(E), lane, 0);
    float q[4], step, min;
    Reader::quants(packet, run, static_cast<int>(row % 4), lane, q);
    Reader::steps(packet, run, static_cast<int>(row % 4), lane, step, min);
    return has_min(E) ? step * q[c % 4] - min : step * q[c % 4];
  }
}

}  // namespace tierd::cuda
