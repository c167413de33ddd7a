#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tierd {

void check_failed(const char* file, int line, const char* expression, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s%s%.*s\n", file, line, expression,
               detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace tierd
