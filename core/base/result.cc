#include "core/base/result.h"

namespace tierd {

std::string_view name(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::busy:
      return "busy";
    case Code::cancelled:
      return "cancelled";
    case Code::not_found:
      return "not found";
    case Code::no_space:
      return "no space";
    case Code::io_error:
      return "input/output error";
    case Code::corrupt:
      return "corrupt";
    case Code::invalid_argument:
      return "invalid argument";
    case Code::unsupported:
      return "unsupported";
    case Code::plugin_fault:
      return "plugin fault";
    case Code::internal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace tierd
