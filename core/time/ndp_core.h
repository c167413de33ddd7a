// The processor on a near-data DIMM: multipliers that work bit by bit, a tree that adds what they give, a
// buffer for activations, and a unit for what is no product.
#pragma once

#include <cstdint>

namespace tierd {

struct ProductReads {
  uint32_t weights = 1;    // how often each weight is read
  double input_bytes = 0;  // of inputs that are read beside them; 0: the buffer has them from the start
};

struct NdpCoreDescription {
  double clock_hz = 1;
  uint32_t multipliers = 1;
  uint32_t lanes = 1;               // values that one multiplier multiplies side by side
  uint32_t cycles_per_product = 1;  // of one multiplier, for all of its lanes
  uint32_t buffer_bytes = 1;        // for inputs and results
  // The activation unit does so many a cycle.
  uint32_t exponentials = 1;
  uint32_t additions = 1;
  uint32_t multiplications = 1;

  // Multiply-adds a second, whatever weights are encoded in: they are multiplied as f16.
  double multiply_adds() const;
  // The products of one run: the multipliers' time, and until the last one has come through the tree.
  double products_seconds(double multiply_adds) const;
  // Returns what a product of `rows` rows reads of DRAM, of `inputs` values for `outputs` values each.
  // Outputs are computed in tiles, so that each weight is read once for all rows: where the buffer holds the
  // inputs of all rows beside the smallest tile, in any tile; else the tile has the buffer but for a burst of
  // each row's inputs, and the inputs are read once a tile. Only rows of which the buffer does not hold even
  // a burst of inputs and of results each read the weights again.
  ProductReads product_reads(uint32_t rows, double inputs, double outputs) const;
  // So many values are compared with nought, or with a threshold, as ReLU does.
  double relu_seconds(double values) const;
  // Norms, positions and sums: an addition and a multiplication each.
  double elementwise_seconds(double values) const;
  // An exponential, an addition and a multiplication each, as softmax needs them of scores, whose greatest is
  // found by comparators on the way, and SiLU of values.
  double exponential_seconds(double values) const;

 private:
  double cycles(double count, uint32_t each_cycle) const;
};

}  // namespace tierd
