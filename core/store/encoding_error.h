// What a store loses where it must encode values anew.
#pragma once

#include <optional>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// sqrt(sum (stored - source)^2 / sum source^2) over the columns of a site that are encoded anew; nothing
// where the store keeps the source's values. Reads and encodes those columns once more. Any thread. Errors
// are the source's.
Result<std::optional<float>> encoding_error(const TensorSource& source, const StoredSite& site);

}  // namespace tierd
