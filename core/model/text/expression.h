// Regular expressions (PCRE2) and the texts that match them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace tierd {

class Expression {
 public:
  // `pattern`: a constant of this program in Oniguruma's syntax, without a limit of steps.
  static Expression known(const char* pattern);
  // `pattern`: of a tokenizer.json, in Oniguruma's syntax. Its steps are limited. Error, naming `origin`:
  // unsupported.
  static Result<Expression> from_file(std::string_view pattern, std::string_view origin);

  // Finds the matches in a text, in order. A match may be empty, but not where the one before ended.
  class Matches {
   public:
    // `text` must be well-formed UTF-8, and live as long as this object.
    Matches(const Expression& expression, std::string_view text);
    bool next();
    size_t begin() const { return begin_; }
    size_t end() const { return end_; }

   private:
    struct FreeMatch {
      void operator()(pcre2_real_match_data_8* data) const;
    };
    bool search();

    const Expression& expression_;
    std::string_view text_;
    std::unique_ptr<pcre2_real_match_data_8, FreeMatch> match_;
    size_t from_ = 0;
    size_t last_end_ = std::string_view::npos;
    size_t begin_ = 0;
    size_t end_ = 0;
  };

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  struct FreeContext {
    void operator()(pcre2_real_match_context_8* context) const;
  };
  Expression() = default;
  // Returns an empty text, or PCRE2's reason for refusing the pattern.
  std::string compile(std::string_view pattern);
  void limit(uint32_t steps, uint32_t heap_kib);

  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
  std::unique_ptr<pcre2_real_match_context_8, FreeContext> context_;
  std::string pattern_;  // as the file has it
};

}  // namespace tierd
