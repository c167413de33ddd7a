// The filters by groups. A filter reads its arguments itself.
#pragma once

#include <span>
#include <string_view>

#include "core/model/text/jinja/call.h"
#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

using Filter = Result<Value> (*)(Heap& heap, const std::string& name, const Value& value,
                                 const Arguments& arguments);

struct NamedFilter {
  std::string_view name;
  Filter run;
};

std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> list_filters();

}  // namespace tierd::jinja
