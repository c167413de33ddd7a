// Values as JSON, as Python's json.dumps writes them, and JSON as values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/model/text/jinja/value.h"

namespace tierd::jinja {

struct JsonForm {
  bool ascii = false;                 // escapes all other characters
  std::optional<std::string> indent;  // of a level; nothing: one line
  std::string between = ", ";
  std::string behind_key = ": ";
  bool sorted = false;
};

// Error: a value that JSON does not have.
Result<std::string> json_text(const Value& value, const JsonForm& form);

// Error: an integer beyond 64 bits.
Result<Value> value_of_json(Heap& heap, const nlohmann::ordered_json& json);

}  // namespace tierd::jinja
