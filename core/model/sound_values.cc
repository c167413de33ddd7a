#include "core/model/sound_values.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/model/layout/codec.h"

namespace tierd {

Error lost_value(const TensorSource& source, const TensorInfo& tensor, uint64_t row, uint64_t col,
                 float value, Encoding encoding) {
  const std::string why = std::isfinite(value)
                              ? fmt::format("is too large for {}; store the tensor as f32", name(encoding))
                              : "is not a finite number; expected finite weights";
  return {Code::corrupt, source.path(),
          fmt::format("tensor '{}', row {}, column {}: {} {}",
                      tensor.theirs.empty() ? tensor.name : tensor.theirs, row, col, value, why)};
}

Status expect_finite(const TensorSource& source, const TensorInfo& tensor, uint64_t first,
                     std::span<const std::byte> blocks) {
  const auto bad = first_not_finite(tensor.encoding, blocks);
  if (!bad) return {};
  std::vector<float> block(block_values(tensor.encoding));
  decode(tensor.encoding, blocks.subspan(encoded_bytes(tensor.encoding, *bad), block_bytes(tensor.encoding)),
         block);
  uint64_t within = 0;
  while (within + 1 < block.size() && std::isfinite(block[within])) ++within;
  const uint64_t at = first + *bad + within;
  return lost_value(source, tensor, at / tensor.cols, at % tensor.cols, block[within], tensor.encoding);
}

}  // namespace tierd
