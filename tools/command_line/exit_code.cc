#include "tools/command_line/exit_code.h"

#include "core/base/log.h"

namespace tierd {

int fail(const Error& error, int code) {
  say(error.line());
  return code;
}

}  // namespace tierd
