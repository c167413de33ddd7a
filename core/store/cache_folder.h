// Where converted models live, so that a model is converted once: $TIERD_CACHE, else $XDG_CACHE_HOME/tierd,
// else
// ~/.cache/tierd.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/source.h"
#include "core/store/writer.h"

namespace tierd {

// Errors: not_found when neither of the three variables is set.
Result<std::string> cache_folder();

// The folder of this source's store: its name and a hash of the plan (fingerprint, format, layout, neuron
// size), so that a changed source gets another store. Nothing is made.
Result<std::string> store_path(const TensorSource& source, const WriteOptions& options);

// The store of the model at `path`: `path` itself if it is one, otherwise its store in the cache folder, made
// at the first use; says in one line when it is made anew because the source has changed (the old one stays
// until it is removed). Waits while another run makes it.
Result<std::string> store_for(const std::string& path, const SourceOptions& source_options,
                              const WriteOptions& options);
Result<std::string> store_for(const TensorSource& source, const WriteOptions& options);

}  // namespace tierd
