#include "core/base/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tierd {
namespace {

using Time = std::chrono::system_clock::time_point;

LogFormat the_format = LogFormat::text;

std::string json_line(Time time, std::string_view level, std::string_view line,
                      std::span<const LogField> fields) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(ms);
  nlohmann::ordered_json object = {
      {"time",
       fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds.count()), (ms - seconds).count())},
      {"level", level},
      {"message", line}};
  for (const LogField& field : fields)
    std::visit([&](const auto& value) { object[field.key] = value; }, field.value);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const std::string line = json_line(message.time, {level.data(), level.size()},
                                       {message.payload.data(), message.payload.size()}, {});
    out.append(line.data(), line.data() + line.size());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonLines>(); }
};

}  // namespace

void set_log_format(LogFormat format) {
  the_format = format;
  if (format == LogFormat::json) {
    spdlog::set_formatter(std::make_unique<JsonLines>());
  } else {
    spdlog::set_pattern("%v");
  }
}

LogFormat log_format() {
  return the_format;
}

void say(std::string_view line, std::span<const LogField> fields) {
  std::string text = the_format == LogFormat::json
                         ? json_line(std::chrono::system_clock::now(), "info", line, fields)
                         : std::string(line);
  text += '\n';
  // One write, so that lines of several threads do not mix.
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void say_once(std::string_view line) {
  static std::mutex guard;
  static std::set<std::string, std::less<>> said;
  const std::lock_guard lock(guard);
  if (said.emplace(line).second) say(line);
}

}  // namespace tierd
