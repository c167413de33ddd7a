// Dispatch from an encoding to the kernel that is compiled for it.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "core/model/layout/encoding.h"

namespace tierd::cuda {

template <Encoding E>
using EncodingConstant = std::integral_constant<Encoding, E>;

// Calls `call` with an EncodingConstant. Only for bundles and columns, which have no K-quants.
template <class Call>
cudaError_t for_plain_encoding(Encoding encoding, const Call& call) {
  switch (encoding) {
    case Encoding::f32:
      return call(EncodingConstant<Encoding::f32>());
    case Encoding::f16:
      return call(EncodingConstant<Encoding::f16>());
    case Encoding::bf16:
      return call(EncodingConstant<Encoding::bf16>());
    case Encoding::q8_0:
      return call(EncodingConstant<Encoding::q8_0>());
    case Encoding::q4_0:
      return call(EncodingConstant<Encoding::q4_0>());
    default:
      return cudaErrorInvalidValue;
  }
}

// The same for rows, which have all encodings.
template <class Call>
cudaError_t for_encoding(Encoding encoding, const Call& call) {
  switch (encoding) {
    case Encoding::q4_k:
      return call(EncodingConstant<Encoding::q4_k>());
    case Encoding::q5_k:
      return call(EncodingConstant<Encoding::q5_k>());
    case Encoding::q6_k:
      return call(EncodingConstant<Encoding::q6_k>());
    default:
      return for_plain_encoding(encoding, call);
  }
}

}  // namespace tierd::cuda
