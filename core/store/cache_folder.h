// The folder of converted models, so that a model is converted once: $TIERD_CACHE, else
// $XDG_CACHE_HOME/tierd, else ~/.cache/tierd.
#pragma once

#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "core/store/writer.h"

namespace tierd {

// Errors: not_found when none of the three variables is set.
Result<std::string> cache_folder();

// The file in which tier-calibrate saves its measurements of this machine.
Result<std::string> machine_file();

// The folder of this source's store: its name and a hash of the plan (fingerprint, format, layout, neuron
// size), so that a changed source gets another store. Creates nothing.
Result<std::string> store_path(const TensorSource& source, const WriteOptions& options);

// The store of a model, before anything is written.
struct FoundStore {
  Store store;
  std::shared_ptr<const TensorSource> source;  // the store's source; null if the store exists
};
// Returns the store at `path` if it is one, otherwise the model's store in the cache folder: opened, or
// planned from the headers of the model's files. Errors: those of open_source, plan_store and Store::open;
// no_space if the disk has no room for it.
Result<FoundStore> find_store(const std::string& path, const SourceOptions& source_options,
                              const WriteOptions& options);

// Makes the source's store in the cache folder unless it exists; prints a line when it is made again because
// the source has changed (the old store remains until it is removed). Waits while another run makes it.
Result<std::string> store_for(const TensorSource& source, const WriteOptions& options);

// The disk space that a planned store still needs, beyond the bytes that an interrupted run has written, and
// the free space of its disk for this user.
struct DiskRoom {
  uint64_t needed_bytes = 0;
  uint64_t left_bytes = 0;
};
// Error: io_error, naming the folder.
Result<DiskRoom> disk_room(const Store& planned);

}  // namespace tierd
