#include "core/run/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace tierd {

Budget::Line& Budget::line(const std::string& name) {
  for (Line& known : lines_) {
    if (known.name == name) return known;
  }
  return lines_.emplace_back(Line{name, 0});
}

Status Budget::reserve(const std::string& name, uint64_t bytes) {
  if (bytes > left()) {
    return Error{
        Code::no_space, "budget",
        fmt::format("{} needs {}, but of {} only {} are left", name, format_bytes(static_cast<double>(bytes)),
                    format_bytes(static_cast<double>(capacity_)), format_bytes(static_cast<double>(left())))};
  }
  line(name).bytes += bytes;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return {};
}

void Budget::release(const std::string& name, uint64_t bytes) {
  Line& known = line(name);
  TIERD_CHECK(bytes <= known.bytes);
  known.bytes -= bytes;
  used_ -= bytes;
}

void Budget::set_capacity(uint64_t capacity) {
  TIERD_CHECK(used_ <= capacity);
  capacity_ = capacity;
}

}  // namespace tierd
