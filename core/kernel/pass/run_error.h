// What is said of a run that has failed.
#pragma once

#include <string>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/post/dispatcher.h"

namespace tierd {

// `site` names what it was about. `done` is not ok.
Error run_error(const Dispatcher& dispatcher, const Message& message, const Done& done,
                const std::string& site);

}  // namespace tierd
