#include "core/model/text/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/text/byte_alphabet.h"
#include "core/model/text/normalizer.h"
#include "core/model/text/pre_tokenizer_rules.h"
#include "core/model/text/utf8_segments.h"

namespace tierd {
namespace {

constexpr const char* kOneNumber = R"(\p{N})";
constexpr const char* kNumbers = R"(\p{N}+)";
constexpr const char* kPunctuation = R"([\p{P}!-/:-@\[-`{-~])";
// Rust's \w, which lacks six numbers that Oniguruma's has, and has the joiners.
constexpr const char* kWordsAndSymbols = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|)"
                                         R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)";
constexpr const char* kWhiteSpace = R"(\s)";

struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool matches = false;
};

// Divides the whole text into matches and the text between them.
template <class Next>
std::vector<Span> spans_between(std::string_view text, Next&& next) {
  std::vector<Span> spans;
  size_t done = 0;
  for (Span match; next(match); done = match.end) {
    if (match.begin > done) spans.push_back({done, match.begin, false});
    spans.push_back({match.begin, match.end, true});
  }
  if (done < text.size()) spans.push_back({done, text.size(), false});
  return spans;
}

std::vector<Span> spans_of_text(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  return spans_between(text, [&](Span& match) {
    const size_t found = pattern.empty() ? std::string_view::npos : text.find(pattern, at);
    if (found == std::string_view::npos) return false;
    at = found + pattern.size();
    match = {found, at, true};
    return true;
  });
}

std::vector<Span> spans_of_expression(std::string_view text, const Expression& expression) {
  Expression::Matches matches(expression, text);
  return spans_between(text, [&](Span& match) {
    if (!matches.next()) return false;
    match = {matches.begin(), matches.end(), true};
    return true;
  });
}

// A match joins the text before it, unless that is a match.
std::vector<Span> merged_with_previous(const std::vector<Span>& spans) {
  std::vector<Span> merged;
  bool after_match = false;
  for (const Span& span : spans) {
    if (span.matches && !after_match && !merged.empty()) {
      merged.back().end = span.end;
    } else {
      merged.push_back(span);
    }
    after_match = span.matches;
  }
  return merged;
}

std::vector<Span> merged_with_next(const std::vector<Span>& spans) {
  std::vector<Span> merged;
  bool before_match = false;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (span->matches && !before_match && !merged.empty()) {
      merged.back().begin = span->begin;
    } else {
      merged.push_back(*span);
    }
    before_match = span->matches;
  }
  std::ranges::reverse(merged);
  return merged;
}

std::vector<Span> contiguous(const std::vector<Span>& spans) {
  std::vector<Span> merged;
  bool after_match = false;
  for (const Span& span : spans) {
    if (span.matches == after_match && !merged.empty()) {
      merged.back().end = span.end;
    } else {
      merged.push_back(span);
    }
    after_match = span.matches;
  }
  return merged;
}

std::vector<Span> with_behavior(std::vector<Span> spans, CutBehavior behavior) {
  switch (behavior) {
    case CutBehavior::isolated:
      return spans;
    case CutBehavior::removed:
      std::erase_if(spans, [](const Span& span) { return span.matches; });
      return spans;
    case CutBehavior::merged_with_previous:
      return merged_with_previous(spans);
    case CutBehavior::merged_with_next:
      return merged_with_next(spans);
    case CutBehavior::contiguous:
      return contiguous(spans);
  }
  return spans;
}

std::string in_byte_alphabet(std::string_view text) {
  std::string out;
  out.reserve(2 * text.size());
  for (const char byte : text) out += byte_character(static_cast<uint8_t>(byte));
  return out;
}

// Returns the text that the step cuts: with its prefix, and with its mark for spaces.
std::string_view text_to_cut(const TextStep& step, std::string_view text, bool at_start,
                             std::deque<std::string>& written) {
  const bool marks = step.kind == TextStepKind::metaspace;
  if (!marks && step.kind != TextStepKind::byte_level) return text;
  const std::string_view mark = marks ? std::string_view(step.content) : " ";
  const bool prefixed = step.prefix == SpacePrefix::always || (step.prefix == SpacePrefix::first && at_start);
  if (!marks && (!prefixed || text.starts_with(mark))) return text;
  std::string out =
      marks ? with_replaced(text, {.pattern = " ", .content = step.content}, nullptr) : std::string(text);
  if (prefixed && !out.starts_with(mark)) out.insert(0, mark);
  return written.emplace_back(std::move(out));
}

}  // namespace

Result<PreTokenizer::Cut> PreTokenizer::compile(const TextStep& step, std::string_view origin) {
  Cut made{step};
  TextStep& own = made.step;
  switch (step.kind) {
    case TextStepKind::split: {
      if (!step.regex) return made;
      if (step.behavior == CutBehavior::isolated && !step.invert)
        made.digit_groups = DigitGroups::of(step.pattern);
      if (made.digit_groups) return made;
      TIERD_ASSIGN(made.expression, Expression::from_file(step.pattern, origin));
      return made;
    }
    case TextStepKind::digits:
      made.expression = Expression::known(step.cuts ? kOneNumber : kNumbers);
      return made;
    case TextStepKind::punctuation:
      made.expression = Expression::known(kPunctuation);
      return made;
    case TextStepKind::whitespace:
      made.expression = Expression::known(kWordsAndSymbols);
      own.behavior = CutBehavior::removed;
      own.invert = true;
      return made;
    case TextStepKind::whitespace_split:
      made.expression = Expression::known(kWhiteSpace);
      own.behavior = CutBehavior::removed;
      return made;
    case TextStepKind::metaspace:
      own.pattern = step.content;
      own.behavior = CutBehavior::merged_with_next;
      return made;
    case TextStepKind::byte_level:
      if (step.cuts) made.expression = Expression::known(kGpt2Expression);
      made.writes_bytes = true;
      return made;
    default:
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("the step {} is no pre-tokenizer", name(step.kind))};
  }
}

Result<PreTokenizer> PreTokenizer::make(std::string_view name, std::string_view origin) {
  const PreTokenizerRule* const rule = find_pre_tokenizer_rule(name);
  if (rule == nullptr) {
    return Error{Code::unsupported, std::string(origin),
                 fmt::format("unknown pre-tokenizer \"{}\"; known are {}", name, pre_tokenizer_names())};
  }
  PreTokenizer made;
  for (const char* const expression : rule->expressions) {
    if (expression == nullptr) break;
    Cut& cut = made.cuts_.emplace_back(Cut{TextStep{.kind = TextStepKind::split}});
    cut.digit_groups = DigitGroups::of(expression);
    if (!cut.digit_groups) cut.expression = Expression::known(expression);
  }
  return made;
}

Result<PreTokenizer> PreTokenizer::make(const std::vector<TextStep>& steps, LastByteLevel last,
                                        std::string_view origin) {
  PreTokenizer made;
  for (const TextStep& step : steps) {
    TIERD_ASSIGN(Cut cut, compile(step, origin));
    made.cuts_.push_back(std::move(cut));
  }
  if (last == LastByteLevel::only_cuts && !made.cuts_.empty()) made.cuts_.back().writes_bytes = false;
  return made;
}

void PreTokenizer::cut(const Cut& by, const Word& word, std::vector<Word>& out,
                       std::deque<std::string>& written) {
  const std::string_view text = text_to_cut(by.step, word.text, word.at_start, written);
  const auto add = [&](size_t begin, size_t end) {
    if (end == begin) return;
    std::string_view part = text.substr(begin, end - begin);
    if (by.writes_bytes) part = written.emplace_back(in_byte_alphabet(part));
    out.push_back({part, word.at_start && begin == 0});
  };
  if (by.digit_groups) {
    size_t done = 0;
    for (const size_t position : by.digit_groups->cuts(text)) {
      add(done, position);
      done = position;
    }
    return add(done, text.size());
  }
  const bool cuts = by.expression || by.step.kind == TextStepKind::split ||
                    (by.step.kind == TextStepKind::metaspace && by.step.cuts);
  if (!cuts) return add(0, text.size());
  if (by.expression &&
      by.step.behavior == CutBehavior::isolated) {  // without a list of spans: the common case
    size_t done = 0;
    for (Expression::Matches matches(*by.expression, text); matches.next(); done = matches.end()) {
      add(done, matches.begin());
      add(matches.begin(), matches.end());
    }
    return add(done, text.size());
  }
  std::vector<Span> spans =
      by.expression ? spans_of_expression(text, *by.expression) : spans_of_text(text, by.step.pattern);
  if (by.step.invert)
    for (Span& span : spans) span.matches = !span.matches;
  for (const Span& span : with_behavior(std::move(spans), by.step.behavior)) add(span.begin, span.end);
}

PreTokenizer::Words PreTokenizer::split(std::string_view text, bool at_start) const {
  Words out;
  const bool writes_bytes = std::ranges::any_of(cuts_, &Cut::writes_bytes);
  std::vector<Word> current;
  std::vector<Word> next;
  for (const Utf8Segment& segment : utf8_segments(text)) {
    if (!segment.well_formed) {
      out.words.push_back(writes_bytes ? out.written.emplace_back(in_byte_alphabet(segment.text))
                                       : segment.text);
      continue;
    }
    current.assign(1, {segment.text, at_start && segment.text.data() == text.data()});
    for (const Cut& by : cuts_) {
      next.clear();
      for (const Word& word : current) cut(by, word, next, out.written);
      current.swap(next);
    }
    for (const Word& word : current) out.words.push_back(word.text);
  }
  return out;
}

}  // namespace tierd
