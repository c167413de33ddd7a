// Errors as values. A Result<T> is a T or an Error; no code of this project throws after start-up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/check.h"
#include "core/base/enum_names.h"

namespace tierd {

// The closed list of error codes. `busy` means "try again", never "no room" or "broken".
enum class Code : uint8_t {
  ok,
  busy,
  cancelled,
  not_found,
  no_space,
  io_error,
  corrupt,
  invalid_argument,
  unsupported,
  plugin_fault,
  lost,  // the agent no longer exists
  internal,
};

constexpr std::array<std::string_view, 12> names_of(Code) {
  return {"ok",          "busy",
          "cancelled",   "not found",
          "no space",    "input/output error",
          "corrupt",     "invalid argument",
          "unsupported", "plugin fault",
          "lost",        "internal error"};
}

// An error of one line: `origin` is the file, key or component, with an offset or line if there is one;
// `detail` says what was found and what was expected, and the fix if one is known.
struct Error {
  Code code = Code::internal;
  std::string origin;
  std::string detail;
  // Further lines: the next errors of a configuration, the last output of another program.
  std::vector<std::string> more = {};

  // Returns the text for a terminal: one line, and one for each of `more`. Control characters and line ends,
  // which a name from a hostile file may contain, are escaped.
  std::string line() const;
  // Returns the same error with `key`, the configuration key that caused it, as its origin.
  Error below(std::string_view key) const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by intent
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {
    TIERD_CHECK(this->error().code != Code::ok);
  }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }
  Code code() const { return ok() ? Code::ok : error().code; }

 private:
  void check() const { TIERD_CHECK_MSG(ok(), error().line()); }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {  // NOLINT: implicit by intent
    TIERD_CHECK(error_->code != Code::ok);
  }

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  // Returns the error of a status that is not ok.
  const Error& error() const {
    TIERD_CHECK(error_.has_value());
    return *error_;
  }
  Code code() const { return ok() ? Code::ok : error_->code; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace tierd

#define TIERD_CONCAT_INNER(a, b) a##b
#define TIERD_CONCAT(a, b) TIERD_CONCAT_INNER(a, b)

// Returns from the enclosing function with the error, if there is one.
#define TIERD_TRY(expression)                                   \
  do {                                                          \
    if (auto tierd_status = (expression); !tierd_status.ok()) { \
      return ::tierd::Error(tierd_status.error());              \
    }                                                           \
  } while (false)

// TIERD_ASSIGN(auto x, f()): declares or assigns x from the Result, or returns its error.
#define TIERD_ASSIGN(target, expression)                                  \
  auto TIERD_CONCAT(tierd_result_, __LINE__) = (expression);              \
  if (!TIERD_CONCAT(tierd_result_, __LINE__).ok()) {                      \
    return ::tierd::Error(TIERD_CONCAT(tierd_result_, __LINE__).error()); \
  }                                                                       \
  target = std::move(TIERD_CONCAT(tierd_result_, __LINE__)).value()
