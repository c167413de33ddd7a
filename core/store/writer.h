// Makes a store from a TensorSource.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/manifest.h"
#include "core/store/write_options.h"

namespace tierd {

// Where each neuron will lie: everything of the manifest but the checksums, from configuration and encodings
// alone.
Result<Manifest> plan_store(const TensorSource& source, const WriteOptions& options);

// Writes the store into `directory`, which must not hold a whole store of another source. The work goes on in
// `<directory>.partial`, checkpointed so that an interrupted run resumes where it stopped (if the source is
// unchanged); data and manifest are fsynced before one rename makes it whole. Errors name the file.
Status write_store(const TensorSource& source, const std::string& directory, const WriteOptions& options);

}  // namespace tierd
