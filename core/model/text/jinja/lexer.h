// Cuts a template into tokens, with the white space that jinja2 removes under trim_blocks and lstrip_blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd::jinja {

struct Token {
  enum class Kind : uint8_t {
    text,          // between tags
    output_begin,  // {{
    output_end,
    tag_begin,  // {%
    tag_end,
    name,
    string,   // without its quotes and escapes
    integer,  // as written, without "_"
    real,
    symbol,
    end,
  };
  Kind kind = Kind::end;
  uint32_t line = 0;
  std::string text;

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

// Error: origin is the line, as "line 3".
Result<std::vector<Token>> tokens_of(std::string_view source);

}  // namespace tierd::jinja
