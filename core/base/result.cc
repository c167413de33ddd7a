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

std::string Error::line() const {
  std::string text = escaped(origin.empty() ? detail : origin + ": " + detail);
  for (const std::string& next : more) text += "\n" + escaped(next);
  return text;
}

Error Error::below(std::string_view key) const {
  return {code, std::string(key), origin.empty() ? detail : origin + ": " + detail, more};
}

}  // namespace tierd
