// Translates regular expressions of tokenizer.json files, which are in Oniguruma's syntax, for PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tierd {

// Returns an expression that matches the same text with PCRE2's options UTF, UCP and MULTILINE and the line
// end LF. Error: unsupported, naming `origin`, the part that has another meaning in PCRE2, and its offset.
Result<std::string> pcre_of_oniguruma(std::string_view pattern, std::string_view origin);

}  // namespace tierd
