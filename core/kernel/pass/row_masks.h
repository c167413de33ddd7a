// Row masks: which rows of a batch use which neurons, in the form of predictors and of agents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel/active_set.h"

namespace tierd {

uint64_t count_bits(std::span<const uint64_t> words);

// Returns the number of neurons, summed over the rows that use them.
uint64_t count_uses(const ActiveSet& set, uint32_t rows);

// Clears the bits beyond the rows, in mask_words(rows) words each. Returns whether all other bits are set.
bool trim_row_masks(std::vector<uint64_t>& masks, uint32_t rows);

// Writes the masks of a set as agents read them: [n x mask_words(rows)], by the neuron's number.
void write_row_masks(const ActiveSet& active, uint32_t n, uint32_t rows, std::vector<uint64_t>& masks);

}  // namespace tierd
