#include "core/model/text/token_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/model/text/byte_alphabet.h"
#include "core/model/text/normalizer.h"
#include "core/model/text/sentencepiece_bpe.h"
#include "core/model/text/utf8_segments.h"

namespace tierd {
namespace {

bool is_decoder(TextStepKind kind) {
  return kind == TextStepKind::byte_fallback || kind == TextStepKind::fuse || kind == TextStepKind::replace ||
         kind == TextStepKind::strip || kind == TextStepKind::byte_level || kind == TextStepKind::metaspace;
}

std::string replaced(std::string_view piece, const TextStep& step, const Expression* expression) {
  std::string out;
  for (const Utf8Segment& segment : utf8_segments(piece)) {
    if (segment.well_formed) {
      out += with_replaced(segment.text, step, expression);
    } else {
      out += segment.text;
    }
  }
  return out;
}

std::string stripped(std::string_view piece, const TextStep& step) {
  for (uint32_t i = 0; i < step.begin && piece.starts_with(step.content); ++i)
    piece.remove_prefix(step.content.size());
  for (uint32_t i = 0; i < step.end && piece.ends_with(step.content); ++i)
    piece.remove_suffix(step.content.size());
  return std::string(piece);
}

// Returns the piece with spaces for the mark, or without it in the first piece of a text.
std::string unmarked(std::string_view piece, const TextStep& step, bool first) {
  const bool leaves_out = first && step.prefix != SpacePrefix::never;
  return with_replaced(piece, {.pattern = step.content, .content = leaves_out ? "" : " "}, nullptr);
}

std::string apply(const TextStep& step, const Expression* expression, std::string piece, bool first) {
  switch (step.kind) {
    case TextStepKind::replace:
      return replaced(piece, step, expression);
    case TextStepKind::strip:
      return stripped(piece, step);
    case TextStepKind::byte_level:
      return bytes_of_piece(piece);
    case TextStepKind::metaspace:
      return unmarked(piece, step, first);
    case TextStepKind::byte_fallback: {
      const int byte = byte_of_piece(piece);
      return byte < 0 ? piece : std::string(1, static_cast<char>(byte));
    }
    default:
      return piece;
  }
}

}  // namespace

Result<TokenDecoder> TokenDecoder::make(const std::vector<TextStep>& steps, std::string_view origin) {
  TokenDecoder decoder;
  for (const TextStep& step : steps) {
    if (!is_decoder(step.kind)) {
      return Error{Code::corrupt, std::string(origin),
                   fmt::format("the step {} is no decoder", name(step.kind))};
    }
    Step& made = decoder.steps_.emplace_back(Step{step, std::nullopt});
    if (step.kind != TextStepKind::replace || !step.regex) continue;
    TIERD_ASSIGN(made.expression, Expression::from_file(step.pattern, origin));
  }
  return decoder;
}

std::string TokenDecoder::text_of(std::vector<std::string> pieces) const {
  const auto joined = [&] {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    return text;
  };
  for (const auto& [step, expression] : steps_) {
    if (step.kind == TextStepKind::fuse) {
      pieces.assign(1, joined());
      continue;
    }
    for (size_t i = 0; i < pieces.size(); ++i)
      pieces[i] = apply(step, expression ? &*expression : nullptr, std::move(pieces[i]), i == 0);
    if (step.kind == TextStepKind::byte_level) pieces.assign(1, joined());
  }
  return joined();
}

std::string TokenDecoder::bytes_of(std::string piece) const {
  for (const auto& [step, expression] : steps_) {
    // The steps after "fuse" apply to the ends of the whole text.
    if (step.kind == TextStepKind::fuse) break;
    piece = apply(step, expression ? &*expression : nullptr, std::move(piece), false);
  }
  return piece;
}

bool TokenDecoder::drops_first_space() const {
  bool fused = false;
  return std::ranges::any_of(steps_, [&](const Step& one) {
    fused = fused || one.step.kind == TextStepKind::fuse;
    return (one.step.kind == TextStepKind::metaspace && one.step.prefix != SpacePrefix::never) ||
           (fused && one.step.kind == TextStepKind::strip && one.step.content == " " && one.step.begin > 0);
  });
}

}  // namespace tierd
