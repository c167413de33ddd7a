// Checks that a store has the properties that the configuration names.
#pragma once

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/store/store.h"

namespace tierd {

// Compares the keys of [model] about the making of a store with the run's store, if a file or --set names
// them (Config::given). A store that model.path names is used as it is, so a key that requires another one
// would be ignored. Error: invalid_argument, naming key, store and remedy.
Status check_asked_store(const Config& config, const Store& store);

}  // namespace tierd
