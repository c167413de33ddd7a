// What a store loses where it must encode values anew.
#pragma once

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// Whether some part of a site may be stored as other values than the source's: in another encoding than
// float32, or in columns of blocks.
bool encoded_anew(const TensorSource& source, const StoredSite& site);

// sqrt(sum (stored - source)^2 / sum source^2) over the parts of a site that are encoded anew, which it reads
// and encodes once more: of large ones a part, 512 rows or columns or more. Any thread.
// Errors: the source's; corrupt, where weights are not finite.
Result<float> encoding_error(const TensorSource& source, const StoredSite& site);

// The same of some rows of each part (of a mixture, of its first expert), in milliseconds.
Result<float> sampled_encoding_error(const TensorSource& source, const StoredSite& site);

}  // namespace tierd
