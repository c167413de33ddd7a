#include "tools/lab/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tierd {
namespace {

constexpr const char* kSweepOption = "--sweep";
constexpr std::string_view kSetOption = "--set";
constexpr size_t kMostAxes = 2;  // the most that a picture can show

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

Error refused(const std::string& text, std::string_view why) {
  return {Code::invalid_argument, kSweepOption, fmt::format("'{}' {}", text, why)};
}

}  // namespace

Result<SweepAxis> parse_axis(const std::string& text) {
  constexpr std::string_view kExpected = "expected KEY=VALUE,VALUE,... as in cache.k=1,2,3";
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return refused(text, kExpected);
  SweepAxis axis;
  axis.key = trimmed(std::string_view(text).substr(0, equals));
  std::string_view rest = std::string_view(text).substr(equals + 1);
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    std::string value = trimmed(rest.substr(0, comma));
    if (value.empty()) return refused(text, fmt::format("has an empty value, {}", kExpected));
    if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end())
      return refused(text, fmt::format("has {} twice", value));
    axis.values.push_back(std::move(value));
    if (more) rest.remove_prefix(comma + 1);
  }
  return axis;
}

Result<Sweep> make_sweep(const std::vector<std::string>& axes, const std::string& file,
                         const std::vector<std::string>& overrides) {
  if (axes.size() > kMostAxes) {
    return Error{Code::invalid_argument, kSweepOption,
                 fmt::format("is given {} times, at most {} keys are swept", axes.size(), kMostAxes)};
  }
  Sweep sweep;
  sweep.points = {{{}, overrides, {}}};
  for (const std::string& text : axes) {
    TIERD_ASSIGN(SweepAxis axis, parse_axis(text));
    const auto gives_it = [&](const std::string& one) { return one.starts_with(axis.key + "="); };
    if (std::any_of(overrides.begin(), overrides.end(), gives_it))
      return refused(axis.key, "has a value by --set as well");
    for (const SweepAxis& other : sweep.axes) {
      if (other.key == axis.key) return refused(axis.key, "is swept twice");
    }
    std::vector<SweepPoint> product;
    for (const SweepPoint& point : sweep.points) {
      for (const std::string& value : axis.values) {
        SweepPoint& more = product.emplace_back(point);
        more.values.push_back(value);
        more.overrides.push_back(axis.key + "=" + value);
      }
    }
    sweep.points = std::move(product);
    sweep.axes.push_back(std::move(axis));
  }
  for (SweepPoint& point : sweep.points) {
    auto config = load_config(file, point.overrides);
    if (!config.ok()) return of_sweep(config.error());
    point.config = std::move(*config);
  }
  return sweep;
}

Error of_sweep(Error error) {
  if (error.origin == kSetOption) error.origin = kSweepOption;
  if (error.detail.starts_with(kSetOption)) error.detail.replace(0, kSetOption.size(), kSweepOption);
  return error;
}

std::string point_name(const Sweep& sweep, const SweepPoint& point) {
  std::string name;
  for (size_t i = 0; i < sweep.axes.size(); ++i)
    name += fmt::format("{}{}={}", i == 0 ? "" : ", ", sweep.axes[i].key, point.values[i]);
  return name;
}

}  // namespace tierd
