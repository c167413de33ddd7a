// Where converted models live, so that a model is converted once: $TIERD_CACHE, else $XDG_CACHE_HOME/tierd,
// else
// ~/.cache/tierd.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "core/store/writer.h"

namespace tierd {

// Errors: not_found when neither of the three variables is set.
Result<std::string> cache_folder();

// Where tier-calibrate keeps what it has measured of this machine, for all that runs on it.
Result<std::string> machine_file();

// The folder of this source's store: its name and a hash of the plan (fingerprint, format, layout, neuron
// size), so that a changed source gets another store. Nothing is made.
Result<std::string> store_path(const TensorSource& source, const WriteOptions& options);

// The store of a model, before anything is written.
struct FoundStore {
  Store store;
  std::shared_ptr<const TensorSource> source;  // what it is to be made of; none where it stands
};
// `path` itself if it is a store, otherwise the model's store in the cache folder: opened, or planned from
// the headers of the model's files. Errors: those of open_source, plan_store and Store::open; no_space where
// the disk has no room for it.
Result<FoundStore> find_store(const std::string& path, const SourceOptions& source_options,
                              const WriteOptions& options);

// Makes the source's store in the cache folder, unless it stands; says in one line when it is made anew
// because the source has changed (the old one stays until it is removed). Waits while another run makes it.
Result<std::string> store_for(const TensorSource& source, const WriteOptions& options);

// What a store that is planned will take on disk, beside what an interrupted run has written of it already,
// and what its disk has left for the user.
struct DiskRoom {
  uint64_t needed_bytes = 0;
  uint64_t left_bytes = 0;
};
// Error: io_error, naming the folder.
Result<DiskRoom> disk_room(const Store& planned);

}  // namespace tierd
