#include "core/model/text/normalizer.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/model/text/characters.h"
#include "core/model/text/unicode_forms.h"
#include "core/model/text/utf8_segments.h"

namespace tierd {
namespace {

std::string with_text_replaced(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found == std::string_view::npos ? found : found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::string stripped(std::string_view text, bool at_begin, bool at_end) {
  if (at_begin) text.remove_prefix(space_bytes_at_begin(text));
  if (at_end) text.remove_suffix(space_bytes_at_end(text));
  return std::string(text);
}

bool is_normalizer(TextStepKind kind) {
  return kind <= TextStepKind::prepend || kind == TextStepKind::replace || kind == TextStepKind::strip;
}

std::string apply_step(const TextStep& step, const Expression* expression, std::string text) {
  switch (step.kind) {
    case TextStepKind::nfc:
      return to_form(text, UnicodeForm::nfc);
    case TextStepKind::nfd:
      return to_form(text, UnicodeForm::nfd);
    case TextStepKind::nfkc:
      return to_form(text, UnicodeForm::nfkc);
    case TextStepKind::nfkd:
      return to_form(text, UnicodeForm::nfkd);
    case TextStepKind::lowercase:
      return to_lower(text);
    case TextStepKind::strip_accents:
      return without_marks(text);
    case TextStepKind::strip:
      return stripped(text, step.begin != 0, step.end != 0);
    case TextStepKind::prepend:
      return text.empty() ? text : step.content + text;
    case TextStepKind::replace:
      return with_replaced(text, step, expression);
    default:
      return text;
  }
}

}  // namespace

std::string with_replaced(std::string_view text, const TextStep& step, const Expression* expression) {
  if (expression == nullptr) return with_text_replaced(text, step.pattern, step.content);
  std::string out;
  size_t done = 0;
  for (Expression::Matches matches(*expression, text); matches.next();) {
    out += text.substr(done, matches.begin() - done);
    out += step.content;
    done = matches.end();
  }
  out += text.substr(done);
  return out;
}

Result<Normalizer> Normalizer::make(const std::vector<TextStep>& steps, std::string_view origin) {
  Normalizer normalizer;
  for (const TextStep& step : steps) {
    if (!is_normalizer(step.kind)) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("the step {} is no normalizer", name(step.kind))};
    }
    Step& made = normalizer.steps_.emplace_back(Step{step, std::nullopt});
    if (step.kind != TextStepKind::replace || !step.regex) continue;
    TIERD_ASSIGN(made.expression, Expression::from_file(step.pattern, origin));
  }
  return normalizer;
}

std::string Normalizer::apply_well_formed(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_)
    out = apply_step(step.step, step.expression ? &*step.expression : nullptr, std::move(out));
  return out;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string out;
  for (const Utf8Segment& segment : utf8_segments(text)) {
    if (segment.well_formed) {
      out += apply_well_formed(segment.text);
    } else {
      out += segment.text;
    }
  }
  return out;
}

}  // namespace tierd
