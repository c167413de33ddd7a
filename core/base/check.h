// TIERD_CHECK is for this program's own broken invariants. Errors in files, configuration, plugins, devices
// and clients return an Error instead.
#pragma once

#include <string_view>

namespace tierd {
[[noreturn]] void check_failed(const char* file, int line, const char* expression, std::string_view detail);
}  // namespace tierd

#define TIERD_CHECK_MSG(condition, detail)                           \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::tierd::check_failed(__FILE__, __LINE__, #condition, detail); \
    }                                                                \
  } while (false)
#define TIERD_CHECK(condition) TIERD_CHECK_MSG(condition, "")
