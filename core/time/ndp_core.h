// The processor on a near-data DIMM: bit-serial multipliers, an adder tree for their results, a buffer for
// activations, and a unit for all other operations.
#pragma once

#include <cstdint>

namespace tierd {

struct ProductReads {
  uint32_t weights = 1;    // number of times that each weight is read
  double input_bytes = 0;  // inputs that are read besides; 0: the buffer holds them from the start
};

struct NdpCoreDescription {
  double clock_hz = 1;
  uint32_t multipliers = 1;
  uint32_t lanes = 1;               // values that one multiplier multiplies in parallel
  uint32_t cycles_per_product = 1;  // of one multiplier, for all of its lanes
  uint32_t buffer_bytes = 1;        // for inputs and results
  // Operations of the activation unit a cycle:
  uint32_t exponentials = 1;
  uint32_t additions = 1;
  uint32_t multiplications = 1;

  // Multiply-adds a second, for every encoding: weights are multiplied as f16.
  double multiply_adds() const;
  // Returns the time of a run's products: the multipliers' time, and that of the last product in the tree.
  double products_seconds(double multiply_adds) const;
  // Returns the DRAM reads of a product of `rows` rows, from `inputs` values to `outputs` values each.
  // Outputs are computed in tiles, so that each weight is read once for all rows. If the buffer holds the
  // inputs of all rows beside the smallest tile, inputs are read once; else a tile has the buffer except for
  // a burst of each row's inputs, and the inputs are read once a tile. Only if the buffer cannot hold a burst
  // of inputs and of results of all rows are the weights read several times.
  ProductReads product_reads(uint32_t rows, double inputs, double outputs) const;
  // Returns the time to compare values with zero or a threshold, as ReLU does.
  double relu_seconds(double values) const;
  // Returns the time of norms, positions and sums: an addition and a multiplication a value.
  double elementwise_seconds(double values) const;
  // Returns the time of an exponential, an addition and a multiplication a value, as in SiLU, and in softmax,
  // whose maximum comparators find on the way.
  double exponential_seconds(double values) const;

 private:
  double cycles(double count, uint32_t each_cycle) const;
};

}  // namespace tierd
