// The block encodings: their values, and a quantizer. See block_layout.h for the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model/layout/encoding.h"

namespace tierd {

// Decodes out.size() values, whole blocks, from `blocks` on.
void decode_blocks(Encoding e, const std::byte* blocks, std::span<float> out);

// The parts of value j of a block: it is step * value - min, rounded once.
int value_in_block(Encoding e, const std::byte* block, uint32_t j);
struct StepAndMin {
  float step = 0;
  float min = 0;
};
StepAndMin step_in_block(Encoding e, const std::byte* block, uint32_t j);

// A plain quantizer of one block: a range with a minimum spans its least and largest value, any other its
// largest magnitude; scales and values are rounded to the nearest. The factors are rounded to their format
// first and values divided by the rounded ones. q8_0 and q4_0 are llama.cpp's; published files of the other
// encodings come from quantizers that search for the scales of least error, which make better models.
void encode_block(Encoding e, std::span<const float> in, std::byte* block);

// Whether a factor is not finite, so that no value of the block is: the exponents of mxfp4 that overflow with
// its largest value count as such.
bool has_infinite_factor(Encoding e, const std::byte* block);

}  // namespace tierd
