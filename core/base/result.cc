#include "core/base/result.h"

namespace tierd {
namespace {

std::string escaped(std::string_view text) {
  constexpr unsigned char kFirstPrintable = 0x20;
  constexpr unsigned char kDelete = 0x7f;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < kFirstPrintable || byte == kDelete) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

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
    case Code::lost:
      return "lost";
    case Code::plugin_fault:
      return "plugin fault";
    case Code::internal:
      return "internal error";
  }
  return "unknown";
}

std::string Error::line() const {
  std::string text = escaped(origin.empty() ? detail : origin + ": " + detail);
  for (const std::string& next : more) text += "\n" + escaped(next);
  return text;
}

Error Error::below(std::string_view key) const {
  return {code, std::string(key), origin.empty() ? detail : origin + ": " + detail, more};
}

}  // namespace tierd
