// The plan of a store whose neurons are compressed: how large they get is known when their values have been
// seen.
#pragma once

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"

namespace tierd {

// The plan in which each site has the compression asked for (Manifest::compression) if that makes it smaller,
// from `dense` as plan_store makes it. Reads all of the source, with progress. Errors: the source's.
Result<Manifest> compressed_plan(const TensorSource& source, Manifest dense, bool quiet);

// The plan that it was made from: all sites dense.
Manifest dense_plan(Manifest plan);

}  // namespace tierd
