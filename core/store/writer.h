// Makes a store from a TensorSource.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/friends.h"
#include "core/store/manifest.h"

namespace tierd {

struct WriteOptions {
  // A neuron of axis row holds about so many bytes; 0: by the model's size, 16 KiB for toys, 512 KiB from
  // about 256 MB on.
  uint64_t neuron_bytes = 0;
  Layout layout = Layout::row;
  Bundling bundling = Bundling::row_column;
  FriendTables friends = {};  // of bundling closest_friend, and of no other
  bool quiet = false;         // no progress
};

// Where each neuron will lie: everything of the manifest but the checksums, from configuration and encodings
// alone.
Result<Manifest> plan_store(const TensorSource& source, const WriteOptions& options);

// Writes the store into `directory`, which must not hold a whole store of another source. The work goes on in
// `<directory>.partial`, checkpointed so that an interrupted run resumes where it stopped (if the source is
// unchanged); data and manifest are fsynced before one rename makes it whole. Errors name the file.
Status write_store(const TensorSource& source, const std::string& directory, const WriteOptions& options);

}  // namespace tierd
