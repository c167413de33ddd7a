// What a program says on standard error while it works: lines for people, or one JSON object a line for
// machines. What libraries and plugins log goes the same way.
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

// What a line is about, for whoever filters; people read it in the line. The text stays the caller's.
struct LogField {
  const char* key;  // "tokens"
  std::variant<std::string_view, uint64_t, double> value;
};

// A line on standard error. That nobody can read it is no reason to fail. [any thread] In JSON:
// {"time": "2026-11-23T03:40:00.123Z", "level": "info", "message": line, the fields}.
void say(std::string_view line, std::span<const LogField> fields = {});

// The same, of a line that this process has not written yet: a model is read more than once. [any thread]
void say_once(std::string_view line);

}  // namespace tierd
