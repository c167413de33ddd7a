#include "core/model/text/jinja/strftime.h"

#include <fmt/format.h>

#include "core/base/utf8.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

Result<std::string> formatted_date(const std::string& format, const std::tm& date) {
  constexpr std::string_view kDirectives = "aAbBcdDeFHIjmMpRSTuUVwWxXyY";
  std::string out;
  for (size_t i = 0; i < format.size() && out.size() < 1000; ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string one = format.substr(i, format.substr(i, 2) == "%-" ? 3 : 2);
    i += one.size() - 1;
    const char kind = one.size() > 1 ? one.back() : '\0';
    if (kind == '%') {
      out += '%';
    } else if (kind == 'f') {
      out += "000000";
    } else if (kind != 'z' && kind != 'Z') {  // a date without a zone has neither
      if (kDirectives.find(kind) == std::string_view::npos)
        return wrong(fmt::format("the directive '{}' of a date is not supported", shown(one)));
      char text[64];
      out.append(text, std::strftime(text, sizeof text, one.c_str(), &date));
    }
  }
  return out.size() < 1000 ? Result<std::string>(std::move(out)) : wrong("a date is longer than 1000 bytes");
}

}  // namespace tierd::jinja
