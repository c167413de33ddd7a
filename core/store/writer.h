// Makes a store from a TensorSource.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"
#include "core/store/write_options.h"

namespace tierd {

// Returns the manifest without checksums, from configuration and encodings alone.
Result<Manifest> plan_store(const TensorSource& source, const WriteOptions& options);

// Writes the store into `directory`, which must not hold a whole store of another source. The writer works in
// `<directory>.partial` with checkpoints, so that an interrupted run is resumed (if the source is unchanged);
// data and manifest are synced before one rename makes the store whole. Errors name the file.
Status write_store(const TensorSource& source, const std::string& directory, const WriteOptions& options);

}  // namespace tierd
