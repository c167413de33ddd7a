// The error of a failed run.
#pragma once

#include <string>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/post/dispatcher.h"

namespace tierd {

// `site` names the site of the run. `done` is not ok.
Error run_error(const Dispatcher& dispatcher, const Message& message, const Done& done,
                const std::string& site);

}  // namespace tierd
