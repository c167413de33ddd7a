// Messages on standard error while a program works: lines of text, or one JSON object a line. Messages of
// libraries and plugins use the same format.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace tierd {

enum class LogFormat : uint8_t { text, json };

// [main, before other threads]
void set_log_format(LogFormat format);
LogFormat log_format();

// A field of a log line, for filters; the line's text contains it, too. The caller owns the strings.
struct LogField {
  const char* key;  // "tokens"
  std::variant<std::string_view, uint64_t, double> value;
};

// Writes a line to standard error; a failure is ignored. [any thread] In JSON: {"time":
// "2026-11-23T03:40:00.123Z", "level": "info", "message": line, the fields}.
void say(std::string_view line, std::span<const LogField> fields = {});

// The same, unless this process has written the line already: a model is read more than once. [any thread]
void say_once(std::string_view line);

}  // namespace tierd
