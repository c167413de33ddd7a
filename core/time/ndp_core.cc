#include "core/time/ndp_core.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tierd {
namespace {

constexpr double kBytesOfValue = 2;    // f16
constexpr double kValuesOfBurst = 32;  // values in a burst of 64 bytes

}  // namespace

double NdpCoreDescription::multiply_adds() const {
  return static_cast<double>(multipliers) * lanes / cycles_per_product * clock_hz;
}

double NdpCoreDescription::products_seconds(double multiply_adds) const {
  if (multiply_adds == 0) return 0;
  const uint64_t summed = uint64_t{multipliers} * lanes;
  const double levels = std::bit_width(summed - 1);
  return (std::ceil(multiply_adds / static_cast<double>(summed)) * cycles_per_product + levels) / clock_hz;
}

ProductReads NdpCoreDescription::product_reads(uint32_t rows, double inputs, double outputs) const {
  if (rows == 0) return {};
  const double most = std::max(1.0, std::floor(buffer_bytes / (2 * kValuesOfBurst * kBytesOfValue)));
  ProductReads reads{.weights = static_cast<uint32_t>(std::ceil(rows / most))};
  const double together = std::min(most, static_cast<double>(rows));
  const double values = std::floor(buffer_bytes / (together * kBytesOfValue));  // for each row
  if (inputs + kValuesOfBurst <= values) return reads;
  const double tile = std::max(values - kValuesOfBurst, kValuesOfBurst);
  reads.input_bytes = std::ceil(outputs / tile) * rows * inputs * kBytesOfValue;
  return reads;
}

double NdpCoreDescription::relu_seconds(double values) const {
  return cycles(values, additions) / clock_hz;
}

double NdpCoreDescription::elementwise_seconds(double values) const {
  return (cycles(values, additions) + cycles(values, multiplications)) / clock_hz;
}

double NdpCoreDescription::exponential_seconds(double values) const {
  return cycles(values, exponentials) / clock_hz + elementwise_seconds(values);
}

double NdpCoreDescription::cycles(double count, uint32_t each_cycle) const {
  return std::ceil(count / each_cycle);
}

}  // namespace tierd
