// Dates as Python's datetime.strftime writes them.
#pragma once

#include <ctime>
#include <string>

#include "core/base/result.h"

namespace tierd::jinja {

// Error: a directive that is not supported, or a text longer than 1000 bytes.
Result<std::string> formatted_date(const std::string& format, const std::tm& date);

}  // namespace tierd::jinja
