// Whether a store is what the configuration asks for.
#pragma once

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/store/store.h"

namespace tierd {

// Compares the keys of [model] that say how a store is made with the store of a run, where a file or --set
// names them (Config::given). A store that model.path names is taken as it is, so that a key which asks for
// another one could only be passed over. Error: invalid_argument, naming key, store and remedy.
Status check_asked_store(const Config& config, const Store& store);

}  // namespace tierd
