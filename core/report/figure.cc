#include "core/report/figure.h"

#include "core/base/check.h"

namespace tierd {

std::string_view name(Unit unit) {
  switch (unit) {
    case Unit::text:
      return "text";
    case Unit::flag:
      return "true or false";
    case Unit::count:
      return "count";
    case Unit::bytes:
      return "bytes";
    case Unit::bytes_per_second:
      return "bytes/s";
    case Unit::ns:
      return "ns";
    case Unit::us:
      return "us";
    case Unit::ms:
      return "ms";
    case Unit::seconds:
      return "s";
    case Unit::tokens:
      return "tokens";
    case Unit::tokens_per_second:
      return "tokens/s";
    case Unit::share:
      return "0 to 1";
    case Unit::percent:
      return "%";
    case Unit::joules:
      return "J";
    case Unit::watts:
      return "W";
    case Unit::grams:
      return "g";
    case Unit::nats:
      return "nats/token";
    case Unit::ratio:
      return "ratio";
    case Unit::parts:
      return "";
  }
  TIERD_CHECK(false);
  return "";
}

}  // namespace tierd
