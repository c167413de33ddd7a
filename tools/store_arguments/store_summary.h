// Describes a store on one screen.
#pragma once

#include <string>

#include "core/store/store.h"

namespace tierd {

// Returns a row for each operator group and encoding: its bytes, the padding, the error of encoding anew.
std::string store_summary(const Store& store);

}  // namespace tierd
