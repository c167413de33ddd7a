// The check of every property of a manifest that later code relies on.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

// Checks that the configuration is valid; that sites and resident tensors are exactly those that the
// configuration requires; that each neuron and each resident tensor has one extent of the right size; that
// extents are aligned, in order and inside the data. Errors: corrupt, naming `origin` and the key.
Status check_manifest(const Manifest& manifest, std::string_view origin);

}  // namespace tierd
