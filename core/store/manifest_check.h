// What later code relies on in a manifest, checked in one place.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/store/manifest.h"

namespace tierd {

// Configuration valid; the sites and resident tensors are exactly those the configuration asks for; each
// neuron and each resident tensor has one extent of the right size; extents are aligned, in order, inside the
// data and not overlapping. Errors: corrupt, `origin` and the key.
Status check_manifest(const Manifest& manifest, std::string_view origin);

}  // namespace tierd
