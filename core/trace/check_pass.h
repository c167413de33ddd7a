// What the kernel takes for granted of a pass.
#pragma once

#include "core/base/result.h"
#include "core/trace/event.h"
#include "core/trace/reader.h"

namespace tierd {

// Of the event at which `trace` stands. Error: corrupt, naming it.
Status check_pass(const PassBegins& begins, const TraceReader& trace);

}  // namespace tierd
