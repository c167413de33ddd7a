#include "tools/lab/sweep/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/units.h"

namespace tierd {
namespace {

using XAxis = Picture::XAxis;
using Line = Picture::Line;
using Mark = Picture::Mark;

constexpr double kGb = 1e-9;
constexpr const char* kBudgetKey = "tiers.dram.capacity";

std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}
std::optional<double> percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  return plain_number(text);
}
std::optional<double> gigabytes(std::string_view text) {
  const auto bytes = parse_bytes(text, "");
  if (!bytes.ok()) return std::nullopt;
  return static_cast<double>(*bytes) * kGb;
}

// A way to read all values of a key as numbers, if there is one.
struct Reading {
  std::optional<double> (*read)(std::string_view) = nullptr;  // NULL: they are names
  const char* unit = "";
};
Reading reading_of(const std::vector<std::string>& values) {
  constexpr std::array kReadings = {Reading{plain_number, ""}, Reading{percent, ", %"},
                                    Reading{gigabytes, ", GB"}};
  for (const Reading& reading : kReadings) {
    const auto reads = [&](const std::string& value) { return reading.read(value).has_value(); };
    if (std::ranges::all_of(values, reads)) return reading;
  }
  return {};
}

Mark mark_of(const TestFigures& test) {
  const TokenFigures& token = test.per_token;
  const auto ms = [](double tokens_per_second) {
    return tokens_per_second > 0 ? 1e3 / tokens_per_second : 0;
  };
  Mark mark;
  mark.ms = token.step_ms;
  mark.blocks = test.blocks;
  mark.least_ms = std::min(mark.ms, ms(test.tokens_per_second.most));
  mark.most_ms = std::max(mark.ms, ms(test.tokens_per_second.least));
  mark.compute_ms = token.compute_ms + token.predictor_ms;
  mark.flash_ms = token.stall_ms + token.reading_ms;
  mark.management_ms = token.management_ms;
  mark.memory_bytes = test.memory.bytes;
  mark.flash_bytes = token.read_bytes;
  return mark;
}

Line& line_named(std::vector<Line>& lines, const std::string& name) {
  const auto known = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
  return known != lines.end() ? *known : lines.emplace_back(Line{name, {}});
}

}  // namespace

Result<Picture> picture_of(const SweepFigures& report) {
  const auto& [key, values] = report.sweep.front();
  const Reading reading = reading_of(values);
  Picture picture;
  picture.axis =
      key == kBudgetKey ? XAxis::memory : (reading.read != nullptr ? XAxis::numbers : XAxis::names);
  picture.x_title = picture.axis == XAxis::memory ? "memory, the peak of the budget" : key + reading.unit;
  for (const PointFigures& point : report.points) {
    if (point.tests.empty()) continue;
    const TestFigures& test = point.tests.back();
    Mark mark = mark_of(test);
    mark.value = point.values.at(key);
    if (picture.axis == XAxis::memory) {
      mark.x = static_cast<double>(point.run->budget.peak_bytes.value_or(0));
    } else if (reading.read != nullptr) {
      mark.x = *reading.read(mark.value);
    } else {
      mark.x = static_cast<double>(std::ranges::find(values, mark.value) - values.begin());
    }
    std::string name;
    if (report.sweep.size() > 1) name = report.sweep[1].key + " " + point.values.at(report.sweep[1].key);
    line_named(picture.lines, name).marks.push_back(std::move(mark));
    picture.title = fmt::format("{}, {}, commit {}", report.run->model.value_or("several"), test.test,
                                report.run->commit.value_or("several"));
  }
  if (picture.lines.empty())
    return Error{Code::not_found, "--plot", "every point failed, there is no picture"};
  for (Line& line : picture.lines) {
    std::sort(line.marks.begin(), line.marks.end(), [](const Mark& a, const Mark& b) { return a.x < b.x; });
  }
  return picture;
}

}  // namespace tierd
