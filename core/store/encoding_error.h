// The loss of a store whose values are encoded again.
#pragma once

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// Returns whether some part of a site may be stored with other values than the source's: in another encoding
// than the source's and not f32, or in columns of blocks.
bool encoded_anew(const TensorSource& source, const StoredSite& site);

// Returns sqrt(sum (stored - source)^2 / sum source^2) over the parts of a site that are encoded again, by
// reading and encoding them once more: all rows or columns, of large tensors a sample of at least 512. Any
// thread.
// Errors: the source's; corrupt, where weights are not finite.
Result<float> encoding_error(const TensorSource& source, const StoredSite& site);

// The same over some rows of each part (of a mixture, of its first expert), in milliseconds.
Result<float> sampled_encoding_error(const TensorSource& source, const StoredSite& site);

}  // namespace tierd
