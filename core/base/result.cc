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

std::string Error::line() const {
  constexpr unsigned char kFirstPrintable = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const char c : origin.empty() ? detail : origin + ": " + detail) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < kFirstPrintable && c != '\n') || byte == kDelete) {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace tierd
