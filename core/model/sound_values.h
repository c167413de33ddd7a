// Checks that weights are finite and within the range of their encoding. A single bad weight would make every
// token wrong without any error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Returns the error of a value that cannot be stored in an encoding. It names the tensor as its file does.
Error lost_value(const TensorSource& source, const TensorInfo& tensor, uint64_t row, uint64_t col,
                 float value, Encoding encoding);

// Checks consecutive blocks of a tensor; value `first` of the tensor begins the first block. Error:
// lost_value, for a value that is not finite.
Status expect_finite(const TensorSource& source, const TensorInfo& tensor, uint64_t first,
                     std::span<const std::byte> blocks);

}  // namespace tierd
