#include "core/report/figure.h"

#include <array>

#include "core/base/check.h"

namespace tierd {

std::string_view name(Quantity unit) {
  switch (unit) {
    case Quantity::text:
      return "text";
    case Quantity::flag:
      return "true or false";
    case Quantity::count:
      return "count";
    case Quantity::bytes:
      return "bytes";
    case Quantity::bytes_per_second:
      return "bytes/s";
    case Quantity::ns:
      return "ns";
    case Quantity::us:
      return "us";
    case Quantity::ms:
      return "ms";
    case Quantity::seconds:
      return "s";
    case Quantity::tokens:
      return "tokens";
    case Quantity::tokens_per_second:
      return "tokens/s";
    case Quantity::share:
      return "0 to 1";
    case Quantity::percent:
      return "%";
    case Quantity::joules:
      return "J";
    case Quantity::watts:
      return "W";
    case Quantity::grams:
      return "g";
    case Quantity::nats:
      return "nats/token";
    case Quantity::ratio:
      return "ratio";
    case Quantity::parts:
      return "";
  }
  TIERD_CHECK(false);
  return "";
}

std::string_view name(Adds adds) {
  constexpr std::array<std::string_view, 4> kNames = {"sum", "greatest", "latest", "derived"};
  return kNames[static_cast<size_t>(adds)];
}

}  // namespace tierd
