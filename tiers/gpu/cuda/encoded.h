// Dispatch from an encoding to the kernel that is compiled for it.
#pragma once

#include <cuda_runtime.h>

#include "core/model/layout/for_encoding.h"

namespace tierd::cuda {

// Returns call(EncodingConstant<encoding>()) for the encodings that bundles and columns have.
template <class Call>
cudaError_t for_column_encoding(Encoding encoding, const Call& call) {
  return for_encoding(encoding, [&](auto e) -> cudaError_t {
    if constexpr (has_columns(e())) {
      return call(e);
    } else {
      return cudaErrorInvalidValue;
    }
  });
}

}  // namespace tierd::cuda
