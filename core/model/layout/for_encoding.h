// From an encoding that is known at run time to code that is compiled for it.
#pragma once

#include <type_traits>
#include <utility>

#include "core/model/layout/encoding.h"

namespace tierd {

template <Encoding E>
using EncodingConstant = std::integral_constant<Encoding, E>;

// Returns call(EncodingConstant<e>()).
template <class Call>
constexpr decltype(auto) for_encoding(Encoding e, Call&& call) {
  switch (e) {
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
    case Encoding::q4_k:
      return call(EncodingConstant<Encoding::q4_k>());
    case Encoding::q5_k:
      return call(EncodingConstant<Encoding::q5_k>());
    case Encoding::q6_k:
      return call(EncodingConstant<Encoding::q6_k>());
    case Encoding::q4_1:
      return call(EncodingConstant<Encoding::q4_1>());
    case Encoding::q5_0:
      return call(EncodingConstant<Encoding::q5_0>());
    case Encoding::q5_1:
      return call(EncodingConstant<Encoding::q5_1>());
    case Encoding::q2_k:
      return call(EncodingConstant<Encoding::q2_k>());
    case Encoding::q3_k:
      return call(EncodingConstant<Encoding::q3_k>());
    case Encoding::iq4_nl:
      return call(EncodingConstant<Encoding::iq4_nl>());
    case Encoding::iq4_xs:
      return call(EncodingConstant<Encoding::iq4_xs>());
    case Encoding::mxfp4:
      return call(EncodingConstant<Encoding::mxfp4>());
  }
  __builtin_unreachable();
}

}  // namespace tierd
