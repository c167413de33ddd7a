#include "tools/lab/sweep/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/units.h"

namespace tierd {
namespace {

using nlohmann::json;
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
Reading reading_of(const json& values) {
  constexpr std::array kReadings = {Reading{plain_number, ""}, Reading{percent, ", %"},
                                    Reading{gigabytes, ", GB"}};
  for (const Reading& reading : kReadings) {
    const auto reads = [&](const json& value) {
      return reading.read(value.get_ref<const std::string&>()).has_value();
    };
    if (std::all_of(values.begin(), values.end(), reads)) return reading;
  }
  return {};
}

Mark mark_of(const json& point) {
  const json& test = point["tests"].back();
  const json& token = test["per_token"];
  const json& rate = test["tokens_per_second"];
  const auto number = [](const json& value) { return value.get<double>(); };
  const auto ms = [&](const json& tokens_per_second) {
    return number(tokens_per_second) > 0 ? 1e3 / number(tokens_per_second) : 0;
  };
  Mark mark;
  mark.ms = number(token["step_ms"]);
  mark.blocks = test["blocks"].get<uint64_t>();
  mark.least_ms = std::min(mark.ms, ms(rate["most"]));
  mark.most_ms = std::max(mark.ms, ms(rate["least"]));
  mark.compute_ms = number(token["compute_ms"]) + number(token["predictor_ms"]);
  mark.flash_ms = number(token["stall_ms"]) + number(token["reading_ms"]);
  mark.management_ms = number(token["management_ms"]);
  mark.memory_bytes = number(test["memory"]["bytes"]);
  mark.flash_bytes = number(token["read_bytes"]);
  return mark;
}

std::string name_or_several(const json& value) {
  return value.is_string() ? value.get<std::string>() : "several";
}

Line& line_named(std::vector<Line>& lines, const std::string& name) {
  const auto known = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
  return known != lines.end() ? *known : lines.emplace_back(Line{name, {}});
}

}  // namespace

Result<Picture> picture_of(const json& report) {
  const json& axes = report["sweep"];
  const auto key = axes[0]["key"].get<std::string>();
  const json& values = axes[0]["values"];
  const bool several = axes.size() > 1;
  const Reading reading = reading_of(values);
  Picture picture;
  picture.axis =
      key == kBudgetKey ? XAxis::memory : (reading.read != nullptr ? XAxis::numbers : XAxis::names);
  picture.x_title = picture.axis == XAxis::memory ? "memory, the peak of the budget" : key + reading.unit;
  for (const json& point : report["points"]) {
    if (point["tests"].empty()) continue;
    Mark mark = mark_of(point);
    const json& value = point["values"][key];
    mark.value = value.get<std::string>();
    if (picture.axis == XAxis::memory) {
      mark.x = point["run"]["budget"]["peak_bytes"].get<double>();
    } else if (reading.read != nullptr) {
      mark.x = *reading.read(mark.value);
    } else {
      mark.x = static_cast<double>(std::find(values.begin(), values.end(), value) - values.begin());
    }
    std::string name;
    if (several) {
      const auto second = axes[1]["key"].get<std::string>();
      name = second + " " + name_or_several(point["values"][second]);
    }
    line_named(picture.lines, name).marks.push_back(std::move(mark));
    picture.title = fmt::format("{}, {}, commit {}", name_or_several(report["run"]["model"]),
                                point["tests"].back()["test"].get<std::string>(),
                                name_or_several(report["run"]["commit"]));
  }
  if (picture.lines.empty())
    return Error{Code::not_found, "--plot", "every point failed, there is no picture"};
  for (Line& line : picture.lines) {
    std::sort(line.marks.begin(), line.marks.end(), [](const Mark& a, const Mark& b) { return a.x < b.x; });
  }
  return picture;
}

}  // namespace tierd
