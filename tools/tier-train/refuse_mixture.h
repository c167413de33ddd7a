// What is trained here has one feed-forward network a layer.
#pragma once

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Error: unsupported, naming the model.
inline Status refuse_mixture(const TensorSource& source) {
  if (!source.config().is_mixture()) return {};
  return Error{Code::unsupported, source.path(), "a mixture of experts; tier-train takes models without"};
}

}  // namespace tierd
