#include "core/model/text/characters.h"

#include <memory>

#include "core/base/check.h"
#include "core/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tierd {
namespace {

constexpr size_t kLongestCharacter = 4;

// Matches one class of characters.
class Kind {
 public:
  explicit Kind(const char* expression) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression), PCRE2_ZERO_TERMINATED,
                              PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr));
    TIERD_CHECK_MSG(code_ != nullptr, expression);
  }

  // `character` is one well-formed character.
  bool has(std::string_view character) const {
    const Match match(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    TIERD_CHECK(match != nullptr);
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(character.data()), character.size(), 0,
                       PCRE2_NO_UTF_CHECK, match.get(), nullptr) > 0;
  }

 private:
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeMatch {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  using Match = std::unique_ptr<pcre2_match_data, FreeMatch>;
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

const Kind& spaces() {
  static const Kind kind(R"(\p{WSpace})");
  return kind;
}

const Kind& words() {
  static const Kind kind(
      R"([\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}])");
  return kind;
}

// Both return an empty view if the text does not begin or end with a whole character.
std::string_view first_character(std::string_view text) {
  return text.empty() ? text : text.substr(0, utf8_character_bytes(text, 0));
}
std::string_view last_character(std::string_view text) {
  for (size_t bytes = 1; bytes <= kLongestCharacter && bytes <= text.size(); ++bytes) {
    const size_t at = text.size() - bytes;
    if (utf8_character_bytes(text, at) == bytes) return text.substr(at);
  }
  return {};
}

}  // namespace

size_t space_bytes_at_begin(std::string_view text) {
  size_t bytes = 0;
  for (;;) {
    const std::string_view character = first_character(text.substr(bytes));
    if (character.empty() || !spaces().has(character)) return bytes;
    bytes += character.size();
  }
}

size_t space_bytes_at_end(std::string_view text) {
  size_t bytes = 0;
  for (;;) {
    const std::string_view character = last_character(text.substr(0, text.size() - bytes));
    if (character.empty() || !spaces().has(character)) return bytes;
    bytes += character.size();
  }
}

bool begins_with_word(std::string_view text) {
  const std::string_view character = first_character(text);
  return !character.empty() && words().has(character);
}

bool ends_with_word(std::string_view text) {
  const std::string_view character = last_character(text);
  return !character.empty() && words().has(character);
}

}  // namespace tierd
