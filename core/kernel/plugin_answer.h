// What plugins answer is checked before anything relies on it: a wrong answer is an error that names the
// plugin, never a crash.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tierd/views.h"

namespace tierd {

// Whether a list ascends strictly below `n`. Error: plugin_fault without origin.
Status check_neurons(std::span<const uint32_t> neurons, uint32_t n);

// The neurons that a wish names, of a site with `n`; all of them where it has no list.
Result<std::vector<uint32_t>> neurons_of(const tierd_ahead& wish, uint32_t n);

}  // namespace tierd
