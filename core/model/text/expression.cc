#include "core/model/text/expression.h"

#include <fmt/format.h>

#include <array>

#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/model/text/oniguruma.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tierd {
namespace {

// Oniguruma's own limit of steps a match. The heap only holds the states of such a match.
constexpr uint32_t kMaxSteps = 10'000'000;
constexpr uint32_t kMaxHeapKib = 64 << 10;
constexpr size_t kMaxPatternBytes = 64 << 10;

}  // namespace

void Expression::FreeCode::operator()(pcre2_code* code) const {
  pcre2_code_free(code);
}
void Expression::FreeContext::operator()(pcre2_match_context* context) const {
  pcre2_match_context_free(context);
}
void Expression::Matches::FreeMatch::operator()(pcre2_match_data* data) const {
  pcre2_match_data_free(data);
}

std::string Expression::compile(std::string_view pattern) {
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  TIERD_CHECK(context != nullptr);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_MULTILINE;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error,
                            &offset, context.get()));
  if (code_ == nullptr) {
    std::array<PCRE2_UCHAR, 128> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
  }
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // if JIT is refused, matching is only slower
  return {};
}

void Expression::limit(uint32_t steps, uint32_t heap_kib) {
  context_.reset(pcre2_match_context_create(nullptr));
  TIERD_CHECK(context_ != nullptr);
  pcre2_set_match_limit(context_.get(), steps);
  pcre2_set_depth_limit(context_.get(), steps);
  pcre2_set_heap_limit(context_.get(), heap_kib);
}

Expression Expression::known(const char* pattern) {
  Expression expression;
  expression.pattern_ = pattern;
  const Result<std::string> translated = pcre_of_oniguruma(pattern, "known");
  TIERD_CHECK_MSG(translated.ok() && expression.compile(*translated).empty(), pattern);
  // These expressions backtrack over white space at most once, so long text needs no limit.
  expression.limit(UINT32_MAX, UINT32_MAX);
  return expression;
}

Result<Expression> Expression::from_file(std::string_view pattern, std::string_view origin) {
  if (pattern.size() > kMaxPatternBytes) {
    return Error{
        Code::unsupported, std::string(origin),
        fmt::format("the expression has {} bytes, expected at most {}", pattern.size(), kMaxPatternBytes)};
  }
  TIERD_ASSIGN(const std::string translated, pcre_of_oniguruma(pattern, origin));
  Expression expression;
  expression.pattern_ = pattern;
  if (const std::string wrong = expression.compile(translated); !wrong.empty()) {
    return Error{Code::unsupported, std::string(origin),
                 fmt::format("the expression \"{}\" is not supported: {}", shown(pattern), wrong)};
  }
  expression.limit(kMaxSteps, kMaxHeapKib);
  return expression;
}

Expression::Matches::Matches(const Expression& expression, std::string_view text)
    : expression_(expression),
      text_(text),
      match_(pcre2_match_data_create_from_pattern(expression.code_.get(), nullptr)) {
  TIERD_CHECK(match_ != nullptr);
}

// Sets the span of the first match from `from_` on.
bool Expression::Matches::search() {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
  // The text is known to be UTF-8; checking it again at each word would take quadratic time.
  const auto match = [&](uint32_t options) {
    return pcre2_match(expression_.code_.get(), subject, text_.size(), from_, PCRE2_NO_UTF_CHECK | options,
                       match_.get(), expression_.context_.get());
  };
  int count = match(0);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match(PCRE2_NO_JIT);
  if (count < 0 && count != PCRE2_ERROR_NOMATCH) {
    say_once(
        fmt::format("the expression \"{}\" takes more than {} steps for a word of this text; the rest of "
                    "the text is one word",
                    shown(expression_.pattern_), kMaxSteps));
    return false;
  }
  if (count < 0) return false;
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match_.get());
  // A lookbehind with \K could end before it begins; Oniguruma's \K is refused.
  TIERD_CHECK(span[1] >= span[0]);
  begin_ = span[0];
  end_ = span[1];
  return true;
}

bool Expression::Matches::next() {
  while (from_ <= text_.size() && search()) {
    if (begin_ == end_ && end_ == last_end_) {
      if (from_ == text_.size()) return false;
      from_ += std::max<size_t>(utf8_character_bytes(text_, from_), 1);
      continue;
    }
    from_ = last_end_ = end_;
    return true;
  }
  from_ = text_.size() + 1;
  return false;
}

}  // namespace tierd
